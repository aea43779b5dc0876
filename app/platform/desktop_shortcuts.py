"""The shortcuts of the desktop environment, read out of its own settings: who may hold a combination that is taken.

X11 refuses a grab without telling who has the key, and Windows does not tell either. What a desktop has written down
about itself is all that can be known; so a name found here is told as what it is: an entry of that desktop's settings.
"""

from __future__ import annotations

import configparser
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from app.desktop.hotkeys import HotkeyFormatError, parse
from app.desktop.protocols import Hotkey

_GSETTINGS_LIMIT_S = 2.0
_GNOME_SCHEMAS = (
    "org.gnome.desktop.wm.keybindings",
    "org.gnome.shell.keybindings",
    "org.gnome.mutter.keybindings",
    "org.gnome.mutter.wayland.keybindings",
    "org.gnome.settings-daemon.plugins.media-keys",
)
_GTK_MODIFIERS = {
    "primary": "Ctrl",
    "control": "Ctrl",
    "ctrl": "Ctrl",
    "shift": "Shift",
    "alt": "Alt",
    "mod1": "Alt",
    "super": "Meta",
    "meta": "Meta",
    "mod4": "Meta",
}
_OPENBOX_MODIFIERS = {"C": "Ctrl", "A": "Alt", "S": "Shift", "W": "Meta"}


@dataclass(frozen=True, slots=True)
class Shortcut:
    """An entry of a desktop's settings.

    Attributes:
        desktop: the desktop environment's name.
        purpose: what the entry does, in the desktop's own words.
    """

    desktop: str
    purpose: str


def known_shortcuts(environment: Mapping[str, str] | None = None) -> dict[Hotkey, Shortcut]:
    """Every combination that the running desktop's settings name; {} where they cannot be read. Takes up to 2 s."""
    if not sys.platform.startswith("linux"):
        return {}
    environment = os.environ if environment is None else environment
    desktop = environment.get("XDG_CURRENT_DESKTOP", "").lower()
    home = Path(environment.get("HOME", "") or Path.home())
    config = Path(environment.get("XDG_CONFIG_HOME", "") or home / ".config")
    if any(name in desktop for name in ("gnome", "unity", "budgie", "pantheon")):
        return _table("GNOME", (pair for schema in _GNOME_SCHEMAS for pair in gsettings_pairs(_gsettings(schema))))
    if "xfce" in desktop:
        path = config / "xfce4" / "xfconf" / "xfce-perchannel-xml" / "xfce4-keyboard-shortcuts.xml"
        return _table("Xfce", xfce_pairs(_text(path)))
    if "kde" in desktop:
        return _table("KDE", kde_pairs(_text(config / "kglobalshortcutsrc")))
    if "openbox" in desktop or "lxde" in desktop:
        text = _text(config / "openbox" / "rc.xml") or _text(Path("/etc/xdg/openbox/rc.xml"))
        return _table("Openbox", openbox_pairs(text))
    return {}


def gtk_accelerator(text: str) -> str:
    """ "<Primary><Shift>1" as "Ctrl+Shift+1"; a modifier that is unknown makes it one that cannot be read."""
    names = re.findall(r"<([^>]+)>", text)
    key = re.sub(r"<[^>]+>", "", text)
    return "+".join([_GTK_MODIFIERS.get(name.lower(), "?") for name in names] + [key])


def gsettings_pairs(lines: str) -> Iterator[tuple[str, str]]:
    """Combination and purpose out of what `gsettings list-recursively` prints."""
    for line in lines.splitlines():
        _schema, _, rest = line.partition(" ")
        key, _, values = rest.partition(" ")
        for accelerator in re.findall(r"'([^']+)'", values):
            yield gtk_accelerator(accelerator), key.replace("-", " ")


def xfce_pairs(xml: str) -> Iterator[tuple[str, str]]:
    """Combination and purpose out of Xfce's keyboard shortcuts, its own settings before the defaults."""
    root = _parsed(xml)
    for channel in root if root is not None else ():
        for place in sorted(channel, key=lambda each: each.get("name") != "custom"):
            for entry in place:
                if entry.get("type") == "string" and entry.get("value"):
                    yield gtk_accelerator(entry.get("name", "")), str(entry.get("value"))


def kde_pairs(text: str) -> Iterator[tuple[str, str]]:
    """Combination and purpose out of KDE's global shortcuts: "active,default,what it does"."""
    parser = configparser.ConfigParser(interpolation=None, strict=False, delimiters=("=",), comment_prefixes=("#",))
    try:
        parser.read_string(text)
    except configparser.Error:
        return
    for section in parser.sections():
        for value in parser[section].values():
            active, _, rest = value.partition(",")
            for combination in re.split(r"\\t|\t", active):
                if combination and combination != "none":
                    yield combination, rest.partition(",")[2].replace("\\", "") or section


def openbox_pairs(xml: str) -> Iterator[tuple[str, str]]:
    """Combination and purpose out of Openbox' rc.xml."""
    root = _parsed(xml)
    for bind in root.iter() if root is not None else ():
        if bind.tag.rpartition("}")[2] != "keybind":
            continue
        *modifiers, key = (bind.get("key") or "").split("-")
        action = next((each for each in bind if each.tag.rpartition("}")[2] == "action"), None)
        purpose = "" if action is None else action.get("name", "")
        yield "+".join([_OPENBOX_MODIFIERS.get(name, "?") for name in modifiers] + [key]), purpose


def _table(desktop: str, pairs: Iterator[tuple[str, str]]) -> dict[Hotkey, Shortcut]:
    table: dict[Hotkey, Shortcut] = {}
    for combination, purpose in pairs:
        try:
            hotkey = parse(combination)
        except HotkeyFormatError:  # keys such as XF86AudioPlay, which no setting of ours can name
            continue
        table.setdefault(hotkey, Shortcut(desktop, purpose))
    return table


def _parsed(xml: str) -> ET.Element | None:
    try:
        return ET.fromstring(xml)
    except ET.ParseError:
        return None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _gsettings(schema: str) -> str:
    try:
        done = subprocess.run(
            ["gsettings", "list-recursively", schema],
            capture_output=True,
            text=True,
            timeout=_GSETTINGS_LIMIT_S / len(_GNOME_SCHEMAS),
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout
