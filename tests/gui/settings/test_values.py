"""Values in words: what 0 means, and what the system says where a choice is left to it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QComboBox, QSpinBox
from pytestqt.qtbot import QtBot

from app.qt.settings.row import SettingRow
from app.qt.settings.values import value_text
from app.settings.registry import setting_registry
from app.translation import Translator

pytestmark = pytest.mark.gui

REGISTRY = {setting.key: setting for setting in setting_registry([])}
NUMBERS_FROM_ZERO = {
    key for key, setting in REGISTRY.items() if setting.kind in ("integer", "number") and setting.minimum == 0
}


@pytest.fixture
def make(qtbot: QtBot) -> Callable[..., SettingRow]:
    def make(key: str, language: str = "en") -> SettingRow:
        row = SettingRow(REGISTRY[key], Translator(language))
        qtbot.addWidget(row)
        row.show()
        return row

    return make


def _box(row: SettingRow) -> QSpinBox:
    box = row.control.target()
    assert isinstance(box, QSpinBox)
    return box


@pytest.fixture
def speaks(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    return lambda locale: monkeypatch.setenv("LC_ALL", locale)


def test_every_number_that_may_be_0_says_what_0_means():
    assert {key for key, setting in REGISTRY.items() if setting.zero} == NUMBERS_FROM_ZERO


@pytest.mark.parametrize("key", sorted(NUMBERS_FROM_ZERO))
def test_0_is_shown_in_words_without_a_unit(make: Callable[..., SettingRow], key: str):
    row = make(key)
    row.show_value(0)
    assert _box(row).text() == REGISTRY[key].zero["en"] == value_text(REGISTRY[key], 0, Translator("en"))
    row.show_value(7)
    assert _box(row).text().split()[0] == "7"


def test_the_text_size_of_the_system_is_named(make: Callable[..., SettingRow]):
    row = make("popup.font_size", "zh")
    assert _box(row).text() == "跟随系统"
    assert "跟随系统" in row.reset_button.toolTip()


def test_words_are_typed_over_as_a_whole(make: Callable[..., SettingRow], qtbot: QtBot):
    row = make("popup.font_size")
    wanted: list[object] = []
    row.edited.connect(lambda _key, value: wanted.append(value))
    row.activateWindow()
    box = _box(row)
    qtbot.mouseClick(box.lineEdit(), Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: QApplication.focusWidget() is box)
    qtbot.keyClick(box, Qt.Key.Key_Right)
    qtbot.keyClicks(box, "14")
    qtbot.keyClick(box, Qt.Key.Key_Return)
    assert wanted == [14]
    assert box.text() == "14 pt"
    qtbot.keyClick(box, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    qtbot.keyClicks(box, "0")
    qtbot.keyClick(box, Qt.Key.Key_Return)
    assert wanted == [14, 0]
    assert box.text() == "As the system"


@pytest.mark.parametrize(
    ("locale", "language", "key", "text"),
    [
        ("en_US.UTF-8", "en", "language.first", "As the system (English)"),
        ("de_DE.UTF-8", "en", "language.first", "As the system (German)"),
        ("zh_CN.UTF-8", "zh", "language.first", "跟随系统（简体中文）"),
        ("xx_XX.UTF-8", "en", "language.first", "As the system (English)"),
        ("de_DE.UTF-8", "en", "language.ui", "As the system (English)"),
        ("zh_CN.UTF-8", "zh", "language.ui", "跟随系统（中文）"),
    ],
)
def test_the_language_of_the_system_is_named(
    make: Callable[..., SettingRow], speaks: Callable[[str], None], locale: str, language: str, key: str, text: str
):
    speaks(locale)
    box = make(key, language).control.target()
    assert isinstance(box, QComboBox)
    assert box.currentText() == text == value_text(REGISTRY[key], "auto", Translator(language))
