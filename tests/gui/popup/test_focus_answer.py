"""Answers where only the window with the keyboard sees the clipboard: read then, and put back there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app.capture.focus_capture import FocusCapture
from app.engine_client import ScriptedAnswer
from app.qt.popup.after_answer import AfterAnswer
from app.qt.popup.popup import PopupState
from app.settings.registry import setting_registry
from app.settings.settings import Settings
from tests.gui.rig import Rig

pytestmark = pytest.mark.gui


@pytest.fixture
def rig(make_rig: Callable[..., Rig], tmp_path: Path) -> Rig:
    rig = make_rig(ScriptedAnswer("The ", "answer."))
    rig.desktop.window = None
    rig.controller._capture = FocusCapture(rig.clipboard, rig.popup.isActiveWindow)
    settings = Settings.load(tmp_path / "settings.toml", setting_registry([]))
    AfterAnswer(settings, rig.controller, rig.popup, rig.desktop, rig.controller, only_copies=True)
    return rig


def test_the_clipboard_is_offered_and_the_answer_put_there(rig: Rig, qtbot: QtBot) -> None:
    QGuiApplication.clipboard().setText("A copied text.")
    rig.controller.run("summarize", "selection")
    qtbot.waitUntil(lambda: rig.popup.state is PopupState.NOTICE)
    assert rig.popup.isActiveWindow(), "it took the keyboard, to be able to read"
    assert rig.client.submitted == []
    assert rig.popup.notice.button.hasFocus()
    rig.popup.notice.button.click()
    rig.play()
    assert "A copied text." in rig.client.submitted[0].messages[-1].content
    qtbot.waitUntil(lambda: QGuiApplication.clipboard().text() == "The answer.")
    assert rig.desktop.sent == [], "no key is sent to anybody"


def test_the_action_on_the_clipboard_needs_no_question(rig: Rig, qtbot: QtBot) -> None:
    QGuiApplication.clipboard().setText("A copied text.")
    rig.controller.run("summarize", "clipboard")
    qtbot.waitUntil(lambda: bool(rig.client.submitted))
    assert "A copied text." in rig.client.submitted[0].messages[-1].content


@pytest.mark.parametrize("source", ["selection", "clipboard"])
def test_nothing_to_read(rig: Rig, qtbot: QtBot, source: str) -> None:
    rig.controller.run("summarize", source)  # type: ignore[arg-type]
    qtbot.waitUntil(lambda: rig.popup.state is PopupState.NOTICE)
    shown = rig.popup.notice.shown
    assert shown is not None
    assert shown.heading == "The clipboard holds no text"
    assert rig.client.submitted == []
