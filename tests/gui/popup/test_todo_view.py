"""To-dos in the popup: the list, the sentences, and the forms that it is copied in."""

import json
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAccessible
from pytestqt.qtbot import QtBot

from app.qt.popup.todo_view import TodoView
from app.todos.todo import Todo, to_lines
from app.translation import Translator

pytestmark = pytest.mark.gui

TEXT = "Garden club 😀. Omar buys soil by Saturday. The hose leaks. Ida picks up a new one tomorrow."
ANSWER = to_lines(
    [
        Todo("Buy soil", "Omar", "by Saturday", "Omar buys soil by Saturday."),
        Todo("Pick up a new hose", "Ida", "", "Ida picks up a new one tomorrow."),
    ]
)


@pytest.fixture
def view(qtbot: QtBot) -> TodoView:
    view = TodoView(Translator("en"))
    qtbot.addWidget(view)
    view.resize(320, 300)
    view.show()
    view.begin(TEXT)
    for start in range(0, len(ANSWER), 7):
        view.append(ANSWER[start : start + 7])
    return view


def test_to_dos_come_while_the_answer_is_written(view: TodoView):
    view.begin(TEXT)
    view.append(ANSWER[: ANSWER.index("\n")])
    assert [todo.task for todo in view.todos] == ["Buy soil"]
    view.append(ANSWER[ANSWER.index("\n") :])
    assert view.todos[1] == Todo("Pick up a new hose", "Ida", "", "Ida picks up a new one tomorrow.")


def _marked(view: TodoView) -> str:
    (marked,) = view.source_view.extraSelections()
    return str(marked.cursor.selectedText())


def test_an_item_leads_to_its_sentence(view: TodoView, qtbot: QtBot):
    view.list.setFocus()
    assert not view.source_view.isVisible()
    with qtbot.waitSignal(view.room_wanted):
        qtbot.keyClick(view.list, Qt.Key.Key_Down)
        qtbot.keyClick(view.list, Qt.Key.Key_Return)
    assert view.source_view.isVisible()
    assert _marked(view) == view.todos[view.list.currentIndex().row()].source
    rect = view.list.visualRect(view.list.model().index(1, 0))
    qtbot.mouseClick(view.list.viewport(), Qt.MouseButton.LeftButton, pos=rect.center())
    assert _marked(view) == "Ida picks up a new one tomorrow."


def test_what_is_ticked_is_left_out(view: TodoView, qtbot: QtBot):
    assert view.markdown() == "- [ ] Buy soil (Omar, by Saturday)\n- [ ] Pick up a new hose (Ida)\n"
    rect = view.list.visualRect(view.list.model().index(0, 0))
    with qtbot.waitSignal(view.ticks_changed):
        qtbot.mouseClick(view.list.viewport(), Qt.MouseButton.LeftButton, pos=rect.topLeft() + QPoint(8, 10))
    assert view.markdown() == "- [ ] Pick up a new hose (Ida)\n"
    assert not view.source_view.isVisible()
    view.list.setFocus()
    view.list.setCurrentIndex(view.list.model().index(0, 0))
    qtbot.keyClick(view.list, Qt.Key.Key_Space)
    assert len(view.open_todos()) == 2


def test_it_is_copied_in_three_forms(view: TodoView, qtbot: QtBot):
    copies: list[str] = []
    view.copy_text_requested.connect(copies.append)
    for action in view.menu.actions()[:3]:
        action.trigger()
    assert copies[0] == view.markdown()
    assert [todo["task"] for todo in json.loads(copies[1])] == ["Buy soil", "Pick up a new hose"]
    assert copies[2].count("BEGIN:VTODO") == 2
    with qtbot.waitSignal(view.copy_all_requested):
        qtbot.keyClick(view.list, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)


def test_it_is_saved_whole_or_the_reason_is_told(view: TodoView, qtbot: QtBot, tmp_path: Path):
    path = tmp_path / "list.ics"
    view.save(str(path))
    assert path.read_bytes().startswith(b"BEGIN:VCALENDAR\r\n")
    with qtbot.waitSignal(view.save_failed) as failed:
        view.save(str(tmp_path / "missing" / "list.ics"))
    assert "list.ics" in failed.args[0]


def test_rows_are_as_high_as_their_text(view: TodoView):
    rows = [view.list.sizeHintForIndex(view.list.model().index(row, 0)).height() for row in range(2)]
    line = view.list.fontMetrics().height()
    assert all(row >= 2 * line * 0.9 for row in rows)
    view.begin(TEXT)
    view.append(json.dumps([{"task": "A very long task " * 12}]))
    assert view.list.sizeHintForIndex(view.list.model().index(0, 0)).height() > 4 * line
    assert view.content_height() == view.list.content_height()


def test_screen_readers_hear_all_of_a_row(view: TodoView):
    item = QAccessible.queryAccessibleInterface(view.list).child(0)
    assert item.text(QAccessible.Text.Name) == "Buy soil, Omar · by Saturday"
    assert item.state().checkable
