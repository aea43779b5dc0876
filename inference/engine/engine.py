"""The engine: requests in, events out, one step at a time. Synchronous; knows no thread, network or window."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from inference.engine.kv_cache import KvCache
from inference.engine.prompts import ChatTokenizer, Prompts
from inference.engine.runner import Choice, Row, Runner, ShouldStop, Ticket
from inference.engine.scheduler import Chunk, Scheduler
from inference.engine.scheduler import Sequence as TokenSequence
from inference.errors import InferenceError
from inference.request import (
    DoneEvent,
    EngineReading,
    FailedEvent,
    FinishReason,
    GenerationRequest,
    ModelState,
    PrefillEvent,
    Priority,
    RequestEvent,
    TokenEvent,
    TokenLogprob,
    Usage,
)
from inference.text.detokenizer import Detokenizer
from inference.text.grammar import GrammarCompiler, GrammarState


class Closable(Protocol):
    """What the engine needs of a backend."""

    name: str

    def close(self) -> None:
        """Frees everything."""
        ...


@dataclass(frozen=True, slots=True)
class EngineSizes:
    """What was allocated for the engine, for its limits and its reading."""

    num_pages: int
    context_tokens: int
    prefill_chunk: int = 256
    max_running: int = 8
    weight_bytes: int = 0
    kv_bytes: int = 0
    workspace_bytes: int = 0
    vocab_size: int = 0
    """Rows of the embedding; 0 lets every token id pass, but then no grammar can be followed."""


@dataclass(slots=True, eq=False)
class _Request:
    """One request on its way: its tokens, its text and its times (seconds of the engine's clock)."""

    request: GenerationRequest
    sequence: TokenSequence
    text: Detokenizer
    seed: int
    submitted_at: float
    end_token_ids: frozenset[int]
    grammar: GrammarState | None
    untold: list[TokenLogprob] = field(default_factory=list)  # of tokens whose text is held back
    started_at: float | None = None
    first_token_at: float | None = None
    last_token_at: float = 0.0
    cached_tokens: int = 0
    reported_tokens: int = 0

    @property
    def new_tokens(self) -> int:
        return len(self.sequence.token_ids) - self.sequence.prompt_tokens

    def usage(self) -> Usage:
        since = self.submitted_at
        first = self.first_token_at
        return Usage(
            prompt_tokens=self.sequence.prompt_tokens,
            cached_tokens=self.cached_tokens,
            new_tokens=self.new_tokens,
            queue_ms=0.0 if self.started_at is None else 1000.0 * (self.started_at - since),
            time_to_first_token_ms=0.0 if first is None else 1000.0 * (first - since),
            decode_ms=0.0 if first is None else 1000.0 * (self.last_token_at - first),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Flight:
    """A step that was launched."""

    rows: list[Row]
    ticket: Ticket


class Engine:
    """Generates the answers of several requests together. For one thread.

    Args:
        runner: computes the steps and chooses tokens.
        backend: the runner's; closed with the engine.
        name: of the model, for `reading`.
        clock: seconds; what `submitted_at` is measured by.
        peak_bytes: tells the most memory that the backend's device had to give; 0 for the host's.
    """

    def __init__(
        self,
        runner: Runner,
        backend: Closable,
        tokenizer: ChatTokenizer,
        sizes: EngineSizes,
        name: str = "",
        clock: Callable[[], float] = time.perf_counter,
        peak_bytes: Callable[[], int] = int,
    ) -> None:
        self._runner, self._backend, self._tokenizer = runner, backend, tokenizer
        self._sizes, self._name, self._clock, self._peak_bytes = sizes, name, clock, peak_bytes
        self._end_token_ids = tokenizer.end_token_ids
        self._prompts = Prompts(tokenizer, sizes.context_tokens, sizes.vocab_size)
        self._grammars = GrammarCompiler(tokenizer, sizes.vocab_size)
        self._cache = KvCache(sizes.num_pages)
        self._scheduler = Scheduler(self._cache, sizes.prefill_chunk, sizes.max_running)
        self._requests: dict[str, _Request] = {}
        self._in_step: list[str] = []
        # The step that the device computes while the tokens of the one before are looked at.
        self._flight: _Flight | None = None

    @property
    def has_work(self) -> bool:
        """A request waits or runs."""
        return bool(self._requests)

    @property
    def context_tokens(self) -> int:
        """Tokens that prompt and answer may have together."""
        return self._sizes.context_tokens

    def count_tokens(self, text: str) -> int:
        """Tokens of a plain text."""
        return self._prompts.count_tokens(text)

    def prepare_grammars(self) -> None:
        """Does ahead what the first grammar would need; see GrammarCompiler.prepare."""
        self._grammars.prepare()

    def add(
        self, request: GenerationRequest, submitted_at: float | None = None, token_ids: Sequence[int] | None = None
    ) -> None:
        """Queues a request.

        Args:
            token_ids: the prompt, in place of the rendered messages. End tokens then do not end the answer: a
                measurement has exactly the lengths that it asks for.

        Raises:
            ContextOverflowError: the prompt and one token of an answer do not fit the context.
            InvalidRequestError: the chat template refuses the messages, or the grammar has a fault.
            ModelFormatError: a token of the prompt has no row in the embedding.
        """
        context = self._sizes.context_tokens
        prompt = self._prompts.checked(self._prompts.tokens_of(request) if token_ids is None else list(token_ids))
        grammar = None if request.grammar is None else self._grammars.start(request.grammar)
        params = request.sampling
        wanted = context if params.max_new_tokens is None else len(prompt) + params.max_new_tokens
        sequence = TokenSequence(
            request.request_id, int(request.priority), prompt, len(prompt), max_tokens=min(wanted, context)
        )
        self._requests[request.request_id] = _Request(
            request,
            sequence,
            Detokenizer(self._tokenizer, stop=params.stop),
            seed=secrets.randbits(64) if params.seed is None else params.seed,
            submitted_at=self._clock() if submitted_at is None else submitted_at,
            end_token_ids=self._end_token_ids if token_ids is None else frozenset(),
            grammar=grammar,
        )
        self._scheduler.add(sequence)

    def cancel(self, request_id: str) -> DoneEvent | None:
        """Ends a request and frees its pages at once; None where the id is unknown."""
        entry = self._requests.get(request_id)
        return None if entry is None else self._done(entry, "cancelled")

    def step(self, should_stop: ShouldStop | None = None) -> list[RequestEvent]:
        """Computes one step: a token of each answer under way, a chunk of prompts.

        Args:
            should_stop: asked before each layer; where it says so, the step is given up, nothing has changed, and the
                next call repeats it.
        """
        flight, self._flight = self._flight, None
        if flight is None or not any(map(self._is_live, flight.rows)):
            flight = self._launch(self._scheduler.plan(), False, should_stop)
            if flight is None:
                return []
        self._in_step = [row.chunk.sequence.request_id for row in flight.rows if self._is_live(row)]
        # What a grammar allows next, or a penalty is for, depends on the token before, so that must be known.
        if self._runner.looks_ahead and not any(row.on_host for row in flight.rows):
            ahead = self._scheduler.plan_ahead([row.chunk for row in flight.rows])
            self._flight = self._launch(ahead, True, None)
        events = self._finish(flight, self._runner.collect(flight.ticket))
        self._in_step = []
        return events

    @property
    def spare_s(self) -> float:
        """Seconds that the next step need not be called for.

        A step that was launched cannot be taken back, so the later the one after it is, the sooner a request comes in
        that arrives meanwhile. Only answers that nobody looks at are made to run that risk of a pause.
        """
        if self._flight is None or any(row.chunk.sequence.priority < Priority.API for row in self._flight.rows):
            return 0.0
        return self._runner.spare_s()

    def _launch(self, chunks: Sequence[Chunk], ahead: bool, should_stop: ShouldStop | None) -> _Flight | None:
        """None where there is nothing to do or `should_stop` said so."""
        if not chunks:
            return None
        self._in_step = [chunk.sequence.request_id for chunk in chunks]
        now = self._clock()
        rows = []
        for chunk in chunks:
            entry = self._requests[chunk.sequence.request_id]
            if entry.started_at is None:
                entry.started_at, entry.cached_tokens = now, chunk.start
            wants_token = ahead or chunk.wants_logits
            allowed = entry.grammar.allowed if entry.grammar is not None and wants_token else None
            rows.append(Row(chunk, wants_token, entry.request.sampling, entry.seed, allowed))
        ticket = self._runner.launch(rows, ahead, should_stop)
        return None if ticket is None else _Flight(rows, ticket)

    def _is_live(self, row: Row) -> bool:
        """False where the request ended while the step was under way."""
        sequence = row.chunk.sequence
        entry = self._requests.get(sequence.request_id)
        return entry is not None and entry.sequence is sequence

    def _finish(self, flight: _Flight, tokens: Sequence[Choice]) -> list[RequestEvent]:
        """Takes what a step has computed; what it did for requests that have ended meanwhile is nobody's."""
        self._scheduler.advance([row.chunk for row in flight.rows if self._is_live(row)])
        now = self._clock()
        events: list[RequestEvent] = []
        chosen = iter(tokens)
        for row in flight.rows:
            chunk, choice = row.chunk, next(chosen) if row.wants_token else None
            if not self._is_live(row):
                continue
            entry = self._requests[chunk.sequence.request_id]
            done = min(chunk.start + chunk.count, chunk.sequence.prompt_tokens)
            # One that was pushed out computes its prompt again, which is nobody's progress.
            if done > entry.reported_tokens:
                entry.reported_tokens = done
                events.append(PrefillEvent(chunk.sequence.request_id, done, chunk.sequence.prompt_tokens))
            if choice is not None:
                events += self._next_token(entry, choice, now)
        return events

    def cancel_all(self) -> list[DoneEvent]:
        """Ends every request."""
        return [self._done(entry, "cancelled") for entry in list(self._requests.values())]

    def fail_step(self, error: InferenceError) -> list[RequestEvent]:
        """Drops the requests whose step has raised, so that the others can go on; all where none was chosen yet."""
        events: list[RequestEvent] = []
        for request_id in self._in_step or list(self._requests):
            entry = self._requests.get(request_id)
            if entry is not None:
                events.append(self._failed(entry, error))
        self._in_step, self._flight = [], None
        return events

    def fail_all(self, error: InferenceError) -> list[RequestEvent]:
        """Drops every request."""
        self._in_step = []
        return self.fail_step(error)

    def close(self) -> None:
        """Frees the backend; requests are the caller's affair."""
        self._backend.close()

    def reading(self) -> EngineReading:
        """A snapshot for meters."""
        return EngineReading(
            state=ModelState.READY,
            model=self._name,
            backend=self._backend.name,
            context_tokens=self._sizes.context_tokens,
            weight_bytes=self._sizes.weight_bytes,
            kv_bytes=self._sizes.kv_bytes,
            workspace_bytes=self._sizes.workspace_bytes,
            peak_bytes=self._peak_bytes(),
            pages_total=self._cache.pages_total,
            pages_free=self._cache.pages_free,
            running=len(self._scheduler.running),
            waiting=len(self._scheduler.waiting),
        )

    def _next_token(self, entry: _Request, choice: Choice, now: float) -> list[RequestEvent]:
        sequence, token = entry.sequence, choice.token_id
        if entry.first_token_at is None:
            entry.first_token_at = entry.last_token_at = now
        if token in entry.end_token_ids:
            return [*self._text(entry, entry.text.finish()), self._done(entry, "stop")]
        entry.last_token_at = now
        try:
            certain = [] if entry.grammar is None else entry.grammar.accept(token)
        except InferenceError as error:
            return [self._failed(entry, error)]
        events: list[RequestEvent] = []
        room = sequence.max_tokens - len(sequence.token_ids)
        for new in [choice, *map(self._certain, certain)][:room]:
            sequence.token_ids.append(new.token_id)
            self._tell(entry, new)
            events += self._text(entry, entry.text.push(new.token_id))
            if entry.text.stopped:
                return [*events, self._done(entry, "stop")]
        is_complete = entry.grammar is not None and entry.grammar.is_complete and len(certain) < room
        if is_complete or len(sequence.token_ids) == sequence.max_tokens:
            events += self._text(entry, entry.text.finish())
            return [*events, self._done(entry, "stop" if is_complete or entry.text.stopped else "length")]
        return events

    def _text(self, entry: _Request, text: str) -> list[RequestEvent]:
        if not text:
            return []
        tokens, entry.untold = tuple(entry.untold), []
        return [TokenEvent(entry.request.request_id, text, tokens)]

    @staticmethod
    def _certain(token_id: int) -> Choice:
        """A token that the grammar left no choice about."""
        return Choice(token_id, 0.0)

    def _tell(self, entry: _Request, choice: Choice) -> None:
        """Keeps a token's log-probability for the event that will have its text, where it is asked for."""
        if entry.request.sampling.top_logprobs is None or choice.logprob is None:
            return
        text_of = self._tokenizer.token_bytes
        top = tuple((token_id, text_of(token_id), value) for token_id, value in choice.top)
        entry.untold.append(TokenLogprob(choice.token_id, text_of(choice.token_id), choice.logprob, top))

    def _done(self, entry: _Request, reason: FinishReason) -> DoneEvent:
        del self._requests[entry.request.request_id]
        self._scheduler.remove(entry.sequence)
        return DoneEvent(entry.request.request_id, reason, entry.usage())

    def _failed(self, entry: _Request, error: InferenceError) -> FailedEvent:
        del self._requests[entry.request.request_id]
        self._scheduler.remove(entry.sequence)
        return FailedEvent(entry.request.request_id, error)
