"""Combinations that are pressed in: what they are called, and what ends the waiting."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.desktop.hotkeys import NAMED_KEYS, parse
from app.qt.hotkeys.edit import _NAMED, _PUNCTUATION, HotkeyEdit, key_name
from app.translation import Translator

pytestmark = pytest.mark.gui

Key, Modifier = Qt.Key, Qt.KeyboardModifier
BOTH = Modifier.ControlModifier | Modifier.ShiftModifier


@pytest.mark.parametrize(
    ("key", "scan_code", "virtual_key", "platform", "name"),
    [
        (Key.Key_A, 38, 0, "linux", "A"),
        (Key.Key_1, 10, 0, "linux", "1"),
        (Key.Key_Exclam, 10, 0, "linux", "1"),
        (Key.Key_ParenRight, 19, 0, "linux", "0"),
        (Key.Key_Exclam, 2, 0x31, "win32", "1"),
        (Key.Key_QuoteDbl, 3, 0x32, "win32", "2"),
        (Key.Key_QuoteDbl, 11, 0, "linux", "2"),
        (Key.Key_QuoteDbl, 48, 0, "linux", "APOSTROPHE"),
        (Key.Key_F1, 67, 0, "linux", "F1"),
        (Key.Key_F24, 0, 0, "linux", "F24"),
        (Key.Key_Question, 61, 0, "linux", "SLASH"),
        (Key.Key_Backtab, 23, 0, "linux", "TAB"),
        (Key.Key_Enter, 104, 0, "linux", "RETURN"),
        (Key.Key_VolumeUp, 123, 0, "linux", ""),
        (0x0416, 0, 0, "linux", ""),
    ],
)
def test_keys_have_the_names_that_hotkeys_use(key: int, scan_code: int, virtual_key: int, platform: str, name: str):
    assert key_name(int(key), scan_code, virtual_key, platform) == name


def test_every_name_is_one_that_can_be_parsed():
    for name in [*_NAMED.values(), *_PUNCTUATION.values()]:
        assert name in NAMED_KEYS
        assert str(parse(f"Ctrl+{name}")) == f"Ctrl+{name.capitalize()}"


class Field:
    """An edit beside another field, and what it told."""

    def __init__(self, qtbot: QtBot) -> None:
        self.window = QWidget()
        self.edit, self.other = HotkeyEdit(Translator("en")), QLineEdit()
        layout = QHBoxLayout(self.window)
        layout.addWidget(self.edit)
        layout.addWidget(self.other)
        qtbot.addWidget(self.window)
        self.told: list[str] = []
        self.recording: list[bool] = []
        self.edit.edited.connect(self.told.append)
        self.edit.recording_changed.connect(self.recording.append)
        self.edit.set_hotkey("Ctrl+Shift+1")
        self.window.show()
        qtbot.waitUntil(self.window.isActiveWindow)
        self.edit.setFocus()


@pytest.fixture
def field(qtbot: QtBot) -> Field:
    return Field(qtbot)


def test_a_combination_is_pressed_in(field: Field, qtbot: QtBot):
    qtbot.keyClick(field.edit, Key.Key_Return)
    assert field.edit.is_recording
    assert field.edit.text() == "Press the keys…"
    qtbot.keyPress(field.edit, Key.Key_Control)
    qtbot.keyPress(field.edit, Key.Key_Shift, Modifier.ControlModifier)
    assert field.edit.text() == "Ctrl+Shift+…"
    qtbot.keyClick(field.edit, Key.Key_F5, BOTH)
    assert field.told == ["Ctrl+Shift+F5"]
    assert field.recording == [True, False]


@pytest.mark.parametrize(("key", "told"), [(Key.Key_Escape, []), (Key.Key_Backspace, [""]), (Key.Key_Delete, [""])])
def test_escape_leaves_it_and_backspace_takes_it_away(field: Field, qtbot: QtBot, key: Qt.Key, told: list[str]):
    field.edit.click()
    qtbot.keyClick(field.edit, key)
    assert field.told == told
    assert field.edit.text() == "Ctrl+Shift+1"
    assert not field.edit.is_recording


def test_tab_and_shortcuts_of_the_window_belong_to_the_combination(field: Field, qtbot: QtBot):
    presses: list[str] = []
    button = QPushButton("x", field.window)
    button.setShortcut("Ctrl+F")
    button.clicked.connect(lambda: presses.append("button"))
    field.edit.click()
    qtbot.keyClick(field.edit, Key.Key_Tab, Modifier.ControlModifier)
    field.edit.click()
    qtbot.keyClick(field.edit, Key.Key_F, Modifier.ControlModifier)
    assert field.told == ["Ctrl+Tab", "Ctrl+F"]
    assert presses == []
    assert not field.other.hasFocus()


def test_who_goes_elsewhere_has_given_it_up(field: Field, qtbot: QtBot):
    field.edit.click()
    field.other.setFocus()
    assert field.recording == [True, False]
    assert field.told == []
    assert field.edit.text() == "Ctrl+Shift+1"


def test_a_key_without_a_name_is_waited_out(field: Field, qtbot: QtBot):
    field.edit.click()
    qtbot.keyClick(field.edit, Key.Key_VolumeUp)
    assert field.edit.is_recording
    assert field.told == []
