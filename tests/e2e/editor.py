"""A text editor for the tests, a program of its own: what it holds can be asked over a pipe (see pipe_commands.py).

Usage: editor.py TITLE
"""

from __future__ import annotations

import base64
import sys
from typing import Any

from PySide6.QtCore import QEvent, QMimeData, QObject, QTimer
from PySide6.QtGui import QClipboard, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QApplication, QPlainTextEdit

from tests.e2e.pipe_commands import PipeCommands


class Editor(QPlainTextEdit):
    """The window; notes every key it gets."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self.setWindowTitle(title)
        self.resize(500, 300)
        self.keys: list[str] = []
        self.secret = ""
        self.copy_delay_ms = 0
        self.installEventFilter(self)

    def createMimeDataFromSelection(self) -> QMimeData:
        """What a copy puts on the clipboard."""
        if not self.secret:
            return super().createMimeDataFromSelection()
        content = QMimeData()
        content.setText(self.secret)
        content.setData("x-kde-passwordManagerHint", b"secret")
        return content

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.KeyPress:
            assert isinstance(event, QKeyEvent)
            self.keys.append(event.keyCombination().key().name)
            if self.copy_delay_ms and event.matches(QKeySequence.StandardKey.Copy):
                QTimer.singleShot(self.copy_delay_ms, self, self.copy)
                return True
        return super().eventFilter(watched, event)

    def answer(self, command: dict[str, Any]) -> Any:
        clipboard = QApplication.clipboard()
        match command["do"]:
            case "set_text":
                self.setPlainText(command["text"])
                self.keys.clear()
            case "forget_keys":
                self.keys.clear()
            case "put":
                content = QMimeData()
                for name, data in command["formats"].items():
                    content.setData(name, base64.b64decode(data))
                clipboard.setMimeData(content)
            case "copy_as_secret":
                self.secret = command["text"]
                self.setPlainText(command["text"])
            case "answer_copies_after":
                self.copy_delay_ms = command["ms"]
            case "clipboard":
                content = clipboard.mimeData()
                return {name: base64.b64encode(content.data(name).data()).decode() for name in content.formats()}
            case "primary":
                return clipboard.text(QClipboard.Mode.Selection)
        return {
            "text": self.toPlainText(),
            "selected": self.textCursor().selectedText(),
            "active": self.isActiveWindow(),
            "window_id": int(self.winId()),
            "keys": self.keys,
        }


def main() -> None:
    application = QApplication(sys.argv)
    application.setApplicationName("test-editor")
    editor = Editor(sys.argv[1])
    commands = PipeCommands(editor.answer)
    editor.show()
    application.exec()
    del commands


if __name__ == "__main__":
    main()
