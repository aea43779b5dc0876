"""The first start: shown once, nothing fetched without a yes, hotkeys named and tried."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QLabel, QPushButton
from pytestqt.qtbot import QtBot

from app.actions.registry import ActionRegistry
from app.models.download import DownloadState
from app.paths import welcomed_file
from app.qt.bridge import Bridge
from app.qt.home import welcome_owner
from app.qt.home.welcome import MINIMUM_SIZE, Welcome
from app.qt.home.welcome_owner import WelcomeOwner
from app.qt.hotkeys.binding import HotkeyState, HotkeyStatus
from app.qt.settings.owner import SettingsOwner
from app.settings.registry import setting_registry
from app.settings.settings import Settings
from app.translation import Translator, UserText
from inference.errors import DownloadCancelledError, DownloadError
from inference.formats.transfer import IsCancelled, OnProgress
from inference.store.model_store import ModelStore
from tests.gui.test_accessibility import nameless

pytestmark = pytest.mark.gui

SMALL, LARGE = "qwen2.5-coder-0.5b-instruct", "qwen2.5-coder-1.5b-instruct"


class FakeStore(ModelStore):
    """A store whose downloads bring one byte, and wait where the test says so."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.pulled: list[str] = []
        self.error: DownloadError | None = None
        self.go_on = threading.Event()
        self.go_on.set()

    def pull(self, model_id: str, on_progress: OnProgress | None = None, cancelled: IsCancelled | None = None) -> Path:
        self.pulled.append(model_id)
        assert on_progress is not None
        on_progress(50, 100, "Fetching.")
        while not self.go_on.wait(0.005):
            if cancelled is not None and cancelled():
                raise DownloadCancelledError("stopped")
        if self.error is not None:
            raise self.error
        path = self.where(model_id)
        path.parent.mkdir(parents=True)
        path.write_bytes(b"x")
        return path

    def resolve(self, name_or_path: str | Path) -> Path:
        path = self.where(str(name_or_path)) if not Path(name_or_path).is_absolute() else Path(name_or_path)
        return path if path.is_file() else super().resolve(name_or_path)


class Engine(QObject):
    """What the settings' owner needs of EngineSettings."""

    waiting_changed = Signal(bool)
    is_waiting = False

    def apply_now(self) -> None:
        pass


class FirstStart:
    """A welcome over a store without models."""

    def __init__(self, folder: Path, language: str = "en") -> None:
        actions = ActionRegistry(user_dir=folder / "actions")
        self.settings = Settings.load(folder / "settings.toml", setting_registry(actions.all()))
        self.bridge = Bridge(tick_ms=1)
        translator = Translator(language)
        self.owner = SettingsOwner(self.settings, translator, Engine(), self.bridge.post_call)  # type: ignore[arg-type]
        self.store = FakeStore(folder / "models")
        self.arrived = 0
        self.welcome = WelcomeOwner(
            self.owner,
            lambda: self.settings.text("model.default") or LARGE,
            self.bridge.post_call,
            lambda: self.store,
        )
        self.welcome.model_arrived.connect(self._on_arrived)

    def _on_arrived(self) -> None:
        self.arrived += 1

    @property
    def window(self) -> Welcome:
        assert self.welcome.window is not None
        return self.welcome.window


@pytest.fixture
def first(qtbot: QtBot, tmp_path: Path) -> Iterator[FirstStart]:
    welcomed_file().unlink(missing_ok=True)
    first = FirstStart(tmp_path)
    yield first
    first.store.go_on.set()
    first.welcome.close()


def test_it_is_shown_at_the_first_start_and_never_again(first: FirstStart):
    assert not first.welcome.begin()
    assert first.window.isVisible()
    first.window.skip_button.click()
    assert first.welcome.window is None
    assert welcomed_file().is_file()
    assert first.welcome.begin()
    assert first.welcome.window is None


def test_nothing_is_fetched_without_a_yes(first: FirstStart, qtbot: QtBot):
    first.welcome.begin()
    qtbot.waitUntil(first.window.next_button.hasFocus)
    for _ in range(2):
        qtbot.keyClick(first.window.next_button, Qt.Key.Key_Return)
    first.window.next_button.click()
    assert first.welcome.window is None
    assert first.store.pulled == []
    assert first.arrived == 0


def test_the_app_that_ends_meanwhile_shows_it_again(first: FirstStart):
    first.welcome.begin()
    first.welcome.close()
    assert not welcomed_file().exists()


def test_size_and_licence_stand_before_the_download(first: FirstStart):
    first.welcome.begin()
    assert "1.04 GB" in first.window.model.facts.text()
    assert "Apache-2.0" in first.window.model.facts.text()
    assert first.window.model.get_button.text() == "Download (1.04 GB)"


@pytest.mark.parametrize(
    ("memory_bytes", "titles"),
    [
        (4 << 30, ["Qwen2.5-Coder 1.5B", "Qwen2.5-Coder 0.5B"]),
        (8 << 30, ["Qwen2.5-Coder 1.5B", "Qwen2.5-Coder 0.5B", "Qwen2.5 3B"]),
        (3 << 29, ["Qwen2.5-Coder 1.5B", "SmolLM2 135M"]),  # the one that is meant, and the only one that fits
    ],
)
def test_only_models_are_offered_that_are_of_use_on_this_machine(
    first: FirstStart, monkeypatch: pytest.MonkeyPatch, memory_bytes: int, titles: list[str]
):
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(total=memory_bytes))
    first.welcome.begin()
    box = first.window.model.box
    assert [box.itemText(place).split(" Instruct")[0] for place in range(box.count())] == titles


def test_a_size_that_only_the_hub_knows_is_told_roughly(first: FirstStart, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(total=8 << 30))
    first.welcome.begin()
    step = first.window.model
    step.box.setCurrentIndex(step.box.findData("qwen2.5-3b-instruct"))
    step.box.activated.emit(step.box.currentIndex())
    assert "about 5.76 GB" in step.facts.text()
    assert step.get_button.text() == "Download (about 5.76 GB)"


def test_what_a_licence_forbids_is_told_in_the_users_language(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(total=8 << 30))
    first = FirstStart(tmp_path, "zh")
    first.welcome.open()
    step = first.window.model
    step.box.setCurrentIndex(step.box.findData("qwen2.5-3b-instruct"))
    step.box.activated.emit(step.box.currentIndex())
    assert "非商业" in step.facts.text()
    first.welcome.close()


def test_the_recommended_model_is_fetched_and_used(first: FirstStart, qtbot: QtBot):
    first.welcome.begin()
    step = first.window.model
    step.get_button.click()
    qtbot.waitUntil(lambda: first.arrived == 1)
    assert first.store.pulled == [LARGE]
    assert first.settings.text("model.default") == ""
    assert "on this computer" in step.state.text()
    assert not step.get_button.isVisibleTo(step)


def test_another_model_that_is_fetched_becomes_the_one_that_is_meant(first: FirstStart, qtbot: QtBot):
    first.welcome.begin()
    step = first.window.model
    step.box.setCurrentIndex(step.box.findData(SMALL))
    step.box.activated.emit(step.box.currentIndex())
    step.get_button.click()
    qtbot.waitUntil(lambda: first.arrived == 1)
    assert first.settings.text("model.default") == SMALL
    assert Settings.load(first.settings.path, first.settings.registry.values()).text("model.default") == SMALL


def test_a_download_can_be_paused_and_goes_on(first: FirstStart, qtbot: QtBot):
    first.store.go_on.clear()
    first.welcome.begin()
    step = first.window.model
    step.get_button.click()
    qtbot.waitUntil(lambda: step.get_button.text() == "Pause")
    step.get_button.click()
    qtbot.waitUntil(lambda: step.get_button.text() == "Go on")
    first.store.go_on.set()
    step.get_button.click()
    qtbot.waitUntil(lambda: first.arrived == 1)
    assert first.store.pulled == [LARGE, LARGE]


def test_the_download_goes_on_once_the_welcome_is_closed(first: FirstStart, qtbot: QtBot):
    first.store.go_on.clear()
    first.welcome.begin()
    first.window.model.get_button.click()
    qtbot.waitUntil(lambda: first.store.pulled == [LARGE])
    first.window.close()
    first.store.go_on.set()
    qtbot.waitUntil(lambda: first.arrived == 1)


def test_a_download_that_fails_says_why(first: FirstStart, qtbot: QtBot):
    first.store.error = DownloadError("The disk is full. Free 1 GB.")
    first.welcome.begin()
    step = first.window.model
    step.get_button.click()
    qtbot.waitUntil(lambda: "Free 1 GB." in step.state.text())
    assert step._download is not None
    assert step._download.state is DownloadState.FAILED
    assert step.get_button.text() == "Go on"
    assert first.arrived == 0


def _main_buttons(window: Welcome) -> list[QPushButton]:
    buttons = window.model.get_button, window.next_button
    return [button for button in buttons if button.property("role") == "primary" and button.isVisible()]


def test_enter_downloads_and_then_goes_on(first: FirstStart, qtbot: QtBot):
    first.store.go_on.clear()
    first.welcome.begin()
    window = first.window
    qtbot.waitUntil(window.next_button.hasFocus)
    assert _main_buttons(window) == [window.next_button]
    qtbot.keyClick(window.focusWidget(), Qt.Key.Key_Return)
    assert window.model.get_button.hasFocus()
    assert _main_buttons(window) == [window.model.get_button]
    qtbot.keyClick(window.focusWidget(), Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: first.store.pulled == [LARGE])
    qtbot.waitUntil(window.next_button.hasFocus)
    assert _main_buttons(window) == [window.next_button]
    first.store.go_on.set()
    qtbot.waitUntil(lambda: first.arrived == 1)
    assert window.next_button.hasFocus()
    assert _main_buttons(window) == [window.next_button]


def test_a_download_that_stands_still_is_the_main_button_again(first: FirstStart, qtbot: QtBot):
    first.store.error = DownloadError("The disk is full. Free 1 GB.")
    first.welcome.begin()
    window = first.window
    window.show_step(1)
    window.model.get_button.click()
    qtbot.waitUntil(lambda: window.model.get_button.text() == "Go on")
    assert _main_buttons(window) == [window.model.get_button]


def test_a_file_is_used_instead(first: FirstStart, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = str(tmp_path / "own.gguf")
    monkeypatch.setattr(welcome_owner, "ask_for_file", lambda *args: path)
    first.welcome.begin()
    first.window.model.file_button.click()
    assert first.settings.text("model.default") == path
    assert path in first.window.model.state.text()
    assert first.arrived == 1
    first.window.show_step(1)
    assert _main_buttons(first.window) == [first.window.next_button]


def test_languages_are_set_and_saved(first: FirstStart, qtbot: QtBot):
    first.welcome.begin()
    box = first.window.languages.rows[0].control.target()
    qtbot.keyClick(box, Qt.Key.Key_Down)
    assert first.settings.text("language.first") != "auto"
    assert first.settings.path.exists()


def statuses(*states: HotkeyState) -> list[HotkeyStatus]:
    reason = UserText("another program uses it")
    return [
        HotkeyStatus(f"action.a{n}", f"Action {n}", f"Ctrl+Shift+{n}", state, None if "REG" in state.name else reason)
        for n, state in enumerate(states, 1)
    ]


def texts(first: FirstStart) -> str:
    return "\n".join(label.text() for label in first.window.hotkeys.findChildren(QLabel))


def test_hotkeys_that_work_and_one_that_is_taken(first: FirstStart, qtbot: QtBot):
    first.welcome.begin()
    first.owner.set_hotkeys(statuses(HotkeyState.TAKEN, HotkeyState.REGISTERED), [], {})
    first.window.show_step(2)
    assert "✗ another program uses it" in texts(first)
    assert "Press Ctrl+Shift+2" in first.window.hotkeys.hint.text()
    assert first.window.hotkeys.sample.textCursor().selectedText()
    first.window.hotkeys.change_button.click()
    assert first.owner.dialog is not None
    assert first.owner.dialog.page_id == "hotkeys"
    first.owner.close()


def test_where_no_hotkey_works_the_limits_are_told(first: FirstStart):
    first.welcome.begin()
    first.owner.set_hotkeys(statuses(HotkeyState.IMPOSSIBLE), ["Bind the command yourself."], {})
    assert first.window.hotkeys.hint.text() == "Bind the command yourself."


@pytest.mark.parametrize("language", ["en", "zh"])
def test_nothing_is_cut_and_every_control_has_a_name(qtbot: QtBot, tmp_path: Path, language: str):
    first = FirstStart(tmp_path, language)
    first.welcome.open()
    first.owner.set_hotkeys(statuses(*[HotkeyState.REGISTERED] * 5), [], {})
    first.window.resize(MINIMUM_SIZE)
    for step in range(3):
        first.window.show_step(step)
        qtbot.wait(5)
        assert nameless(first.window) == []
        for label in first.window.findChildren(QLabel):
            if label.isVisible() and label.text():
                assert label.height() >= label.heightForWidth(label.width()), label.text()
    first.welcome.close()


def test_escape_closes_it(first: FirstStart, qtbot: QtBot):
    first.welcome.begin()
    qtbot.waitUntil(first.window.isActiveWindow)
    qtbot.keyClick(first.window, Qt.Key.Key_Escape)
    assert first.welcome.window is None
