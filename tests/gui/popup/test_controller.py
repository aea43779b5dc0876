"""From a command to an answer and back: the flows that a user sees, with a scripted engine and a fake desktop."""

from collections.abc import Callable

import pytest
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app.desktop.protocols import Window
from app.engine_client import ScriptedAnswer
from app.qt.clipboard import KDE_SECRET
from app.qt.popup.popup import PopupState
from inference.errors import DeviceFailedError, ModelNotFoundError, OutOfMemoryError
from inference.request import ModelEvent, ModelState, PrefillEvent
from tests.gui.rig import EDITOR, Rig

pytestmark = pytest.mark.gui

MakeRig = Callable[..., Rig]
ANSWER = ScriptedAnswer("Three ", "short ", "words.")


def _run_on_selection(rig: Rig, qtbot: QtBot, action: str = "summarize", text: str = "A long text.") -> None:
    rig.select(text)
    submitted = len(rig.client.submitted)
    rig.controller.run(action, "selection")
    qtbot.waitUntil(lambda: len(rig.client.submitted) > submitted)


def test_a_selection_is_read_answered_and_the_clipboard_comes_back(make_rig: MakeRig, qtbot: QtBot):
    rig = make_rig(ANSWER)
    QGuiApplication.clipboard().setText("what lay there")
    _run_on_selection(rig, qtbot)
    assert "A long text." in rig.client.submitted[0].messages[-1].content
    assert rig.clipboard.text() == "what lay there"
    rig.play()
    assert rig.answer_text() == "Three short words."
    assert rig.popup.state is PopupState.FINISHED
    assert rig.popup.title.text() == "Summarize"
    assert "fake" in rig.popup.small_print.full_text


def test_waiting_says_what_for(make_rig: MakeRig, qtbot: QtBot):
    rig = make_rig(ANSWER)
    _run_on_selection(rig, qtbot)
    rig.bridge.post_event(ModelEvent(ModelState.LOADING, "m", 0.43))
    rig.settle()
    assert rig.popup.view.placeholderText() == "Loading m: 43 %"
    rig.bridge.post_event(PrefillEvent(rig.client.submitted[0].request_id, 512, 1800))
    rig.settle()
    assert rig.popup.view.placeholderText() == "Reading 512 of 1,800 tokens"
    assert rig.popup.progress.isVisible()


def test_a_translation_names_both_languages(make_rig: MakeRig, qtbot: QtBot):
    rig = make_rig(ANSWER)
    _run_on_selection(rig, qtbot, "translate", "Good morning, everybody.")
    assert rig.popup.subtitle.full_text == "English → Simplified Chinese"


def test_nothing_selected_shows_the_clipboard_and_uses_it_only_on_demand(make_rig: MakeRig, qtbot: QtBot):
    rig = make_rig(ANSWER)
    QGuiApplication.clipboard().setText("yesterday's\n\n text")
    rig.desktop.window = Window(2, "xterm", is_terminal=True)
    rig.controller.run("summarize", "selection")
    qtbot.waitUntil(lambda: rig.popup.state is PopupState.NOTICE)
    assert rig.popup.isVisible()
    assert rig.popup.notice.shown.quote == "yesterday's text"
    assert not rig.popup.retry_button.isVisible()
    assert rig.client.submitted == []
    rig.popup.notice.button.click()
    assert "yesterday's\n\n text" in rig.client.submitted[0].messages[-1].content
    rig.play()
    assert rig.answer_text() == "Three short words."


def test_nothing_anywhere_says_what_to_do(make_rig: MakeRig, qtbot: QtBot):
    rig = make_rig(ANSWER)
    rig.desktop.window = None
    rig.controller.run("summarize", "selection")
    qtbot.waitUntil(lambda: rig.popup.state is PopupState.NOTICE)
    assert rig.popup.notice.shown.heading == "Nothing is selected"
    assert not rig.popup.notice.button.isVisible()


@pytest.mark.parametrize("source", ["selection", "clipboard"])
def test_a_password_is_refused_with_the_reason(make_rig: MakeRig, qtbot: QtBot, source):
    rig = make_rig(ANSWER)

    def copy_password() -> None:
        rig.clipboard.offer("hunter2")
        rig.clipboard.close()  # as another program's: plain data with the marker

    if source == "clipboard":
        copy_password()
    rig.desktop.on_copy = copy_password
    rig.controller.run("summarize", source)
    qtbot.waitUntil(lambda: rig.popup.state is PopupState.NOTICE)
    assert rig.popup.notice.shown.heading == "This is a password"
    assert "hunter2" not in rig.popup.notice.shown.text + rig.popup.notice.shown.quote
    assert rig.client.submitted == []


def test_an_empty_clipboard_is_named(make_rig: MakeRig):
    rig = make_rig(ANSWER)
    rig.controller.run("summarize", "clipboard")
    assert rig.popup.notice.shown.heading == "The clipboard holds no text"


def test_stop_keeps_what_has_arrived(make_rig: MakeRig, qtbot: QtBot):
    rig = make_rig(ANSWER)
    _run_on_selection(rig, qtbot)
    rig.play_until_text()
    rig.popup.stop_button.click()
    rig.play()
    assert rig.answer_text() == "Three "
    assert rig.popup.state is PopupState.FINISHED
    assert rig.popup.small_print.full_text.startswith("Stopped")
    assert rig.popup.copy_button.isEnabled()


def test_presses_in_quick_succession_are_one(make_rig: MakeRig, qtbot: QtBot, monkeypatch):
    rig = make_rig(ANSWER)
    _run_on_selection(rig, qtbot)
    for _ in range(9):
        qtbot.wait(5)
        rig.controller.run("summarize", "selection")
    rig.play()
    assert len(rig.client.submitted) == 1
    assert rig.client.cancelled == []
    assert rig.answer_text() == "Three short words."
    monkeypatch.setattr("app.qt.popup.controller.REPEAT_S", 0.0)
    _run_on_selection(rig, qtbot)
    assert len(rig.client.submitted) == 2


def test_another_action_or_a_closed_popup_makes_a_press_a_new_one(make_rig: MakeRig, qtbot: QtBot):
    rig = make_rig(ANSWER)
    _run_on_selection(rig, qtbot)
    _run_on_selection(rig, qtbot, "rewrite")
    assert rig.client.cancelled == [rig.client.submitted[0].request_id]
    rig.popup.close()
    _run_on_selection(rig, qtbot, "rewrite")
    rig.play()
    assert len(rig.client.submitted) == 3
    assert rig.answer_text() == "Three short words."


def test_presses_while_a_capture_runs_start_no_second_one(make_rig: MakeRig, qtbot: QtBot):
    rig = make_rig(ANSWER)
    rig.desktop.key_held = True
    rig.select("text")
    for _ in range(10):
        rig.controller.run("summarize", "selection")
    rig.desktop.key_held = False
    qtbot.waitUntil(lambda: bool(rig.client.submitted))
    assert len(rig.client.submitted) == 1
    assert rig.desktop.sent == ["copy"]


def test_closing_the_popup_cancels_the_request_and_late_tokens_are_ignored(make_rig: MakeRig, qtbot: QtBot):
    rig = make_rig(ANSWER)
    _run_on_selection(rig, qtbot)
    rig.popup.close()
    assert rig.client.cancelled == [rig.client.submitted[0].request_id]
    rig.play()
    assert rig.answer_text() == ""


def test_copy_is_an_ordinary_copy(make_rig: MakeRig, qtbot: QtBot):
    rig = make_rig(ANSWER)
    _run_on_selection(rig, qtbot)
    rig.play()
    rig.popup.copy_button.click()
    assert rig.clipboard.text() == "Three short words."
    assert KDE_SECRET not in QGuiApplication.clipboard().mimeData().formats()
    assert rig.popup.copy_button.text() == "Copied"


def test_replace_pastes_and_the_clipboard_comes_back(make_rig: MakeRig, qtbot: QtBot):
    rig = make_rig(ANSWER)
    QGuiApplication.clipboard().setText("what lay there")
    _run_on_selection(rig, qtbot)
    rig.play()
    pasted: list[str] = []
    rig.desktop.on_paste = lambda: pasted.append(QGuiApplication.clipboard().mimeData().text())
    rig.popup.replace_button.click()
    qtbot.waitUntil(lambda: not rig.popup.isVisible())
    assert pasted == ["Three short words."]
    assert rig.clipboard.text() == "what lay there"


def test_an_answer_whose_window_has_gone_waits_in_the_popup(make_rig: MakeRig, qtbot: QtBot):
    rig = make_rig(ANSWER)
    _run_on_selection(rig, qtbot)
    rig.play()
    rig.desktop.window, rig.desktop.obeys_activate = Window(3, "browser"), False
    rig.popup.replace_button.click()
    qtbot.waitUntil(lambda: rig.popup.state is PopupState.NOTICE)
    assert rig.popup.notice.shown.heading == "The text was not replaced"
    assert rig.answer_text() == "Three short words."
    assert rig.popup.view.isVisible()
    assert rig.popup.copy_button.isEnabled()
    assert rig.desktop.sent == ["copy"]


def test_terminals_and_our_own_window_cannot_be_replaced(make_rig: MakeRig, qtbot: QtBot):
    rig = make_rig(ANSWER)
    rig.controller.run_text("summarize", "typed by the user")
    rig.play()
    assert not rig.popup.replace_button.isEnabled()
    assert "no other window" in rig.popup.replace_button.toolTip()
    rig.desktop.window = Window(2, "xterm", is_terminal=True)
    QGuiApplication.clipboard().setText("text")
    rig.controller.run("summarize", "clipboard")
    rig.play()
    assert not rig.popup.replace_button.isEnabled()


def test_replace_is_possible_only_once_the_answer_is_whole(make_rig: MakeRig, qtbot: QtBot):
    rig = make_rig(ANSWER)
    _run_on_selection(rig, qtbot)
    rig.play_until_text()
    assert not rig.popup.replace_button.isEnabled()
    rig.play()
    assert rig.popup.replace_button.isEnabled()


def test_an_error_is_shown_with_its_cure_and_can_be_retried(make_rig: MakeRig, qtbot: QtBot):
    rig = make_rig(ScriptedAnswer(error=OutOfMemoryError(9 << 30, 4 << 30, "Close the browser.")), ANSWER)
    _run_on_selection(rig, qtbot)
    rig.play()
    notice = rig.popup.notice.shown
    assert notice.is_error
    assert "9.00 GB" in notice.text
    assert "Close the browser." in notice.text
    rig.popup.retry_button.click()
    rig.play()
    assert rig.answer_text() == "Three short words."


def test_a_model_that_is_not_here_leads_to_the_models(make_rig: MakeRig, qtbot: QtBot):
    rig = make_rig(ScriptedAnswer(error=ModelNotFoundError("m is not on this machine.")), ANSWER)
    _run_on_selection(rig, qtbot)
    rig.play()
    button = rig.popup.notice.button
    assert (button.text(), button.isVisible()) == ("Get a model…", True)
    assert rig.popup.retry_button.isVisible()
    with qtbot.waitSignal(rig.controller.models_wanted):
        button.click()
    assert len(rig.client.submitted) == 1
    rig.controller.retry()
    rig.play()
    assert rig.popup.state is PopupState.FINISHED


def test_another_error_and_an_offer_do_not_lead_to_the_models(make_rig: MakeRig, qtbot: QtBot):
    missing, failed = ModelNotFoundError("m is not on this machine."), DeviceFailedError("The GPU is off.")
    rig = make_rig(ScriptedAnswer(error=missing), ScriptedAnswer(error=failed), ANSWER)
    _run_on_selection(rig, qtbot)
    rig.play()
    rig.controller.retry()
    rig.play()
    assert not rig.popup.notice.button.isVisible()
    rig.popup.close()
    QGuiApplication.clipboard().setText("copied")
    rig.desktop.window = Window(2, "xterm", is_terminal=True)
    rig.controller.run("rewrite", "selection")
    qtbot.waitUntil(rig.popup.notice.button.isVisible)
    with qtbot.assertNotEmitted(rig.controller.models_wanted):
        rig.popup.notice.button.click()
    assert len(rig.client.submitted) == 3


def test_an_error_in_the_middle_keeps_the_text(make_rig: MakeRig, qtbot: QtBot):
    rig = make_rig(ScriptedAnswer("Half", error=DeviceFailedError("The GPU failed.")))
    _run_on_selection(rig, qtbot)
    rig.play()
    assert rig.popup.view.isVisible()
    assert rig.answer_text() == "Half"
    assert rig.popup.notice.isVisible()


def test_retry_asks_the_same_again(make_rig: MakeRig, qtbot: QtBot):
    rig = make_rig(ANSWER)
    _run_on_selection(rig, qtbot)
    rig.play()
    rig.popup.retry_button.click()
    first, second = rig.client.submitted
    assert first.messages == second.messages
    assert first.request_id != second.request_id


def test_an_action_in_the_focused_popup_works_on_its_text(make_rig: MakeRig, qtbot: QtBot, monkeypatch):
    rig = make_rig(ANSWER)
    _run_on_selection(rig, qtbot)
    rig.play()
    monkeypatch.setattr(rig.popup, "isActiveWindow", lambda: True)
    rig.controller.run("translate", "selection")
    assert "A long text." in rig.client.submitted[-1].messages[-1].content
    rig.play()
    rig.popup.view.selectAll()
    rig.controller.run("rewrite", "selection")
    assert "Three short words." in rig.client.submitted[-1].messages[-1].content
    assert rig.desktop.sent == ["copy"]


LONG = "".join(f"Paragraph {number} has exactly ten words in all of it.\n\n" for number in range(200))
"""2,000 tokens of the scripted engine, which counts words."""


def _run_on_long_text(rig: Rig, action: str) -> None:
    rig.client.context_tokens = 1000
    rig.client.load("fake")
    rig.play()
    rig.controller.run_text(action, LONG)


def test_a_long_text_is_done_in_parts_with_progress_and_coverage(make_rig: MakeRig, qtbot: QtBot):
    rig = make_rig(*(ScriptedAnswer(f"Point {number}.") for number in range(20)))
    _run_on_long_text(rig, "summarize")
    seen, counted = [], set()
    while rig.client.step():
        rig.settle()
        seen.append((rig.popup.view.placeholderText(), rig.popup.progress.value()))
        counted.add(rig.popup.small_print.full_text)
    parts = len(rig.client.submitted) - 1
    assert parts > 2
    texts = [text for text, _ in seen]
    assert any("it is done in parts" in text for text in texts)
    assert {f"Part {number} of {parts}" for number in range(1, parts + 1)} <= counted
    assert "Putting the answers together" in texts
    assert any(0 < share < 1000 for _, share in seen)
    assert rig.answer_text() == f"Point {parts}."
    assert f"all 2,000 tokens in {parts} parts" in rig.popup.small_print.full_text
    assert rig.popup.state is PopupState.FINISHED


def test_parts_at_the_length_limit_are_named(make_rig: MakeRig, qtbot: QtBot):
    rig = make_rig(ScriptedAnswer("One."), ScriptedAnswer("Tw", finish_reason="length"), ScriptedAnswer("More."))
    _run_on_long_text(rig, "translate")
    rig.play()
    assert "Length limit in parts 2 ·" in rig.popup.small_print.full_text
    assert "all 2,000 tokens" in rig.popup.small_print.full_text


def test_a_long_translation_streams_its_parts(make_rig: MakeRig, qtbot: QtBot):
    rig = make_rig(*(ScriptedAnswer(f"Part{number} ", "end.") for number in range(40)))
    _run_on_long_text(rig, "translate")
    while "Part2" not in rig.answer_text():
        assert rig.client.step()
        rig.settle()
    assert rig.popup.state is PopupState.STREAMING
    assert "Part 3 of" in rig.popup.small_print.full_text
    rig.play()
    parts = len(rig.client.submitted)
    assert rig.answer_text().strip().split("\n\n") == [f"Part{number} end." for number in range(parts)]


def test_stop_in_a_long_text_keeps_what_is_done_and_try_again_goes_on(make_rig: MakeRig, qtbot: QtBot):
    rig = make_rig(*(ScriptedAnswer(f"Part{number} ", "end.") for number in range(40)))
    _run_on_long_text(rig, "translate")
    while "Part1" not in rig.answer_text():
        assert rig.client.step()
        rig.settle()
    rig.popup.stop_button.click()
    rig.play()
    assert rig.popup.state is PopupState.FINISHED
    assert "Stopped" in rig.popup.small_print.full_text
    assert "1 of " in rig.popup.small_print.full_text
    assert rig.answer_text() == "Part0 end.\n\nPart1"
    rig.popup.retry_button.click()
    rig.settle()
    assert rig.answer_text().strip() == "Part0 end."
    rig.play()
    assert rig.answer_text().startswith("Part0 end.\n\nPart2 end.\n\nPart3")


def test_a_summary_stopped_while_it_is_put_together_is_not_called_one_of_all(make_rig: MakeRig, qtbot: QtBot):
    rig = make_rig(*(ScriptedAnswer(f"Point {number}.", " More.") for number in range(40)))
    _run_on_long_text(rig, "summarize")
    while not rig.answer_text():
        assert rig.client.step()
        rig.settle()
    parts = len(rig.client.submitted) - 1
    rig.popup.stop_button.click()
    rig.play()
    told = rig.popup.small_print.full_text
    assert f"{parts} of {parts} parts read, not yet put together" in told
    assert "all 2,000 tokens" not in told


def test_an_error_in_a_long_text_says_what_is_kept(make_rig: MakeRig, qtbot: QtBot):
    failing = ScriptedAnswer(error=DeviceFailedError("The GPU failed."))
    rig = make_rig(ScriptedAnswer("Zero."), failing, *(ScriptedAnswer(f"{number}.") for number in range(1, 40)))
    _run_on_long_text(rig, "translate")
    rig.play()
    assert rig.popup.state is PopupState.NOTICE
    assert "are done and kept" in rig.popup.notice.shown.text
    assert rig.answer_text().strip() == "Zero."
    rig.popup.retry_button.click()
    rig.play()
    assert rig.answer_text().startswith("Zero.\n\n1.\n\n2.")
    assert rig.popup.state is PopupState.FINISHED


def test_another_action_ends_a_long_one(make_rig: MakeRig, qtbot: QtBot):
    rig = make_rig(*(ScriptedAnswer(f"Part{number}.") for number in range(40)))
    _run_on_long_text(rig, "translate")
    while not rig.answer_text():
        assert rig.client.step()
        rig.settle()
    under_way = rig.client.submitted[-1].request_id
    rig.controller.run_text("rewrite", "Short.")
    assert under_way in rig.client.cancelled
    rig.play()
    assert rig.answer_text().startswith("Part")
    assert "\n\n" not in rig.answer_text().strip()


def test_busy_is_told_once_for_each_request(make_rig: MakeRig, qtbot: QtBot):
    rig = make_rig(ANSWER)
    seen: list[bool] = []
    rig.controller.busy_changed.connect(seen.append)
    _run_on_selection(rig, qtbot)
    rig.play()
    assert seen == [True, False]


def test_the_popup_is_there_at_once_and_says_what_it_waits_for(make_rig: MakeRig, qtbot: QtBot):
    rig = make_rig(ANSWER)
    rig.desktop.key_held = True
    rig.controller.run("summarize", "selection")
    assert rig.popup.isVisible()
    assert rig.shown == 1
    assert rig.popup.state is PopupState.WAITING
    assert rig.popup.view.placeholderText() == "Reading the selection…"
    assert rig.desktop.window == EDITOR
    assert rig.desktop.sent == []


@pytest.mark.parametrize("button", ["close_button", "stop_button"])
def test_a_popup_closed_during_the_capture_sends_nothing(make_rig: MakeRig, qtbot: QtBot, button: str):
    rig = make_rig(ANSWER)
    QGuiApplication.clipboard().setText("what lay there")
    rig.controller.run("summarize", "selection")
    qtbot.waitUntil(lambda: rig.desktop.sent == ["copy"])
    getattr(rig.popup, button).click()
    assert not rig.popup.isVisible()
    QGuiApplication.clipboard().setText("selected, copied late")
    qtbot.waitUntil(lambda: rig.clipboard.text() == "what lay there")
    qtbot.wait(30)
    assert rig.client.submitted == []
    assert not rig.popup.isVisible()


def test_what_was_selected_last_is_offered_and_used_on_demand(make_rig: MakeRig, qtbot: QtBot, monkeypatch):
    rig = make_rig(ANSWER)
    QGuiApplication.clipboard().setText("what lay there")
    rig.desktop.primary_owner = EDITOR
    monkeypatch.setattr(rig.clipboard, "primary_text", lambda: "given up")
    monkeypatch.setattr("app.capture.capture.COPY_LIMIT_S", 0.02)
    rig.controller.run("summarize", "selection")
    qtbot.waitUntil(lambda: rig.popup.state is PopupState.NOTICE)
    assert rig.popup.notice.shown.quote == "given up"
    assert "last selected in this program" in rig.popup.notice.shown.text
    assert rig.client.submitted == []
    rig.popup.notice.button.click()
    assert "given up" in rig.client.submitted[0].messages[-1].content
    rig.play()
    assert "where the cursor stands" in rig.popup.replace_button.toolTip()


def test_the_offer_is_what_was_shown(make_rig: MakeRig, qtbot: QtBot):
    rig = make_rig(ANSWER)
    QGuiApplication.clipboard().setText("shown")
    rig.desktop.window = None
    rig.controller.run("summarize", "selection")
    qtbot.waitUntil(lambda: rig.popup.state is PopupState.NOTICE)
    QGuiApplication.clipboard().setText("copied in between")
    rig.popup.notice.button.click()
    assert "shown" in rig.client.submitted[0].messages[-1].content


@pytest.mark.parametrize("answer", [" \n", "[]"])
def test_an_answer_without_words_does_not_go_on_as_a_chat(make_rig: Callable[..., Rig], answer: str):
    rig = make_rig(ScriptedAnswer(answer))
    wanted: list[str] = []
    rig.controller.chat_wanted.connect(lambda _title, _source, text: wanted.append(text))
    rig.controller.run_text("todos", "It rained.")
    rig.play()
    assert not rig.popup.chat_button.isVisible()
    rig.controller.continue_as_chat()
    assert wanted == []
