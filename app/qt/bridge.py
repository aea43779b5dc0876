"""Carries events from other threads to the UI thread. It owns no logic.

The engine's listener, the hotkey grabber and the instance server call the `post_...` methods from their own threads;
the signals are emitted on the thread that the bridge lives on, in the order in which the events were posted. Text
that streams in is joined: however fast tokens arrive, at most one `request_event` with text is emitted per request
and tick.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

from app.actions.text_task import PartEvent, TaskEvent
from inference.request import ModelEvent, ModelState, PrefillEvent, TokenEvent

TICK_MS = 40


def coalesced(events: Iterable[TaskEvent | ModelEvent]) -> list[TaskEvent | ModelEvent]:
    """Joins the tokens of each request and keeps only the last of repeated progress reports.

    The order of one request's events, and of the model's, stays; events of different requests may pass each other.
    """
    result: list[TaskEvent | ModelEvent] = []
    last: dict[str, int] = {}
    texts: dict[int, list[str]] = {}
    for event in events:
        key = "" if isinstance(event, ModelEvent) else event.request_id
        position = last.get(key)
        before = None if position is None else result[position]
        if position is not None and isinstance(event, TokenEvent) and isinstance(before, TokenEvent):
            texts[position].append(event.text)
        elif position is not None and _repeats(before, event):
            result[position] = event
        else:
            last[key] = len(result)
            if isinstance(event, TokenEvent):
                texts[len(result)] = [event.text]
            result.append(event)
    for position, parts in texts.items():
        token = result[position]
        if len(parts) > 1 and isinstance(token, TokenEvent):
            result[position] = TokenEvent(token.request_id, "".join(parts))
    return result


def _repeats(before: TaskEvent | ModelEvent | None, event: TaskEvent | ModelEvent) -> bool:
    if isinstance(event, ModelEvent) and isinstance(before, ModelEvent):
        return event.state is ModelState.LOADING and (before.state, before.model) == (event.state, event.model)
    return isinstance(event, PrefillEvent | PartEvent) and type(event) is type(before)


class Bridge(QObject):
    """Queued signals for what happens on other threads.

    Signals:
        request_event: a TaskEvent: of the engine, or of a task over a long text.
        model_event: a ModelEvent of the engine.
        hotkey_pressed: the command id that a global hotkey stands for.
        called: a function that another thread wants to have run here (see `post_call`).
    """

    request_event = Signal(object)
    model_event = Signal(object)
    hotkey_pressed = Signal(str)
    called = Signal(object)
    _woken = Signal()

    def __init__(self, parent: QObject | None = None, tick_ms: int = TICK_MS) -> None:
        super().__init__(parent)
        self._lock = threading.Lock()
        self._pending: deque[TaskEvent | ModelEvent] = deque()
        self._awake = False
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(tick_ms)
        self._timer.timeout.connect(self._on_tick)
        self._woken.connect(self._on_woken, Qt.ConnectionType.QueuedConnection)
        self.called.connect(self._on_called, Qt.ConnectionType.QueuedConnection)

    def post_event(self, event: TaskEvent | ModelEvent) -> None:
        """Takes an event of the engine. Any thread; returns at once."""
        with self._lock:
            self._pending.append(event)
            wake = not self._awake
            self._awake = True
        if wake:
            self._woken.emit()

    def post_hotkey(self, command_id: str) -> None:
        """Takes a key press. Any thread; never waits for the tick."""
        self.post_call(lambda: self.hotkey_pressed.emit(command_id))

    def post_call(self, function: Callable[[], object]) -> None:
        """Has a function run on the UI thread. Any thread; returns at once."""
        self.called.emit(function)

    # Declared as slots, since other threads emit to them: then no receiver has to be made up by the bindings.
    @Slot(object)
    def _on_called(self, function: Callable[[], object]) -> None:
        function()

    @Slot()
    def _on_woken(self) -> None:
        # The first event after a pause is shown at once; those that follow within a tick wait for its end.
        self._emit_pending()
        self._timer.start()

    def _on_tick(self) -> None:
        with self._lock:
            self._awake = bool(self._pending)
        if self._awake:
            self._emit_pending()
            self._timer.start()

    def _emit_pending(self) -> None:
        with self._lock:
            events = list(self._pending)
            self._pending.clear()
        for event in coalesced(events):
            (self.model_event if isinstance(event, ModelEvent) else self.request_event).emit(event)
