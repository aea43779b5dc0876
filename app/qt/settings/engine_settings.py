"""Carries changed settings to the engine: the resident model is loaded anew, but never in the middle of an answer."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer, Signal

from app.engine_client import EngineClient
from app.settings.settings import Settings, Value
from inference.engine.options import EngineOptions
from inference.request import ModelState

# Who turns a number up passes many values; the last one is meant.
SETTLE_MS = 600
POLL_MS = 200
_KEYS = ("model.default", "model.context_tokens")
_TABLE = "engine."


class EngineSettings(QObject):
    """Gives the engine its options and loads the model anew. UI thread only.

    Signals:
        waiting_changed: whether a change waits for the end of an answer; `apply_now` does not wait.
    """

    waiting_changed = Signal(bool)

    def __init__(
        self,
        settings: Settings,
        client: EngineClient,
        options: Callable[[], EngineOptions],
        model: Callable[[], str],
        parent: QObject | None = None,
    ) -> None:
        """Listens to the settings from here on.

        Args:
            options: what the settings say about the engine now.
            model: which model they mean.
        """
        super().__init__(parent)
        self._client, self._options, self._model = client, options, model
        self._is_waiting = False
        self._settle = QTimer(self, interval=SETTLE_MS, singleShot=True)
        self._settle.timeout.connect(self._apply)
        self._poll = QTimer(self, interval=POLL_MS)
        self._poll.timeout.connect(self._apply_when_idle)
        self._stop_listening = settings.listen("", self._on_setting)

    @property
    def is_waiting(self) -> bool:
        """Whether a change waits for the end of an answer."""
        return self._is_waiting

    def apply_now(self) -> None:
        """Loads the model anew at once; an answer that is being written ends."""
        self._settle.stop()
        self._set_waiting(False)
        self._client.set_options(self._options())
        if self._client.reading().state is not ModelState.EMPTY:
            self._client.load(self._model())

    def close(self) -> None:
        """Changes nothing any more."""
        self._stop_listening()
        self._settle.stop()
        self._poll.stop()

    def _on_setting(self, key: str, _value: Value) -> None:
        if key in _KEYS or key.startswith(_TABLE):
            self._settle.start()

    def _apply(self) -> None:
        self._set_waiting(True)
        self._apply_when_idle()

    def _apply_when_idle(self) -> None:
        reading = self._client.reading()
        if not reading.running and not reading.waiting:
            self.apply_now()

    def _set_waiting(self, is_waiting: bool) -> None:
        if is_waiting == self._is_waiting:
            return
        self._is_waiting = is_waiting
        if is_waiting:
            self._poll.start()
        else:
            self._poll.stop()
        self.waiting_changed.emit(is_waiting)
