"""The window: complete without a tray, honest about hotkeys, nothing cut in either language."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QMessageBox, QPushButton
from pytestqt.qtbot import QtBot

from app.actions.commands import Command
from app.actions.registry import ActionRegistry
from app.qt.home.main_window import MINIMUM_SIZE, MainWindow
from app.qt.hotkeys.binding import HotkeyState, HotkeyStatus
from app.qt.memory.feed import MemoryFeed
from app.qt.status import Status
from app.translation import Translator, UserText
from inference.request import EngineReading, ModelEvent, ModelState

pytestmark = pytest.mark.gui

LINKS = {"chat.open": "Chat", "models.open": "Models", "settings.open": "Settings", "app.quit": "Quit"}
STATUSES = [
    HotkeyStatus("a", "Summarize", "Ctrl+Shift+1", HotkeyState.REGISTERED),
    HotkeyStatus("b", "Translate", "Ctrl+Shift+2", HotkeyState.TAKEN, UserText("another program uses it")),
    HotkeyStatus("c", "Rewrite", "Ctrl+Shift+3", HotkeyState.IMPOSSIBLE, UserText("not possible here")),
    HotkeyStatus("d", "To-dos", "Ctrl+Shift+Q1", HotkeyState.INVALID, UserText("there is no such key")),
]


@pytest.fixture
def make(qtbot: QtBot, memory_feed: MemoryFeed) -> Callable[..., MainWindow]:
    def make(language: str = "en") -> MainWindow:
        window = MainWindow(Translator(language), memory_feed)
        qtbot.addWidget(window)
        window.set_actions(ActionRegistry(user_dir=Path("no-such-folder")).all())
        window.set_commands([Command(name, title, lambda: None) for name, title in LINKS.items()])
        window.show()
        return window

    return make


def _labels(window: MainWindow) -> list[str]:
    return [label.text() for label in window.findChildren(QLabel) if label.isVisible()]


def test_the_field_feeds_the_actions(qtbot: QtBot, make: Callable[..., MainWindow]):
    window = make()
    button = next(button for button in window.findChildren(QPushButton) if button.text() == "Summarize")
    assert not button.isEnabled()
    window.field.setPlainText("some text")
    with qtbot.waitSignal(window.action_requested) as blocker:
        button.click()
    assert blocker.args == ["summarize", "some text"]


def test_hotkeys_are_listed_with_state_and_reason(qtbot: QtBot, make: Callable[..., MainWindow]):
    window = make()
    window.set_hotkeys(STATUSES, ["Wayland lets no program take a hotkey."])
    qtbot.wait(1)
    labels = _labels(window)
    for expected in ("✓ works", "✗ another program uses it", "– not possible here", "✗ there is no such key"):
        assert expected in labels
    assert "Wayland lets no program take a hotkey." in labels
    with qtbot.waitSignal(window.hotkeys_retry_requested):
        window.retry_button.click()
    window.set_hotkeys([replace(STATUSES[2], reason=UserText("no display"))], ["no display"])
    qtbot.wait(1)
    assert "– not here" in _labels(window)
    window.set_hotkeys(STATUSES[:1])
    qtbot.wait(1)
    assert "✗ another program uses it" not in _labels(window)
    assert not window.retry_button.isVisible()


def test_without_a_tray_it_says_so_and_has_a_button_that_ends_the_program(
    qtbot: QtBot, make: Callable[..., MainWindow]
):
    window = make()
    window.set_only_home(True)
    assert any("no tray icons" in text for text in _labels(window))
    with qtbot.waitSignal(window.quit_requested):
        window.quit_button.click()
    window.set_only_home(False)
    assert not any("no tray icons" in text for text in _labels(window))
    assert not window.quit_button.isVisible()


def _messages(window: MainWindow) -> list[QMessageBox]:
    return [each for each in window.findChildren(QMessageBox) if each.isVisible()]


def test_with_a_tray_closing_only_hides_it(qtbot: QtBot, make: Callable[..., MainWindow]):
    window = make()
    window.set_only_home(False)
    with qtbot.waitSignal(window.hidden), qtbot.assertNotEmitted(window.quit_requested):
        window.close()
    assert _messages(window) == []


def test_without_a_tray_closing_hides_it_too_which_is_told_once(qtbot: QtBot, make: Callable[..., MainWindow]):
    window = make()
    window.set_only_home(True)
    with qtbot.waitSignal(window.hidden), qtbot.assertNotEmitted(window.quit_requested):
        window.close()
    (message,) = _messages(window)
    assert "goes on" in message.text()
    assert not message.isModal()
    with qtbot.assertNotEmitted(window.quit_requested):
        qtbot.keyClick(message, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: _messages(window) == [])
    window.bring_to_front()
    window.close()
    assert _messages(window) == []


def test_who_wants_the_program_to_end_can_say_so_there(qtbot: QtBot, make: Callable[..., MainWindow]):
    window = make()
    window.set_only_home(True)
    window.close()
    (message,) = _messages(window)
    leave = next(button for button in message.buttons() if button.text() == "Quit")
    with qtbot.waitSignal(window.quit_requested):
        leave.click()


def test_errors_stay_until_they_are_cleared(qtbot: QtBot, make: Callable[..., MainWindow]):
    window = make()
    window.show_message("No room")
    assert "⚠ No room" in _labels(window)
    window.show_message("")
    assert not window.message.isVisible()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_nothing_is_cut_at_the_smallest_size(qtbot: QtBot, make: Callable[..., MainWindow], language: str):
    window = make(language)
    window.set_only_home(True)
    window.set_hotkeys(STATUSES)
    window.resize(MINIMUM_SIZE)
    qtbot.wait(10)
    for button in window.findChildren(QPushButton):
        assert button.width() >= button.sizeHint().width(), button.text()
    for label in window.findChildren(QLabel):
        if label.isVisible() and label.text():
            needed = label.heightForWidth(label.width()) if label.wordWrap() else label.sizeHint().height()
            assert label.height() >= needed, label.text()
            assert label.wordWrap() or label.width() >= label.sizeHint().width(), label.text()


def test_on_a_small_screen_everything_can_be_scrolled_to(qtbot: QtBot, make: Callable[..., MainWindow]):
    window = make()
    window.set_only_home(True)
    window.show_message("No room. " * 30)
    window.set_hotkeys(STATUSES * 4)
    window.resize(910, 430)  # 1366x768 at 150 %, less a panel and a title bar
    qtbot.wait(10)
    assert window.height() == 430
    bar = window.area.verticalScrollBar()
    assert bar.maximum() > 0
    assert window.area.horizontalScrollBar().maximum() == 0
    lines = window.field.fontMetrics().lineSpacing()
    assert 3 * lines <= window.field.viewport().height() <= 6 * lines
    bar.setValue(bar.maximum())
    last = [label for label in window.findChildren(QLabel) if label.text() == "✗ there is no such key"][-1]
    bottom = last.mapTo(window, last.rect().bottomLeft()).y()
    assert 0 < bottom < window.height()


def test_on_a_large_screen_nothing_is_scrolled(qtbot: QtBot, make: Callable[..., MainWindow]):
    window = make()
    window.set_hotkeys(STATUSES)
    window.resize(600, 900)
    qtbot.wait(10)
    assert window.area.verticalScrollBar().maximum() == 0


def test_links_lead_to_the_other_windows(qtbot: QtBot, make: Callable[..., MainWindow]):
    window = make()
    buttons = {button.text(): button for button in window.findChildren(QPushButton) if button.isVisible()}
    assert "Quit" not in buttons
    for command_id in ("chat.open", "models.open", "settings.open"):
        with qtbot.waitSignal(window.command_requested) as blocker:
            buttons[LINKS[command_id]].click()
        assert blocker.args == [command_id]


def test_the_model_is_shown_and_can_be_freed_and_loaded(qtbot: QtBot, make: Callable[..., MainWindow]):
    window = make()
    reading = EngineReading(state=ModelState.READY, backend="cpu", weight_bytes=300 << 20, kv_bytes=40 << 20)
    ready = Status().after(ModelEvent(ModelState.READY, "tiny"), reading=reading)
    for status, labels, button, command_id in [
        (ready, {"Ready: tiny"}, "Free the memory now", "model.unload"),
        (Status(), {"No model is loaded; the next action loads one"}, "Load the model", "model.load"),
        (Status(reason=UserText("Freed")), {"Freed"}, "Load the model", "model.load"),
        (Status(is_missing=True), {"The model is not on this computer yet"}, "Get a model…", "models.open"),
    ]:
        window.set_status(status)
        assert labels <= set(_labels(window))
        assert not any("340 MB" in text for text in _labels(window))  # the meter tells it, once
        assert window.model_button.text() == button
        with qtbot.waitSignal(window.command_requested) as blocker:
            window.model_button.click()
        assert blocker.args == [command_id]
    assert not window.served_line.isVisible()
