"""Answers of actions at the side of the chat: listed, found, opened, copied, deleted, kept or not."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMenu, QMessageBox, QPushButton
from pytestqt.qtbot import QtBot

from app.engine_client import ScriptedAnswer
from app.history.file import HistoryError
from app.qt.chat.answers import MOST_ANSWERS
from app.qt.chat.session import NEW
from app.translation import UserText
from tests.gui.chat.chat_rig import ChatRig

pytestmark = pytest.mark.gui


@pytest.fixture
def chat(qtbot: QtBot, tmp_path: Path) -> Iterator[ChatRig]:
    rig = ChatRig(qtbot, tmp_path, ScriptedAnswer("Hello."))
    yield rig
    rig.close()


def add(chat: ChatRig, qtbot: QtBot, action: str = "summarize", source: str = "A long text.") -> int:
    """An answer is kept, and listed."""
    result_id = chat.history.add_result(action, source, "Short.", "qwen")
    expected = min(len(chat.history.results()), MOST_ANSWERS)
    qtbot.waitUntil(lambda: chat.window.side.answers.titles.count() == expected)
    return result_id


def lines(chat: ChatRig) -> list[list[str]]:
    titles = chat.window.side.answers.titles
    return [titles.item(row).text().split("\n") for row in range(titles.count())]


def open_first(chat: ChatRig) -> None:
    titles = chat.window.side.answers.titles
    place = titles.visualItemRect(titles.item(0)).center()
    QTest.mouseClick(titles.viewport(), Qt.MouseButton.LeftButton, pos=place)
    chat.play()


def press(chat: ChatRig, button: str) -> None:
    (box,) = chat.window.findChildren(QMessageBox)
    next(each for each in box.findChildren(QPushButton) if each.text() == button).click()


def menu_action(menu: QMenu, text: str) -> None:
    next(action for action in menu.actions() if action.text() == text).trigger()


def test_without_answers_nothing_of_them_is_shown(chat: ChatRig):
    assert not chat.window.side.answers.isVisible()
    assert chat.window.side.empty.isVisible()


def test_answers_are_listed_newest_first(chat: ChatRig, qtbot: QtBot):
    add(chat, qtbot, source="\n  First line\nand more")
    add(chat, qtbot, "translate", "Der Hafen")
    (first, second) = lines(chat)
    now = datetime.fromtimestamp(chat.history.results()[0].created_s)
    assert first[1] == f"Translate · {now:%H:%M}"
    assert (first[0], second[0]) == ("Der Hafen", "First line")
    assert chat.window.side.answers.isVisible()
    assert not chat.window.side.empty.isVisible()


def test_both_lists_have_room(chat: ChatRig, qtbot: QtBot):
    add(chat, qtbot)
    chat.say("Hi")
    side = chat.window.side
    qtbot.waitUntil(lambda: side.titles.count() == 1)
    qtbot.waitUntil(lambda: side.titles.height() <= 2 * side.titles.sizeHintForRow(0))
    assert side.titles.verticalScrollBar().maximum() == 0
    assert side.answers.titles.verticalScrollBar().maximum() == 0
    assert side.answers.y() < side.height() // 3  # right below the only conversation
    with chat.history.together():
        for number in range(60):
            chat.history.new_conversation(f"Talk {number}")
            chat.history.add_result("summarize", f"Text {number}", "Short.")
    qtbot.waitUntil(lambda: side.titles.count() > 50)
    qtbot.waitUntil(lambda: side.titles.height() > side.answers.height() > side.height() // 4)


def test_an_older_answer_shows_its_day(chat: ChatRig, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(chat.history, "_now", lambda: datetime(2024, 5, 6, 12).timestamp())
    add(chat, qtbot)
    assert lines(chat)[0][1] == "Summarize · 2024-05-06"


def test_search_finds_words_of_source_and_answer_beyond_the_newest(chat: ChatRig, qtbot: QtBot):
    side = chat.window.side
    with chat.history.together():
        for number in range(MOST_ANSWERS + 1):
            chat.history.add_result("summarize", f"Text <{number}>", "Short.")
    qtbot.waitUntil(lambda: side.answers.titles.count() == MOST_ANSWERS)
    assert lines(chat)[0][0] == f"Text <{MOST_ANSWERS}>"
    assert side.answers.more.isVisible()
    side.search.setText("text <0>")
    qtbot.waitUntil(lambda: side.answers.titles.count() == 1)
    assert lines(chat)[0][0] == "Text <0>"
    assert not side.answers.more.isVisible()
    side.search.setText("hort")
    qtbot.waitUntil(lambda: side.answers.titles.count() == MOST_ANSWERS)
    side.search.setText("nowhere")
    qtbot.waitUntil(lambda: side.empty.isVisible())
    assert side.empty.text() == "Nothing was found."
    assert not side.answers.isVisible()


def test_a_click_shows_the_answer_and_keeps_no_copy_of_it(chat: ChatRig, qtbot: QtBot):
    add(chat, qtbot)
    open_first(chat)
    assert chat.texts == ["A long text.", "Short."]
    assert chat.window.windowTitle() == "Summarize"
    assert chat.window.side.answers.titles.currentRow() == 0
    assert chat.history.conversations() == []
    chat.window.begin()
    assert chat.texts == []
    assert chat.window.windowTitle() == "New chat"
    assert chat.window.side.answers.titles.currentRow() == -1


def test_what_is_said_to_an_answer_makes_a_conversation(chat: ChatRig, qtbot: QtBot):
    add(chat, qtbot)
    open_first(chat)
    chat.say("Shorter!")
    assert [message.content for message in chat.client.submitted[0].messages] == ["A long text.", "Short.", "Shorter!"]
    assert [text for _, text in chat.stored] == ["A long text.", "Short.", "Shorter!", "Hello."]
    qtbot.waitUntil(lambda: chat.window.side.titles.count() == 1)
    assert len(chat.history.results()) == 1
    assert chat.window.side.answers.titles.currentRow() == -1


def test_another_answer_instead_is_kept_as_a_conversation(chat: ChatRig, qtbot: QtBot):
    add(chat, qtbot)
    open_first(chat)
    chat.answer().retry_requested.emit()
    chat.play()
    assert chat.stored == [("user", "A long text."), ("assistant", "Hello.")]
    assert len(chat.history.results()) == 1


def test_one_answer_after_the_other_is_shown(chat: ChatRig, qtbot: QtBot):
    old = add(chat, qtbot, "translate", "Der Hafen")
    add(chat, qtbot)
    open_first(chat)
    chat.window.open_answer(old)
    chat.settle()
    assert chat.texts == ["Der Hafen", "Short."]
    assert chat.window.windowTitle() == "Translate"
    assert chat.window.side.answers.titles.currentRow() == 1


def test_enter_opens_and_delete_asks_first(chat: ChatRig, qtbot: QtBot):
    add(chat, qtbot)
    titles = chat.window.side.answers.titles
    titles.setCurrentRow(0)
    QTest.keyClick(titles, Qt.Key.Key_Return)
    assert chat.texts == ["A long text.", "Short."]
    QTest.keyClick(titles, Qt.Key.Key_Delete)
    (box,) = chat.window.findChildren(QMessageBox)
    assert box.text() == "Delete “Summarize: A long text.”?"
    assert box.defaultButton().text() == "Keep it"
    press(chat, "Delete")
    assert chat.history.results() == []
    qtbot.waitUntil(lambda: not chat.window.side.answers.isVisible())
    assert chat.window.session.shown == NEW
    assert chat.texts == []  # it does not stay on the screen


def test_an_answer_may_go_while_its_text_is_edited(chat: ChatRig, qtbot: QtBot):
    result_id = add(chat, qtbot)
    open_first(chat)
    chat.window.transcript.edit_requested.emit(0)
    chat.history.delete_result(result_id)
    qtbot.waitUntil(lambda: chat.texts == [])
    chat.say("Hi")
    assert chat.texts == ["Hi", "Hello."]


def test_the_menu_of_an_answer(chat: ChatRig, qtbot: QtBot):
    result_id = add(chat, qtbot)
    answers = chat.window.side.answers
    menu_action(answers.menu(result_id, "Summarize"), "Copy the answer")
    qtbot.waitUntil(lambda: QGuiApplication.clipboard().text() == "Short.")
    menu_action(answers.menu(result_id, "Summarize"), "Continue as chat")
    assert chat.texts == ["A long text.", "Short."]
    menu_action(answers.menu(result_id, "Summarize"), "Delete…")
    press(chat, "Keep it")
    assert len(chat.history.results()) == 1
    answers.titles.customContextMenuRequested.emit(QPoint(5000, 5000))  # beside them all: no menu
    assert QGuiApplication.clipboard().text() == "Short."


def test_an_answer_of_a_history_that_is_switched_off_is_out_of_sight(chat: ChatRig, qtbot: QtBot):
    add(chat, qtbot)
    open_first(chat)
    chat.history.set_keeps(False)
    qtbot.waitUntil(lambda: not chat.window.side.answers.isVisible())
    assert chat.texts == []
    add(chat, qtbot, "translate", "Der Hafen")  # in memory alone
    assert lines(chat)[0][0] == "Der Hafen"
    chat.history.set_keeps(True)
    qtbot.waitUntil(lambda: [line[0] for line in lines(chat)] == ["A long text."])


def test_a_history_that_cannot_be_read_is_told(chat: ChatRig, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch):
    def broken(*_: object) -> None:
        raise HistoryError(UserText("The disk is broken."))

    result_id = add(chat, qtbot)
    with monkeypatch.context() as disk:
        disk.setattr(chat.history, "result", broken)
        chat.window.open_answer(result_id)
        assert chat.window.composer.problem.text().endswith("The disk is broken.")
    assert len(lines(chat)) == 1
