"""Putting an answer in the place of the selection, and the clipboard back afterwards.

A state machine that a timer drives through `poll`, as in app/capture/capture.py.
"""

from __future__ import annotations

import enum
from typing import Any

from app.desktop.protocols import Clipboard, Desktop, Window

KEYS_LIMIT_S = 1.5
FOCUS_LIMIT_S = 0.7
FETCH_LIMIT_S = 3.0
# Programs fetch more than one format, and a clipboard manager may fetch before the target does.
SETTLE_S = 0.3


class PasteResult(enum.Enum):
    """How a replacement ended."""

    REPLACED = "replaced"
    NOT_FOCUSED = "not focused"
    KEYS_HELD = "keys held"
    NOT_FETCHED = "not fetched"


class _State(enum.Enum):
    IDLE = enum.auto()
    WAIT_FOR_KEYS = enum.auto()
    WAIT_FOR_FETCH = enum.auto()


class PasteBack:
    """Pastes text into the window it came from. UI thread only; one paste at a time.

    Nothing is sent unless that window has the focus. The clipboard gets its content back once the target has fetched
    the text, or after a time limit, unless somebody copied something else meanwhile: that is newer and stays.

    Attributes:
        restores: whether the clipboard gets back what lay on it (setting "clipboard.restore").
    """

    def __init__(self, desktop: Desktop, clipboard: Clipboard) -> None:
        self.restores = True
        self._desktop = desktop
        self._clipboard = clipboard
        self._state = _State.IDLE
        self._window: Window | None = None
        self._text = ""
        self._keys_deadline_s = 0.0
        self._focus_deadline_s = 0.0
        self._fetch_deadline_s = 0.0
        self._offer_number = 0
        self._fetches = 0
        self._fetches_seen = 0
        self._settled_s = 0.0
        self._serial = 0
        self._snapshot: Any = None

    @property
    def is_busy(self) -> bool:
        """Whether a paste runs."""
        return self._state is not _State.IDLE

    def start(self, window: Window, text: str, now_s: float, *, activate: bool = False) -> bool:
        """Begins; False, and nothing happens, where a paste already runs.

        Args:
            activate: our own popup may have the focus: ask for the window's first, and wait a moment for it.
        """
        if self.is_busy:
            return False
        self._window, self._text = window, text
        self._keys_deadline_s = now_s + KEYS_LIMIT_S
        self._focus_deadline_s = now_s
        if activate and self._desktop.foreground_window() != window:
            self._desktop.activate(window)
            self._focus_deadline_s = now_s + FOCUS_LIMIT_S
        self._state = _State.WAIT_FOR_KEYS
        return True

    def poll(self, now_s: float) -> PasteResult | None:
        """Goes on; returns the result once. Call it about every 10 ms while `is_busy`.

        An error of the display passes through, after the clipboard was put back.
        """
        try:
            if self._state is _State.WAIT_FOR_KEYS:
                return self._wait_for_keys(now_s)
            if self._state is _State.WAIT_FOR_FETCH:
                return self._wait_for_fetch(now_s)
        except BaseException:
            self.cancel()
            raise
        return None

    def cancel(self) -> None:
        """Ends a paste without a result; the clipboard comes back."""
        offered, self._state = self._state is _State.WAIT_FOR_FETCH, _State.IDLE
        if offered:
            self._restore()

    def _wait_for_keys(self, now_s: float) -> PasteResult | None:
        if self._desktop.foreground_window() != self._window:
            # With the first look after the limit at the latest: the window may never have had the focus.
            return self._finish(PasteResult.NOT_FOCUSED) if now_s >= self._focus_deadline_s else None
        self._focus_deadline_s = now_s
        if self._desktop.any_key_held():
            return self._finish(PasteResult.KEYS_HELD) if now_s >= self._keys_deadline_s else None
        self._paste(now_s)
        return None

    def _paste(self, now_s: float) -> None:
        self._snapshot = self._clipboard.snapshot()
        self._fetches = self._fetches_seen = 0
        self._offer_number += 1
        number = self._offer_number
        self._serial = self._clipboard.serial()
        self._state = _State.WAIT_FOR_FETCH
        self._clipboard.offer(self._text, lambda: self._on_fetched(number))
        self._serial = self._clipboard.serial()
        self._fetch_deadline_s = now_s + FETCH_LIMIT_S
        self._desktop.send_paste()

    def _on_fetched(self, number: int) -> None:
        if number == self._offer_number:
            self._fetches += 1

    def _wait_for_fetch(self, now_s: float) -> PasteResult | None:
        if self._fetches > self._fetches_seen:
            self._fetches_seen = self._fetches
            self._settled_s = min(now_s + SETTLE_S, self._fetch_deadline_s)
        if self._fetches_seen:
            return self._finish(PasteResult.REPLACED) if now_s >= self._settled_s else None
        return self._finish(PasteResult.NOT_FETCHED) if now_s >= self._fetch_deadline_s else None

    def _finish(self, result: PasteResult) -> PasteResult:
        offered, self._state = self._state is _State.WAIT_FOR_FETCH, _State.IDLE
        if offered:
            self._restore()
        return result

    def _restore(self) -> None:
        snapshot, self._snapshot = self._snapshot, None
        if self.restores and self._is_ours():
            self._clipboard.restore(snapshot)
        self._text = ""

    def _is_ours(self) -> bool:
        """Whether our text still lies there; some systems report our own offer as a change only later."""
        return self._clipboard.serial() == self._serial or self._clipboard.text() == self._text
