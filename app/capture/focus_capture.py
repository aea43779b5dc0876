"""The user's text where no program may look at another's windows (Wayland).

There a program sees the clipboard and the selection of others only while its own window has the keyboard. So the popup
opens first and takes it, and then both are read. What is read may be old: the selection and the clipboard are offered
with their origin, and taken at once only where the user has asked for the clipboard.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.actions.commands import Source
from app.capture.capture import ClipboardEmpty, NothingSelected, Secret, Selected, TextOrigin
from app.desktop.protocols import Clipboard, Window

# A compositor may keep the keyboard from a window that nobody has clicked; what is known is shown then.
FOCUS_LIMIT_S = 1.0
# The contents arrive with the keyboard, in messages of their own.
SETTLE_S = 0.05

FocusResult = Selected | NothingSelected | Secret | ClipboardEmpty


@dataclass(slots=True)
class _Wait:
    """For the keyboard, and then for what comes with it."""

    source: Source
    deadline_s: float
    ready_s: float | None = None


class FocusCapture:
    """Has the methods of SelectionCapture. UI thread only.

    Attributes:
        restores: nothing is ever changed here, so there is nothing to restore.
        left_alone: programs are not known here.
    """

    def __init__(self, clipboard: Clipboard, has_focus: Callable[[], bool]) -> None:
        """Reads nothing yet.

        Args:
            has_focus: whether our window has the keyboard.
        """
        self.restores = True
        self.left_alone: frozenset[str] = frozenset()
        self._clipboard, self._has_focus = clipboard, has_focus
        self._wait: _Wait | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a capture runs."""
        return self._wait is not None

    needs_poll = is_busy

    def start(self, now_s: float, source: Source = "selection") -> bool:
        """Begins; the caller gives the keyboard to our window. False, and nothing happens, where a capture runs."""
        if self._wait is not None:
            return False
        self._wait = _Wait(source, now_s + FOCUS_LIMIT_S)
        return True

    def poll(self, now_s: float) -> FocusResult | None:
        """Goes on; returns the result once. Call it about every 10 ms while `needs_poll`."""
        wait = self._wait
        if wait is None:
            return None
        if wait.ready_s is None and self._has_focus():
            wait.ready_s = now_s + SETTLE_S
        if now_s < (wait.deadline_s if wait.ready_s is None else wait.ready_s):
            return None
        self._wait = None
        return self._read(wait.source)

    def cancel(self) -> None:
        """Ends a capture without a result."""
        self._wait = None

    def close(self) -> None:
        """Ends everything."""
        self.cancel()

    def leaves_alone(self, window: Window) -> bool:
        """Windows of others are not known here."""
        return False

    def _read(self, source: Source) -> FocusResult:
        selection = self._clipboard.primary_text() if source == "selection" else ""
        if selection.strip():
            return NothingSelected(None, Selected(selection, None, TextOrigin.LAST_SELECTION))
        if self._clipboard.is_secret():
            return Secret()
        text = self._clipboard.text()
        if not text.strip():
            return ClipboardEmpty()
        copied = Selected(text, None, TextOrigin.CLIPBOARD)
        return copied if source == "clipboard" else NothingSelected(None, copied)
