"""The real app, with its windows told over a pipe (see pipe_commands.py).

Usage: observed_app.py [--pieces JSON] [--piece-ms N] [--load-ms N] [--real] [-- ARGUMENTS]
Unless --real is given, a scripted engine answers with the pieces; without any, with the text that it was given.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from PySide6.QtCore import QPoint, QTimer
from PySide6.QtWidgets import QApplication, QLabel, QPushButton, QWidget

from app.__main__ import build_worker, main
from app.engine_client import EngineClient, FakeClient, RequestListener, ScriptedAnswer
from app.qt.home.main_window import MainWindow
from app.qt.popup.popup import Popup
from app.settings.settings import Settings
from inference.request import GenerationRequest
from tests.e2e.pipe_commands import PipeCommands

Widget = TypeVar("Widget", bound=QWidget)


class ScriptedClient(FakeClient):
    """A FakeClient whose time passes by itself, on a thread, like an engine's."""

    def __init__(self, *answers: ScriptedAnswer, piece_ms: float) -> None:
        super().__init__(*answers)
        self._piece_s = piece_ms / 1000
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="scripted-engine", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.wait(self._piece_s):
            self.step()

    def close(self) -> None:
        self._ended.set()
        self._thread.join()
        super().close()


class RecordingClient:
    """Any client, with what was sent to it noted."""

    def __init__(self, client: EngineClient) -> None:
        self._client = client
        self.sent: list[str] = []

    def submit(self, request: GenerationRequest, listener: RequestListener) -> None:
        self.sent.append(request.messages[-1].content)
        self._client.submit(request, listener)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


class Observer:
    """Answers the commands of the tests."""

    def __init__(self, client: RecordingClient) -> None:
        self._client = client
        self._pipe = PipeCommands(self._answer)
        self._beat = QTimer(interval=2)
        self._beat.timeout.connect(self._on_beat)
        self._last_s = time.monotonic()
        self._longest_gap_s = 0.0
        self._beat.start()

    def _on_beat(self) -> None:
        now = time.monotonic()
        self._longest_gap_s = max(self._longest_gap_s, now - self._last_s)
        self._last_s = now

    def _answer(self, command: dict[str, Any]) -> Any:
        match command["do"]:
            case "started":
                return _find(Popup) is not None
            case "sent":
                return self._client.sent
            case "popup":
                return _popup_state()
            case "window":
                window = _find(MainWindow)
                if window is None:
                    return {"visible": False, "active": False, "texts": []}
                texts = [label.text() for label in window.findChildren(QLabel) if label.isVisible()]
                return {"visible": window.isVisible(), "active": window.isActiveWindow(), "texts": texts}
            case "reading":
                reading = self._client.reading()
                return {"state": reading.state.value, "model": reading.model, "running": reading.running}
            case "modules":
                return [name for name in command["names"] if name in sys.modules]
            case "gap_ms":
                gap, self._longest_gap_s = self._longest_gap_s, 0.0
                return gap * 1000
            case "reload":
                self._client.unload()
                self._client.load(command["model"])
                return True
            case "close_window":
                window = _find(MainWindow)
                return window is not None and window.close()
            case "close_popup":
                popup = _find(Popup)
                return popup is not None and popup.close()
        raise ValueError(command)


def _find(kind: type[Widget]) -> Widget | None:
    return next((w for w in QApplication.topLevelWidgets() if isinstance(w, kind)), None)


def _popup_state() -> dict[str, Any]:
    popup = _find(Popup)
    if popup is None:
        return {"visible": False, "state": "none", "text": "", "buttons": {}}
    buttons = {}
    for button in popup.findChildren(QPushButton):
        if button.isVisible() and button.isEnabled():
            middle = button.mapToGlobal(QPoint(button.width() // 2, button.height() // 2))
            buttons[button.text().replace("&", "")] = (middle.x(), middle.y())
    return {
        "visible": popup.isVisible(),
        "state": popup.state.name.lower(),
        "title": popup.windowTitle(),
        "text": popup.view.toPlainText(),
        "waiting_for": popup.view.placeholderText(),
        "notice": [label.text() for label in popup.notice.findChildren(QLabel) if label.isVisible()],
        "small_print": popup.small_print.text(),
        "buttons": buttons,
        "active": popup.isActiveWindow(),
        "rect": popup.geometry().getRect(),
    }


def run() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pieces", type=json.loads, default=[])
    parser.add_argument("--piece-ms", type=float, default=10.0)
    parser.add_argument("--real", action="store_true")
    parser.add_argument("arguments", nargs="*")
    options = parser.parse_args()
    observers: list[Observer] = []

    def build(settings: Settings) -> tuple[EngineClient, Callable[[], str]]:
        if options.real:
            client, default_model = build_worker(settings)
        else:
            answers = [ScriptedAnswer(*options.pieces)] if options.pieces else []
            client, default_model = ScriptedClient(*answers, piece_ms=options.piece_ms), lambda: "fake"
        recording = RecordingClient(client)
        observers.append(Observer(recording))
        return recording, default_model

    return main(options.arguments, build)


if __name__ == "__main__":
    sys.exit(run())
