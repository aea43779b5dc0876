"""A field that takes a key combination by having it pressed."""

from __future__ import annotations

import sys

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent
from PySide6.QtWidgets import QPushButton, QWidget

from app.desktop.protocols import Hotkey, Modifier
from app.qt.look.theme import set_styled
from app.translation import Translator

_MODIFIERS = (
    (Qt.KeyboardModifier.ControlModifier, Modifier.CTRL),
    (Qt.KeyboardModifier.AltModifier, Modifier.ALT),
    (Qt.KeyboardModifier.ShiftModifier, Modifier.SHIFT),
    (Qt.KeyboardModifier.MetaModifier, Modifier.META),
)
_MODIFIER_KEYS = {
    Qt.Key.Key_Control: Modifier.CTRL,
    Qt.Key.Key_Alt: Modifier.ALT,
    Qt.Key.Key_AltGr: None,
    Qt.Key.Key_Shift: Modifier.SHIFT,
    Qt.Key.Key_Meta: Modifier.META,
    Qt.Key.Key_Super_L: Modifier.META,
    Qt.Key.Key_Super_R: Modifier.META,
    Qt.Key.Key_CapsLock: None,
    Qt.Key.Key_NumLock: None,
}
_NAMED = {
    Qt.Key.Key_Space: "SPACE",
    Qt.Key.Key_Tab: "TAB",
    Qt.Key.Key_Backtab: "TAB",
    Qt.Key.Key_Return: "RETURN",
    Qt.Key.Key_Enter: "RETURN",
    Qt.Key.Key_Backspace: "BACKSPACE",
    Qt.Key.Key_Insert: "INSERT",
    Qt.Key.Key_Delete: "DELETE",
    Qt.Key.Key_Home: "HOME",
    Qt.Key.Key_End: "END",
    Qt.Key.Key_PageUp: "PAGEUP",
    Qt.Key.Key_PageDown: "PAGEDOWN",
    Qt.Key.Key_Up: "UP",
    Qt.Key.Key_Down: "DOWN",
    Qt.Key.Key_Left: "LEFT",
    Qt.Key.Key_Right: "RIGHT",
    Qt.Key.Key_Print: "PRINT",
    Qt.Key.Key_Pause: "PAUSE",
    Qt.Key.Key_Menu: "MENU",
}
# What the keys print without and with Shift on a US keyboard, by which combinations name them.
_PUNCTUATION = {
    "-_": "MINUS",
    "=+": "EQUAL",
    ",<": "COMMA",
    ".>": "PERIOD",
    "/?": "SLASH",
    "\\|": "BACKSLASH",
    ";:": "SEMICOLON",
    "'\"": "APOSTROPHE",
    "`~": "GRAVE",
    "[{": "BRACKETLEFT",
    "]}": "BRACKETRIGHT",
}
# X keycodes of the row of digits: with Shift such a key has another name, but it is the same key.
_X11_DIGITS = {10 + index: digit for index, digit in enumerate("1234567890")}


def key_name(key: int, scan_code: int, virtual_key: int, platform: str = sys.platform) -> str:
    """The name that hotkeys give a pressed key, "" where they have none.

    Args:
        key: Qt's key.
        scan_code: the system's number of the key's place.
        virtual_key: the system's own name of the key.
    """
    digits = _X11_DIGITS.get(scan_code, "") if platform.startswith("linux") else ""
    if platform == "win32" and 0x30 <= virtual_key <= 0x39:
        digits = chr(virtual_key)
    if Qt.Key.Key_A <= key <= Qt.Key.Key_Z or Qt.Key.Key_0 <= key <= Qt.Key.Key_9:
        return chr(key)
    if Qt.Key.Key_F1 <= key <= Qt.Key.Key_F24:
        return f"F{key - Qt.Key.Key_F1 + 1}"
    if digits:
        return digits
    for characters, name in _PUNCTUATION.items():
        if 0x20 < key < 0x7F and chr(key) in characters:
            return name
    return next((name for named, name in _NAMED.items() if named == key), "")


class HotkeyEdit(QPushButton):
    """Shows a combination; after a click or Enter it takes the next one that is pressed.

    Esc leaves it as it was, Backspace or Delete alone takes it away.

    Signals:
        edited: the new combination's text, "" for none.
        recording_changed: whether keys are waited for; the app's own hotkeys must be free meanwhile.
    """

    edited = Signal(str)
    recording_changed = Signal(bool)

    def __init__(self, translator: Translator, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._tr = translator.tr
        self._hotkey = ""
        self._is_recording = False
        self.setProperty("role", "hotkey")
        self.setAutoDefault(True)  # Enter presses it, outside of dialogs too
        self.clicked.connect(self._start)
        self._show()

    @property
    def is_recording(self) -> bool:
        """Whether keys are waited for."""
        return self._is_recording

    def set_hotkey(self, text: str) -> None:
        """Shows a combination, "" for none."""
        self._hotkey = text
        self._show()

    def _start(self) -> None:
        if not self._is_recording:
            self._set_recording(True)
            self.setFocus()

    def _set_recording(self, is_recording: bool) -> None:
        self._is_recording = is_recording
        self.recording_changed.emit(is_recording)
        self._show()

    def _show(self, modifiers: str = "") -> None:
        if self._is_recording:
            self.setText(f"{modifiers}…" if modifiers else self._tr("Press the keys…"))
        else:
            self.setText(self._hotkey or self._tr("none"))
        set_styled(self, "recording", self._is_recording)

    def event(self, event: QEvent) -> bool:
        """While keys are waited for, every one of them is ours: Tab, and what the window has as a shortcut."""
        if self._is_recording and isinstance(event, QKeyEvent):
            if event.type() is QEvent.Type.ShortcutOverride:
                event.accept()
                return True
            if event.type() is QEvent.Type.KeyPress:
                self._take(event)
                return True
            if event.type() is QEvent.Type.KeyRelease:
                self._show(self._held(event))
                return True
        return super().event(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Who goes elsewhere has given it up."""
        if self._is_recording:
            self._set_recording(False)
        super().focusOutEvent(event)

    @staticmethod
    def _held(event: QKeyEvent) -> str:
        """The modifiers that are down once this event has happened, as the beginning of a combination."""
        held = {modifier for flag, modifier in _MODIFIERS if event.modifiers() & flag}
        own = _MODIFIER_KEYS.get(Qt.Key(event.key())) if event.key() in _MODIFIER_KEYS else None
        if own is not None:
            held = held | {own} if event.type() is QEvent.Type.KeyPress else held - {own}
        return "".join(f"{modifier.value}+" for modifier in Modifier if modifier in held)

    def _take(self, event: QKeyEvent) -> None:
        key = event.key()
        if key in _MODIFIER_KEYS:
            self._show(self._held(event))
            return
        modifiers = frozenset(modifier for flag, modifier in _MODIFIERS if event.modifiers() & flag)
        if key == Qt.Key.Key_Escape and not modifiers:
            self._set_recording(False)
            return
        if key in (Qt.Key.Key_Backspace, Qt.Key.Key_Delete) and not modifiers:
            self._set_recording(False)
            self.edited.emit("")
            return
        name = key_name(key, event.nativeScanCode(), event.nativeVirtualKey())
        if name:
            self._set_recording(False)
            self.edited.emit(str(Hotkey(modifiers, name)))
