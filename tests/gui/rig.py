"""A controller, put together around a scripted engine and a fake desktop, for the tests of the windows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app.actions.registry import ActionRegistry
from app.desktop.fake_desktop import FakeDesktop
from app.desktop.protocols import Hotkey, HotkeyTakenError, Window
from app.engine_client import FakeClient, ScriptedAnswer
from app.language import LANGUAGES, Languages
from app.qt.bridge import Bridge
from app.qt.clipboard import QtClipboard
from app.qt.popup.controller import AnswerController
from app.qt.popup.popup import Popup
from app.translation import Translator, UserText

EDITOR = Window(1, "editor")


class FakeGrabber:
    """`app.desktop.protocols.HotkeyGrabber` in memory.

    Attributes:
        held: what to call for each combination.
        taken: combinations that another program holds.
    """

    def __init__(self) -> None:
        self.held: dict[str, Callable[[], None]] = {}
        self.taken: set[str] = set()
        self.is_closed = False

    def grab(self, hotkey: Hotkey, on_press: Callable[[], None]) -> None:
        if str(hotkey) in self.taken:
            raise HotkeyTakenError(hotkey, UserText("another program uses it"))
        assert str(hotkey) not in self.held
        self.held[str(hotkey)] = on_press

    def release(self, hotkey: Hotkey) -> None:
        self.held.pop(str(hotkey), None)

    def close(self) -> None:
        self.held.clear()
        self.is_closed = True


class Rig:
    """A controller between a fake desktop and a scripted engine, with a real popup and a real clipboard."""

    def __init__(self, qtbot: QtBot, popup: Popup, translator: Translator, answers: tuple[ScriptedAnswer, ...]) -> None:
        self.qtbot = qtbot
        self.popup = popup
        self.desktop = FakeDesktop(EDITOR)
        self.clipboard = QtClipboard()
        self.client = FakeClient(*answers)
        self.bridge = Bridge(tick_ms=1)
        self.client.listen(self.bridge.post_event)
        self.shown = 0
        self.controller = AnswerController(
            client=self.client,
            actions=ActionRegistry(user_dir=Path("no-such-folder")),
            languages=lambda: Languages(LANGUAGES["en"], LANGUAGES["zh"]),
            desktop=self.desktop,
            clipboard=self.clipboard,
            popup=popup,
            bridge=self.bridge,
            translator=translator,
            show_popup=self._show,
        )

    def _show(self) -> None:
        self.shown += 1
        self.popup.show()

    def select(self, text: str) -> None:
        """The editor holds a selection that it copies on demand."""
        self.desktop.on_copy = lambda: QGuiApplication.clipboard().setText(text)

    def play(self) -> None:
        """The engine does all it has to do, and the popup shows it."""
        self.client.play()
        self.settle()

    def play_until_text(self) -> None:
        """The engine works until the first text is shown."""
        while not self.answer_text() and self.client.step():
            self.settle()

    def settle(self) -> None:
        """Lets the event loop turn until the bridge is empty."""
        self.qtbot.wait(15)

    def answer_text(self) -> str:
        return self.popup.view.toPlainText()
