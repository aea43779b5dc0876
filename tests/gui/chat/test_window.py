"""The chat: what the user does in it, what the engine gets, what the history keeps."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, Qt, QUrl
from PySide6.QtGui import QGuiApplication, QInputMethodEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMessageBox, QPushButton
from pytestqt.qtbot import QtBot

from app.engine_client import ScriptedAnswer
from app.history.file import HistoryError
from app.history.history import History
from app.qt.chat.session import NEW
from app.qt.chat.window import FIRST_SIZE
from app.translation import UserText
from inference.errors import OutOfMemoryError
from inference.request import Priority
from tests.gui.chat.chat_rig import ChatRig
from tests.gui.test_accessibility import nameless

pytestmark = pytest.mark.gui


@pytest.fixture
def make_chat(qtbot: QtBot, tmp_path: Path) -> Iterator[Callable[..., ChatRig]]:
    rigs: list[ChatRig] = []

    def make(*answers: ScriptedAnswer, language: str = "en") -> ChatRig:
        rigs.append(ChatRig(qtbot, tmp_path, *answers, language=language))
        return rigs[-1]

    yield make
    for rig in rigs:
        rig.close()


@pytest.fixture
def chat(make_chat: Callable[..., ChatRig]) -> ChatRig:
    return make_chat(ScriptedAnswer("Hello ", "**you**."))


# --- asking ---------------------------------------------------------------------------------------------------------


def test_a_question_and_its_answer_are_shown_and_kept(chat: ChatRig, qtbot: QtBot):
    chat.say("Hi there")
    assert chat.texts == ["Hi there", "Hello you."]
    assert chat.stored == [("user", "Hi there"), ("assistant", "Hello **you**.")]
    request = chat.client.submitted[0]
    assert [message.content for message in request.messages] == ["Hi there"]
    assert request.priority is Priority.CHAT
    assert chat.window.composer.text() == ""
    assert chat.window.windowTitle() == "Hi there"
    qtbot.waitUntil(lambda: chat.window.side.titles.count() == 1)
    assert chat.window.side.titles.item(0).text() == "Hi there"


def test_the_next_question_goes_with_what_was_said(chat: ChatRig):
    chat.say("One")
    chat.say("Two")
    assert [message.content for message in chat.client.submitted[-1].messages] == ["One", "Hello **you**.", "Two"]


def test_the_question_is_kept_before_it_is_sent(chat: ChatRig):
    chat.type("Hi")
    assert chat.client.submitted == []
    assert chat.stored == [("user", "Hi")]


def test_an_answer_is_kept_while_it_is_written(make_chat: Callable[..., ChatRig], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("app.qt.chat.session.SAVE_EVERY_S", 0.0)
    chat = make_chat(ScriptedAnswer("One ", "two ", "three"))
    chat.type("Hi")
    chat.play_until_text()
    assert chat.stored[-1] == ("assistant", "One ")
    chat.play()
    assert chat.stored[-1] == ("assistant", "One two three")
    assert len(chat.stored) == 2


def test_what_a_dead_program_leaves_comes_back(make_chat: Callable[..., ChatRig], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("app.qt.chat.session.SAVE_EVERY_S", 0.0)
    chat = make_chat(ScriptedAnswer("One ", "two ", "three"))
    chat.type("Hi")
    chat.play_until_text()
    copy = History(chat.path)
    (conversation,) = copy.conversations()
    assert [(each.text, each.details.get("finish_reason")) for each in copy.messages(conversation.id)] == [
        ("Hi", None),
        ("One ", "cancelled"),
    ]
    copy.close()


def test_stop_keeps_what_has_arrived(make_chat: Callable[..., ChatRig]):
    chat = make_chat(ScriptedAnswer("One ", "two ", "three"))
    chat.type("Hi")
    chat.play_until_text()
    assert chat.window.composer.send_button.accessibleName() == "Stop"
    QTest.keyClick(chat.window, Qt.Key.Key_Period, Qt.KeyboardModifier.ControlModifier)
    chat.play()
    assert chat.client.cancelled == [chat.client.submitted[0].request_id]
    assert chat.stored[-1] == ("assistant", "One ")
    assert chat.answer().small_print.text() == "Stopped"
    assert chat.window.composer.send_button.accessibleName() == "Send"


def test_nothing_is_sent_while_an_answer_is_written_or_without_words(make_chat: Callable[..., ChatRig]):
    chat = make_chat(ScriptedAnswer("One ", "two "))
    chat.type("  \n ")
    assert chat.window.session.shown == NEW
    chat.type("Hi")
    chat.play_until_text()
    chat.type("Next")
    assert chat.window.composer.text() == "Next"
    chat.play()
    assert len(chat.client.submitted) == 1


def test_another_answer_takes_the_place_of_the_last(make_chat: Callable[..., ChatRig]):
    chat = make_chat(ScriptedAnswer("first"), ScriptedAnswer("second"))
    chat.say("Hi")
    chat.answer().retry_button.click()
    chat.play()
    assert chat.texts == ["Hi", "second"]
    assert chat.stored == [("user", "Hi"), ("assistant", "second")]


def test_an_earlier_question_is_changed_and_sent_again(make_chat: Callable[..., ChatRig]):
    chat = make_chat(ScriptedAnswer("a"))
    chat.say("One")
    chat.say("Two")
    chat.window.composer.edit.setPlainText("a draft")
    chat.question(0).edit_button.click()
    assert chat.window.composer.text() == "One"
    QTest.keyClick(chat.window.composer.edit, Qt.Key.Key_Escape)
    assert chat.window.composer.text() == "a draft"
    chat.question(0).edit_button.click()
    chat.say("Uno")
    assert chat.texts == ["Uno", "a"]
    assert chat.stored == [("user", "Uno"), ("assistant", "a")]


def test_an_error_stands_in_place_and_can_be_tried_again(make_chat: Callable[..., ChatRig]):
    chat = make_chat(ScriptedAnswer(error=OutOfMemoryError(2**31, 2**30, "Close something.")), ScriptedAnswer("better"))
    chat.say("Hi")
    assert chat.answer().notice.isVisible()
    assert chat.answer().notice.shown.is_error
    assert not chat.answer().retry_button.isVisible()
    chat.answer().notice.button.click()
    chat.play()
    assert not chat.answer().notice.isVisible()
    assert chat.texts == ["Hi", "better"]


def test_a_question_that_cannot_be_kept_is_not_lost(chat: ChatRig, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_arguments: object, **_details: object) -> int:
        raise HistoryError(UserText("The disk is full."))

    monkeypatch.setattr(chat.history, "append", refuse)
    chat.say("Hi")
    assert chat.window.composer.text() == "Hi"
    assert "The disk is full." in chat.window.composer.problem.text()
    assert chat.client.submitted == []


def test_an_answer_goes_on_while_another_conversation_is_shown(make_chat: Callable[..., ChatRig]):
    chat = make_chat(ScriptedAnswer("One ", "two"))
    chat.type("Hi")
    chat.play_until_text()
    first = chat.window.session.shown
    chat.window.begin()
    assert chat.texts == []
    chat.play()
    chat.window.open_conversation(first)
    chat.settle()
    assert chat.texts == ["Hi", "One two"]
    assert chat.stored[-1] == ("assistant", "One two")


def test_an_answer_of_the_popup_goes_on_as_a_chat(chat: ChatRig):
    chat.window.continue_answer("Summarize", "A long text.", "Short.")
    chat.say("Shorter!")
    assert [message.content for message in chat.client.submitted[0].messages] == ["A long text.", "Short.", "Shorter!"]
    assert chat.window.windowTitle() == "Summarize"
    assert len(chat.stored) == 4


# --- writing --------------------------------------------------------------------------------------------------------


def test_shift_enter_breaks_the_line(chat: ChatRig):
    edit = chat.window.composer.edit
    QTest.keyClicks(edit, "one")
    QTest.keyClick(edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    QTest.keyClicks(edit, "two")
    assert edit.toPlainText() == "one\ntwo"
    assert chat.window.session.shown == NEW


def test_enter_never_sends_while_an_input_method_composes(chat: ChatRig):
    edit = chat.window.composer.edit
    edit.setPlainText("你")
    QApplication.sendEvent(edit, QInputMethodEvent("hao", []))
    QTest.keyClick(edit, Qt.Key.Key_Return)
    assert chat.window.session.shown == NEW
    committed = QInputMethodEvent()
    committed.setCommitString("好")
    QApplication.sendEvent(edit, committed)
    QTest.keyClick(edit, Qt.Key.Key_Return)
    assert chat.window.session.shown != NEW


def test_the_tokens_are_counted_against_the_context(chat: ChatRig, qtbot: QtBot):
    chat.window.composer.edit.setPlainText("one two three")
    qtbot.waitUntil(lambda: chat.client.step() or bool(chat.window.composer.tokens.text()))
    chat.play()
    assert chat.window.composer.tokens.text().endswith(f"/ {chat.client.context_tokens:,} tokens")
    before = chat.window.composer.tokens.text()
    chat.window.composer.edit.setPlainText("one two three four five")
    qtbot.waitUntil(lambda: (chat.client.step(), chat.window.composer.tokens.text() != before)[1])


def test_a_draft_waits_for_its_conversation(chat: ChatRig):
    chat.say("Hi")
    first = chat.window.session.shown
    chat.window.composer.edit.setPlainText("half a thou")
    chat.window.begin()
    assert chat.window.composer.text() == ""
    chat.window.open_conversation(first)
    assert chat.window.composer.text() == "half a thou"


def test_files_go_along_and_are_named(chat: ChatRig, tmp_path: Path):
    path = tmp_path / "notes.txt"
    path.write_text("Buy milk.", encoding="utf-8")
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path))])
    chat.window.composer.edit.insertFromMimeData(mime)
    chat.say("What is to do?")
    assert chat.client.submitted[0].messages[0].content == "What is to do?\n\n--- notes.txt ---\nBuy milk."
    assert chat.texts[0] == "What is to do?"
    assert chat.window.composer.files == []
    chat.question().edit_button.click()
    assert [file.name for file in chat.window.composer.files] == ["notes.txt"]


def test_files_that_cannot_go_along_are_named(chat: ChatRig, tmp_path: Path):
    (tmp_path / "large.txt").write_text("x" * (1024**2 + 1))
    (tmp_path / "latin.txt").write_bytes("größe".encode("latin-1"))
    chat.window.composer.add_files([tmp_path / "large.txt", tmp_path / "latin.txt", tmp_path / "none.txt"])
    problem = chat.window.composer.problem.text()
    assert "large.txt has 1.0 MB; the limit is 1.0 MB" in problem
    assert "latin.txt is no text in UTF-8" in problem
    assert "none.txt cannot be read" in problem
    assert chat.window.composer.files == []


# --- conversations --------------------------------------------------------------------------------------------------


def test_search_finds_words_of_answers(chat: ChatRig, qtbot: QtBot):
    chat.say("Alpha")
    chat.window.begin()
    chat.say("Beta")
    side = chat.window.side
    qtbot.waitUntil(lambda: side.titles.count() == 2)
    side.search.setText("alph")
    qtbot.waitUntil(lambda: side.titles.count() == 1)
    assert side.titles.item(0).text() == "Alpha"
    side.search.setText("nowhere")
    qtbot.waitUntil(lambda: side.titles.count() == 0)
    assert side.empty.text() == "Nothing was found."


def test_a_conversation_gets_another_title(chat: ChatRig, qtbot: QtBot):
    chat.say("Hi")
    qtbot.waitUntil(lambda: chat.window.side.titles.count() == 1)
    chat.window.side.titles.item(0).setText("Greetings")
    qtbot.waitUntil(lambda: chat.window.windowTitle() == "Greetings")
    assert chat.history.conversations()[0].title == "Greetings"


def test_delete_asks_first(chat: ChatRig, qtbot: QtBot):
    chat.say("Hi")
    chat.window.dialogs.ask_to_delete(chat.window.session.shown)
    (box,) = chat.window.findChildren(QMessageBox)
    assert box.defaultButton().text() == "Keep it"
    next(button for button in box.findChildren(QPushButton) if button.text() == "Delete").click()
    qtbot.waitUntil(lambda: chat.history.conversations() == [])
    assert chat.window.session.shown == NEW
    assert chat.texts == []


def test_export(chat: ChatRig, tmp_path: Path):
    chat.say("Hi")
    chat.window.dialogs.export(chat.window.session.shown, "markdown", tmp_path / "c.md")
    chat.window.dialogs.export(chat.window.session.shown, "json", tmp_path / "c.json")
    assert "Hello **you**." in (tmp_path / "c.md").read_text(encoding="utf-8")
    exported = json.loads((tmp_path / "c.json").read_text(encoding="utf-8"))
    assert exported["conversations"][0]["messages"][1]["text"] == "Hello **you**."
    chat.window.dialogs.export(chat.window.session.shown, "json", tmp_path)
    assert "cannot be written" in chat.window.composer.problem.text()


def test_a_cleared_history_leaves_an_empty_chat(chat: ChatRig, qtbot: QtBot):
    chat.say("Hi")
    chat.history.clear()
    qtbot.waitUntil(lambda: chat.window.session.shown == NEW)
    assert chat.texts == []
    chat.say("Again")
    assert chat.texts == ["Again", "Hello you."]


def test_instructions_and_sampling_are_the_conversations_own(chat: ChatRig):
    chat.window.options.system.setPlainText("Be brief.")
    chat.window.options.temperature.setValue(0.3)
    chat.say("Hi")
    request = chat.client.submitted[0]
    assert (request.messages[0].role, request.messages[0].content) == ("system", "Be brief.")
    assert request.sampling.temperature == 0.3
    first = chat.window.session.shown
    chat.window.begin()
    assert chat.window.options.system.toPlainText() == ""
    chat.window.open_conversation(first)
    assert chat.window.options.system.toPlainText() == "Be brief."
    assert chat.window.options.temperature.value() == 0.3
    stored = chat.history.conversation(first)
    assert stored is not None
    assert stored.system == "Be brief."


def test_a_bar_that_cannot_scroll_shows_no_handle(make_chat: Callable[..., ChatRig]):
    chat = make_chat(ScriptedAnswer("Short."), ScriptedAnswer("word " * 3000))
    bar = chat.window.transcript.verticalScrollBar()
    for question, scrolls in (("Hi", False), ("And more", True)):
        chat.say(question)
        assert (bar.maximum() > bar.minimum(), bar.property("idle")) == (scrolls, "false" if scrolls else "true")


def test_a_long_conversation_opens_with_its_end_and_grows_upwards(chat: ChatRig, qtbot: QtBot):
    long = chat.history.new_conversation("long")
    for number in range(30):
        chat.history.append(long, "user", f"question {number}")
        chat.history.append(long, "assistant", f"answer {number}\n\n" + "text " * 80)
    chat.window.open_conversation(long)
    chat.settle()
    transcript, bar = chat.window.transcript, chat.window.transcript.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.value() > transcript.viewport().height())
    chat.settle()
    assert len(transcript.views) < 20
    assert bar.value() == bar.maximum()
    top = transcript.views[0]
    bar.setValue(5)
    place = top.mapTo(transcript.viewport(), top.rect().topLeft()).y()
    qtbot.waitUntil(lambda: transcript.views[0] is not top)
    chat.settle()
    assert abs(top.mapTo(transcript.viewport(), top.rect().topLeft()).y() - place) <= 1
    while transcript.first_shown:
        transcript.show_earlier()
    assert chat.texts[0] == "question 0"
    assert len(transcript.views) == 60


# --- copying, keys, looks -------------------------------------------------------------------------------------------


def test_answer_and_code_are_copied(make_chat: Callable[..., ChatRig]):
    chat = make_chat(ScriptedAnswer("See\n\n```python\nx = 1\ny = 2\n```\n\nand\n\n```\nz\n```\n"))
    chat.say("Hi")
    chat.answer().copy_button.click()
    assert QGuiApplication.clipboard().text().startswith("See\n\n```python")
    first, second = chat.answer().view._headers
    first.button.click()
    assert QGuiApplication.clipboard().text() == "x = 1\ny = 2"
    assert first.button.text() == "Copied"
    second.button.click()
    assert QGuiApplication.clipboard().text() == "z"


def test_every_control_has_a_name(make_chat: Callable[..., ChatRig]):
    chat = make_chat(ScriptedAnswer("```\nx\n```\n"))
    assert nameless(chat.window) == []
    chat.say("Hi\n" * 30)
    chat.window._toggle_options()
    chat.question().edit_button.click()
    assert nameless(chat.window) == []


def test_a_narrow_window_shows_one_part_at_a_time(chat: ChatRig):
    window = chat.window
    window.resize(420, 600)
    chat.settle()
    assert not window.panels.shows_side
    window.panels.toggle_side()
    assert window.panels.shows_side
    assert not window.composer.isVisible()
    window.side.new_button.click()
    assert window.composer.isVisible()
    window.resize(1000, 600)
    chat.settle()
    assert window.panels.shows_side
    assert window.composer.isVisible()


def test_later_states_of_a_failed_answer_are_of_this_conversation_only(chat: ChatRig):
    chat.type("Hi")
    state = chat.state
    chat.window.begin()
    assert chat.state.request_id == ""
    assert replace(state, request_id="").messages[0].text == "Hi"


# --- what nobody expects --------------------------------------------------------------------------------------------


def full_disk(*_args: object, **_details: object) -> int:
    raise HistoryError(UserText("the disk is full"))


def test_clearing_the_history_ends_an_answer_that_is_not_shown(make_chat: Callable[..., ChatRig], qtbot: QtBot):
    chat = make_chat(ScriptedAnswer(*["word "] * 50))
    chat.type("one")
    chat.play_until_text()
    chat.window.begin()
    told: list[str] = []
    chat.window.session.problem.connect(told.append)
    with qtbot.waitSignal(chat.window.session.busy_changed):
        chat.history.clear()
    assert told == []


def test_a_question_that_is_edited_may_go_meanwhile(chat: ChatRig, qtbot: QtBot):
    chat.say("Hello")
    chat.window.composer.edit.setPlainText("a draft")
    chat.window.transcript.edit_requested.emit(0)
    chat.history.clear()
    qtbot.waitUntil(lambda: chat.window.session.shown == NEW)
    chat.say("Again")
    assert chat.stored[0] == ("user", "Again")


def test_an_edited_question_that_cannot_be_kept_takes_nothing_away(chat: ChatRig, monkeypatch: pytest.MonkeyPatch):
    chat.say("Hello")
    before = chat.stored
    with monkeypatch.context() as disk:
        disk.setattr(chat.history, "append", full_disk)
        chat.window.transcript.edit_requested.emit(0)
        chat.say("Again")
    assert chat.stored == before
    assert chat.window.composer.text() == "Again"


def test_an_answer_that_cannot_be_kept_goes_on_as_a_chat_all_the_same(chat: ChatRig, monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as disk:
        disk.setattr(chat.history, "append", full_disk)
        chat.window.continue_answer("Summary", "A long text.", "Short.")
    assert chat.texts == ["A long text.", "Short."]
    assert chat.history.conversations() == []
    chat.say("Shorter")
    assert chat.stored[:3] == [("user", "A long text."), ("assistant", "Short."), ("user", "Shorter")]


def test_an_answer_that_could_not_be_kept_is_kept_with_the_next_question(
    chat: ChatRig, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as disk:
        chat.type("Hello")
        disk.setattr(chat.history, "append", full_disk)
        chat.play()
    chat.say("Again")
    assert [role for role, _ in chat.stored] == ["user", "assistant", "user", "assistant"]


def test_the_first_window_fits_the_screen(chat: ChatRig):
    assert chat.window.screen().availableSize().width() < FIRST_SIZE.width()  # of the off-screen platform
    assert chat.window.screen().availableGeometry().contains(chat.window.rect())
