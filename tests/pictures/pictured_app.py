"""The real app with its real engine, driven for pictures over a pipe (see tests/e2e/pipe_commands.py).

It presses what a user would press; what has no place on the screen, such as how much memory this machine seems to
have free, is set here. Usage: pictured_app.py
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import psutil
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QAbstractButton, QApplication, QLineEdit, QPlainTextEdit, QWidget

import app.__main__ as composition
from app.qt.application import Application
from app.qt.chat import session as chat_session
from app.qt.models.row import RowAction
from app.qt.popup.popup import Popup
from tests.e2e.pipe_commands import PipeCommands


class PretendedMemory:
    """psutil's reading of the main memory, with less of it free where a picture needs that."""

    def __init__(self) -> None:
        self.free_bytes = 0
        self._read = psutil.virtual_memory

    def __call__(self) -> Any:
        reading = self._read()
        return reading._replace(available=min(reading.available, self.free_bytes)) if self.free_bytes else reading


def _window(kind: str) -> QWidget | None:
    shown = [window for window in QApplication.topLevelWidgets() if type(window).__name__ == kind]
    return next((window for window in shown if window.isVisible()), None)


def _middle(widget: QWidget) -> tuple[int, int]:
    place = widget.mapToGlobal(QPoint(widget.width() // 2, widget.height() // 2))
    return place.x(), place.y()


def _buttons(window: QWidget) -> dict[str, tuple[int, int]]:
    """Middles of the buttons that can be pressed, by their accessible names and by their texts."""
    found = {}
    for button in window.findChildren(QAbstractButton):
        if button.isVisible() and button.isEnabled():
            for name in (button.accessibleName(), button.text().replace("&", "")):
                found.setdefault(name, _middle(button))
    return found


class Host:
    """Answers the commands of the script."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._memory = PretendedMemory()
        psutil.virtual_memory = self._memory
        self._pipe = PipeCommands(self._answer)

    def _answer(self, command: dict[str, Any]) -> Any:
        match command["do"]:
            case "started":
                return hasattr(self._application, "welcome")
            case "window":
                return self._describe(command["kind"])
            case "command":
                self._application._commands.run(command["id"])
            case "settings_page":
                self._application.settings_owner.open(command["id"])
            case "put":
                return self._put(command["kind"], command["text"])
            case "popup":
                popup = _window("Popup")
                assert popup is None or isinstance(popup, Popup)
                if popup is None:
                    return {"state": "", "small_print": ""}
                return {"state": popup.state.name, "small_print": popup.small_print.text()}
            case "chat":
                return self._application.chat.window.session.state.is_answering
            case "engine":
                reading = self._application._client.reading()
                return {"state": reading.state.value, "model": reading.model}
            case "load":
                self._application._client.load(command["model"])
            case "set":
                self._application._settings.set(command["key"], command["value"])
            case "free_bytes":
                self._memory.free_bytes = command["bytes"]
            case "model":
                owner = self._application.models.owner
                assert owner.window is not None
                owner.window.requested.emit(command["id"], RowAction[command["action"]])
            case "plan_again":
                self._application.models.owner.plan_all()
            case "close":
                window = _window(command["kind"])
                return window is not None and window.close()
            case "call":
                return self._call(command["kind"], command["path"], command["arguments"])
            case unknown:
                raise ValueError(unknown)
        return True

    def _describe(self, kind: str) -> dict[str, Any] | None:
        window = _window(kind)
        if window is None:
            return None
        return {"buttons": _buttons(window), "id": int(window.winId())}

    def _put(self, kind: str, text: str) -> bool:
        """Writes into the field of a window that has the keyboard, or its first one."""
        window = _window(kind)
        assert window is not None, kind
        field = window.focusWidget()
        if not isinstance(field, QPlainTextEdit | QLineEdit):
            field = next(field for field in window.findChildren(QPlainTextEdit) if field.isVisible())
        field.clear()
        (field.insertPlainText if isinstance(field, QPlainTextEdit) else field.insert)(text)
        return True

    @staticmethod
    def _call(kind: str, path: str, arguments: list[Any]) -> bool:
        """Calls a method of a part of a window; for places that cannot be clicked at, such as a row of a list."""
        target: Any = _window(kind)
        for name in path.split("."):
            target = getattr(target, name)
        target(*arguments)
        return True


class PicturedApplication(Application):
    """The application with its host."""

    def __init__(self, **parts: Any) -> None:
        super().__init__(**parts)
        self.host = Host(self)


if __name__ == "__main__":
    # The same answers each time.
    chat_session.CHAT_SAMPLING = replace(chat_session.CHAT_SAMPLING, temperature=0.0)
    composition.Application = PicturedApplication  # type: ignore[misc]
    sys.exit(composition.main([]))
