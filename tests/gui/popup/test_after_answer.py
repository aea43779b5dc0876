"""What follows an answer by itself: copied or replaced by choice, and replaced only where that is safe."""

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app.desktop.protocols import Window
from app.engine_client import ScriptedAnswer
from app.qt.popup.after_answer import AFTER_SETTING, AfterAnswer
from app.qt.popup.popup import PopupState
from app.settings.registry import setting_registry
from app.settings.settings import Settings
from tests.gui.rig import EDITOR, Rig

pytestmark = pytest.mark.gui

MakeRig = Callable[..., Rig]
SOURCE = "We meet on 12 May, is it okay for you?"
GOOD = ScriptedAnswer("We meet on 12 May. ", "Is that okay for you?")
LOSES_A_NUMBER = ScriptedAnswer("We meet in May. Is that okay for you?")


@pytest.fixture
def start(make_rig: MakeRig, qtbot: QtBot, tmp_path: Path) -> Callable[..., Rig]:
    def run(after: str, answer: ScriptedAnswer = GOOD, action: str = "rewrite") -> Rig:
        rig = make_rig(answer)
        settings = Settings.load(tmp_path / "settings.toml", setting_registry([]))
        settings.set(AFTER_SETTING, after)
        AfterAnswer(settings, rig.controller, rig.popup, rig.desktop, rig.controller)
        rig.select(SOURCE)
        rig.controller.run(action, "selection")
        qtbot.waitUntil(lambda: bool(rig.client.submitted))
        QGuiApplication.clipboard().setText("mine")
        return rig

    return run


def test_it_stays_in_the_popup(start: Callable[..., Rig], qtbot: QtBot):
    rig = start("show")
    rig.play()
    qtbot.wait(30)
    assert QGuiApplication.clipboard().text() == "mine"
    assert rig.desktop.sent == ["copy"]
    assert rig.popup.state is PopupState.FINISHED


def test_it_is_copied(start: Callable[..., Rig]):
    start("copy").play()
    assert QGuiApplication.clipboard().text() == "We meet on 12 May. Is that okay for you?"


def test_a_part_of_an_answer_is_not_copied(start: Callable[..., Rig]):
    rig = start("copy", ScriptedAnswer("We meet", finish_reason="length"))
    rig.play()
    assert QGuiApplication.clipboard().text() == "mine"


def test_it_replaces_the_selection(start: Callable[..., Rig], qtbot: QtBot):
    rig = start("replace")
    rig.play()
    qtbot.waitUntil(lambda: rig.desktop.sent == ["copy", "paste"])


@pytest.mark.parametrize("case", ["flagged", "another window", "not an action that replaces", "left alone"])
def test_it_waits_in_the_popup_where_replacing_is_not_safe(start: Callable[..., Rig], qtbot: QtBot, case: str):
    answer = LOSES_A_NUMBER if case == "flagged" else GOOD
    rig = start("replace", answer, "summarize" if case == "not an action that replaces" else "rewrite")
    if case == "another window":
        rig.desktop.window = Window(2, "browser")
    if case == "left alone":
        rig.controller.set_left_alone(["editor"])
    rig.play()
    qtbot.wait(50)
    assert rig.desktop.sent == ["copy"]
    assert rig.popup.isVisible()
    assert rig.desktop.activated == []


def test_a_program_that_is_left_alone_is_named(make_rig: MakeRig, qtbot: QtBot):
    rig = make_rig(GOOD)
    rig.controller.set_left_alone([EDITOR.program])
    rig.select(SOURCE)
    rig.controller.run("summarize", "selection")
    qtbot.waitUntil(lambda: rig.popup.state is PopupState.NOTICE)
    assert "editor" in rig.popup.notice.shown.text
    assert rig.desktop.sent == []
    assert rig.client.submitted == []
