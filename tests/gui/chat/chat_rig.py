"""A chat window, put together around a scripted engine and a history in a temporary folder, for its tests."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.conversation import ConversationState
from app.engine_client import FakeClient, ScriptedAnswer
from app.history.history import History
from app.qt.bridge import Bridge
from app.qt.chat.message import AnswerView, QuestionView
from app.qt.chat.window import ChatWindow
from app.qt.clipboard import QtClipboard
from app.translation import Translator


class ChatRig:
    """The window and everything behind it."""

    def __init__(self, qtbot: QtBot, folder: Path, *answers: ScriptedAnswer, language: str = "en") -> None:
        self.qtbot = qtbot
        self.path = folder / "history" / "history.db"
        self.history = History(self.path)
        self.client = FakeClient(*answers)
        self.bridge = Bridge(tick_ms=1)
        self.client.listen(self.bridge.post_event)
        self.client.load("fake")
        self.clipboard = QtClipboard()
        self.window = ChatWindow(
            client=self.client,
            bridge=self.bridge,
            history=self.history,
            clipboard=self.clipboard,
            translator=Translator(language),
            title_of=str.capitalize,
        )
        qtbot.addWidget(self.window)
        self.window.show()
        self.play()

    def play(self) -> None:
        """The engine does all it has to do, and the window shows it."""
        for _ in range(3):  # what it counted leads to what it is asked
            self.client.play()
            self.settle()

    def play_until_text(self) -> None:
        """The engine works until the first words of an answer are shown."""
        while not self.state.messages[-1].text:
            self.client.step()
            self.settle()

    def settle(self) -> None:
        """Lets the event loop turn until the bridge is empty."""
        self.qtbot.wait(12)

    def type(self, text: str) -> None:
        """The user writes a message and presses Enter."""
        self.window.composer.edit.setPlainText(text)
        QTest.keyClick(self.window.composer.edit, Qt.Key.Key_Return)

    def say(self, text: str) -> None:
        """The user sends a message and gets the answer."""
        self.type(text)
        self.play()

    @property
    def state(self) -> ConversationState:
        return self.window.session.state

    @property
    def texts(self) -> list[str]:
        """What the messages on the screen say."""
        return [view.view.toPlainText() for view in self.window.transcript.views]

    @property
    def stored(self) -> list[tuple[str, str]]:
        """What the history holds of the conversation that is shown."""
        return [(each.role, each.text) for each in self.history.messages(self.window.session.shown)]

    def answer(self, index: int = -1) -> AnswerView:
        view = self.window.transcript.views[index]
        assert isinstance(view, AnswerView)
        return view

    def question(self, index: int = 0) -> QuestionView:
        view = self.window.transcript.views[index]
        assert isinstance(view, QuestionView)
        return view

    def close(self) -> None:
        self.window.shut_down()
        self.client.close()
        self.clipboard.close()
        self.history.close()
