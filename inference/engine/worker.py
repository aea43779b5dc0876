"""The one thread that owns the engine: requests in, events out. Its methods are those of app's EngineClient.

Heavy libraries are imported on the thread, with the first command. Commands wait in a queue, which it looks at between
steps, between the tensors of a load, and, where something is to end, between the layers of a step."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from inference.engine.count_queue import CountListener, CountQueue
from inference.engine.options import EngineOptions
from inference.engine.plan_queue import PlanListener, PlanQueue
from inference.engine.unforeseen import log_error, unforeseen
from inference.errors import DeviceFailedError, EngineStoppedError, InferenceError, InvalidRequestError
from inference.listeners import Listeners
from inference.request import (
    DoneEvent,
    EngineReading,
    FailedEvent,
    GenerationRequest,
    ModelEvent,
    ModelState,
    RequestEvent,
    Usage,
)

if TYPE_CHECKING:
    from inference.engine.engine import Engine
    from inference.engine.residency import Residency

RequestListener = Callable[[RequestEvent], None]
ModelListener = Callable[[ModelEvent], None]

ResidencyOpener = Callable[[Callable[[], EngineOptions], Callable[[ModelEvent], None]], "Residency"]

CLOSE_TIMEOUT_S = 3.0
_COUNT_S = 0.04  # so long texts are counted between two steps
_QUIET_S = 0.7  # without a command: then nobody is in a hurry
_Event = TypeVar("_Event")


@dataclass(frozen=True, slots=True, eq=False)
class _Pending:
    """A request that no engine has yet."""

    request: GenerationRequest
    submitted_at: float


class Worker:
    """An engine on a thread of its own. Every method returns at once and may be called from any thread.

    Args:
        default_model: loaded when a request comes and nothing is resident; a function is asked on the thread.
        residency: builds what loads models, in place of loader.open_residency; tests pass their own.
    """

    def __init__(
        self,
        options: EngineOptions,
        default_model: str | Callable[[], str],
        residency: ResidencyOpener | None = None,
    ) -> None:
        self._options, self._default_model, self._open_residency = options, default_model, residency
        self._lock = threading.Lock()
        self._closed = False
        self._commands: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        # Set where a step or a load is to end early; only the thread clears it.
        self._urgent = threading.Event()
        self._model_listeners: Listeners[ModelEvent] = Listeners()
        self._reading = EngineReading()
        # All below belongs to the thread.
        self._used_at_s = 0.0
        self._residency: Residency | None = None
        self._prepared: Engine | None = None
        self._pending: dict[str, _Pending] = {}
        self._listeners: dict[str, RequestListener] = {}
        self._plans = PlanQueue()
        self._counts = CountQueue()
        self._target: str | None = None
        self._loading = self._admitting = ""
        self._stopping_load = self._ending = False
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self._thread.start()

    # -- any thread ---------------------------------------------------------------------------------------------------

    def submit(self, request: GenerationRequest, listener: RequestListener) -> None:
        """Queues a request; the default model is loaded first where none is resident. Failures are FailedEvents.

        Raises:
            EngineStoppedError: the worker has been closed.
        """
        self._send(partial(self._take_request, _Pending(request, time.perf_counter()), listener))

    def cancel(self, request_id: str) -> None:
        """Ends a request within two tokens; it closes with DoneEvent("cancelled"). Unknown ids are ignored."""
        self._send(partial(self._take_cancel, request_id), urgent=True)

    def load(self, model: str) -> None:
        """Makes a catalog id or path the resident model; progress and failure arrive at the model listeners."""
        self._send(partial(self._take_target, model), urgent=True)

    def unload(self) -> None:
        """Gives the memory back; running requests are cancelled."""
        self._send(self._take_unload, urgent=True)

    def set_options(self, options: EngineOptions) -> None:
        """Holds from the next load on, which loads the same model anew; what is resident stays as it is until then."""
        self._send(partial(self._take_options, options), urgent=True)

    def plan(self, model: str, context_tokens: int | None, listener: PlanListener) -> None:
        """Tells what loading a model would take, counting what the resident one frees; loads nothing."""
        self._send(partial(self._plans.put, model, context_tokens, listener))

    def count_tokens(self, texts: Sequence[str], listener: CountListener) -> None:
        """Counts the tokens of each text; the default model is loaded first where none is resident."""
        self._send(partial(self._counts.put, tuple(texts), listener))

    def listen(self, listener: ModelListener) -> Callable[[], None]:
        """Adds a model listener; the result removes it."""
        return self._model_listeners.add(listener)

    def reading(self) -> EngineReading:
        """The last snapshot."""
        return self._reading

    def close(self) -> None:
        """Cancels everything, unloads, ends the thread, within three seconds. Later calls raise EngineStoppedError."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._commands.put(self._take_end)
                self._urgent.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(CLOSE_TIMEOUT_S)

    def _send(self, command: Callable[[], None], urgent: bool = False) -> None:
        with self._lock:
            if self._closed:
                raise EngineStoppedError("The engine has been closed. Start the app again.")
            self._commands.put(command)
            if urgent:
                self._urgent.set()

    # -- the thread: commands -----------------------------------------------------------------------------------------

    def _take_commands(self, wait: bool) -> None:
        if wait:
            self._next_command()()
        self._urgent.clear()
        while True:
            try:
                command = self._commands.get_nowait()
            except queue.Empty:
                return
            command()

    def _next_command(self) -> Callable[[], None]:
        """Waits for one."""
        engine = self._engine
        if engine is not None and self._options.prepares_grammars and engine is not self._prepared:
            with contextlib.suppress(queue.Empty):
                return self._commands.get(timeout=_QUIET_S)
            self._prepared = engine  # whatever comes of it
            engine.prepare_grammars()
        return self._commands.get()

    def _take_request(self, pending: _Pending, listener: RequestListener) -> None:
        request_id = pending.request.request_id
        if request_id in self._listeners:
            error = InvalidRequestError(f"request_id is {request_id!r}, but a request of that id is under way.")
            self._call(listener, FailedEvent(request_id, error))
            return
        self._listeners[request_id] = listener
        self._pending[request_id] = pending

    def _take_cancel(self, request_id: str) -> None:
        if self._pending.pop(request_id, None) is not None:
            self._deliver(DoneEvent(request_id, "cancelled", Usage()))
        elif self._engine is not None:
            done = self._engine.cancel(request_id)
            if done is not None:
                self._deliver(done)

    def _take_options(self, options: EngineOptions) -> None:
        if options != self._options:
            self._options = options
            if self._residency is not None:
                self._residency.outdate()

    def _take_target(self, model: str) -> None:
        # The model that is being loaded is not loaded again, however often that is asked for, but for new options.
        outdated = self._residency is not None and self._residency.is_outdated
        is_under_way = model == self._loading and not outdated
        self._target = None if is_under_way else model
        self._stopping_load = bool(self._loading) and not is_under_way

    def _take_unload(self) -> None:
        self._target = None
        self._cancel_all()
        if self._loading:
            self._stopping_load = True
        elif self._residency is not None:
            self._residency.unload()

    def _take_end(self) -> None:
        self._ending = True

    # -- the thread: work ---------------------------------------------------------------------------------------------

    @property
    def _engine(self) -> Engine | None:
        return None if self._residency is None else self._residency.engine

    def _run(self) -> None:
        while not self._ending:
            try:
                self._spare()
                self._take_commands(wait=not self._has_work())
                self._follow_target()
                self._count()
                self._admit()
                self._step()
                self._answer_plan()
            except Exception as error:  # noqa: BLE001 - whatever a request meets, the thread goes on for the others
                self._recover(error)
            self._read()
        self._end()

    def _has_work(self) -> bool:
        engine = self._engine
        has_requests = bool(self._pending) or (engine is not None and engine.has_work)
        return has_requests or self._target is not None or bool(self._plans) or bool(self._counts)

    def _spare(self) -> None:
        """Sleeps while a step is under way, so that who comes meanwhile is seen before the next one is launched."""
        spare_s = 0.0 if self._engine is None or self._urgent.is_set() else self._engine.spare_s
        if spare_s:
            time.sleep(spare_s)

    def _follow_target(self) -> None:
        """Loads what is asked for, or the default model where something waits for one."""
        model = self._target
        if self._ending or (model is None and not ((self._pending or self._counts) and self._engine is None)):
            return
        try:
            if model is None:
                model = self._default_model if isinstance(self._default_model, str) else self._default_model()
            self._load(model)
        except InferenceError as error:
            self._fail_waiting(error)
        except Exception as error:  # noqa: BLE001 - see _run
            log_error("A load", error)
            failure = unforeseen("loading the model", error)
            if self._residency is None:
                self._notify(ModelEvent(ModelState.FAILED, model or "", error=failure))
            else:
                self._residency.fail(model or "", failure)
            self._fail_waiting(failure)

    def _load(self, model: str) -> None:
        self._loading, self._target, self._stopping_load = model, None, False
        try:
            if self._residency is None:
                from inference.engine.loader import open_residency

                self._residency = (self._open_residency or open_residency)(lambda: self._options, self._notify)
            self._residency.load(model, self._should_stop_loading, self._cancel_running)
        finally:
            self._loading = ""

    def _should_stop_loading(self) -> bool:
        self._take_commands(wait=False)
        return self._ending or self._stopping_load

    def _count(self) -> None:
        """Goes on counting for a moment. A request that the answer leads to is admitted at once."""
        if self._counts and self._engine is not None and not self._ending:
            answer = self._counts.work(self._engine, _COUNT_S)
            if answer is not None:
                self._call(*answer)
                self._take_commands(wait=False)

    def _admit(self) -> None:
        engine = self._engine
        if engine is None or self._ending:
            return
        for request_id, pending in list(self._pending.items()):
            self._admitting = request_id
            try:
                engine.add(pending.request, pending.submitted_at)
            except InferenceError as error:
                self._deliver(FailedEvent(request_id, error))
            del self._pending[request_id]
        self._admitting = ""

    def _step(self) -> None:
        engine = self._engine
        if engine is None or self._ending or not engine.has_work:
            return
        try:
            events = engine.step(self._urgent.is_set)
        except DeviceFailedError as error:
            # The next request loads the model again, which also finds out whether the GPU still works.
            events = engine.fail_all(error)
            assert self._residency is not None, "it holds the engine"
            self._residency.unload()
        except InferenceError as error:
            events = engine.fail_step(error)
        for event in events:
            self._deliver(event)

    def _answer_plan(self) -> None:
        if self._plans and not self._ending:
            freed = (0, "cpu") if self._residency is None else self._residency.freed
            self._call(*self._plans.answer(self._options, freed))

    def _recover(self, error: Exception) -> None:
        """Fails the requests that the error concerns: the one being let in, else those of the step."""
        log_error("The engine", error)
        failure = unforeseen("this request", error)
        request_id, self._admitting = self._admitting, ""
        if self._pending.pop(request_id, None) is not None:
            self._deliver(FailedEvent(request_id, failure))
        elif self._engine is not None:
            for event in self._engine.fail_step(failure):
                self._deliver(event)

    def _end(self) -> None:
        self._take_commands(wait=False)
        self._cancel_all()
        for answer in self._plans.drop(EngineStoppedError("The engine has been closed.")):
            self._call(*answer)
        if self._residency is not None and self._engine is not None:
            self._residency.unload()
        self._read()

    # -- the thread: events -------------------------------------------------------------------------------------------

    def _cancel_running(self) -> None:
        for event in () if self._engine is None else self._engine.cancel_all():
            self._deliver(event)

    def _cancel_all(self) -> None:
        self._cancel_running()
        for request_id in list(self._pending):
            del self._pending[request_id]
            self._deliver(DoneEvent(request_id, "cancelled", Usage()))
        self._drop_counts(InferenceError("The model was unloaded while the text was being counted. Try again."))

    def _fail_waiting(self, error: InferenceError) -> None:
        """Fails the requests that wait for a model, unless one is still resident to answer them."""
        for request_id in list(self._pending) if self._engine is None else ():
            del self._pending[request_id]
            self._deliver(FailedEvent(request_id, error))
        if self._engine is None:
            self._drop_counts(error)

    def _drop_counts(self, error: InferenceError) -> None:
        for answer in self._counts.drop(error):
            self._call(*answer)

    def _deliver(self, event: RequestEvent) -> None:
        """Gives an event to its request's listener; the last one ends the acquaintance."""
        last = isinstance(event, DoneEvent | FailedEvent)
        listener = self._listeners.pop(event.request_id) if last else self._listeners[event.request_id]
        if last:
            self._used_at_s = time.monotonic()
            self._read()
        self._call(listener, event)

    def _notify(self, event: ModelEvent) -> None:
        self._read(event)
        for listener in self._model_listeners:
            self._call(listener, event)

    def _call(self, listener: Callable[[_Event], None], event: _Event) -> None:
        try:
            listener(event)
        except Exception as error:  # noqa: BLE001 - what a listener does wrong is no affair of the requests
            log_error("A listener", error)

    def _read(self, event: ModelEvent | None = None) -> None:
        """Takes the snapshot that `reading` shows."""
        engine = self._engine
        if engine is not None:
            self._reading = replace(engine.reading(), used_at_s=self._used_at_s)
        elif event is not None:
            self._reading = EngineReading(state=event.state, model=event.model, waiting=len(self._pending))
        elif self._residency is not None:
            residency = self._residency
            self._reading = EngineReading(state=residency.state, model=residency.model, waiting=len(self._pending))
