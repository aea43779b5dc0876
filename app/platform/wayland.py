"""Wayland: no program may grab keys or look at other windows.

The desktop is asked for shortcuts (wayland_portal.py). Where it gives out none, its user binds a command to a key.
"""

from __future__ import annotations

from collections.abc import Mapping

from app.desktop.desktop_entry import APP_ID, install_entry
from app.desktop.protocols import DesktopSession
from app.platform.headless import RefusingGrabber, UnknownDesktop
from app.platform.wayland_portal import PortalShortcuts
from app.translation import UserText

_NO_GRABS = UserText(
    "Wayland lets no program take a hotkey for itself. Bind the command `deskinfer --action summarize` to a key"
)

# By a word of XDG_CURRENT_DESKTOP, lower case: where a user binds a command to a key.
_PLACES: Mapping[str, UserText] = {
    "gnome": UserText("in Settings > Keyboard > View and Customize Shortcuts > Custom Shortcuts."),
    "kde": UserText("in System Settings > Keyboard > Shortcuts > Add New > Command or Script."),
    "cosmic": UserText("in Settings > Input Devices > Keyboard > Keyboard Shortcuts > Custom."),
    "xfce": UserText("in Settings > Keyboard > Application Shortcuts."),
    "sway": UserText("in ~/.config/sway/config: bindsym Ctrl+Shift+1 exec deskinfer --action summarize"),
    "hyprland": UserText("in ~/.config/hypr/hyprland.conf: bind = CTRL SHIFT, 1, exec, deskinfer --action summarize"),
    "niri": UserText(
        'in ~/.config/niri/config.kdl, under binds: Ctrl+Shift+1 { spawn "deskinfer" "--action" "summarize"; }'
    ),
    "labwc": UserText("in ~/.config/labwc/rc.xml, as a keybind with the action Execute."),
}
_ALIASES: Mapping[str, str] = {"ubuntu": "gnome", "gnome-classic": "gnome", "plasma": "kde"}
_ELSEWHERE = UserText(
    "in your desktop's keyboard settings (GNOME: Settings > Keyboard > Custom Shortcuts; KDE: System Settings > "
    "Keyboard > Shortcuts; sway and Hyprland: bindsym or bind in the configuration file)."
)
_CLIPBOARD_ONLY = UserText(
    "Wayland does not show other programs' windows: copy the text first (Ctrl+C), then start the action; the answer is "
    "put on the clipboard for you to paste."
)


def binding_advice(current_desktop: str) -> UserText:
    """Why there are no hotkeys, and where to bind the command instead.

    Args:
        current_desktop: the value of XDG_CURRENT_DESKTOP, e.g. "ubuntu:GNOME".
    """
    for word in reversed(current_desktop.lower().split(":")):
        place = _PLACES.get(_ALIASES.get(word, word))
        if place is not None:
            return UserText("{no_grabs} {place}", no_grabs=_NO_GRABS, place=place)
    return UserText("{no_grabs} {place}", no_grabs=_NO_GRABS, place=_ELSEWHERE)


def open_wayland(current_desktop: str) -> DesktopSession:
    """The session of a Wayland desktop."""
    advice = binding_advice(current_desktop)
    return DesktopSession(
        "wayland",
        UnknownDesktop(),
        RefusingGrabber(advice),
        (advice, _CLIPBOARD_ONLY),
        PortalShortcuts(APP_ID, install_entry),
    )
