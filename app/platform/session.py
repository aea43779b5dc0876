"""Which desktop this is, and what it can do."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping

from app.desktop.protocols import DesktopSession
from app.platform.headless import RefusingGrabber, UnknownDesktop
from app.platform.wayland import open_wayland
from app.translation import UserText

_log = logging.getLogger(__name__)

_NO_DISPLAY = UserText(
    "There is no display here, so there are no hotkeys. Start the app in a desktop session, or use `deskinfer ask` in "
    "the terminal."
)
_NO_XCB = UserText(
    "The system library libxcb is missing, so there are no hotkeys. Install it (on Debian and Ubuntu: apt install "
    "libxcb1) and start the app again."
)


def open_session(platform: str = sys.platform, environment: Mapping[str, str] | None = None) -> DesktopSession:
    """Opens the desktop of this process. Where nothing is possible its kind is "none" and a limit says why.

    Args:
        platform: as in sys.platform.
        environment: of the process by default. WAYLAND_DISPLAY, XDG_SESSION_TYPE, XDG_CURRENT_DESKTOP and DISPLAY are
            read.
    """
    variables = os.environ if environment is None else environment
    if platform == "win32":
        # Loads the system's libraries, which are elsewhere on other systems.
        from app.platform.windows import open_windows

        return open_windows()
    if platform == "darwin":
        return _nothing(UserText("There are no hotkeys on macOS yet. Use `deskinfer ask` in the terminal."))
    # With XWayland there is a DISPLAY too, but grabs on it see the keys of X programs only.
    if variables.get("WAYLAND_DISPLAY") or variables.get("XDG_SESSION_TYPE") == "wayland":
        return open_wayland(variables.get("XDG_CURRENT_DESKTOP", ""))
    display = variables.get("DISPLAY")
    return _open_x11(display) if display else _nothing(_NO_DISPLAY)


def _open_x11(display: str) -> DesktopSession:
    try:
        # xcffib loads libxcb when it is imported.
        from app.platform.x11 import X11Desktop, connect
        from app.platform.x11_grabber import X11HotkeyGrabber
    except (ImportError, OSError) as error:
        _log.warning("libxcb cannot be loaded: %s", error)
        return _nothing(_NO_XCB)
    try:
        return DesktopSession("x11", X11Desktop(connect(display)), X11HotkeyGrabber(connect(display)))
    except ConnectionError as error:
        _log.warning("%s", error)
        return _nothing(
            UserText(
                "The display {display} cannot be opened, so there are no hotkeys. Check DISPLAY and XAUTHORITY, or "
                "start the app in a desktop session.",
                display=display,
            )
        )


def _nothing(reason: UserText) -> DesktopSession:
    return DesktopSession("none", UnknownDesktop(), RefusingGrabber(reason), (reason,))
