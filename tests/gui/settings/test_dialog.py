"""The settings dialog: made out of the registry, every kind of control, limits, undo, search, the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QLabel,
    QLineEdit,
    QStyle,
    QStyleOptionComboBox,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.actions.registry import ActionRegistry
from app.qt.hotkeys.edit import HotkeyEdit
from app.qt.settings import controls as settings_controls
from app.qt.settings.controls import ModelChoice, NumberControl, Switch
from app.qt.settings.dialog import MINIMUM_SIZE, SettingsDialog
from app.qt.settings.extras import ButtonRow
from app.qt.settings.row import SettingRow
from app.settings.registry import setting_registry
from app.settings.settings import Setting, Settings
from app.translation import Translator
from tests.gui.test_accessibility import nameless

pytestmark = pytest.mark.gui

ACTIONS = ActionRegistry(user_dir=Path("no-such-folder")).all()
A_TEXT = {"en": "A thing", "zh": "某项"}
# One of each kind, so that controls that no setting of the app uses at the moment are tried as well.
OF_EACH_KIND = [
    Setting("more.number", "number", 0.5, A_TEXT, A_TEXT, minimum=0.0, maximum=2.0),
    Setting("more.path", "path", "", A_TEXT, A_TEXT),
]
REGISTRY = [*setting_registry(ACTIONS), *OF_EACH_KIND]
KEYS = [setting.key for setting in REGISTRY]
MODELS = [ModelChoice("small", "small · 90 MiB"), ModelChoice("large", "large · 4 GiB")]


class Opened:
    """A dialog over a settings file."""

    def __init__(self, qtbot: QtBot, folder: Path, language: str = "en") -> None:
        self.settings = Settings.load(folder / "settings.toml", REGISTRY)
        self.dialog = SettingsDialog(self.settings, Translator(language), MODELS)
        qtbot.addWidget(self.dialog)
        self.dialog.show()
        self.qtbot = qtbot

    def error(self, key: str) -> str:
        return self.dialog.row(key).error.text()

    def saved(self, key: str) -> object:
        return Settings.load(self.settings.path, REGISTRY).get(key)


@pytest.fixture
def opened(qtbot: QtBot, tmp_path: Path) -> Iterator[Opened]:
    opened = Opened(qtbot, tmp_path)
    yield opened
    opened.dialog.release()


def put_in(qtbot: QtBot, control: QWidget, text: str) -> None:
    """Types a text over what is there and leaves the field."""
    control.setFocus()
    if isinstance(control, QLineEdit | QAbstractSpinBox):
        control.selectAll()
    qtbot.keyClicks(control, text)
    qtbot.keyClick(control, Qt.Key.Key_Return)


def other_value(setting: Setting) -> object:
    """A value that is allowed and is not the default."""
    special = {
        "hub.endpoint": "https://mirror.example.org",
        "engine.vram": "2GiB",
        "remote.url": "http://localhost:11434/v1",
        "gateway.origins": "app://obsidian.md",
        "privacy.leave_alone": "keepassxc",
    }
    if setting.key in special:
        return special[setting.key]
    if setting.choices:
        return next(value for value in setting.choices if value != setting.default)
    if setting.kind == "flag":
        return not setting.default
    if setting.kind in ("integer", "number"):
        assert setting.maximum is not None
        return type(setting.default)(setting.maximum)
    return {"hotkey": "Ctrl+Shift+F11", "model": "large"}.get(setting.kind, "something")


def edit(qtbot: QtBot, opened: Opened, key: str, value: object) -> None:
    """Does what a user does at the control."""
    control = opened.dialog.row(key).control
    target = control.target()
    if isinstance(target, Switch):
        qtbot.mouseClick(target, Qt.MouseButton.LeftButton)
    elif isinstance(target, HotkeyEdit):
        qtbot.mouseClick(target, Qt.MouseButton.LeftButton)
        assert target.is_recording
        both = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
        qtbot.keyClick(target, Qt.Key.Key_F11, both)
    elif isinstance(target, QComboBox):
        target.setFocus()
        place = target.findData(value)
        assert place >= 0
        while target.currentIndex() != place:
            qtbot.keyClick(target, Qt.Key.Key_Down if target.currentIndex() < place else Qt.Key.Key_Up)
    else:
        put_in(qtbot, target, str(value))


def test_there_is_a_row_for_every_setting(opened: Opened):
    assert set(opened.dialog.rows()) == set(KEYS)


def test_every_setting_can_be_set_reset_and_taken_back(opened: Opened, qtbot: QtBot):
    for page in opened.dialog._pages:
        opened.dialog.show_page(page.page.id)
        for row in page.rows:
            assert isinstance(row, SettingRow)
            _set_reset_and_take_back(opened, qtbot, row)


def _set_reset_and_take_back(opened: Opened, qtbot: QtBot, row: SettingRow) -> None:
    key, setting = row.key, row.setting
    value = other_value(setting)
    assert not row.reset_button.isVisible(), key
    edit(qtbot, opened, key, value)
    assert opened.settings.get(key) == value, key
    assert opened.saved(key) == value, key
    assert row.reset_button.isVisible(), key
    assert not row.error.isVisible(), key
    row.reset_button.click()
    assert opened.settings.get(key) == setting.default, key
    assert opened.saved(key) == setting.default, key
    opened.dialog.undo_button.click()
    assert opened.settings.get(key) == value, key
    while opened.dialog.undo_button.isEnabled():
        opened.dialog.undo()
    assert opened.settings.get(key) == setting.default, key


def test_numbers_beyond_the_limits_are_refused_in_place(opened: Opened):
    for row in opened.dialog.rows().values():
        if row.setting.kind in ("integer", "number"):
            _refuse_beyond_the_limits(opened, row)


def _refuse_beyond_the_limits(opened: Opened, row: SettingRow) -> None:
    key, setting, control = row.key, row.setting, row.control
    assert isinstance(control, NumberControl)
    for limit, step in ((setting.minimum, -1), (setting.maximum, 1)):
        assert limit is not None, key
        if control.box.minimum() == limit:  # nothing below it can be put in
            continue
        control.box.setValue(type(setting.default)(limit + step))
        assert opened.settings.get(key) == setting.default
        assert str(setting.maximum) in opened.error(key)
        assert str(setting.default) in opened.error(key)
        assert control.box.property("invalid")
        control.box.setValue(type(setting.default)(limit))
        control.box.stepBy(step)
        assert opened.settings.get(key) == limit
        assert opened.error(key) == ""
        opened.settings.reset(key)


@pytest.mark.parametrize(
    ("key", "text", "named"),
    [
        ("hub.endpoint", "not an address", "not an address"),
        ("engine.vram", "lots", "lots"),
    ],
)
def test_texts_that_do_not_fit_stay_to_be_corrected(opened: Opened, qtbot: QtBot, key: str, text: str, named: str):
    opened.dialog.show_page("model")
    field = opened.dialog.row(key).control.target()
    put_in(qtbot, field, text)
    assert named in opened.error(key)
    assert opened.dialog.row(key).error.isVisible()
    assert opened.settings.get(key) == ""
    assert isinstance(field, QLineEdit)
    assert field.text() == text
    put_in(qtbot, field, "\b" * len(text))
    field.clear()
    put_in(qtbot, field, "")
    assert opened.error(key) == ""


def test_what_is_saved_by_another_program_appears(opened: Opened, qtbot: QtBot):
    opened.settings.path.write_text("[model]\ncontext_tokens = 9000\n")
    opened.settings.reload_if_changed()
    control = opened.dialog.row("model.context_tokens").control
    assert isinstance(control, NumberControl)
    assert control.box.value() == 9000
    opened.dialog.change("popup.font_size", 14)
    assert opened.saved("model.context_tokens") == 9000


def test_a_broken_file_is_named_while_the_dialog_is_open(opened: Opened, qtbot: QtBot):
    opened.dialog.change("popup.font_size", 14)
    opened.settings.path.write_text("[model\n")
    opened.settings.reload_if_changed()
    assert opened.dialog.problems.isVisible()
    assert "set aside" in opened.dialog.problems.label.text()
    opened.dialog.change("popup.font_size", 15)
    assert opened.saved("popup.font_size") == 15


def test_a_file_that_cannot_be_written_is_told_and_the_value_holds(opened: Opened, tmp_path: Path):
    opened.settings.path = tmp_path / "a file" / "settings.toml"
    opened.settings.path.parent.write_text("")
    opened.dialog.change("popup.font_size", 14)
    assert "cannot be saved" in opened.dialog.problems.label.text()
    assert opened.settings.get("popup.font_size") == 14


def test_the_search_finds_by_title_help_key_and_either_language(opened: Opened, qtbot: QtBot):
    def found(words: str) -> set[str]:
        opened.dialog.search.setText(words)
        return {key for key, row in opened.dialog.rows().items() if row.isVisible()}

    assert found("context") >= {"model.context_tokens"}
    assert "popup.font_size" not in found("context")
    assert found("上下文") >= {"model.context_tokens"}
    assert found("engine.threads") == {"engine.threads"}
    assert found("CLIPBOARD back") == {"clipboard.restore"}
    assert found("nothing has this") == set()
    assert opened.dialog.nothing.isVisible()
    qtbot.keyClick(opened.dialog.search, Qt.Key.Key_Escape)
    assert opened.dialog.search.text() == ""
    assert opened.dialog.isVisible()
    assert opened.dialog.row("language.ui").isVisible()
    assert not opened.dialog.row("model.context_tokens").isVisible()


def test_keys_search_take_back_and_close(opened: Opened, qtbot: QtBot):
    qtbot.waitUntil(opened.dialog.list.hasFocus)
    qtbot.keyClick(opened.dialog, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    assert opened.dialog.search.hasFocus()
    opened.dialog.list.setFocus()
    opened.dialog.change("popup.font_size", 14)
    assert "14 pt" in opened.dialog.said.full_text
    qtbot.keyClick(opened.dialog, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert opened.settings.get("popup.font_size") == 0
    with qtbot.waitSignal(opened.dialog.closed):
        qtbot.keyClick(opened.dialog, Qt.Key.Key_Escape)


def test_a_choice_of_a_file(opened: Opened, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(settings_controls, "ask_for_file", lambda *args: "/models/own.gguf")
    for key in ("model.default", "more.path"):
        control = opened.dialog.row(key).control
        control.button.click()  # type: ignore[attr-defined]
        assert opened.settings.get(key) == "/models/own.gguf"
    box = opened.dialog.row("model.default").control.target()
    assert isinstance(box, QComboBox)
    assert box.currentText() == "/models/own.gguf"


def test_every_control_has_a_name_on_every_page(opened: Opened):
    for page in opened.dialog._pages:
        opened.dialog.show_page(page.page.id)
        assert nameless(opened.dialog) == []


def _option(box: QComboBox) -> QStyleOptionComboBox:
    option = QStyleOptionComboBox()
    box.initStyleOption(option)
    return option


@pytest.mark.parametrize("language", ["en", "zh"])
def test_nothing_is_cut_in_the_smallest_window(qtbot: QtBot, tmp_path: Path, language: str):
    opened = Opened(qtbot, tmp_path, language)
    opened.dialog.resize(MINIMUM_SIZE)
    for page in opened.dialog._pages:
        opened.dialog.show_page(page.page.id)
        QApplication.processEvents()
        width = opened.dialog.area.viewport().width()
        assert opened.dialog._body.width() <= width
        for label in page.findChildren(QLabel):
            if label.isVisible() and label.text():
                assert label.height() >= label.heightForWidth(label.width()), label.text()
        for box in page.findChildren(QComboBox):
            room = box.style().subControlRect(
                QStyle.ComplexControl.CC_ComboBox, _option(box), QStyle.SubControl.SC_ComboBoxEditField, box
            )
            for place in range(box.count()):
                # Names of models may be long: they are shown in full in the list and in the window of models.
                if opened.dialog.row("model.default").control.target() is not box:
                    assert box.fontMetrics().horizontalAdvance(box.itemText(place)) <= room.width(), box.itemText(place)
    opened.dialog.release()


def test_rows_that_are_no_settings_stand_in_their_group(qtbot: QtBot, tmp_path: Path):
    settings = Settings.load(tmp_path / "settings.toml", REGISTRY)
    row = ButtonRow("Do it", "Once.", "Do…")
    dialog = SettingsDialog(settings, Translator("en"), MODELS, {"diagnostics": [row]})
    qtbot.addWidget(dialog)
    dialog.show()
    dialog.show_page("help")
    assert row.isVisible()
    dialog.search.setText("do it once")
    assert row.isVisible()
    dialog.release()


def test_the_switch_is_a_check_box_for_screen_readers(opened: Opened):
    control = opened.dialog.row("clipboard.restore").control.target()
    interface = QAccessible.queryAccessibleInterface(control)
    assert interface.role() == QAccessible.Role.CheckBox
    assert interface.state().checked
