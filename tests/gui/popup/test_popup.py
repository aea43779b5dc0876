"""The popup as a view: what can be pressed when, what keys do, and that nothing is cut or nameless."""

from itertools import pairwise

import pytest
from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QAbstractButton, QApplication, QToolButton
from pytestqt.qtbot import QtBot

from app.actions.answer_review import Subject
from app.qt.look.notice import Notice, preview
from app.qt.popup.popup import MINIMUM_SIZE, Popup, PopupState
from app.text.checks import SUMMARY_CHECKS
from app.translation import Translator

pytestmark = pytest.mark.gui


@pytest.fixture
def finished(popup: Popup) -> Popup:
    popup.show()
    popup.begin("Summarize")
    popup.set_retryable(True)
    popup.set_replaceable(True, "")
    popup.append("An answer.")
    popup.finish("model\n10.0 tokens/s")
    return popup


def _usable(popup: Popup) -> set[str]:
    buttons = (popup.stop_button, popup.retry_button, popup.copy_button, popup.replace_button)
    return {button.text() for button in buttons if button.isVisible() and button.isEnabled()}


def test_what_can_be_pressed_in_each_state(popup: Popup):
    popup.show()
    popup.begin("Summarize")
    popup.set_retryable(True)
    popup.set_replaceable(True, "")
    assert _usable(popup) == {"Stop"}
    popup.append("An answer.")
    assert _usable(popup) == {"Stop", "Copy"}
    popup.finish("")
    assert _usable(popup) == {"Try again", "Copy", "Replace"}
    popup.begin("Translate")
    popup.show_notice(Notice("Nothing is selected"))
    assert _usable(popup) == {"Try again"}
    popup.set_retryable(False)
    assert _usable(popup) == set()


def test_an_answer_of_nothing_can_only_be_tried_again(popup: Popup, qtbot: QtBot):
    popup.show()
    for text in ("  \n", ""):
        popup.begin("Summarize")
        popup.set_retryable(True)
        popup.set_replaceable(True, "")
        popup.append(text)
        popup.finish("")
        assert _usable(popup) == {"Try again"}
        assert popup.primary_button is None
        with qtbot.assertNotEmitted(popup.copy_requested, wait=20):
            qtbot.keyClick(popup, Qt.Key.Key_Return)


def test_it_does_not_ask_for_the_focus(popup: Popup):
    assert popup.testAttribute(Qt.WidgetAttribute.WA_ShowWithoutActivating)
    assert popup.windowFlags() & Qt.WindowType.Tool == Qt.WindowType.Tool
    assert popup.windowFlags() & Qt.WindowType.FramelessWindowHint


def test_escape_closes_and_reports_it(finished: Popup, qtbot: QtBot):
    with qtbot.waitSignal(finished.closed):
        qtbot.keyClick(finished.view, Qt.Key.Key_Escape)
    assert not finished.isVisible()


@pytest.mark.parametrize(
    ("key", "modifier", "signal"),
    [
        (Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier, "copy_requested"),
        (Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier, "replace_requested"),
        (Qt.Key.Key_F5, Qt.KeyboardModifier.NoModifier, "retry_requested"),
    ],
)
def test_keys_do_what_the_buttons_do(finished: Popup, qtbot: QtBot, key, modifier, signal: str):
    finished.take_focus()
    with qtbot.waitSignal(getattr(finished, signal)):
        qtbot.keyClick(finished.view, key, modifier)


def test_keys_of_buttons_that_cannot_be_pressed_do_nothing(finished: Popup, qtbot: QtBot):
    finished.set_replaceable(False, "no window")
    with qtbot.assertNotEmitted(finished.replace_requested, wait=50):
        qtbot.keyClick(finished.view, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)


def test_a_selection_is_copied_alone(finished: Popup, qtbot: QtBot):
    cursor = finished.view.textCursor()
    cursor.setPosition(0)
    cursor.setPosition(2, cursor.MoveMode.KeepAnchor)
    finished.view.setTextCursor(cursor)
    with qtbot.assertNotEmitted(finished.copy_requested, wait=50):
        qtbot.keyClick(finished.view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QApplication.clipboard().text() == "An"


def test_tab_reaches_every_button_and_leaves_the_text(finished: Popup, qtbot: QtBot):
    finished.take_focus()
    reached = []
    for _ in range(5):
        qtbot.keyClick(QApplication.focusWidget() or finished, Qt.Key.Key_Tab)
        reached.append(QApplication.focusWidget())
    footer = [finished.retry_button, finished.replace_button, finished.copy_button]
    expected = [*footer, finished.chat_button, finished.close_button]
    assert reached == expected


REPLACES, STAYS = Subject("A text.", replaces=True), Subject("A text.")


def _finish(popup: Popup, subject: Subject, can_replace: bool = True) -> None:
    popup.show()
    popup.begin("Title", "", subject)
    popup.set_replaceable(can_replace, "")
    popup.append("An answer.")
    popup.finish("")


@pytest.mark.parametrize(
    ("subject", "can_replace", "order", "primary"),
    [
        (REPLACES, True, "Copy Replace", "Replace"),
        (REPLACES, False, "Copy Replace", "Copy"),
        (STAYS, True, "Replace Copy", "Copy"),
        (STAYS, False, "Replace Copy", "Copy"),
    ],
)
def test_the_primary_button_is_what_the_answer_is_meant_for(
    popup: Popup, qtbot: QtBot, subject: Subject, can_replace: bool, order: str, primary: str
):
    for other in (REPLACES, STAYS):
        _finish(popup, other)
    _finish(popup, subject, can_replace)
    buttons = {button.text(): button for button in (popup.copy_button, popup.replace_button)}
    assert [text for text, button in buttons.items() if button.property("role") == "primary"] == [primary]
    assert sorted(buttons, key=lambda text: buttons[text].x()) == order.split()
    first, last = (buttons[text] for text in order.split())
    assert first.nextInFocusChain() is last
    popup.take_focus()
    signal = {"Copy": popup.copy_requested, "Replace": popup.replace_requested}[primary]
    with qtbot.waitSignal(signal):
        qtbot.keyClick(popup.view, Qt.Key.Key_Return)


def test_no_button_is_primary_while_the_answer_comes(popup: Popup, qtbot: QtBot):
    _finish(popup, STAYS)
    popup.begin("Summarize", "", STAYS)
    for _ in range(2):
        assert popup.copy_button.property("role") != "primary"
        with qtbot.assertNotEmitted(popup.copy_requested, wait=20):
            qtbot.keyClick(popup.view, Qt.Key.Key_Return)
        popup.append("An ")


@pytest.mark.parametrize("name", ["retry_button", "replace_button", "chat_button", "close_button"])
def test_enter_presses_the_button_that_has_the_keyboard(finished: Popup, qtbot: QtBot, name: str):
    button = getattr(finished, name)
    finished.take_focus()
    button.setFocus()
    with qtbot.waitSignal(button.clicked), qtbot.assertNotEmitted(finished.copy_requested, wait=20):
        qtbot.keyClick(button, Qt.Key.Key_Enter)


def test_it_stays_where_the_user_has_put_it_on_the_same_monitor(finished: Popup):
    areas = [QRect(0, 0, 800, 800), QRect(800, 0, 1600, 800)]
    finished.move(37, 41)
    finished.show_near(QPoint(500, 500), areas)
    assert finished.pos() == QPoint(37, 41)
    finished.show_near(QPoint(1000, 100), areas)
    assert finished.pos() == QPoint(1014, 114)
    finished.close()
    finished.show_near(QPoint(100, 100), areas)
    assert finished.pos() == QPoint(114, 114)


LINE = "A sentence of an answer that is about as long as one line.\n"
AREAS = [QRect(0, 0, 800, 800)]


def _stream(popup: Popup, lines: int) -> list[int]:
    """Its height after each line."""
    heights = []
    for _ in range(lines):
        popup.append(LINE)
        heights.append(popup.height())
    return heights


@pytest.mark.parametrize("cursor", [QPoint(50, 60), QPoint(50, 780)])
def test_it_starts_compact_and_grows_with_the_text_up_to_a_limit(popup: Popup, qtbot: QtBot, cursor: QPoint):
    popup.begin("Summarize")
    popup.show_near(cursor, AREAS)
    first = popup.geometry()
    assert first.height() < 240
    assert popup.view.height() >= 3 * popup.view.fontMetrics().lineSpacing()
    assert _stream(popup, 2) == [first.height()] * 2
    heights = _stream(popup, 60)
    assert heights == sorted(heights)
    assert max(b - a for a, b in pairwise(heights)) < 60
    assert heights[-1] == 480
    grown = popup.geometry()
    assert AREAS[0].contains(grown)
    assert not grown.contains(cursor)
    if cursor.y() < 400:
        assert grown.top() == first.top()
    else:
        assert grown.bottom() == first.bottom()
    bar = popup.view.verticalScrollBar()
    assert bar.value() == bar.maximum() > 0
    popup.begin("Rewrite")
    assert popup.geometry() == first


def test_an_answer_that_fits_needs_no_scrolling(popup: Popup):
    popup.begin("Summarize")
    popup.show_near(QPoint(50, 60), AREAS)
    _stream(popup, 11)
    popup.finish("model\n10.0 tokens/s")
    assert popup.view.verticalScrollBar().maximum() == 0
    assert popup.height() <= popup.view.text_height() + 200


def test_a_size_that_the_user_has_chosen_stays(popup: Popup):
    popup.begin("Summarize")
    popup.show_near(QPoint(50, 60), AREAS)
    popup.resize(500, 300)
    popup.is_resized = True
    assert set(_stream(popup, 30)) == {300}
    popup.finish("")
    popup.close()
    popup.begin("Rewrite")
    popup.show_near(QPoint(50, 60), AREAS)
    assert popup.size() == QSize(500, 300)


def test_what_is_flagged_leaves_room_for_the_text(popup: Popup):
    popup.show()
    popup.resize(MINIMUM_SIZE)
    popup.is_resized = True
    numbers = " and ".join(str(number) for number in range(1000, 1012))
    popup.begin("Summarize", "", Subject("None.", "text", False, SUMMARY_CHECKS))
    popup.append(numbers)
    popup.finish("model\nspeed")
    assert popup.check_bar.isVisible()
    popup.layout().activate()
    assert popup.view.height() >= 2 * popup.view.fontMetrics().lineSpacing()
    assert popup.width() == MINIMUM_SIZE.width()


def test_a_popup_that_the_user_has_moved_grows_down(popup: Popup):
    popup.begin("Summarize")
    popup.show_near(QPoint(50, 780), AREAS)
    popup.move(20, 30)
    popup.is_moved = True
    _stream(popup, 10)
    assert popup.pos() == QPoint(20, 30)
    _stream(popup, 60)
    assert popup.geometry() == QRect(20, 30, popup.width(), 480)


def test_a_long_message_makes_room_for_itself(popup: Popup, qtbot: QtBot):
    popup.show()
    popup.resize(MINIMUM_SIZE)
    popup.begin("Summarize")
    popup.show_notice(Notice("Heading", "A sentence that explains. " * 12, "A quotation. " * 20, "Use this text"))
    qtbot.wait(10)
    button = popup.notice.button
    bottom = button.mapTo(popup, QPoint(0, button.height())).y()
    assert popup.height() - 40 < bottom < popup.height()
    assert not popup.footer.isVisible()
    assert popup.height() > MINIMUM_SIZE.height()


def test_progress_after_the_first_text_changes_nothing(popup: Popup):
    popup.show()
    popup.begin("Summarize")
    popup.append("text")
    popup.show_progress("Loading", 0.5)
    assert popup.state is PopupState.STREAMING
    assert not popup.progress.isVisible()


def test_the_palette_decides_between_light_and_dark(popup: Popup, qtbot: QtBot):
    before = popup.styleSheet()
    palette = QApplication.palette()
    dark = QPalette(palette)
    for role in (QPalette.ColorRole.Base, QPalette.ColorRole.Window):
        dark.setColor(role, QColor("#202124"))
    for role in (QPalette.ColorRole.Text, QPalette.ColorRole.WindowText):
        dark.setColor(role, QColor("#eeeeee"))
    QApplication.setPalette(dark)
    try:
        qtbot.waitUntil(lambda: "#202124" in popup.styleSheet())
    finally:
        QApplication.setPalette(palette)
    qtbot.waitUntil(lambda: popup.styleSheet() == before)


def test_a_preview_is_folded_and_short():
    assert preview("a\n\n  b\tc") == "a b c"
    assert preview("word " * 1000, 20) == "word word word word…"
    assert len(preview("x" * 100_000)) == 201


@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_button_or_label_is_cut(qtbot: QtBot, language: str):
    translator = Translator(language)
    tr = translator.tr
    popup = Popup(translator)
    qtbot.addWidget(popup)
    popup.show()
    popup.begin("Translate", "English → Simplified Chinese")
    popup.set_retryable(True)
    popup.append("text")
    popup.finish(f"{tr('Ended at the length limit')} · model-1.5b\n{tr('first after {seconds} s', seconds='12.3')}")
    popup.copy_button.setText(tr("Copied"))
    qtbot.wait(10)
    for button in popup.findChildren(QAbstractButton):
        if button.isVisible():
            assert button.width() >= button.sizeHint().width(), button.text()
            assert button.height() >= button.sizeHint().height(), button.text()
    assert popup.title.width() >= popup.title.sizeHint().width()
    assert popup.small_print.text() == popup.small_print.full_text
    assert popup.subtitle.text() == popup.subtitle.full_text


def test_what_has_no_room_ends_in_an_ellipsis(popup: Popup, qtbot: QtBot):
    popup.show()
    popup.begin("Translate", "English → Simplified Chinese " * 5)
    popup.finish("a-model-with-a-very-long-name-" * 5 + "\nsecond")
    qtbot.wait(10)
    assert popup.subtitle.text().endswith("…")
    first, second = popup.small_print.text().split("\n")
    assert first.endswith("…")
    assert second == "second"
    assert popup.small_print.accessibleName().endswith("-, second")


def test_all_that_is_flagged_makes_room_for_itself_at_the_click(popup: Popup):
    popup.show_near(QPoint(50, 60), [QRect(0, 0, 1200, 1000)])
    numbers = " and ".join(str(number) for number in range(1000, 1016))
    popup.begin("Summarize", "", Subject("None.", "text", False, SUMMARY_CHECKS))
    popup.append(numbers)
    popup.finish("model\nspeed")
    popup.layout().activate()
    before, height = popup.view.height(), popup.height()
    more = next(entry for entry in popup.check_bar.findChildren(QToolButton) if entry.text().endswith(" more"))
    more.click()
    popup.layout().activate()
    assert popup.height() > height
    assert popup.view.height() >= before
