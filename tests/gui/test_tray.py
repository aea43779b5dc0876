"""The tray: states that differ by more than colour, and a menu made of the commands."""

import pytest
from PySide6.QtCore import QSize
from PySide6.QtGui import QImage, qGray
from PySide6.QtWidgets import QSystemTrayIcon
from pytestqt.qtbot import QtBot

from app.actions.commands import Command, CommandRegistry
from app.qt.look.icons import tray_icon
from app.qt.status import Status, TrayState, model_name
from app.qt.tray import LONGEST_TOOLTIP, Tray
from app.translation import Translator
from inference.errors import DownloadError
from inference.request import ModelEvent, ModelState

pytestmark = pytest.mark.gui


def _grey(state: TrayState, size: int) -> list[int]:
    image = tray_icon(state).pixmap(QSize(size, size)).toImage().convertToFormat(QImage.Format.Format_ARGB32)
    points = [(x, y) for x in range(size) for y in range(size)]
    return [qGray(image.pixel(x, y)) * image.pixelColor(x, y).alpha() // 255 for x, y in points]


@pytest.mark.parametrize("size", [16, 22, 32])
def test_each_state_has_its_own_drawing_without_colour(size: int):
    drawings = [_grey(state, size) for state in TrayState]
    for index, first in enumerate(drawings):
        for second in drawings[index + 1 :]:
            differing = sum(abs(a - b) > 60 for a, b in zip(first, second, strict=True))
            assert differing > size * size * 0.04


@pytest.fixture
def ran() -> list[str]:
    return []


@pytest.fixture
def commands(ran: list[str]) -> CommandRegistry:
    def make(command_id: str, group: str, in_tray: bool = True) -> Command:
        return Command(command_id, command_id.title(), lambda: ran.append(command_id), in_tray=in_tray, group=group)

    return CommandRegistry(
        [
            make("action.summarize", "action"),
            make("action.summarize.clipboard", "action"),
            make("model.load", "model"),
            make("model.unload", "model"),
            make("popup.focus", "app", in_tray=False),
            make("app.quit", "quit"),
        ]
    )


@pytest.fixture
def tray(qtbot: QtBot, commands: CommandRegistry) -> Tray:
    return Tray(commands, Translator("en"), lambda: 5 * 1024**3)


def _texts(tray: Tray) -> list[str]:
    return [action.text() for action in tray.menu.actions() if not action.isSeparator()]


def test_the_menu_holds_the_commands_and_the_clipboard_ones_in_a_submenu(tray: Tray):
    tray.menu.aboutToShow.emit()
    assert _texts(tray) == [
        "No model is loaded; the next action loads one",
        "Free memory: 5.00 GB",
        "Action.Summarize",
        "On the clipboard's text",
        "Model.Load",
        "Model.Unload",
        "App.Quit",
    ]
    submenu = tray.menu.actions()[4].menu()
    assert [action.text() for action in submenu.actions()] == ["Action.Summarize.Clipboard"]


def test_a_menu_entry_runs_its_command_after_the_focus_is_back(tray: Tray, qtbot: QtBot, ran: list[str]):
    next(action for action in tray.menu.actions() if action.objectName() == "action.summarize").trigger()
    assert ran == []
    qtbot.waitUntil(lambda: ran == ["action.summarize"])


def test_the_menu_follows_the_commands(tray: Tray, commands: CommandRegistry):
    commands.replace_group("action", [Command("action.mine", "Mine & yours", lambda: None, group="action")])
    assert "Mine && yours" in _texts(tray)
    assert "Action.Summarize" not in _texts(tray)


def test_hotkeys_stand_in_menu_and_tooltip(tray: Tray):
    tray.set_hotkeys({"action.summarize": "Ctrl+Shift+1", "action.gone": "Ctrl+Shift+9"})
    action = next(action for action in tray.menu.actions() if action.objectName() == "action.summarize")
    assert action.shortcut().toString() == "Ctrl+Shift+1"
    assert "Ctrl+Shift+1  Action.Summarize" in tray.icon.toolTip()


def test_the_tooltip_fits_where_the_system_cuts(tray: Tray):
    tray.set_status(Status(ModelState.READY, "a-model-with-a-very-long-name" * 8))
    assert len(tray.icon.toolTip()) <= LONGEST_TOOLTIP


@pytest.mark.parametrize(
    ("status", "state", "sentence"),
    [
        (Status(ModelState.LOADING, "m", 0.431), TrayState.LOADING, "Loading m: 43 %"),
        (Status(ModelState.READY, "m"), TrayState.READY, "Ready: m"),
        (Status(ModelState.READY, "m", is_busy=True), TrayState.BUSY, "Working: m"),
        (Status(ModelState.EMPTY), TrayState.READY, "No model is loaded; the next action loads one"),
        (Status(ModelState.FAILED, "m", error="no room"), TrayState.ERROR, "no room"),
    ],
)
def test_states_and_sentences(tray: Tray, status: Status, state: TrayState, sentence: str):
    tray.set_status(status)
    assert status.tray_state is state
    assert tray.menu.actions()[0].text() == sentence
    assert sentence in tray.icon.toolTip()


def test_only_what_would_change_something_can_be_chosen(tray: Tray):
    def usable() -> dict[str, bool]:
        return {a.objectName(): a.isEnabled() for a in tray.menu.actions() if a.objectName().startswith("model.")}

    tray.set_status(Status(ModelState.READY, "m"))
    assert usable() == {"model.load": False, "model.unload": True}
    tray.set_status(Status(ModelState.FAILED, "m"))
    assert usable() == {"model.load": True, "model.unload": False}


def test_a_new_load_forgets_the_old_error():
    error = DownloadError("no network")
    failed = Status().after(ModelEvent(ModelState.FAILED, "m", error=error), "no network")
    assert failed.error == "no network"
    assert failed.after(ModelEvent(ModelState.LOADING, "m")).error == ""


def test_without_a_tray_messages_are_left_to_the_window(tray: Tray):
    assert not QSystemTrayIcon.isSystemTrayAvailable()
    assert tray.show_message("title", "text") is False


def test_a_tray_that_comes_later_is_noticed_once(tray: Tray, monkeypatch):
    seen: list[bool] = []
    tray.availability_changed.connect(seen.append)
    tray.check_availability()
    monkeypatch.setattr(tray, "is_available", lambda: True)
    tray.check_availability()
    tray.check_availability()
    assert seen == [True]


@pytest.mark.parametrize(
    ("model", "name"),
    [("qwen2.5-1.5b", "qwen2.5-1.5b"), ("/home/u/models/x.gguf", "x"), (r"C:\models\x.gguf", "x")],
)
def test_a_path_is_named_by_its_last_part(model: str, name: str):
    assert model_name(model) == name
