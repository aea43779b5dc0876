"""Selection capture, driven by a clock of the test: what is read, and what the clipboard holds after it."""

from __future__ import annotations

import pytest

from app.capture.capture import (
    COPY_ATTEMPTS,
    COPY_LIMIT_S,
    ClipboardEmpty,
    NothingSelected,
    Secret,
    Selected,
    TextOrigin,
    capture_clipboard,
)
from app.desktop.fake_desktop import EDITOR, SECRET, TEXT, FakeClipboard, FakeDesktop
from tests.app.capture.bench import OLD, Bench, old_offer


def test_a_selection_is_read_and_the_clipboard_has_every_format_back() -> None:
    bench = Bench()
    assert bench.start()
    bench.run(0.1)
    assert bench.result == Selected("selected", EDITOR)
    assert bench.clipboard.formats == OLD
    assert bench.desktop.sent == ["copy"]
    assert not bench.capture.is_busy


def test_a_slow_program_is_waited_for() -> None:
    bench = Bench(selection=None)
    bench.start()
    bench.run(COPY_LIMIT_S / 2)
    assert bench.results == []
    bench.clipboard.put_text("late")
    bench.run()
    assert bench.result == Selected("late", EDITOR)
    assert bench.clipboard.formats == OLD


def test_nothing_selected_is_its_own_answer_and_never_the_old_clipboard() -> None:
    bench = Bench(selection=None)
    bench.start()
    bench.run(COPY_LIMIT_S * COPY_ATTEMPTS + 0.1)
    assert bench.result == NothingSelected(EDITOR, old_offer(EDITOR))
    assert bench.desktop.sent == ["copy"] * COPY_ATTEMPTS
    assert bench.clipboard.restores == []


@pytest.mark.parametrize("selection", ["", " ", "\n\t "])
def test_white_space_counts_as_nothing_selected(selection: str) -> None:
    bench = Bench(selection)
    bench.start()
    bench.run(2.0)
    assert bench.result == NothingSelected(EDITOR, old_offer(EDITOR))
    assert bench.clipboard.formats == OLD


def test_a_program_that_empties_the_clipboard_before_it_fills_it() -> None:
    bench = Bench(selection="")
    bench.start()
    bench.run(0.05)
    bench.clipboard.put_text("now")
    bench.run()
    assert bench.result == Selected("now", EDITOR)
    assert bench.clipboard.formats == OLD


def test_an_image_that_was_copied_is_no_text_and_no_reason_to_copy_again() -> None:
    bench = Bench()
    bench.desktop.on_copy = lambda: bench.clipboard.put({"image/png": b"new"})
    bench.start()
    bench.run(2.0)
    assert bench.result == NothingSelected(EDITOR, old_offer(EDITOR))
    assert bench.desktop.sent == ["copy"]
    assert bench.clipboard.formats == OLD


def test_an_empty_clipboard_comes_back_empty() -> None:
    bench = Bench()
    bench.clipboard.formats = {}
    bench.start()
    bench.run(0.1)
    assert bench.result == Selected("selected", EDITOR)
    assert bench.clipboard.formats == {}


def test_without_a_focused_window_nothing_is_selected() -> None:
    bench = Bench()
    bench.desktop.window = None
    bench.start()
    bench.run(2.0)
    assert bench.result == NothingSelected(None, old_offer(None))
    assert bench.desktop.sent == []


def test_the_user_may_want_the_selection_to_stay_on_the_clipboard() -> None:
    bench = Bench()
    bench.capture.restores = False
    bench.start()
    bench.run(0.1)
    assert bench.result == Selected("selected", EDITOR)
    assert bench.clipboard.text() == "selected"


def test_the_clipboard_by_choice() -> None:
    desktop, clipboard = FakeDesktop(), FakeClipboard(OLD)
    assert capture_clipboard(desktop, clipboard) == Selected("old", EDITOR, TextOrigin.CLIPBOARD)
    clipboard.put_text(" \n")
    assert capture_clipboard(desktop, clipboard) == ClipboardEmpty()
    clipboard.put({"image/png": b"x"})
    assert capture_clipboard(desktop, clipboard) == ClipboardEmpty()
    clipboard.put({TEXT: b"hunter2", SECRET: b""})
    assert capture_clipboard(desktop, clipboard) == Secret()
    assert desktop.sent == []
