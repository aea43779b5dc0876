"""The text of the user where only a window with the keyboard may read it."""

from __future__ import annotations

import pytest

from app.actions.commands import Source
from app.capture.capture import CaptureResult, ClipboardEmpty, NothingSelected, Secret, Selected, TextOrigin
from app.capture.focus_capture import FOCUS_LIMIT_S, SETTLE_S, FocusCapture
from app.desktop.fake_desktop import SECRET, TEXT, FakeClipboard
from app.desktop.protocols import Window


class Reader:
    """A capture at a time that the test sets."""

    def __init__(self) -> None:
        self.clipboard = FakeClipboard()
        self.has_focus = False
        self.capture = FocusCapture(self.clipboard, lambda: self.has_focus)

    def read(self, source: Source = "selection") -> CaptureResult | ClipboardEmpty | None:
        self.has_focus = True
        assert self.capture.start(0.0, source)
        assert self.capture.poll(0.0) is None, "what comes with the keyboard has not arrived yet"
        return self.capture.poll(SETTLE_S)


@pytest.fixture
def reader() -> Reader:
    return Reader()


def test_nothing_is_read_before_the_window_has_the_keyboard(reader: Reader) -> None:
    reader.clipboard.put_text("copied")
    assert reader.capture.start(0.0)
    assert reader.capture.needs_poll
    assert reader.capture.poll(FOCUS_LIMIT_S / 2) is None
    reader.has_focus = True
    assert reader.capture.poll(FOCUS_LIMIT_S / 2) is None
    result = reader.capture.poll(FOCUS_LIMIT_S / 2 + SETTLE_S)
    assert result == NothingSelected(None, Selected("copied", None, TextOrigin.CLIPBOARD))
    assert not reader.capture.is_busy
    assert reader.capture.poll(99.0) is None


def test_a_compositor_that_gives_no_keyboard_is_not_waited_for_without_end(reader: Reader) -> None:
    reader.capture.start(0.0)
    assert reader.capture.poll(FOCUS_LIMIT_S - 0.01) is None
    assert reader.capture.poll(FOCUS_LIMIT_S) == ClipboardEmpty()


def test_what_was_selected_last_is_offered_before_the_clipboard(reader: Reader) -> None:
    reader.clipboard.put_text("copied")
    reader.clipboard.primary = "selected"
    assert reader.read() == NothingSelected(None, Selected("selected", None, TextOrigin.LAST_SELECTION))


def test_the_clipboard_is_taken_where_it_is_meant(reader: Reader) -> None:
    reader.clipboard.put_text("copied")
    reader.clipboard.primary = "selected"
    assert reader.read("clipboard") == Selected("copied", None, TextOrigin.CLIPBOARD)


@pytest.mark.parametrize("source", ["selection", "clipboard"])
def test_an_empty_clipboard_and_a_password(reader: Reader, source: Source) -> None:
    assert reader.read(source) == ClipboardEmpty()
    reader.clipboard.put({TEXT: b"hunter2", SECRET: b""})
    assert reader.read(source) == Secret()


def test_one_at_a_time_and_cancelled(reader: Reader) -> None:
    assert reader.capture.start(0.0)
    assert not reader.capture.start(0.0, "clipboard")
    reader.capture.cancel()
    assert not reader.capture.is_busy
    assert reader.capture.poll(99.0) is None
    reader.capture.start(0.0)
    reader.capture.close()
    assert not reader.capture.needs_poll
    assert not reader.capture.leaves_alone(Window(1, "any"))
