"""The history in the running app: answers are kept, the setting holds at once, clearing asks first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QMessageBox, QPushButton
from pytestqt.qtbot import QtBot

from app.engine_client import ScriptedAnswer
from app.paths import history_file
from app.qt.history_binding import HistoryBinding
from app.settings.registry import setting_registry
from app.settings.settings import Settings
from app.translation import Translator
from tests.gui.rig import Rig

pytestmark = pytest.mark.gui


class Binding:
    """A binding with what it needs around it."""

    def __init__(self, folder: Path) -> None:
        self.settings = Settings.load(folder / "settings.toml", setting_registry([]))
        self.errors: list[tuple[str, str]] = []
        self.binding = HistoryBinding(
            self.settings, Translator("en"), lambda title, text: self.errors.append((title, text))
        )
        self.history = self.binding.history

    def press(self, name: str) -> None:
        """A button of the question."""
        box = self.binding._box
        assert isinstance(box, QMessageBox)
        assert box.isVisible()
        (button,) = (each for each in box.findChildren(QPushButton) if each.text() == name)
        button.click()


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Binding]:
    made = Binding(tmp_path)
    yield made
    made.binding.close()


def test_answers_of_the_popup_are_kept(make_rig, made: Binding, qtbot: QtBot) -> None:
    rig: Rig = make_rig(ScriptedAnswer("The ", "answer."))
    rig.controller.answered.connect(made.binding.add_answer)
    with qtbot.waitSignal(made.binding.changed):
        rig.controller.run_text("summarize", "A long text.")
        rig.play()
    (result,) = made.history.results()
    assert (result.action_id, result.source_text, result.answer) == ("summarize", "A long text.", "The answer.")
    assert result.model == "fake"


@pytest.mark.parametrize("script", [ScriptedAnswer(), ScriptedAnswer("Half", finish_reason="cancelled")])
def test_what_is_no_answer_is_not_kept(make_rig, made: Binding, script: ScriptedAnswer) -> None:
    rig: Rig = make_rig(script)
    rig.controller.answered.connect(made.binding.add_answer)
    rig.controller.run_text("summarize", "A long text.")
    rig.play()
    assert made.history.results() == []


def test_the_setting_holds_at_once(made: Binding) -> None:
    made.binding.add_answer("summarize", "kept", "kept", "m")
    made.settings.set("history.keep", False)
    assert made.history.results() == []
    made.binding.add_answer("summarize", "hush", "hush", "m")
    made.settings.set("history.keep", True)
    assert [result.answer for result in made.history.results()] == ["kept"]
    assert made.errors == []


def test_clearing_asks_first(made: Binding) -> None:
    made.binding.add_answer("summarize", "kept", "kept", "m")
    made.binding.ask_to_clear()
    assert made.binding._box is not None
    assert made.binding._box.defaultButton().text() == "Keep it"
    asked = made.binding._box
    made.binding.ask_to_clear()
    assert made.binding._box is asked
    made.press("Keep it")
    assert len(made.history.results()) == 1
    made.binding.ask_to_clear()
    made.press("Clear the history")
    assert made.history.results() == []


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    history_file().parent.mkdir(parents=True)
    history_file().write_text("not a database")
    made = Binding(tmp_path)
    made.binding.tell_problem()
    ((title, text),) = made.errors
    assert title == "The history needs your attention"
    assert "It was set aside as history.broken-" in text
    made.binding.close()


def test_an_answer_that_cannot_be_kept_is_told(made: Binding) -> None:
    made.history._connection.execute("PRAGMA max_page_count = 1")
    made.binding.add_answer("summarize", "x" * 100_000, "y" * 100_000, "m")
    ((_, text),) = made.errors
    assert "the disk is full" in text
