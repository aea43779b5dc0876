"""The app put together: hotkeys to answers, states, settings and actions that change while it runs."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app.actions.registry import ActionRegistry
from app.desktop.protocols import DesktopSession
from app.engine_client import FakeClient, ScriptedAnswer
from app.paths import welcomed_file
from app.qt.application import TRAY_GRACE_MS, Application
from app.qt.bridge import Bridge
from app.qt.popup.popup import PopupState
from app.qt.status import TrayState
from app.settings.registry import setting_registry
from app.settings.settings import Settings
from app.translation import Translator, UserText
from inference.errors import ModelNotFoundError, OutOfMemoryError
from inference.request import EngineReading, ModelEvent, ModelState
from tests.gui.rig import FakeGrabber

pytestmark = pytest.mark.gui

MY_ACTION = """
order = 5
hotkey = "Ctrl+Shift+9"
[title]
en = "Shout"
[prompt.en]
system = ""
user = "{text}!"
"""


class RunningApp:
    """An Application on a fake desktop with a scripted engine."""

    def __init__(self, qtbot: QtBot, session: DesktopSession, folder: Path, language: str = "en") -> None:
        self.qtbot = qtbot
        self.session = session
        self.user_dir = folder / "actions"
        actions = ActionRegistry(user_dir=self.user_dir)
        self.settings = Settings.load(folder / "settings.toml", setting_registry(actions.all()))
        self.bridge = Bridge(tick_ms=1)
        self.client = FakeClient(ScriptedAnswer("Yes."))
        self.app = Application(
            settings=self.settings,
            actions=actions,
            translator=Translator(language),
            bridge=self.bridge,
            client=self.client,
            default_model=lambda: "default-model",
        )

    @property
    def grabber(self) -> FakeGrabber:
        assert isinstance(self.session.grabber, FakeGrabber)
        return self.session.grabber

    def start(self) -> "RunningApp":
        self.app.start(self.session)
        return self

    def play(self) -> None:
        self.client.play()
        self.qtbot.wait(15)


@pytest.fixture
def running(qtbot: QtBot, fake_session: DesktopSession, tmp_path: Path) -> Iterator[RunningApp]:
    QGuiApplication.clipboard().clear()
    running = RunningApp(qtbot, fake_session, tmp_path)
    yield running
    running.app.close()
    QGuiApplication.clipboard().clear()


def _menu(running: RunningApp) -> list[str]:
    return [action.objectName() for action in running.app.tray.menu.actions() if action.objectName()]


def test_the_tray_is_there_before_anything_is_started(running: RunningApp):
    assert running.app.tray.icon.isVisible()
    assert "action.summarize" in _menu(running)
    running.app.show_error("title", "text")
    running.app.close()


def test_a_hotkey_on_its_own_thread_leads_to_an_answer(running: RunningApp, qtbot: QtBot):
    running.start()
    running.play()
    running.session.desktop.on_copy = lambda: QGuiApplication.clipboard().setText("A text.")
    running.grabber.held["Ctrl+Shift+1"]()
    qtbot.waitUntil(lambda: bool(running.client.submitted))
    assert running.app.tray.icon.toolTip().splitlines()[1] == "Working: default-model"
    running.play()
    assert running.app.popup.view.toPlainText() == "Yes."
    assert running.app.tray.icon.toolTip().splitlines()[1] == "Ready: default-model"


def test_a_clipboard_hotkey_reads_the_clipboard(running: RunningApp, qtbot: QtBot):
    running.start()
    QGuiApplication.clipboard().setText("Copied before.")
    running.grabber.held["Ctrl+Shift+F1"]()
    qtbot.waitUntil(lambda: bool(running.client.submitted))
    assert "Copied before." in running.client.submitted[0].messages[-1].content


def test_the_popup_hotkey_gives_it_the_keyboard_only_while_it_is_open(running: RunningApp, qtbot: QtBot):
    running.start()
    running.grabber.held["Ctrl+Shift+5"]()
    qtbot.wait(5)
    assert not running.app.popup.isVisible()
    running.app.controller.run_text("summarize", "text")
    running.grabber.held["Ctrl+Shift+5"]()
    qtbot.waitUntil(running.app.popup.isActiveWindow)


def test_a_failed_load_is_shown_and_the_next_action_tries_again(running: RunningApp, qtbot: QtBot):
    running.client.load_error = OutOfMemoryError(3 << 30, 1 << 30, "Close a program.")
    running.start()
    running.play()
    assert running.app.tray._status.tray_state is TrayState.ERROR
    assert "Close a program." in running.app.window.message.text()
    assert running.app.window.isVisible()
    running.client.load_error = None
    running.app.controller.run_text("summarize", "text")
    running.play()
    assert running.app.popup.state is PopupState.FINISHED
    assert running.app.window.message.text() == ""


def test_without_a_tray_the_window_comes_by_itself(running: RunningApp, qtbot: QtBot):
    running.start()
    qtbot.waitUntil(running.app.window.isVisible, timeout=3000)
    assert running.app.window.no_tray.isVisible()


def test_settings_that_are_open_stay_in_front_of_the_window_that_comes_by_itself(
    running: RunningApp, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
):
    running.start()
    running.app.open_settings()
    assert running.app.settings_owner.dialog is not None
    raised_over = []
    monkeypatch.setattr(
        running.app.settings_owner.dialog, "raise_", lambda: raised_over.append(running.app.window.isVisible())
    )
    qtbot.waitUntil(running.app.window.isVisible, timeout=3000)
    assert raised_over == [True]


def test_at_the_first_start_the_window_waits_for_the_welcome_and_no_missing_model_is_an_error(
    running: RunningApp, qtbot: QtBot
):
    welcomed_file().unlink()
    running.start()
    running.play()
    assert running.app.welcome.window is not None
    qtbot.wait(TRAY_GRACE_MS + 50)
    assert not running.app.window.isVisible()
    assert running.app.window.message.text() == ""
    running.app.welcome.window.close()
    assert running.app.window.isVisible()
    assert running.app.window.state_line.text() == "The model is not on this computer yet"
    running.app.window.model_button.click()
    assert running.app.models.owner.window is not None
    assert running.app.models.owner.window.isVisible()
    running.app.load_model()
    running.play()
    assert running.app.window.model_button.objectName() == "model.unload"


def test_a_model_that_is_not_here_is_no_model_that_the_next_action_loads(running: RunningApp, qtbot: QtBot):
    running.client.load_error = ModelNotFoundError("default-model is not on this machine.")
    running.start()
    running.play()
    assert running.app.window.model_button.objectName() == "models.open"
    running.bridge.post_event(ModelEvent(ModelState.EMPTY))
    qtbot.wait(15)
    assert running.app.window.state_line.text() == "The model is not on this computer yet"
    running.app.controller.run_text("summarize", "text")
    running.play()
    running.app.popup.notice.button.click()
    assert running.app.models.owner.window is not None
    assert running.app.models.owner.window.isVisible()


def test_a_hotkey_that_is_taken_is_named_and_can_be_retried(running: RunningApp):
    running.grabber.taken.add("Ctrl+Shift+2")
    running.start()
    message = running.app.window.message.text()
    assert "Ctrl+Shift+2 (Translate): another program uses it" in message
    assert "Ctrl+Shift+1" not in message
    running.grabber.taken.clear()
    running.app.window.hotkeys_retry_requested.emit()
    assert "Ctrl+Shift+2" in running.grabber.held
    assert running.app.window.message.text() == ""


def test_what_became_of_the_hotkeys_can_be_asked(running: RunningApp):
    running.grabber.taken.add("Ctrl+Shift+2")
    running.start()
    told = {line["hotkey"]: line for line in running.app.hotkey_report()}
    assert told["Ctrl+Shift+1"] == {"hotkey": "Ctrl+Shift+1", "title": "Summarize", "state": "registered"}
    assert told["Ctrl+Shift+2"]["state"] == "taken"
    assert told["Ctrl+Shift+2"]["reason"] == "another program uses it"


def test_limits_of_the_desktop_are_told(qtbot: QtBot, tmp_path: Path):
    grabber = FakeGrabber()
    registry = setting_registry(ActionRegistry(user_dir=tmp_path).all())
    grabber.taken = {str(setting.default) for setting in registry if setting.kind == "hotkey"}
    from app.desktop.fake_desktop import FakeDesktop

    session = DesktopSession("wayland", FakeDesktop(None), grabber, (UserText("Bind the command yourself."),))
    running = RunningApp(qtbot, session, tmp_path).start()
    assert "Bind the command yourself." in running.app.window.message.text()
    running.app.close()


def test_a_changed_hotkey_is_bound_at_once(running: RunningApp):
    running.start()
    running.settings.set("hotkey.summarize", "Ctrl+Shift+F9")
    assert "Ctrl+Shift+F9" in running.grabber.held
    assert "Ctrl+Shift+1" not in running.grabber.held


def test_a_saved_action_appears_with_menu_button_and_hotkey(running: RunningApp, qtbot: QtBot):
    running.start()
    running.user_dir.mkdir(parents=True)
    (running.user_dir / "shout.toml").write_text(MY_ACTION)
    qtbot.waitUntil(lambda: "action.shout" in _menu(running), timeout=3000)
    assert "Ctrl+Shift+9" in running.grabber.held
    assert "Shout" in [button.text() for button in running.app.window._action_buttons]
    running.app.run_action("shout", "clipboard")
    running.app.window.action_requested.emit("shout", "hello")
    assert running.client.submitted[0].messages[-1].content.strip() == "hello!"


def test_a_broken_action_is_named_and_can_be_corrected(running: RunningApp, qtbot: QtBot):
    running.user_dir.mkdir(parents=True)
    running.start()
    (running.user_dir / "shout.toml").write_text("order = [")
    qtbot.waitUntil(lambda: "shout.toml" in running.app.window.message.text(), timeout=3000)
    (running.user_dir / "shout.toml").write_text(MY_ACTION)
    qtbot.waitUntil(lambda: "action.shout" in _menu(running), timeout=3000)
    assert running.app.window.message.text() == ""


def test_the_settings_file_is_made_before_it_is_opened(running: RunningApp, monkeypatch: pytest.MonkeyPatch):
    opened: list[str] = []
    monkeypatch.setattr("app.qt.settings.owner.QDesktopServices.openUrl", lambda url: opened.append(url.toLocalFile()))
    running.start()
    running.app.open_settings_file()
    assert opened == [str(running.settings.path)]
    assert "# hotkey.summarize =" in running.settings.path.read_text(encoding="utf-8")


def test_settings_saved_by_another_program_take_effect(running: RunningApp, qtbot: QtBot):
    running.start()
    running.settings.path.write_text('[hotkey]\nsummarize = "Ctrl+Shift+F9"\n')
    qtbot.waitUntil(lambda: "Ctrl+Shift+F9" in running.grabber.held, timeout=3000)


def test_closing_gives_everything_back_and_may_happen_twice(running: RunningApp, qtbot: QtBot):
    running.start()
    running.app.controller.run_text("summarize", "text")
    with qtbot.waitSignal(running.app.ended):
        running.app.quit()
    running.app.close()
    assert running.grabber.is_closed
    assert running.session.desktop.is_closed
    assert running.client.cancelled == [running.client.submitted[0].request_id]
    assert not running.app.popup.isVisible()


def test_the_memory_is_freed_while_an_answer_is_written(running: RunningApp, monkeypatch: pytest.MonkeyPatch):
    running.start()
    running.play()
    running.app.controller.run_text("summarize", "text")
    reading = EngineReading(state=ModelState.READY, backend="cpu", weight_bytes=3 << 29, running=1)
    monkeypatch.setattr(running.client, "reading", lambda: reading)
    running.app._commands.run("model.unload")
    running.play()
    assert running.client.cancelled == [running.client.submitted[0].request_id]
    assert running.app.popup.state is PopupState.FINISHED
    message = running.app.window.message.text()
    assert "1.50 GB of main memory are free again" in message
    assert "The answer that was being written has ended." in message
    assert running.app.window.state_line.text() == "No model is loaded; the next action loads one"
