"""The view of changes: what is shown, what is taken, by mouse and keys."""

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QTextCursor
from pytestqt.qtbot import QtBot

from app.qt.popup.diff_view import DiffView
from app.text.checks import Loss
from app.text.word_diff import word_diff
from app.translation import Translator
from tests.gui.test_heartbeat import LONGEST_PAUSE_MS, Heartbeat

pytestmark = pytest.mark.gui

SOURCE = "😀 i has talked to teh boss\nbye"
ANSWER = "😀 I have talked to the boss.\nbye"


@pytest.fixture
def view(qtbot: QtBot) -> DiffView:
    view = DiffView(Translator("en"))
    qtbot.addWidget(view)
    view.resize(400, 200)
    view.show()
    view.show_changes(SOURCE, word_diff(SOURCE, ANSWER).changes)
    return view


def _formats(view: DiffView, text: str) -> tuple[bool, bool]:
    """Whether a piece of text is struck through, and whether it is underlined."""
    cursor = view.document().find(text)
    assert not cursor.isNull()
    return cursor.charFormat().fontStrikeOut(), cursor.charFormat().fontUnderline()


def test_old_and_new_words_stand_side_by_side(view: DiffView):
    assert view.toPlainText() == "😀 i hasI have talked to tehthe boss.\nbye"
    assert _formats(view, "i has") == (True, False)
    assert _formats(view, "I have") == (False, True)
    assert _formats(view, " talked to ") == (False, False)


def test_all_changes_are_used_at_first(view: DiffView):
    assert view.result() == ANSWER
    view.accept_all(False)
    assert view.result() == SOURCE
    assert _formats(view, "I have") == (True, False)
    assert _formats(view, "i has") == (False, False)
    view.accept_all(True)
    assert view.result() == ANSWER


def test_keys_choose(view: DiffView, qtbot: QtBot):
    view.go(1)
    view.go(1)
    assert view.current == 1
    with qtbot.waitSignal(view.choice_changed):
        qtbot.keyClick(view, Qt.Key.Key_Space)
    assert view.result() == ANSWER.replace("the", "teh")
    assert view.accessibleDescription() == "Change 2 of 3, not used. teh becomes the"
    view.go(1)
    view.go(1)
    assert view.current == 0
    view.go(-1)
    assert view.current == 2
    assert view.describe(2) == "Change 3 of 3, used. Added: ."


def test_going_back_begins_at_the_end(view: DiffView):
    view.go(-1)
    assert view.current == 2


def test_toggling_before_a_change_was_chosen_only_chooses(view: DiffView):
    view.toggle_current()
    assert (view.current, view.result()) == (0, ANSWER)


def _point_of(view: DiffView, text: str) -> QPoint:
    cursor = view.document().find(text)
    cursor.setPosition(cursor.selectionStart() + 1)
    return view.cursorRect(cursor).center()


def test_a_click_takes_and_leaves(view: DiffView, qtbot: QtBot):
    point = _point_of(view, "the boss")
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=point)
    assert view.result() == ANSWER.replace("the", "teh")
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=point)
    assert view.result() == ANSWER
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=_point_of(view, "talked"))
    assert view.result() == ANSWER
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(380, 190))
    assert view.result() == ANSWER


def test_selecting_text_changes_nothing(view: DiffView, qtbot: QtBot):
    point = _point_of(view, "the boss")
    cursor = view.textCursor()
    cursor.setPosition(0)
    cursor.setPosition(5, QTextCursor.MoveMode.KeepAnchor)
    qtbot.mousePress(view.viewport(), Qt.MouseButton.LeftButton, pos=point)
    view.setTextCursor(cursor)
    qtbot.mouseRelease(view.viewport(), Qt.MouseButton.LeftButton, pos=point)
    assert view.result() == ANSWER


def test_a_line_break_that_was_added_can_be_seen(view: DiffView):
    view.show_changes("a b", word_diff("a b", "a\nb").changes)
    assert view.toPlainText() == "a ↵\nb"


def test_a_loss_leads_to_its_change(view: DiffView):
    assert view.go_to_loss(Loss("names", "teh", "", (18, 21), None))
    assert view.current == 1
    assert not view.go_to_loss(Loss("line_breaks", "2", "1"))


def test_nothing_moves_when_a_change_is_taken(view: DiffView):
    before = (view.toPlainText(), view.document().size())
    view.accept_all(False)
    assert (view.toPlainText(), view.document().size()) == before


def test_a_long_text_never_holds_the_window(view: DiffView, qtbot: QtBot):
    source = "\n".join("the cat number has a hat of size and more " * 4 for _ in range(500))
    answer = "\n".join(f"the cat {row} has a nice hat of size and more " * 4 for row in range(500))
    changes = word_diff(source, answer).changes
    assert len(changes) > 1000
    heartbeat = Heartbeat()
    view.show_changes(source, changes)
    qtbot.waitUntil(lambda: not view._timer.isActive(), timeout=20_000)
    assert heartbeat.stop() < LONGEST_PAUSE_MS
    view.go(-1)
    assert view.current == len(changes) - 1
    assert view.verticalScrollBar().value() > 0
