"""The pages of an answer in the popup: what is shown when, and what Copy and Replace use."""

import threading
from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.actions.answer_review import Subject
from app.engine_client import ScriptedAnswer
from app.qt.popup.page_bar import Page
from app.qt.popup.pages import THREAD_CHARS
from app.qt.popup.popup import Popup
from app.text.checks import REWRITE_CHECKS, SUMMARY_CHECKS
from app.todos.todo import Todo, to_lines
from tests.gui.rig import Rig

pytestmark = pytest.mark.gui

SOURCE = "i has a meeting at 14:30 with teh boss\n"
ANSWER = "I have a meeting at 13:30 with the boss"
REWRITE = Subject(SOURCE, "changes", True, REWRITE_CHECKS, ("en", "en"))
TODOS = Subject("Omar buys soil.", "todos")


def _answered(popup: Popup, subject: Subject, answer: str, is_complete: bool = True) -> Popup:
    popup.show()
    popup.begin("Rewrite", "", subject)
    popup.append(answer)
    popup.set_replaceable(True, "")
    popup.finish("", "", is_complete)
    return popup


def _page(popup: Popup) -> Page:
    return next(page for page, tab in popup.pages.bar.tabs.items() if tab.isChecked())


def test_changes_are_shown_and_what_is_accepted_is_used(popup: Popup, qtbot: QtBot):
    _answered(popup, REWRITE, ANSWER)
    assert _page(popup) is Page.CHANGES
    assert popup.result_text() == ANSWER + "\n"
    popup.take_focus()
    qtbot.waitUntil(popup.isActiveWindow)
    view = popup.pages.diff_view
    qtbot.keyClick(view, Qt.Key.Key_F8)
    qtbot.keyClick(view, Qt.Key.Key_F9)
    assert popup.result_text() == ANSWER.replace("I have", "i has") + "\n"
    assert popup.pages.bar.count_label.full_text == "2 of 3 used"
    qtbot.keyClick(view, Qt.Key.Key_2, Qt.KeyboardModifier.ControlModifier)
    assert popup.view.toPlainText() == popup.result_text()
    qtbot.keyClick(popup.view, Qt.Key.Key_F9, Qt.KeyboardModifier.ShiftModifier)
    assert popup.result_text() == ANSWER + "\n"
    qtbot.keyClick(popup.view, Qt.Key.Key_F9, Qt.KeyboardModifier.ShiftModifier)
    assert popup.result_text() == SOURCE
    assert popup.view.toPlainText() == SOURCE


def test_losses_are_flagged_and_lead_to_their_change(popup: Popup):
    _answered(popup, REWRITE, ANSWER)
    (loss,) = popup.check_bar.losses
    assert popup.check_bar.isVisible()
    popup.pages.show_page(Page.SOURCE)
    popup.check_bar.loss_chosen.emit(loss)
    assert _page(popup) is Page.CHANGES
    assert popup.pages.diff_view.changes[popup.pages.diff_view.current].before == "14:30"


def test_a_loss_of_a_plain_answer_leads_to_source_or_answer(popup: Popup):
    _answered(popup, Subject("Sold 12 cars.", "text", False, SUMMARY_CHECKS), "😀 Sold 120 cars.")
    assert popup.pages.bar.isVisible()
    popup.pages.show_loss(popup.check_bar.losses[0])
    (marked,) = popup.view.extraSelections()
    assert (_page(popup), marked.cursor.selectedText()) == (Page.RESULT, "120")


def test_a_plain_answer_stays_as_it_is(popup: Popup):
    _answered(popup, Subject("Sold 12 cars.", "text", False, SUMMARY_CHECKS), "- 12 cars")
    assert not popup.pages.bar.isVisible()
    assert not popup.check_bar.isVisible()
    assert popup.view.toPlainText() == popup.result_text() == "- 12 cars"


def test_what_the_model_says_about_its_answer_is_left_out_but_not_lost(popup: Popup):
    whole = f"Sure, here is the rewritten text:\n\n{ANSWER}"
    _answered(popup, REWRITE, whole)
    assert popup.result_text() == ANSWER + "\n"
    popup.check_bar.show_all_requested.emit()
    assert popup.result_text() == popup.view.toPlainText() == whole
    assert _page(popup) is Page.RESULT


def test_an_answer_that_was_cut_off_is_not_compared(popup: Popup):
    _answered(popup, REWRITE, "I have", is_complete=False)
    assert (_page(popup), popup.result_text()) == (Page.RESULT, "I have")
    assert not popup.pages.bar.tabs[Page.CHANGES].isEnabled()


def test_a_text_without_mistakes_says_so(popup: Popup):
    _answered(popup, REWRITE, SOURCE.strip())
    assert _page(popup) is Page.RESULT
    assert popup.pages.bar.count_label.full_text == "Nothing was changed"
    assert not popup.pages.bar.next_button.isVisible()
    assert popup.result_text() == SOURCE
    # The words end where the buttons below do.
    label, button = popup.pages.bar.count_label, popup.copy_button
    ends = [widget.mapTo(popup, widget.rect().topRight()).x() for widget in (label, button, popup.replace_button)]
    assert ends[0] == max(ends[1:])


def test_nothing_jumps_while_an_answer_with_changes_comes(popup: Popup):
    popup.show()
    popup.begin("Rewrite", "", REWRITE)
    top = popup.pages.result_view.mapTo(popup, popup.pages.result_view.rect().topLeft())
    popup.append(ANSWER)
    popup.finish("model")
    view = popup.pages.diff_view
    assert view.mapTo(popup, view.rect().topLeft()) == top


def test_a_long_answer_is_looked_through_beside_the_windows(popup: Popup, qtbot: QtBot):
    source = "teh cat sat on teh mat. " * (THREAD_CHARS // 20)
    popup.show()
    popup.begin("Rewrite", "", Subject(source, "changes", True, REWRITE_CHECKS, ("en", "en")))
    popup.append(source.replace("teh", "the").strip())
    with qtbot.waitSignal(popup.pages.reviewed, timeout=20_000):
        popup.finish("")
        assert not popup.pages.diff_view.changes
    assert len(popup.pages.diff_view.changes) > 1000
    assert popup.result_text() == source.replace("teh", "the")


def test_a_review_that_comes_too_late_is_dropped(popup: Popup, qtbot: QtBot):
    source = "teh cat. " * THREAD_CHARS
    popup.show()
    popup.begin("Rewrite", "", Subject(source, "changes", True, REWRITE_CHECKS))
    popup.append("something else")
    popup.finish("")
    popup.begin("Summarize", "", Subject("a", "text"))
    popup.append("b")
    thread = next((one for one in threading.enumerate() if one.name == "answer-review"), None)
    if thread is not None:
        thread.join()
    qtbot.wait(20)
    assert (popup.result_text(), popup.view.toPlainText()) == ("b", "b")


def test_to_dos_are_a_list(popup: Popup, qtbot: QtBot):
    _answered(popup, TODOS, to_lines([Todo("Buy soil", "Omar")]))
    assert _page(popup) is Page.TODOS
    assert popup.result_text() == "- [ ] Buy soil (Omar)\n"
    assert popup.pages.bar.count_label.full_text == "1 of 1 open"
    with qtbot.waitSignal(popup.copy_text_requested):
        popup.pages.todo_view.menu.actions()[1].trigger()
    _answered(popup, TODOS, "[]")
    assert popup.pages.todo_view.empty_label.text() == "No to-dos found"
    assert not popup.copy_button.isVisible()
    assert not popup.replace_button.isVisible()
    assert popup.result_text() == ""


def test_what_to_dos_wait_for_is_told_in_their_place(popup: Popup):
    popup.show()
    popup.begin("To-dos", "", TODOS)
    popup.show_progress("Reading the text", None)
    assert popup.pages.todo_view.empty_label.text() == "Reading the text"
    popup.append(to_lines([Todo("Buy soil")]))
    assert not popup.pages.todo_view.empty_label.isVisible()


def test_to_dos_that_are_no_data_are_text(popup: Popup):
    _answered(popup, TODOS, "- [ ] Buy soil (Omar)")
    assert _page(popup) is Page.RESULT
    assert popup.result_text() == popup.view.toPlainText() == "- [ ] Buy soil (Omar)"


def test_a_part_of_a_long_text_is_told_while_it_streams(popup: Popup):
    popup.show()
    popup.begin("Translate", "", Subject("a", "text"))
    popup.append("text")
    popup.show_part(2, 5)
    assert popup.small_print.full_text == "Part 2 of 5"
    assert popup.progress.isVisible()
    assert (popup.progress.value(), popup.progress.maximum()) == (1, 5)
    popup.finish("model")
    assert not popup.progress.isVisible()


def test_every_control_is_reached_by_tab(popup: Popup, qtbot: QtBot):
    _answered(popup, REWRITE, f"Sure, here is the rewritten text:\n\n{ANSWER}")
    popup.set_retryable(True)
    popup.take_focus()
    qtbot.waitUntil(popup.isActiveWindow)
    reached = set()
    for _ in range(30):
        widget = QApplication.focusWidget() or popup
        reached.add(widget.accessibleName() or getattr(widget, "text", str)())
        qtbot.keyClick(widget, Qt.Key.Key_Tab)
    wanted = {"Changes", "Previous change", "Next change", "Use all changes, or none"}
    wanted |= {"14:30 → 13:30", "Try again", "Copy", "Replace", "Continue as chat", "Close"}
    assert wanted <= reached
    tabs = popup.pages.bar.tabs
    tabs[Page.CHANGES].setFocus()
    qtbot.keyClick(tabs[Page.CHANGES], Qt.Key.Key_Right)
    assert tabs[Page.RESULT].hasFocus()


def test_keys_of_what_is_hidden_do_nothing(popup: Popup, qtbot: QtBot):
    _answered(popup, Subject("Sold 12 cars.", "text"), "- 12 cars")
    popup.take_focus()
    qtbot.waitUntil(popup.isActiveWindow)
    for key in (Qt.Key.Key_F8, Qt.Key.Key_F9):
        qtbot.keyClick(popup.view, key)
    assert _page(popup) is Page.RESULT


def test_the_controller_copies_and_replaces_what_is_accepted(make_rig: Callable[..., Rig], qtbot: QtBot):
    rig = make_rig(ScriptedAnswer("I have a plan."))
    rig.select("i has a plan.")
    rig.controller.run("rewrite", "selection")
    qtbot.waitUntil(lambda: bool(rig.client.submitted))
    rig.play()
    rig.popup.pages.diff_view.accept_all(False)
    rig.controller.copy()
    assert QApplication.clipboard().text() == "i has a plan."
