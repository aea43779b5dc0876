"""Ending in time: signals of the system become a clean end, and an end that takes too long becomes a hard one."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Callable
from types import FrameType

from PySide6.QtCore import QObject, QSocketNotifier

_log = logging.getLogger(__name__)

END_LIMIT_S = 2.9


class SignalWatch(QObject):
    """Calls back on the UI thread when the process is asked to end (Ctrl+C, SIGTERM).

    Python runs its signal handlers between two bytecodes, and an event loop that waits runs none: the wake-up socket
    makes the loop turn.
    """

    def __init__(self, on_signal: Callable[[], None], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._on_signal = on_signal
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        self._notifier = QSocketNotifier(self._reader.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._drain)
        self._before_fd = signal.set_wakeup_fd(self._writer.fileno())
        self._before = {number: signal.signal(number, self._handle) for number in (signal.SIGINT, signal.SIGTERM)}

    def close(self) -> None:
        """Puts the old handlers back."""
        signal.set_wakeup_fd(self._before_fd)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._notifier.setEnabled(False)
        self._reader.close()
        self._writer.close()

    def _drain(self) -> None:
        try:
            self._reader.recv(64)
        except BlockingIOError:
            return

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self._on_signal()


def end_hard_after(limit_s: float = END_LIMIT_S) -> threading.Timer:
    """Ends the process when the limit is over, whatever still runs; cancel the result once everything has ended."""

    def end() -> None:
        _log.warning("the app did not end within %.1f s; it is ended now", limit_s)
        logging.shutdown()
        os._exit(0)

    timer = threading.Timer(limit_s, end)
    timer.daemon = True
    timer.start()
    return timer
