"""The bundle is shown before it is saved."""

import zipfile
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.diagnostics.bundle import DiagnosticFile
from app.qt.settings import diagnostics_window
from app.qt.settings.diagnostics_window import DiagnosticsWindow
from app.translation import Translator
from tests.gui.test_accessibility import nameless

pytestmark = pytest.mark.gui

FILES = [DiagnosticFile("README.txt", "About it.\n"), DiagnosticFile("engine.txt", "state ready\n")]


@pytest.fixture
def window(qtbot: QtBot) -> DiagnosticsWindow:
    window = DiagnosticsWindow(Translator("en"), lambda: FILES)
    qtbot.addWidget(window)
    window.show()
    qtbot.waitUntil(window.save_button.isEnabled)
    return window


def test_every_file_can_be_read(window: DiagnosticsWindow):
    assert window.text.toPlainText() == "About it.\n"
    window.list.setCurrentRow(1)
    assert window.text.toPlainText() == "state ready\n"
    assert window.text.isReadOnly()
    assert nameless(window) == []


def test_it_is_saved_where_the_user_says(window: DiagnosticsWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "bundle.zip"
    monkeypatch.setattr(diagnostics_window, "ask_where_to_save", lambda *args: str(path))
    window.save_button.click()
    with zipfile.ZipFile(path) as archive:
        assert archive.read("engine.txt") == b"state ready\n"
    assert str(path) in window.message.text()


@pytest.mark.parametrize("answer", ["", "no-such-folder/bundle.zip"])
def test_nothing_is_saved_without_a_place(
    window: DiagnosticsWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
):
    place = str(tmp_path / answer) if answer else ""
    monkeypatch.setattr(diagnostics_window, "ask_where_to_save", lambda *args: place)
    window.save_button.click()
    assert list(tmp_path.iterdir()) == []
    assert ("cannot be saved" in window.message.text()) == bool(answer)


def test_escape_closes_it(window: DiagnosticsWindow, qtbot: QtBot):
    qtbot.keyClick(window, Qt.Key.Key_Escape)
    assert not window.isVisible()
