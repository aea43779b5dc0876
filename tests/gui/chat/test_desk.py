"""The chat as the application holds it: made when it is wanted, shown by a command, told to the tray."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.actions.registry import ActionRegistry
from app.engine_client import FakeClient, ScriptedAnswer
from app.qt.bridge import Bridge
from app.qt.chat.desk import ChatDesk
from app.qt.clipboard import QtClipboard
from app.qt.history_binding import HistoryBinding
from app.settings.registry import setting_registry
from app.settings.settings import Settings
from app.translation import Translator

pytestmark = pytest.mark.gui


class DeskRig:
    """A desk between a scripted engine and a history in memory."""

    def __init__(self, settings: Settings) -> None:
        translator = Translator("en")
        self.client, self.bridge, self.clipboard = FakeClient(ScriptedAnswer("Yes.")), Bridge(tick_ms=1), QtClipboard()
        self.client.listen(self.bridge.post_event)
        self.activated: list[QWidget] = []
        self.busy: list[tuple[bool, str]] = []
        self.history = HistoryBinding(settings, translator, lambda _title, _text: None)
        self.desk = ChatDesk(
            self.client, self.bridge, self.history, self.clipboard, translator, ActionRegistry(), self.activated.append
        )
        self.desk.busy_changed.connect(lambda is_busy, who: self.busy.append((is_busy, who)))

    def play(self, qtbot: QtBot) -> None:
        for _ in range(3):
            self.client.play()
            qtbot.wait(10)


@pytest.fixture
def rig(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DeskRig]:
    monkeypatch.setattr("app.qt.history_binding.history_file", lambda: tmp_path / "history" / "history.db")
    rig = DeskRig(Settings.load(tmp_path / "settings.toml", setting_registry([])))
    yield rig
    rig.desk.close()
    rig.client.close()
    rig.clipboard.close()
    rig.history.close()


def test_answers_have_the_names_of_their_actions(rig: DeskRig, qtbot: QtBot):
    rig.history.add_answer("summarize", "A text.", "Short.", "fake")
    rig.history.add_answer("gone", "A text.", "Short.", "fake")  # of an action that was removed meanwhile
    qtbot.addWidget(rig.desk.window)
    titles = rig.desk.window.side.answers.titles
    shown = [titles.item(row).text().split("\n")[1].split(" · ")[0] for row in range(titles.count())]
    assert shown == ["gone", "Summarize"]


def test_the_window_is_made_once_and_brought_to_the_front(rig: DeskRig, qtbot: QtBot):
    rig.desk.open()
    window = rig.desk.window
    qtbot.addWidget(window)
    assert window.isVisible()
    window.close()
    assert not window.isVisible()
    rig.desk.open()
    assert window.isVisible()
    assert rig.activated == [window, window]


def test_an_answer_goes_on_as_a_chat_and_the_tray_hears_of_the_next(rig: DeskRig, qtbot: QtBot):
    rig.desk.continue_answer("Summarize", "A text.", "Short.")
    window = rig.desk.window
    qtbot.addWidget(window)
    assert [view.view.toPlainText() for view in window.transcript.views] == ["A text.", "Short."]
    window.session.send("More?")
    assert rig.busy == [(True, "chat")]
    rig.play(qtbot)
    assert rig.busy == [(True, "chat"), (False, "chat")]
    assert window.session.state.messages[-1].text == "Yes."


def test_closing_without_a_window_is_nothing(rig: DeskRig):
    rig.desk.close()
    assert rig.activated == []
