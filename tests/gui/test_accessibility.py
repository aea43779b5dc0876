"""Every control of every window has a name of its own, is reached by Tab, and shows that it has the focus."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.desktop.protocols import DesktopSession
from app.engine_client import ScriptedAnswer
from app.qt.look.notice import Notice
from app.qt.popup.popup import Popup
from app.qt.remote.dialog import RemoteChoice, RemoteDialog
from app.translation import Translator
from tests.gui.accessibility_walk import doubles, nameless, stops, unreachable, unseen
from tests.gui.remote.test_dialog import Keys
from tests.gui.test_application import RunningApp

pytestmark = pytest.mark.gui

TODOS = """{"source": "Ann sends", "task": "Send the report", "owner": "Ann", "due": "Friday"}
{"source": "Bob calls", "task": "Call the bank", "owner": "Bob", "due": ""}
"""


@pytest.fixture
def running(qtbot: QtBot, fake_session: DesktopSession, tmp_path: Path) -> Iterator[RunningApp]:
    running = RunningApp(qtbot, fake_session, tmp_path).start()
    running.play()
    yield running
    running.app.close()
    QGuiApplication.clipboard().clear()


def _home(running: RunningApp) -> QWidget:
    running.app.window.field.setPlainText("A text.")
    running.app.window.bring_to_front()
    return running.app.window


def _answer(running: RunningApp) -> QWidget:
    running.app.controller.run_text("summarize", "A text.")
    running.play()
    running.app.popup.take_focus()
    return running.app.popup


def _rewritten(running: RunningApp) -> QWidget:
    running.app.controller.run_text("rewrite", "A text with 3 words.")
    running.play()
    running.app.popup.take_focus()
    return running.app.popup


def _chat(running: RunningApp) -> QWidget:
    running.app.history.add_answer("summarize", "A text.", "Yes", "fake")
    running.app.chat.open()
    running.app.chat.continue_answer("Summary", "A text.", "# Yes\n\n```python\nprint(1)\n```\n")
    return running.app.chat.window


def _models(running: RunningApp) -> QWidget:
    running.app.models.open()
    window = running.app.models.owner.window
    assert window is not None
    return window


def _settings(running: RunningApp) -> QWidget:
    running.app.open_settings()
    assert running.app.settings_owner.dialog is not None
    return running.app.settings_owner.dialog


def _welcome(running: RunningApp) -> QWidget:
    running.app.welcome.open()
    assert running.app.welcome.window is not None
    return running.app.welcome.window


def _server(running: RunningApp) -> QWidget:
    dialog = RemoteDialog(RemoteChoice("", "", False), Keys(), Translator("en"), running.bridge.post_call)
    running.qtbot.addWidget(dialog)
    dialog.show()
    return dialog


def _todos(running: RunningApp) -> QWidget:
    running.client._answers = [ScriptedAnswer(TODOS)]
    running.app.controller.run_text("todos", "Ann sends the report by Friday. Bob calls the bank.")
    running.play()
    running.app.popup.take_focus()
    assert running.app.popup.pages.todo_view.isVisible()
    return running.app.popup


Opener = Callable[[RunningApp], QWidget]
WINDOWS: list[Opener] = [_home, _answer, _rewritten, _todos, _chat, _models, _server, _settings, _welcome]


@pytest.mark.parametrize("window", WINDOWS)
def test_each_control_has_a_name_of_its_own(running: RunningApp, window: Opener):
    shown = window(running)
    running.qtbot.wait(30)
    assert nameless(shown) == []
    assert doubles(shown) == []


@pytest.mark.parametrize("window", WINDOWS)
def test_tab_reaches_each_control_and_shows_where_it_is(running: RunningApp, window: Opener):
    shown = window(running)
    running.qtbot.wait(30)
    reached = stops(shown)
    assert len(reached) > 1
    assert unreachable(shown, reached) == []
    assert unseen(shown, reached) == []


def test_all_pages_of_the_settings(running: RunningApp):
    running.app.open_settings()
    dialog = running.app.settings_owner.dialog
    assert dialog is not None
    for page in dialog._pages:
        dialog.show_page(page.page.id)
        running.qtbot.wait(10)
        reached = stops(dialog)
        found = (nameless(dialog), doubles(dialog), unreachable(dialog, reached), unseen(dialog, reached))
        assert found == ([], [], [], []), page.page.id


def test_a_message_in_the_popup(qtbot: QtBot):
    popup = Popup(Translator("en"))
    qtbot.addWidget(popup)
    popup.show()
    popup.begin("Summarize")
    popup.append("text")
    popup.set_retryable(True)
    popup.show_notice(Notice("Nothing is selected", "A text", "A quotation", "Use this text"))
    assert nameless(popup) == []
    assert doubles(popup) == []


def test_the_walk_finds_what_is_wrong(qtbot: QtBot):
    window = QWidget()
    qtbot.addWidget(window)
    layout = QVBoxLayout(window)
    buttons = {name: QPushButton(text) for name, text in [("a", "One"), ("b", "One"), ("c", ""), ("d", "Two")]}
    for button in buttons.values():
        layout.addWidget(button)
    buttons["d"].setFocusPolicy(buttons["d"].focusPolicy().NoFocus)
    window.setStyleSheet("QPushButton { border: 1px solid red; outline: none; }")
    window.show()
    reached = stops(window)
    assert reached == [buttons["a"], buttons["b"], buttons["c"]]
    assert len(nameless(window)) == 1
    assert len(doubles(window)) == 1
    assert unreachable(window, reached) == ["QPushButton 'Two'"]
    assert len(unseen(window, reached)) == 3
