"""Whether this desktop shows tray icons, asked without Qt: on the session bus (StatusNotifier) and on X11 (XEmbed)."""

from __future__ import annotations

import os
import sys
from typing import Any

_WATCHERS = ("org.kde.StatusNotifierWatcher", "org.freedesktop.StatusNotifierWatcher")
_BUS_LIMIT_S = 1.0


def tray_host() -> str:
    """What shows tray icons here: "the system", "StatusNotifier", "XEmbed", or "" where nothing was found."""
    if sys.platform != "linux":
        return "the system"
    if os.environ.get("DBUS_SESSION_BUS_ADDRESS") and _has_watcher():
        return "StatusNotifier"
    display = os.environ.get("DISPLAY")
    return "XEmbed" if display and _has_xembed_tray(display) else ""


def _has_watcher() -> bool:
    from jeepney import MessageType
    from jeepney.bus_messages import message_bus
    from jeepney.io.blocking import open_dbus_connection

    try:
        with open_dbus_connection("SESSION") as connection:
            for name in _WATCHERS:
                reply = connection.send_and_get_reply(message_bus.NameHasOwner(name), timeout=_BUS_LIMIT_S)
                if reply.header.message_type == MessageType.method_return and reply.body[0]:
                    return True
    except (OSError, EOFError, ValueError, KeyError, TimeoutError):
        return False
    return False


def _has_xembed_tray(display: str) -> bool:
    try:
        import xcffib
    except (ImportError, OSError):  # it loads libxcb when it is imported
        return False
    try:
        connection: Any = xcffib.connect(display=display)
    except xcffib.ConnectionException:
        return False
    try:
        name = f"_NET_SYSTEM_TRAY_S{connection.pref_screen}"
        atom = connection.core.InternAtom(False, len(name), name).reply().atom
        return bool(connection.core.GetSelectionOwner(atom).reply().owner)
    except xcffib.XcffibException:
        return False
    finally:
        connection.disconnect()
