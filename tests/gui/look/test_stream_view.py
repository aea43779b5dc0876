"""The view that text streams into: it follows the end until the user scrolls up."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QTextCursor
from pytestqt.qtbot import QtBot

from app.qt.look.stream_view import StreamView

pytestmark = pytest.mark.gui


@pytest.fixture
def view(qtbot: QtBot) -> StreamView:
    view = StreamView()
    qtbot.addWidget(view)
    view.resize(300, 120)
    view.show()
    for number in range(40):
        view.append_text(f"line {number}\n")
    return view


def _is_at_end(view: StreamView) -> bool:
    return view.verticalScrollBar().value() == view.verticalScrollBar().maximum() > 0


def test_it_follows_the_end(view: StreamView):
    assert _is_at_end(view)
    view.append_text("more\n" * 10)
    assert _is_at_end(view)


def test_scrolling_up_stops_following_and_the_end_resumes_it(view: StreamView):
    bar = view.verticalScrollBar()
    bar.setValue(bar.maximum() // 2)
    at = bar.value()
    view.append_text("more\n" * 10)
    assert bar.value() == at
    assert not view.is_following
    bar.setValue(bar.maximum())
    view.append_text("more\n" * 10)
    assert _is_at_end(view)


def test_a_narrower_window_still_shows_the_end(view: StreamView, qtbot: QtBot):
    view.append_text("a long line that is wrapped when the window is narrow " * 20)
    view.resize(150, 120)
    qtbot.waitUntil(lambda: _is_at_end(view))


def test_a_new_answer_follows_again(view: StreamView):
    view.verticalScrollBar().setValue(0)
    view.clear_text()
    view.append_text("x\n" * 50)
    assert _is_at_end(view)


@pytest.mark.parametrize("backwards", [False, True])
def test_a_selection_that_reaches_the_end_does_not_grow(view: StreamView, backwards: bool):
    bar = view.verticalScrollBar()
    view.append_text("the last words")
    end = view.document().characterCount() - 1
    cursor = view.textCursor()
    first, second = (end, end - 5) if backwards else (end - 5, end)
    cursor.setPosition(first)
    cursor.setPosition(second, QTextCursor.MoveMode.KeepAnchor)
    view.setTextCursor(cursor)
    bar.setValue(0)
    view.append_text(" and more")
    assert view.textCursor().selectedText() == "words"
    assert bar.value() == 0


def test_each_paragraph_has_its_own_direction(view: StreamView):
    view.clear_text()
    view.append_text("English\nمرحبا بالعالم\n中文")
    directions = [view.document().findBlockByNumber(n).textDirection() for n in range(3)]
    left, right = Qt.LayoutDirection.LeftToRight, Qt.LayoutDirection.RightToLeft
    assert directions == [left, right, left]


def test_text_is_taken_literally(view: StreamView):
    view.clear_text()
    view.append_text("<b>bold</b> & {braces}")
    assert view.toPlainText() == "<b>bold</b> & {braces}"
