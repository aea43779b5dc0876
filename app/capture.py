"""Taking the selected text out of another program, and the clipboard's text by choice.

The capture is a state machine that a timer drives through `poll`: it never sleeps and starts no thread. It never takes
what lay on the clipboard before for a selection: without a change after the copy keystroke nothing is selected.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from app.desktop import Clipboard, Desktop, Window
from app.translation import UserText

KEYS_LIMIT_S = 1.5
COPY_LIMIT_S = 0.6
COPY_ATTEMPTS = 2


class FailureReason(enum.Enum):
    """Why no selection could be read; `value` is the text for the user."""

    KEYS_HELD = UserText("Keys are still held down. Release the hotkey and press it again, shortly.")
    FOCUS_CHANGED = UserText("Another window came to the front before the selection was read. Try again.")


@dataclass(frozen=True, slots=True)
class Selected:
    """Text, and the window that an answer may be pasted into.

    Attributes:
        window: None where no window has the focus (clipboard only).
        from_clipboard: it was the clipboard's text, by the user's choice.
    """

    text: str
    window: Window | None
    from_clipboard: bool = False


@dataclass(frozen=True, slots=True)
class NothingSelected:
    """No text is selected, or none can be read here without harm (a terminal gets no copy keystroke).

    Attributes:
        clipboard_has_text: the popup may offer the clipboard's text, which it shows before it is used.
    """

    window: Window | None
    clipboard_has_text: bool


@dataclass(frozen=True, slots=True)
class Secret:
    """The text is marked as a password by its program; it is not read."""


@dataclass(frozen=True, slots=True)
class ClipboardEmpty:
    """There is no text on the clipboard."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Nothing could be read."""

    reason: FailureReason


CaptureResult = Selected | NothingSelected | Secret | Failed


class _State(enum.Enum):
    IDLE = enum.auto()
    WAIT_FOR_KEYS = enum.auto()
    WAIT_FOR_COPY = enum.auto()


class SelectionCapture:
    """Reads the selection of the focused window. UI thread only.

    One capture runs at a time. A press while one runs is ignored: it would read the same selection, and a second copy
    keystroke or snapshot in between could lose the clipboard.

    Attributes:
        restores: whether the clipboard gets back what lay on it (setting "clipboard.restore").
    """

    def __init__(self, desktop: Desktop, clipboard: Clipboard) -> None:
        self.restores = True
        self._desktop = desktop
        self._clipboard = clipboard
        self._state = _State.IDLE
        self._window: Window | None = None
        self._result: CaptureResult | None = None
        self._deadline_s = 0.0
        self._attempt = 0
        self._serial = 0
        self._snapshot: Any = None

    @property
    def is_busy(self) -> bool:
        """Whether a capture runs or its result has not been taken by `poll`."""
        return self._state is not _State.IDLE or self._result is not None

    def start(self, now_s: float) -> bool:
        """Begins with the window that has the focus now; False, and nothing happens, where a capture already runs."""
        if self.is_busy:
            return False
        self._window = window = self._desktop.foreground_window()
        if window is None:
            self._result = self._nothing()
            return True
        if self._desktop.owns_primary(window):
            text = self._clipboard.primary_text()
            if text.strip():
                self._result = Selected(text, window)
                return True
        if window.is_terminal:
            self._result = self._nothing()
            return True
        self._state = _State.WAIT_FOR_KEYS
        self._deadline_s = now_s + KEYS_LIMIT_S
        return True

    def poll(self, now_s: float) -> CaptureResult | None:
        """Goes on; returns the result once. Call it about every 10 ms while `is_busy`.

        An error of the display passes through, after the clipboard was put back.
        """
        try:
            if self._state is _State.WAIT_FOR_KEYS:
                self._wait_for_keys(now_s)
            elif self._state is _State.WAIT_FOR_COPY:
                self._wait_for_copy(now_s)
        except BaseException:
            self.cancel()
            raise
        result, self._result = self._result, None
        return result

    def cancel(self) -> None:
        """Ends a capture without a result; the clipboard comes back."""
        waiting, self._state, self._result = self._state is _State.WAIT_FOR_COPY, _State.IDLE, None
        if waiting:
            self._restore()

    def _wait_for_keys(self, now_s: float) -> None:
        if self._desktop.foreground_window() != self._window:
            self._finish(Failed(FailureReason.FOCUS_CHANGED))
        elif not self._desktop.any_key_held():
            self._snapshot = self._clipboard.snapshot()
            self._serial = self._clipboard.serial()
            self._attempt = 0
            self._state = _State.WAIT_FOR_COPY
            self._send_copy(now_s)
        elif now_s >= self._deadline_s:
            self._finish(Failed(FailureReason.KEYS_HELD))

    def _wait_for_copy(self, now_s: float) -> None:
        if self._clipboard.serial() != self._serial:
            if self._clipboard.is_secret():
                self._finish(Secret())
                return
            text = self._clipboard.text()
            if text.strip():
                assert self._window is not None
                self._finish(Selected(text, self._window))
                return
            # Some programs empty the clipboard first and fill it a moment later.
        if now_s < self._deadline_s:
            return
        if self._may_retry():
            self._send_copy(now_s)
        else:
            self._finish(None)

    def _may_retry(self) -> bool:
        """A copy keystroke may be repeated: it changes nothing. But not among other keys or in another window."""
        return (
            self._attempt < COPY_ATTEMPTS
            and self._clipboard.serial() == self._serial
            and not self._desktop.any_key_held()
            and self._desktop.foreground_window() == self._window
        )

    def _send_copy(self, now_s: float) -> None:
        self._attempt += 1
        self._deadline_s = now_s + COPY_LIMIT_S
        self._desktop.send_copy()

    def _finish(self, result: CaptureResult | None) -> None:
        """Ends with a result; None stands for nothing selected, which looks at the clipboard after it came back."""
        waited_for_copy, self._state = self._state is _State.WAIT_FOR_COPY, _State.IDLE
        if waited_for_copy:
            self._restore()
        self._result = result if result is not None else self._nothing()

    def _restore(self) -> None:
        """Puts the snapshot back. An untouched clipboard is left to its owner."""
        snapshot, self._snapshot = self._snapshot, None
        if self.restores and self._clipboard.serial() != self._serial:
            self._clipboard.restore(snapshot)

    def _nothing(self) -> NothingSelected:
        return NothingSelected(self._window, isinstance(_read_clipboard(self._clipboard), str))


def _read_clipboard(clipboard: Clipboard) -> str | Secret | ClipboardEmpty:
    if clipboard.is_secret():
        return Secret()
    text = clipboard.text()
    return text if text.strip() else ClipboardEmpty()


def capture_clipboard(desktop: Desktop, clipboard: Clipboard) -> Selected | Secret | ClipboardEmpty:
    """The clipboard's text, by the user's choice; with the focused window, which an answer may be pasted into."""
    text = _read_clipboard(clipboard)
    return Selected(text, desktop.foreground_window(), from_clipboard=True) if isinstance(text, str) else text
