"""Windows and keys on X11, over xcffib."""

from __future__ import annotations

import logging
import struct
from typing import Any

import xcffib
import xcffib.res
import xcffib.xproto
import xcffib.xtest

from app.desktop.protocols import Modifier, Window
from app.platform.terminals import X11_TERMINALS, X11_TERMINALS_WITHOUT_PASTE_KEY
from app.platform.x11_keyboard import X11Keyboard

_log = logging.getLogger(__name__)

_ATOMS = (
    "_NET_ACTIVE_WINDOW",
    "_NET_SUPPORTED",
    "_NET_WM_STATE",
    "_NET_WM_STATE_FULLSCREEN",
    "PRIMARY",
    "WM_CLASS",
)
_KEY_PRESS, _KEY_RELEASE = 2, 3
# EWMH: the request comes from a tool that acts for the user, not from the window itself.
_SOURCE_PAGER = 2


def connect(display: str | None = None) -> Any:
    """A new connection to a display, by default the one that DISPLAY names.

    Raises:
        ConnectionError: there is no such display, or it does not let us in.
    """
    try:
        return xcffib.connect(display=display)
    except xcffib.ConnectionException as error:
        raise ConnectionError(f"The display {display or 'of DISPLAY'} cannot be opened: {error}") from error


class X11Desktop:
    """Desktop over a connection of its own. Answers None or False where the window or the display is gone."""

    def __init__(self, connection: Any) -> None:
        """Takes over a connection (connect)."""
        self._connection = connection
        setup = connection.get_setup()
        self._id_mask: int = setup.resource_id_mask
        self._root: int = setup.roots[connection.pref_screen].root
        self._xtest: Any = connection(xcffib.xtest.key)
        self._keyboard = X11Keyboard(connection)
        asked = [(name, connection.core.InternAtom(False, len(name), name)) for name in _ATOMS]
        self._atoms: dict[str, int] = {name: cookie.reply().atom for name, cookie in asked}

    def foreground_window(self) -> Window | None:
        """The active window by the window manager's word, else the window that holds the input focus."""
        try:
            window_id = self._active_window() or self._focused_window()
            return None if window_id is None else self._window(window_id)
        except xcffib.XcffibException:
            return None

    def full_screen_window(self) -> Window | None:
        """By the window manager's word; a window that merely covers the screen counts as a window."""
        try:
            window_id = self._active_window()
            if window_id is None:
                return None
            states = self._property_words(window_id, "_NET_WM_STATE")
            return self._window(window_id) if self._atoms["_NET_WM_STATE_FULLSCREEN"] in states else None
        except xcffib.XcffibException:
            return None

    def activate(self, window: Window) -> None:
        """Asks the window manager to focus a window, or sets the input focus where no manager can be asked."""
        try:
            if self._atoms["_NET_ACTIVE_WINDOW"] in self._property_words(self._root, "_NET_SUPPORTED"):
                self._send_active_window(window.window_id)
            else:
                focus = xcffib.xproto.InputFocus.Parent
                self._connection.core.SetInputFocusChecked(focus, window.window_id, xcffib.CurrentTime).check()
        except xcffib.XcffibException:
            _log.info("The window to go back to is gone.")

    def held_modifiers(self) -> frozenset[Modifier]:
        """By the physical state of the keys, so sticky or locked modifiers do not count."""
        try:
            return self._current_keyboard().map.held(self._keymap())
        except xcffib.XcffibException:
            return frozenset()

    def any_key_held(self) -> bool:
        """Whether any key is down; buttons of the mouse do not count."""
        try:
            return any(self._keymap())
        except xcffib.XcffibException:
            return False

    def send_copy(self) -> None:
        """Sends Ctrl+Insert, never to a terminal.

        Qt, GTK, Chromium, Firefox, LibreOffice, Java and Windows programs all know it as "copy". Unlike Ctrl+C it means
        the same under every layout, interrupts nothing, and cannot become a typed letter over the selection.
        """
        window = self.foreground_window()
        if window is not None and window.is_terminal:
            _log.info("No copy keystroke is sent to a terminal.")
            return
        if not self._press((Modifier.CTRL,), "INSERT"):
            self._press((Modifier.CTRL,), "C")

    def send_paste(self) -> None:
        """Sends Ctrl+V; to a terminal Ctrl+Shift+V, or nothing where that would not paste."""
        window = self.foreground_window()
        if window is None or not window.is_terminal:
            self._press((Modifier.CTRL,), "V")
        elif window.program not in X11_TERMINALS_WITHOUT_PASTE_KEY:
            self._press((Modifier.CTRL, Modifier.SHIFT), "V")

    def owns_primary(self, window: Window) -> bool:
        """Whether selection and window come from the same client, or from two clients of one process."""
        try:
            owner = self._connection.core.GetSelectionOwner(self._atoms["PRIMARY"]).reply().owner
            if owner == xcffib.NONE:
                return False
            if owner & ~self._id_mask == window.window_id & ~self._id_mask:
                return True
            pid = self._process_of(owner)
            return pid is not None and pid == self._process_of(window.window_id)
        except xcffib.XcffibException:
            return False

    def close(self) -> None:
        """Closes the connection."""
        self._connection.disconnect()

    def _active_window(self) -> int | None:
        words = self._property_words(self._root, "_NET_ACTIVE_WINDOW")
        return words[0] if words and words[0] else None

    def _focused_window(self) -> int | None:
        """The top-level program window around the input focus."""
        window_id = self._connection.core.GetInputFocus().reply().focus
        while window_id not in (xcffib.NONE, xcffib.xproto.InputFocus.PointerRoot, self._root):
            if self._property(window_id, "WM_CLASS"):
                return int(window_id)
            window_id = self._connection.core.QueryTree(window_id).reply().parent
        return None

    def _window(self, window_id: int) -> Window:
        # Two zero-terminated names: the instance, then the class.
        names = [name.decode("latin-1").lower() for name in self._property(window_id, "WM_CLASS").split(b"\0") if name]
        terminal = next((name for name in reversed(names) if name in X11_TERMINALS), None)
        return Window(window_id, terminal or (names[-1] if names else ""), terminal is not None)

    def _property(self, window_id: int, name: str) -> bytes:
        any_type, offset, longs = 0, 0, 4096
        reply = self._connection.core.GetProperty(False, window_id, self._atoms[name], any_type, offset, longs).reply()
        return bytes(reply.value.buf())

    def _property_words(self, window_id: int, name: str) -> tuple[int, ...]:
        value = self._property(window_id, name)
        return struct.unpack(f"={len(value) // 4}I", value[: len(value) // 4 * 4])

    def _send_active_window(self, window_id: int) -> None:
        data = xcffib.xproto.ClientMessageData.synthetic([_SOURCE_PAGER, xcffib.CurrentTime, 0, 0, 0], "IIIII")
        event = xcffib.xproto.ClientMessageEvent.synthetic(32, window_id, self._atoms["_NET_ACTIVE_WINDOW"], data)
        mask = xcffib.xproto.EventMask.SubstructureRedirect | xcffib.xproto.EventMask.SubstructureNotify
        self._connection.core.SendEventChecked(False, self._root, mask, event.pack()).check()

    def _process_of(self, window_id: int) -> int | None:
        """The id of the local process behind a window, None where the server does not know."""
        kind = xcffib.res.ClientIdMask.LocalClientPID
        spec = xcffib.res.ClientIdSpec.synthetic(window_id, kind)
        reply = self._connection(xcffib.res.key).QueryClientIds(1, [spec]).reply()
        return next((int(answer.value[0]) for answer in reply.ids if answer.length), None)

    def _keymap(self) -> bytes:
        return bytes(self._connection.core.QueryKeymap().reply().keys)

    def _current_keyboard(self) -> X11Keyboard:
        """The keyboard, read again where an event says that it changed."""
        changed = False
        while (event := self._connection.poll_for_event()) is not None:
            changed = changed or X11Keyboard.is_change(event)
        if changed:
            self._keyboard.refresh()
        return self._keyboard

    def _press(self, modifiers: tuple[Modifier, ...], key: str) -> bool:
        """Presses and releases a combination through XTEST; False where the keyboard has no such key."""
        try:
            keys = self._current_keyboard().map
            keycodes = [keys.modifier_keycode(modifier) for modifier in modifiers] + [keys.keycode(key)]
            if None in keycodes:
                return False
            for keycode in keycodes:
                self._fake(_KEY_PRESS, keycode)
            for keycode in reversed(keycodes):
                self._fake(_KEY_RELEASE, keycode)
            self._connection.flush()
        except xcffib.XcffibException:
            _log.warning("The display did not take the keystroke.")
        return True

    def _fake(self, kind: int, keycode: int | None) -> None:
        now, nowhere, core_device = 0, 0, 0
        self._xtest.FakeInput(kind, keycode, now, xcffib.NONE, nowhere, nowhere, core_device)
