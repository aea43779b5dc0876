"""Taking the selected text out of another program, and other text of the user's by choice.

The capture is a state machine that a timer drives through `poll`: it never sleeps and starts no thread. Only the copy
keystroke tells what is selected now: many programs go on owning the primary selection after it has been given up, and
the clipboard holds what was copied before. Such text is at most offered, with its origin, and never taken unasked.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from app.desktop.protocols import Clipboard, Desktop, Window
from app.translation import UserText

KEYS_LIMIT_S = 1.5
COPY_LIMIT_S = 0.6
COPY_ATTEMPTS = 2


class FailureReason(enum.Enum):
    """Why no selection could be read; `value` is the text for the user."""

    KEYS_HELD = UserText("Keys are still held down. Release the hotkey and press it again, shortly.")
    FOCUS_CHANGED = UserText("Another window came to the front before the selection was read. Try again.")


class TextOrigin(enum.Enum):
    """Where a text comes from."""

    SELECTION = enum.auto()
    LAST_SELECTION = enum.auto()
    """It was selected in the program last, and need not be selected any more."""
    CLIPBOARD = enum.auto()


@dataclass(frozen=True, slots=True)
class Selected:
    """Text to work on, and the window that an answer may be pasted into.

    Attributes:
        window: None where no window has the focus.
        origin: anything but SELECTION is the user's explicit choice.
    """

    text: str
    window: Window | None
    origin: TextOrigin = TextOrigin.SELECTION


@dataclass(frozen=True, slots=True)
class NothingSelected:
    """No text is selected, or none can be read here without harm (a terminal gets no copy keystroke).

    Attributes:
        offer: text that the user may choose instead, once it has been shown; None where there is none.
    """

    window: Window | None
    offer: Selected | None = None


@dataclass(frozen=True, slots=True)
class Secret:
    """The text is marked as a password by its program; it is not read."""


@dataclass(frozen=True, slots=True)
class LeftAlone:
    """The user wants nothing read out of this program.

    Attributes:
        program: its name.
    """

    program: str


@dataclass(frozen=True, slots=True)
class ClipboardEmpty:
    """There is no text on the clipboard."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Nothing could be read."""

    reason: FailureReason


CaptureResult = Selected | NothingSelected | Secret | LeftAlone | Failed


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
        left_alone: programs that nothing is read from and no key is sent to (setting "privacy.leave_alone").
    """

    def __init__(self, desktop: Desktop, clipboard: Clipboard) -> None:
        self.restores = True
        self.left_alone: frozenset[str] = frozenset()
        self._desktop = desktop
        self._clipboard = clipboard
        self._state = _State.IDLE
        self._window: Window | None = None
        self._result: CaptureResult | None = None
        self._deadline_s = 0.0
        self._attempt = 0
        self._serial = 0
        self._snapshot: Any = None
        # A copy keystroke was sent, the capture was cancelled, and the program may still answer the keystroke.
        self._copy_is_due = False

    @property
    def is_busy(self) -> bool:
        """Whether a capture runs or its result has not been taken by `poll`."""
        return self._state is not _State.IDLE or self._result is not None

    @property
    def needs_poll(self) -> bool:
        """Whether `poll` has something to do: also after `cancel`, until the clipboard is safe."""
        return self.is_busy or self._copy_is_due

    def start(self, now_s: float) -> bool:
        """Begins with the window that has the focus now; False, and nothing happens, where a capture already runs."""
        if self.is_busy:
            return False
        if self._copy_is_due:
            self._end_due_copy()
        self._window = window = self._desktop.foreground_window()
        if window is None:
            self._result = self._nothing()
        elif self.leaves_alone(window):
            self._result = LeftAlone(window.program)
        elif window.is_terminal:
            text = self._last_selection(window)
            self._result = Selected(text, window) if text else self._nothing()
        else:
            self._state = _State.WAIT_FOR_KEYS
            if not self._copy_is_due:
                self._deadline_s = now_s + KEYS_LIMIT_S
        return True

    def leaves_alone(self, window: Window) -> bool:
        """Whether the user has named the window's program as one to leave alone."""
        return window.program.removesuffix(".exe") in self.left_alone

    def poll(self, now_s: float) -> CaptureResult | None:
        """Goes on; returns the result once. Call it about every 10 ms while `needs_poll`.

        An error of the display passes through, after the clipboard was put back.
        """
        try:
            if self._copy_is_due:
                self._wait_for_due_copy(now_s)
            elif self._state is _State.WAIT_FOR_KEYS:
                self._wait_for_keys(now_s)
            elif self._state is _State.WAIT_FOR_COPY:
                self._wait_for_copy(now_s)
        except BaseException:
            copy_was_sent = self._copy_is_due or self._state is _State.WAIT_FOR_COPY
            self._state, self._result, self._copy_is_due = _State.IDLE, None, False
            if copy_was_sent:
                self._restore()
            raise
        result, self._result = self._result, None
        return result

    def cancel(self) -> None:
        """Ends a capture without a result. The clipboard comes back, later by `poll` where the copy has yet to come."""
        waiting, self._state, self._result = self._state is _State.WAIT_FOR_COPY, _State.IDLE, None
        if waiting:
            self._copy_is_due = True
            self._end_due_copy()

    def close(self) -> None:
        """Ends everything at once."""
        self.cancel()
        if self._copy_is_due:
            self._copy_is_due = False
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

    def _wait_for_due_copy(self, now_s: float) -> None:
        """Keeps the clipboard safe from the answer to a keystroke of a cancelled capture."""
        self._end_due_copy()
        if self._copy_is_due and now_s >= self._deadline_s:
            self._copy_is_due = False
            self._restore()
        if not self._copy_is_due:
            self._deadline_s = now_s + KEYS_LIMIT_S  # of a capture that has begun meanwhile

    def _end_due_copy(self) -> None:
        """Ends the wait where the program has answered; an empty clipboard may be filled a moment later."""
        if self._clipboard.serial() != self._serial and (self._clipboard.is_secret() or self._clipboard.text()):
            self._copy_is_due = False
            self._restore()

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
        """Ends with a result; None stands for nothing selected, for which an offer is looked for."""
        waited_for_copy, self._state = self._state is _State.WAIT_FOR_COPY, _State.IDLE
        if waited_for_copy:
            self._restore()
        self._result = result if result is not None else self._nothing()

    def _restore(self) -> None:
        """Puts the snapshot back. An untouched clipboard is left to its owner."""
        snapshot, self._snapshot = self._snapshot, None
        if self.restores and self._clipboard.serial() != self._serial:
            self._clipboard.restore(snapshot)

    def _last_selection(self, window: Window) -> str:
        """What was selected in the window's program last, "" where that is unknown."""
        text = self._clipboard.primary_text() if self._desktop.owns_primary(window) else ""
        return text if text.strip() else ""

    def _nothing(self) -> NothingSelected:
        """What was selected here last is closer to what the user wants than what lies on the clipboard."""
        window = self._window
        if window is not None and (text := self._last_selection(window)):
            return NothingSelected(window, Selected(text, window, TextOrigin.LAST_SELECTION))
        text_or_reason = _read_clipboard(self._clipboard)
        if isinstance(text_or_reason, str):
            return NothingSelected(window, Selected(text_or_reason, window, TextOrigin.CLIPBOARD))
        return NothingSelected(window)


def _read_clipboard(clipboard: Clipboard) -> str | Secret | ClipboardEmpty:
    if clipboard.is_secret():
        return Secret()
    text = clipboard.text()
    return text if text.strip() else ClipboardEmpty()


def capture_clipboard(desktop: Desktop, clipboard: Clipboard) -> Selected | Secret | ClipboardEmpty:
    """The clipboard's text, by the user's choice; with the focused window, which an answer may be pasted into."""
    text = _read_clipboard(clipboard)
    return Selected(text, desktop.foreground_window(), TextOrigin.CLIPBOARD) if isinstance(text, str) else text
