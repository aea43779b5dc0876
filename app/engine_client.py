"""What the app sees of an engine: a protocol, and a scripted engine for tests and trials.

The engine of this process is `inference.engine.worker.Worker`, which has exactly these methods."""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

from inference.engine.options import EngineOptions
from inference.errors import EngineStoppedError, InferenceError
from inference.request import (
    DoneEvent,
    EngineReading,
    FailedEvent,
    FinishReason,
    GenerationRequest,
    ModelEvent,
    ModelPlan,
    ModelState,
    PrefillEvent,
    Priority,
    RequestEvent,
    TokenCounts,
    TokenEvent,
    Usage,
)

RequestListener = Callable[[RequestEvent], None]
ModelListener = Callable[[ModelEvent], None]
CountListener = Callable[[TokenCounts | InferenceError], None]
PlanListener = Callable[[ModelPlan | InferenceError], None]


class EngineClient(Protocol):
    """Every method returns at once and may be called from any thread; listeners run on the engine's thread."""

    def submit(self, request: GenerationRequest, listener: RequestListener) -> None:
        """Queues a request; the default model is loaded first where none is resident. Failures are FailedEvents."""
        ...

    def cancel(self, request_id: str) -> None:
        """Ends a request within two tokens; it closes with DoneEvent("cancelled"). Unknown ids are ignored."""
        ...

    def load(self, model: str) -> None:
        """Makes a catalog id or path the resident model; progress and failure arrive at the model listeners."""
        ...

    def unload(self) -> None:
        """Gives the memory back; running requests are cancelled."""
        ...

    def set_options(self, options: EngineOptions) -> None:
        """Holds from the next load on, which loads the same model anew; what is resident stays as it is until then."""
        ...

    def plan(self, model: str, context_tokens: int | None, listener: PlanListener) -> None:
        """Tells what loading a model would take, counting what the resident one frees; loads nothing.

        Args:
            context_tokens: None is the context of the options.
            listener: gets the plan, which may say that it does not fit; or why the model cannot be opened.
        """
        ...

    def count_tokens(self, texts: Sequence[str], listener: CountListener) -> None:
        """Counts the tokens of each text; the default model is loaded first where none is resident.

        Counting goes on between the steps of answers and never holds them up for long.

        Args:
            listener: gets the counts, or why the model cannot be loaded.
        """
        ...

    def listen(self, listener: ModelListener) -> Callable[[], None]:
        """Adds a model listener; the result removes it."""
        ...

    def reading(self) -> EngineReading:
        """The last snapshot."""
        ...

    def close(self) -> None:
        """Cancels everything, unloads, ends the thread, within three seconds. Later calls raise EngineStoppedError."""
        ...


_FAKE_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\s\u3040-\u30ff\u3400-\u9fff]+")


class ScriptedAnswer:
    """What `FakeClient` answers to one request.

    Attributes:
        pieces: the texts of the token events, in order.
        prompt_tokens: of the prefill event and the usage.
        error: ends the request as failed, after the pieces.
        finish_reason: of the done event.
    """

    def __init__(
        self,
        *pieces: str,
        prompt_tokens: int = 8,
        error: InferenceError | None = None,
        finish_reason: FinishReason = "stop",
    ) -> None:
        self.pieces = pieces
        self.prompt_tokens = prompt_tokens
        self.error = error
        self.finish_reason = finish_reason

    def events(self, request_id: str) -> list[RequestEvent]:
        """All events of the answer."""
        events: list[RequestEvent] = [PrefillEvent(request_id, self.prompt_tokens, self.prompt_tokens)]
        events += [TokenEvent(request_id, piece) for piece in self.pieces]
        if self.error is not None:
            return [*events, FailedEvent(request_id, self.error)]
        usage = Usage(prompt_tokens=self.prompt_tokens, new_tokens=len(self.pieces), decode_ms=10.0 * len(self.pieces))
        return [*events, DoneEvent(request_id, self.finish_reason, usage)]


class FakeClient:
    """An engine without a model. Answers come from a script, and time passes only when the test says so.

    Nothing is delivered before `step` or `play`, and then on the thread that calls it. Requests run one after another
    in the order of their priority; each ends with exactly one done or failed event, as in the real engine.

    Attributes:
        submitted: every request so far.
        cancelled: every id that was cancelled so far, unknown ones too.
        load_error: set it to make the next loads fail.
        plans: what `plan` tells, by model; others need nothing and fit.
        options: the last that were set, None before.
        context_tokens: what `count_tokens` tells.
    """

    def __init__(self, *answers: ScriptedAnswer, model: str = "fake") -> None:
        """Answers are given out in order and the last one repeats. Without any, the user's message is the answer."""
        self.submitted: list[GenerationRequest] = []
        self.cancelled: list[str] = []
        self.load_error: InferenceError | None = None
        self.plans: dict[str, ModelPlan | InferenceError] = {}
        self.options: EngineOptions | None = None
        self.context_tokens = 4096
        self._answers = list(answers)
        self._default_model = model
        self._queues: dict[str, deque[RequestEvent]] = {}
        self._listeners: dict[str, RequestListener] = {}
        self._priorities: dict[str, Priority] = {}
        self._model_events: deque[ModelEvent] = deque()
        self._model_listeners: list[ModelListener] = []
        self._plan_answers: deque[Callable[[], None]] = deque()
        self._count_answers: deque[Callable[[], None]] = deque()
        self._state = ModelEvent(ModelState.EMPTY)
        self._closed = False
        self._lock = threading.RLock()

    def submit(self, request: GenerationRequest, listener: RequestListener) -> None:
        """Queues the next scripted answer; the model is loaded first where none is resident."""
        with self._lock:
            self._check_open()
            self.submitted.append(request)
            answer = self._next_answer(request)
            if self._last_model_event().state not in (ModelState.READY, ModelState.LOADING):
                self.load(self._default_model)
            if self._last_model_event().state is ModelState.FAILED:
                assert self.load_error is not None
                answer = ScriptedAnswer(error=self.load_error)
            self._queues[request.request_id] = deque(answer.events(request.request_id))
            self._listeners[request.request_id] = listener
            self._priorities[request.request_id] = request.priority

    def cancel(self, request_id: str) -> None:
        """The request's next event is the last: done, cancelled."""
        with self._lock:
            self._check_open()
            self.cancelled.append(request_id)
            if request_id in self._queues:
                self._queues[request_id] = deque([DoneEvent(request_id, "cancelled", Usage())])

    def load(self, model: str) -> None:
        """Three events: loading, half loaded, and ready or failed."""
        with self._lock:
            self._check_open()
            self._model_events.append(ModelEvent(ModelState.LOADING, model))
            self._model_events.append(ModelEvent(ModelState.LOADING, model, 0.5))
            if self.load_error is not None:
                self._model_events.append(ModelEvent(ModelState.FAILED, model, error=self.load_error))
            else:
                self._model_events.append(ModelEvent(ModelState.READY, model, 1.0))

    def unload(self) -> None:
        """Cancels what runs and gives the model back."""
        with self._lock:
            for request_id in list(self._queues):
                self.cancel(request_id)
            self._model_events.append(ModelEvent(ModelState.EMPTY))

    def set_options(self, options: EngineOptions) -> None:
        """Notes them."""
        with self._lock:
            self._check_open()
            self.options = options

    def plan(self, model: str, context_tokens: int | None, listener: PlanListener) -> None:
        """Tells what `plans` says, with the context that was asked for."""
        with self._lock:
            self._check_open()
            answer = self.plans.get(model, ModelPlan(model, "fake", 4096, 0, 0, 0, 0, 32768))
            if isinstance(answer, ModelPlan):
                answer = replace(answer, context_tokens=context_tokens or answer.context_tokens)
            self._plan_answers.append(partial(listener, answer))

    def count_tokens(self, texts: Sequence[str], listener: CountListener) -> None:
        """Counts words, of Chinese and Japanese each character."""
        with self._lock:
            self._check_open()
            if self._last_model_event().state not in (ModelState.READY, ModelState.LOADING):
                self.load(self._default_model)
            counts = TokenCounts(tuple(len(_FAKE_TOKEN.findall(text)) for text in texts), self.context_tokens)
            failed = self._last_model_event().state is ModelState.FAILED
            answer = self.load_error if failed and self.load_error is not None else counts
            self._count_answers.append(partial(listener, answer))

    def listen(self, listener: ModelListener) -> Callable[[], None]:
        """Adds a model listener; the result removes it."""
        self._model_listeners.append(listener)
        return lambda: self._model_listeners.remove(listener) if listener in self._model_listeners else None

    def reading(self) -> EngineReading:
        """State, model, context and number of open requests; sizes are zero."""
        state, model = self._state.state, self._state.model
        context_tokens = self.context_tokens if state is ModelState.READY else 0
        return EngineReading(state, model, "fake", context_tokens, waiting=len(self._queues))

    def close(self) -> None:
        """Cancels everything and delivers the last events."""
        with self._lock:
            if self._closed:
                return
            for request_id in list(self._queues):
                self.cancel(request_id)
            self._closed = True
        self.play()

    def step(self) -> bool:
        """Delivers one event; False where none is left."""
        with self._lock:
            if self._model_events:
                self._state = event = self._model_events.popleft()
                deliveries: list[Callable[[], None]] = [partial(each, event) for each in self._model_listeners]
            elif self._count_answers:
                deliveries = [self._count_answers.popleft()]
            elif self._queues:
                request_id = min(self._queues, key=lambda each: self._priorities[each])
                request_event = self._queues[request_id].popleft()
                deliveries = [partial(self._listeners[request_id], request_event)]
                if isinstance(request_event, (DoneEvent, FailedEvent)):
                    for table in (self._queues, self._listeners, self._priorities):
                        table.pop(request_id)
            elif self._plan_answers:
                deliveries = [self._plan_answers.popleft()]
            else:
                return False
        for deliver in deliveries:
            deliver()
        return True

    def play(self) -> None:
        """Delivers everything, also what listeners submit meanwhile."""
        while self.step():
            pass

    def _last_model_event(self) -> ModelEvent:
        return self._model_events[-1] if self._model_events else self._state

    def _next_answer(self, request: GenerationRequest) -> ScriptedAnswer:
        if not self._answers:
            return ScriptedAnswer(*re.findall(r"\s*\S+\s*", request.messages[-1].content))
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]

    def _check_open(self) -> None:
        if self._closed:
            raise EngineStoppedError("The engine has been closed. Start the app again.")
