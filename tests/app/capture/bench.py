"""A capture on fakes, driven by a clock of the test."""

from __future__ import annotations

from app.capture.capture import (
    CaptureResult,
    Selected,
    SelectionCapture,
    TextOrigin,
)
from app.desktop.fake_desktop import TEXT, FakeClipboard, FakeDesktop
from app.desktop.protocols import Window

OLD = {TEXT: b"old", "text/html": b"<b>old</b>", "image/png": b"\x89PNG"}

TERMINAL = Window(7, "terminal", is_terminal=True)

OTHER = Window(9, "other")


def old_offer(window: Window | None) -> Selected:
    """The offer of what lay on the clipboard."""
    return Selected("old", window, TextOrigin.CLIPBOARD)


class Bench:
    """A capture on fakes, with the old content on the clipboard and a selection in the editor."""

    def __init__(self, selection: str | None = "selected") -> None:
        self.desktop = FakeDesktop()
        self.clipboard = FakeClipboard(OLD)
        self.capture = SelectionCapture(self.desktop, self.clipboard)
        self.now_s = 100.0
        self.results: list[CaptureResult] = []
        if selection is not None:
            self.desktop.on_copy = lambda: self.clipboard.put_text(selection)

    def start(self) -> bool:
        return self.capture.start(self.now_s)

    def run(self, seconds: float = 0.0) -> None:
        """Polls every 10 ms for a time, and at least once."""
        end_s = self.now_s + seconds
        while True:
            result = self.capture.poll(self.now_s)
            if result is not None:
                self.results.append(result)
            self.now_s += 0.01
            if self.now_s >= end_s:
                return

    @property
    def result(self) -> CaptureResult:
        (only,) = self.results
        return only
