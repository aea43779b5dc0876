"""Gives the model's memory back: on demand, after a time without use, for a full-screen program, and after a sleep of
the machine that the GPU's memory may not have outlived."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication

from app.desktop.protocols import Desktop
from app.engine_client import EngineClient
from app.memory.idle import UnloadPolicy
from app.memory.reading import GPU_BACKEND, model_bytes
from app.memory.sleep_watch import SleepWatch
from app.settings.settings import Settings
from app.translation import UserText
from inference.byte_size import size_text
from inference.request import EngineReading, ModelEvent, ModelState

WATCH_MS = 5000
_KEYS = ("model.idle_minutes", "model.unload_full_screen")


class MemoryKeeper(QObject):
    """Watches while a model is resident, and has no timer running otherwise. UI thread only.

    Attributes:
        reason: why the model left by itself, None where it did not.

    Signals:
        told: title and text of what the user is told.
    """

    told = Signal(UserText, UserText)

    def __init__(
        self,
        client: EngineClient,
        settings: Settings,
        desktop: Desktop,
        sleep: SleepWatch | None = None,
        clock: Callable[[], float] = time.monotonic,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._client, self._settings, self._desktop, self._clock = client, settings, desktop, clock
        self._sleep = sleep or SleepWatch()
        self._policy = UnloadPolicy()
        self._freeing: EngineReading | None = None
        self.reason: UserText | None = None
        self._idle = QTimer(self, singleShot=True, timerType=Qt.TimerType.VeryCoarseTimer)
        self._idle.timeout.connect(self._look_at_clock)
        self._watch = QTimer(self, interval=WATCH_MS, timerType=Qt.TimerType.VeryCoarseTimer)
        self._watch.timeout.connect(self.look)
        self._stop_listening = settings.listen("model", self._on_setting)
        # The caret has moved in some field of ours: the user types, and will soon want an answer.
        QGuiApplication.inputMethod().cursorRectangleChanged.connect(self.note_use)
        self.note_use()
        self._take_settings()

    def free_now(self) -> None:
        """Gives the memory back at once, and says how much it was; an answer that is being written ends."""
        self._freeing, self.reason = self._client.reading(), None
        self._client.unload()

    def note_use(self) -> None:
        """The model will be needed soon."""
        self._policy.note_use(self._clock())

    def on_model_event(self, event: ModelEvent) -> None:
        """Follows the model; call it before what shows `reason`."""
        if event.state in (ModelState.LOADING, ModelState.READY):
            self.reason = None
        if event.state is ModelState.READY:
            self.note_use()
            self._sleep.has_slept()  # before it was loaded; that is no matter
            self._look_at_clock()
            if self._is_on_gpu():
                self._watch.start()
        elif event.state in (ModelState.EMPTY, ModelState.FAILED):
            self._idle.stop()
            self._watch.stop()
            self._tell_freed()

    def look(self) -> None:
        """One look at the screen and at the sleeps, while a model lies on the GPU."""
        reading = self._client.reading()
        if reading.state is not ModelState.READY:
            return
        if self._sleep.has_slept() and not self._sleep.gpu_keeps_memory():
            self._load_again(reading.model)
            return
        window = self._desktop.full_screen_window() if self._policy.yields else None
        if self._policy.yields_to(window, self._clock(), reading):
            self._leave(UserText("Freed for a full-screen program; the next action loads the model again"))

    def close(self) -> None:
        """Watches no more."""
        self._stop_listening()
        QGuiApplication.inputMethod().cursorRectangleChanged.disconnect(self.note_use)
        self._idle.stop()
        self._watch.stop()

    def _on_setting(self, key: str, _value: object) -> None:
        if key in _KEYS:
            self._take_settings()

    def _take_settings(self) -> None:
        self._policy.idle_s = 60.0 * self._settings.integer("model.idle_minutes")
        self._policy.yields = self._settings.flag("model.unload_full_screen")
        self._look_at_clock()

    def _look_at_clock(self) -> None:
        due_s = self._policy.due_in_s(self._clock(), self._client.reading())
        if due_s is None:
            self._idle.stop()
        elif due_s > 0:
            self._idle.start(int(1000 * due_s) + 1)
        else:
            minutes = self._settings.integer("model.idle_minutes")
            self._leave(
                UserText(
                    "Freed after {minutes} min without use; the next action loads the model again", minutes=minutes
                )
            )

    def _leave(self, reason: UserText) -> None:
        self.reason = reason
        self._client.unload()

    def _load_again(self, model: str) -> None:
        self._client.unload()
        self._client.load(model)
        text = UserText("The computer was asleep, and what lay in the GPU's memory may be damaged by that.")
        self.told.emit(UserText("The model is loaded again"), text)

    def _is_on_gpu(self) -> bool:
        return self._client.reading().backend == GPU_BACKEND

    def _tell_freed(self) -> None:
        """Only what the user has asked for is told; the rest stands in the status."""
        before, self._freeing = self._freeing, None
        if before is None or not model_bytes(before):
            return
        place = UserText("of GPU memory") if before.backend == GPU_BACKEND else UserText("of main memory")
        text = UserText(
            "{size} {place} are free again. The next action loads the model anew.",
            size=size_text(model_bytes(before)),
            place=place,
        )
        if before.running or before.waiting:
            text = UserText("{freed} The answer that was being written has ended.", freed=text)
        self.told.emit(UserText("The model has left the memory"), text)
