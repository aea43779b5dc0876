"""Commands for a Qt program of the tests: a line of JSON on its standard input, a line of JSON as the answer."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, QSocketNotifier
from PySide6.QtWidgets import QApplication

Handler = Callable[[dict[str, Any]], Any]


class PipeCommands(QObject):
    """Answers each command with what a handler returns; the program ends with its standard input."""

    def __init__(self, handler: Handler) -> None:
        super().__init__()
        self._handler = handler
        self._rest = b""
        self._notifier = QSocketNotifier(sys.stdin.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._on_readable)

    def _on_readable(self) -> None:
        data = os.read(sys.stdin.fileno(), 1 << 20)
        if not data:
            self._notifier.setEnabled(False)
            QApplication.quit()
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            answer = self._handler(json.loads(line))
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()
