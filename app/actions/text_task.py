"""One action over a text of any length: a single request where it fits the context, parts where it does not.

Nothing is ever left out silently: at the end `coverage` says of how many tokens, in how many parts, the answer is, and
which parts ended at the length limit. After an error or a stop, `run` goes on behind the parts that are finished.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

from app.actions.action import Action, Example
from app.actions.fit import fit, fits_one, frame_texts
from app.actions.long_text import Budget, MapReduce, Merge, MergeTodos, PartByPart, Plan, Step
from app.engine_client import CountListener, RequestListener
from app.language import LANGUAGES, Languages, script_of
from app.text.parts import Part, Unit, cut, units
from inference.errors import ContextOverflowError, InferenceError
from inference.request import (
    DoneEvent,
    EngineReading,
    FailedEvent,
    GenerationRequest,
    Priority,
    RequestEvent,
    TokenCounts,
    TokenEvent,
    Usage,
    new_request_id,
)

_UNKNOWN_CONTEXT_TOKENS = 4096
"""Where no model is resident: what surely fits this is sent at once, and should it not, it is cut."""
_SCRIPTS_WITHOUT_SPACES = ("han", "kana", "thai")


@dataclass(frozen=True, slots=True)
class PartEvent:
    """A step of a long text has begun.

    Attributes:
        number: of the part, from 1.
        of: how many there are.
        joins: the answers of parts are put together, not parts of the text.
        share: how much of the text is done, 0 to 1.
    """

    request_id: str
    number: int
    of: int
    joins: bool
    share: float


@dataclass(frozen=True, slots=True)
class Coverage:
    """What of a long text an answer is of.

    Attributes:
        tokens: of the whole text.
        parts: that the text was cut into.
        done_parts: that have been read and answered.
        answer_parts: that the answer is of. Fewer while answers of parts wait for others, or to be put together.
        cut_parts: numbers of parts whose answers ended at the length limit.
        estimated: the tokens were guessed by an engine that cannot count them.
    """

    tokens: int
    parts: int
    done_parts: int
    answer_parts: int
    cut_parts: tuple[int, ...] = ()
    estimated: bool = False

    @property
    def is_complete(self) -> bool:
        """The answer is of all parts."""
        return self.answer_parts == self.parts


TaskEvent = RequestEvent | PartEvent
_Event = TypeVar("_Event")
TaskListener = Callable[[TaskEvent], None]


class TextEngine(Protocol):
    """What a task needs of an EngineClient."""

    def submit(self, request: GenerationRequest, listener: RequestListener) -> None:
        """See EngineClient."""
        ...

    def cancel(self, request_id: str) -> None:
        """See EngineClient."""
        ...

    def count_tokens(self, texts: Sequence[str], listener: CountListener) -> None:
        """See EngineClient."""
        ...

    def reading(self) -> EngineReading:
        """See EngineClient."""
        ...


@dataclass(slots=True, eq=False)
class _Running:
    """A step under way, and what has come of its answer."""

    step: Step
    answer: str = ""


class TextTask:
    """Runs an action over a text. Any thread; events come on the engine's.

    Every run ends with exactly one DoneEvent or FailedEvent. All events carry `request_id`, which is new for each run.

    Args:
        sampling: fields of SamplingParams that differ from the action's.
        at_once: most parts at the same time, where the plan allows it. One leaves the engine to hotkeys.

    Raises:
        InvalidRequestError: the text is empty, or a value of `sampling` is out of its range.
    """

    def __init__(
        self,
        client: TextEngine,
        action: Action,
        text: str,
        languages: Languages,
        ui_language: str = "en",
        *,
        sampling: Mapping[str, Any] | None = None,
        at_once: int = 1,
    ) -> None:
        self._client, self._action, self._text, self._at_once = client, action, text, at_once
        framed = action.framed(text, languages, ui_language)
        self._whole = dataclasses.replace(framed, sampling=dataclasses.replace(framed.sampling, **(sampling or {})))
        self._framed = self._whole
        self._lock = threading.RLock()
        self._plan: Plan | None = None
        self._text_tokens = 0
        self._is_estimated = False
        self._budget = Budget(0, 0)
        # Of one run:
        self.request_id = ""
        self._listener: TaskListener = lambda event: None
        self._running: dict[str, _Running] = {}
        self._is_single = self._ended = True
        self._cancelled = self._overflowed = False
        self._error: InferenceError | None = None
        self._usage = Usage()
        self._shown = 0
        self._started_at = 0.0

    # -- any thread ---------------------------------------------------------------------------------------------------

    @property
    def coverage(self) -> Coverage | None:
        """What of a long text is answered; None for a text that fits one request."""
        with self._lock:
            plan = self._plan
            if plan is None:
                return None
            return Coverage(
                self._text_tokens,
                len(plan.parts),
                plan.done_parts,
                plan.answer_parts,
                plan.cut_parts,
                self._is_estimated,
            )

    @property
    def can_go_on(self) -> bool:
        """Parts are finished, and not all of them: the next run goes on behind them."""
        with self._lock:
            return self._plan is not None and not self._plan.is_done

    def run(self, listener: TaskListener) -> None:
        """Starts, or goes on after an error or a stop; the text so far is then given again at first.

        Raises:
            EngineStoppedError: the engine has been closed.
        """
        with self._lock:
            self.request_id, self._listener = new_request_id(), listener
            self._running.clear()
            self._is_single = self._ended = self._cancelled = self._overflowed = False
            self._error, self._usage, self._shown = None, Usage(), 0
            self._started_at = time.perf_counter()
            if self._plan is not None and not self._plan.is_done:
                self._show()
                self._advance()
            elif self._surely_fits():
                self._framed = self._whole
                self._submit_single()
            else:
                self._count_text()

    def cancel(self) -> None:
        """Ends the run within two tokens; what is finished is kept for the next one."""
        with self._lock:
            if self._ended:
                return
            self._cancelled = True
            request_ids = [self.request_id] if self._is_single else list(self._running)
            if not request_ids:
                self._end(DoneEvent(self.request_id, "cancelled", self._usage))
        for request_id in request_ids:
            self._client.cancel(request_id)

    def _guarded(self, handler: Callable[[_Event], None], run_id: str) -> Callable[[_Event], None]:
        """A listener of the engine: what belongs to an earlier run or comes after the end is nobody's."""

        def listener(event: _Event) -> None:
            with self._lock:
                if run_id != self.request_id or self._ended:
                    return
                try:
                    handler(event)
                except InferenceError as error:
                    self._end(FailedEvent(run_id, error))

        return listener

    def _end(self, event: DoneEvent | FailedEvent) -> None:
        self._ended = True
        self._listener(event)

    # -- one request --------------------------------------------------------------------------------------------------

    def _surely_fits(self) -> bool:
        """Whether nothing needs to be counted: no token is shorter than a byte."""
        context = self._client.reading().context_tokens or _UNKNOWN_CONTEXT_TOKENS
        *frame, text = (len(text.encode("utf-8", "replace")) for text in (*frame_texts(self._whole), self._text))
        return fits_one(self._action, self._whole, frame, text, context)

    def _submit_single(self) -> None:
        self._is_single = True
        request = dataclasses.replace(self._framed.request(self._text), request_id=self.request_id)
        self._client.submit(request, self._guarded(self._on_single_event, self.request_id))

    def _on_single_event(self, event: RequestEvent) -> None:
        if isinstance(event, FailedEvent) and isinstance(event.error, ContextOverflowError) and not self._cancelled:
            self._is_single, self._overflowed = False, True
            self._count_text()
        elif isinstance(event, DoneEvent | FailedEvent):
            self._end(event)
        else:
            self._listener(event)

    # -- parts --------------------------------------------------------------------------------------------------------

    def _count_text(self) -> None:
        self._plan = None
        texts = [*frame_texts(self._whole), self._text]
        self._client.count_tokens(texts, self._guarded(self._on_text_counted, self.request_id))

    def _on_text_counted(self, counts: TokenCounts | InferenceError) -> None:
        if isinstance(counts, InferenceError):
            raise counts
        *frame, self._text_tokens = counts.counts
        found = fit(
            self._action, self._whole, frame, self._text_tokens, counts.context_tokens, may_be_one=not self._overflowed
        )
        self._framed = found.framed
        if found.budget is None:
            self._submit_single()
            return
        self._budget, self._is_estimated = found.budget, counts.estimated
        pieces = units(self._text)
        listener = self._guarded(partial(self._on_pieces_counted, pieces), self.request_id)
        self._client.count_tokens([piece.text for piece in pieces], listener)

    def _on_pieces_counted(self, pieces: Sequence[Unit], counts: TokenCounts | InferenceError) -> None:
        if isinstance(counts, InferenceError):
            raise counts
        self._plan = self._new_plan(cut(pieces, counts.counts, self._budget.part_tokens))
        self._advance()

    def _new_plan(self, parts: Sequence[Part]) -> Plan:
        if self._action.plan == "merge":
            return MergeTodos(parts) if self._action.output == "todos" else Merge(parts)
        if self._action.plan == "map_reduce":
            return MapReduce(parts, self._budget.part_tokens)
        target = LANGUAGES.get(self._framed.target)
        is_translation = self._action.is_translation and target is not None
        script = target.script if is_translation and target is not None else script_of(self._text)
        return PartByPart(parts, spaced=script not in _SCRIPTS_WITHOUT_SPACES)

    def _advance(self) -> None:
        """Sends what can be sent; ends where all is done."""
        plan = self._plan
        assert plan is not None
        if plan.is_done:
            self._end(DoneEvent(self.request_id, "length" if plan.is_cut else "stop", self._usage))
            return
        while not self._ended and len(self._running) < self._at_once:
            under_way = {running.step.key for running in self._running.values()}
            step = next((step for step in plan.steps() if step.key not in under_way), None)
            if step is None:
                return
            self._submit(step, plan.share)

    def _submit(self, step: Step, share: float) -> None:
        memory = step.memory if self._budget.remembers else ()
        earlier = [Example(pair.source, pair.answer) for pair in memory]
        request = self._framed.request(step.text, "join" if step.level else "part", earlier)
        sampling = dataclasses.replace(request.sampling, max_new_tokens=self._budget.answer_tokens)
        request = dataclasses.replace(request, sampling=sampling, priority=Priority.CHAT)
        self._running[request.request_id] = _Running(step)
        self._listener(PartEvent(self.request_id, step.index + 1, step.of, step.level > 0, share))
        self._client.submit(request, self._guarded(self._on_step_event, self.request_id))

    def _on_step_event(self, event: RequestEvent) -> None:
        running = self._running.get(event.request_id)
        assert self._plan is not None
        if running is None:
            return
        if isinstance(event, TokenEvent):
            running.answer += event.text
            self._show()
        elif isinstance(event, DoneEvent):
            del self._running[event.request_id]
            self._take(running, event)
            self._go_on()
        elif isinstance(event, FailedEvent):
            del self._running[event.request_id]
            if not (isinstance(event.error, ContextOverflowError) and self._plan.split(running.step)):
                self._error = event.error
            self._go_on()

    def _take(self, running: _Running, done: DoneEvent) -> None:
        assert self._plan is not None
        self._usage = _sum(self._usage, done.usage)
        if done.finish_reason == "cancelled":
            # By us, or the model was taken away.
            self._cancelled = True
            return
        self._plan.finish(running.step, running.answer, done.usage.new_tokens, done.finish_reason == "length")
        self._show()

    def _go_on(self) -> None:
        if not self._cancelled and self._error is None:
            self._advance()
        elif self._running:
            for request_id in self._running:
                self._client.cancel(request_id)
        elif self._error is not None:
            self._end(FailedEvent(self.request_id, self._error))
        else:
            self._end(DoneEvent(self.request_id, "cancelled", self._usage))

    def _show(self) -> None:
        """Gives on what can be shown and has not been."""
        assert self._plan is not None
        text = self._plan.shown({running.step.key: running.answer for running in self._running.values()})
        if len(text) > self._shown:
            if self._usage.time_to_first_token_ms == 0.0:
                elapsed_ms = 1000.0 * (time.perf_counter() - self._started_at)
                self._usage = dataclasses.replace(self._usage, time_to_first_token_ms=elapsed_ms)
            self._listener(TokenEvent(self.request_id, text[self._shown :]))
            self._shown = len(text)


def _sum(usage: Usage, more: Usage) -> Usage:
    return dataclasses.replace(
        usage,
        prompt_tokens=usage.prompt_tokens + more.prompt_tokens,
        cached_tokens=usage.cached_tokens + more.cached_tokens,
        new_tokens=usage.new_tokens + more.new_tokens,
        decode_ms=usage.decode_ms + more.decode_ms,
    )
