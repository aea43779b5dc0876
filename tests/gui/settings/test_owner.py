"""The dialog among the app: hotkeys tried and explained, banners, restart, a changed registry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QAbstractButton, QWidget
from pytestqt.qtbot import QtBot

from app.actions.registry import ActionRegistry
from app.desktop.hotkeys import parse
from app.desktop.protocols import TAKEN
from app.platform.desktop_shortcuts import Shortcut
from app.qt.bridge import Bridge
from app.qt.hotkeys.binding import HotkeyState, HotkeyStatus
from app.qt.hotkeys.edit import HotkeyEdit
from app.qt.settings import owner as settings_owner
from app.qt.settings.dialog import SettingsDialog
from app.qt.settings.extras import AutostartRow, ButtonRow
from app.qt.settings.owner import SettingsOwner
from app.settings.registry import setting_registry
from app.settings.settings import Settings
from app.translation import Translator, UserText
from app.version import installed_version

pytestmark = pytest.mark.gui

ACTIONS = ActionRegistry(user_dir=Path("no-such-folder")).all()
KEYS = {f"action.{action.id}": f"hotkey.{action.id}" for action in ACTIONS}


class Engine(QObject):
    """What the owner needs of EngineSettings."""

    waiting_changed = Signal(bool)

    def __init__(self) -> None:
        super().__init__()
        self.is_waiting = False
        self.applied = 0

    def apply_now(self) -> None:
        self.applied += 1

    def wait(self, is_waiting: bool) -> None:
        self.is_waiting = is_waiting
        self.waiting_changed.emit(is_waiting)


class Room:
    """An owner with two hotkeys, of which one is taken."""

    def __init__(self, folder: Path) -> None:
        self.settings = Settings.load(folder / "settings.toml", setting_registry(ACTIONS))
        self.engine, self.bridge = Engine(), Bridge(tick_ms=1)
        self.owner = SettingsOwner(self.settings, Translator("en"), self.engine, self.bridge.post_call)  # type: ignore[arg-type]
        self.owner.set_hotkeys(self.statuses(), [], KEYS)

    @staticmethod
    def statuses(reason: UserText = TAKEN) -> list[HotkeyStatus]:
        return [
            HotkeyStatus("action.summarize", "Summarize", "Ctrl+Shift+1", HotkeyState.REGISTERED),
            HotkeyStatus("action.translate", "Translate", "Ctrl+Shift+2", HotkeyState.TAKEN, reason),
        ]

    @property
    def dialog(self) -> SettingsDialog:
        assert self.owner.dialog is not None
        return self.owner.dialog

    def status(self, action_id: str) -> str:
        return self.dialog.row(f"hotkey.{action_id}").status.text()


@pytest.fixture
def shortcuts(monkeypatch: pytest.MonkeyPatch) -> dict[object, Shortcut]:
    """The desktop's own shortcuts; none."""
    found: dict[object, Shortcut] = {}
    monkeypatch.setattr(settings_owner, "known_shortcuts", lambda: found)
    return found


@pytest.fixture
def room(qtbot: QtBot, tmp_path: Path, shortcuts: dict[object, Shortcut]) -> Iterator[Room]:
    room = Room(tmp_path)
    yield room
    room.owner.close()


def test_a_second_opening_brings_the_same_dialog_and_a_closed_one_is_made_anew(room: Room, qtbot: QtBot):
    room.owner.open()
    first = room.dialog
    room.owner.open("privacy")
    assert room.dialog is first
    assert room.dialog.page_id == "privacy"
    first.close()
    assert room.owner.dialog is None
    room.owner.open()
    assert room.dialog is not first


def test_a_hotkey_shows_that_it_arrives_while_its_page_is_in_front(
    room: Room, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(settings_owner, "ARRIVED_SHOWN_MS", 30)
    assert not room.owner.take_hotkey("action.summarize")
    room.owner.open("hotkeys")
    qtbot.waitUntil(room.dialog.isActiveWindow)
    assert room.status("summarize") == "✓ works"
    assert room.owner.take_hotkey("action.summarize")
    assert room.status("summarize") == "✓ It has arrived."
    room.owner.set_hotkeys(room.statuses(), [], KEYS)
    assert room.status("summarize") == "✓ It has arrived."
    qtbot.waitUntil(lambda: room.status("summarize") == "✓ works")
    room.dialog.show_page("general")
    assert not room.owner.take_hotkey("action.summarize")
    room.dialog.show_page("hotkeys")
    assert not room.owner.take_hotkey("window.open")


def test_a_combination_that_is_taken_is_explained_as_far_as_it_can_be_known(
    room: Room, qtbot: QtBot, shortcuts: dict[object, Shortcut]
):
    shortcuts[parse("Ctrl+Shift+2")] = Shortcut("Xfce", "xfce4-screenshooter")
    room.owner.open("hotkeys")
    qtbot.waitUntil(lambda: 'In the settings of Xfce it is "xfce4-screenshooter".' in room.status("translate"))
    assert room.status("translate").startswith("✗ another program uses this combination")
    assert room.owner._taken.isVisible()
    with qtbot.waitSignal(room.owner.retry_requested):
        room.owner._taken.button.click()


def test_what_is_not_known_is_not_claimed(room: Room, qtbot: QtBot):
    room.owner.open("hotkeys")
    qtbot.waitUntil(lambda: room.status("translate").endswith("The system does not tell which one."))
    assert "In the settings of" not in room.status("translate")
    ours = UserText('It already runs "{action}".', action="Summarize")
    room.owner.set_hotkeys(room.statuses(ours), [], KEYS)
    assert room.status("translate") == '✗ It already runs "Summarize".'


def test_limits_of_the_desktop_stand_on_the_page(room: Room):
    room.owner.open("hotkeys")
    room.owner.set_hotkeys([], ["Bind the command yourself."], KEYS)
    assert room.owner._head.text() == "Bind the command yourself."


def test_the_apps_hotkeys_are_free_while_one_is_pressed_in(room: Room, qtbot: QtBot):
    paused: list[bool] = []
    room.owner.pause_requested.connect(paused.append)
    room.owner.open("hotkeys")
    edit = room.dialog.row("hotkey.summarize").control
    assert isinstance(edit, HotkeyEdit)
    edit.click()
    qtbot.keyClick(edit, Qt.Key.Key_F9, Qt.KeyboardModifier.ControlModifier)
    assert paused == [True, False]
    assert room.settings.text("hotkey.summarize") == "Ctrl+F9"


def test_a_key_that_people_type_with_is_refused_in_place(room: Room, qtbot: QtBot):
    room.owner.open("hotkeys")
    edit = room.dialog.row("hotkey.summarize").control
    assert isinstance(edit, HotkeyEdit)
    edit.click()
    qtbot.keyClick(edit, Qt.Key.Key_A)
    assert "would take a key that people type with" in room.dialog.row("hotkey.summarize").error.text()
    assert room.settings.text("hotkey.summarize") == "Ctrl+Shift+1"


def test_a_change_that_waits_for_an_answer_is_told_and_can_be_hurried(room: Room):
    room.engine.wait(True)
    room.owner.open()
    assert room.owner._waiting.isVisible()
    room.owner._waiting.button.click()
    assert room.engine.applied == 1
    room.engine.wait(False)
    assert not room.owner._waiting.isVisible()


def test_another_language_asks_for_a_restart(room: Room, qtbot: QtBot):
    room.owner.open()
    assert not room.owner._restart.isVisible()
    room.dialog.change("language.ui", "zh")
    assert room.owner._restart.isVisible()
    with qtbot.waitSignal(room.owner.restart_requested):
        room.owner._restart.button.click()
    room.dialog.undo()
    assert not room.owner._restart.isVisible()


def test_a_new_action_has_its_rows_at_once(room: Room):
    room.owner.open("hotkeys")
    mine = replace(ACTIONS[0], id="shout", titles={"en": "Shout"})
    room.settings.set_registry(setting_registry([*ACTIONS, mine]))
    room.owner.rebuild()
    assert room.dialog.page_id == "hotkeys"
    assert room.dialog.row("hotkey.shout").title.text() == "Shout"


def test_rows_of_the_app_are_there_anew_each_time(room: Room, own_folders: None):
    asked: list[QWidget] = []
    room.owner.offer_clearing(asked.append)
    for _ in range(2):
        room.owner.open("privacy")
        rows = room.dialog.page("privacy").rows
        next(row for row in rows if isinstance(row, ButtonRow)).button.click()
        assert asked[-1] is room.dialog
        room.owner.close()
    assert len(asked) == 2


def test_start_at_login_is_what_the_system_has(room: Room, own_folders: None):
    room.owner.open("general")
    row = next(row for row in room.dialog.page("general").rows if isinstance(row, AutostartRow))
    assert not row.switch.isChecked()
    row.switch.click()
    assert row.switch.isChecked()
    room.owner.close()
    room.owner.open("general")
    row = next(row for row in room.dialog.page("general").rows if isinstance(row, AutostartRow))
    assert row.switch.isChecked()
    row.switch.click()
    assert not row.switch.isChecked()


def test_help_tells_the_version_and_leads_to_the_user_guide(room: Room, qtbot: QtBot):
    room.owner.open("help")
    (row,) = room.dialog.page("help").rows
    assert isinstance(row, ButtonRow)
    assert row.title.text() == f"Version {installed_version()}"
    for _ in range(2):
        row.button.click()
    assert room.owner.guide is not None
    assert room.owner.guide.isVisible()
    assert room.owner.guide.text.toPlainText().startswith("User guide")
    room.owner.close()
    assert not room.owner.guide.isVisible()


def test_without_a_user_guide_there_is_no_button(room: Room, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(settings_owner, "guide_file", lambda _language: None)
    room.owner.open("help")
    (row,) = room.dialog.page("help").rows
    assert row.title.text() == f"Version {installed_version()}"
    assert row.findChildren(QAbstractButton) == [row.reset_button]
    assert not row.reset_button.isVisible()
