"""Our engine as what is measured: one request at a time through Engine.add and Engine.step, host work included."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Protocol

from app.bench.figures import CACHED_TOKENS, DECODE_TOK_S, NEW_TOKENS, PREFILL_TOK_S, PROMPT_TOKENS, TTFT_MS, WALL_MS
from app.bench.protocol import CHAT, DECODE, PREFILL, Case, Plan, chat_messages
from inference.request import (
    DoneEvent,
    EngineReading,
    FailedEvent,
    GenerationRequest,
    Message,
    RequestEvent,
    SamplingParams,
    Usage,
)


class SteppedEngine(Protocol):
    """What a benchmark needs of an engine."""

    def add(
        self, request: GenerationRequest, submitted_at: float | None = None, token_ids: list[int] | None = None
    ) -> None:
        """Queues a request, with a prompt of token ids or with messages."""
        ...

    def step(self) -> list[RequestEvent]:
        """Computes one step."""
        ...

    def reading(self) -> EngineReading:
        """A snapshot."""
        ...

    def close(self) -> None:
        """Frees everything."""
        ...


def run_case(engine: SteppedEngine, plan: Plan, case: Case, run: int, has_text: bool = True) -> dict[str, float]:
    """Runs one case once; {name of app.bench.figures: value}. Times count from before the prompt is tokenized.

    Args:
        run: varies the prompt.
        has_text: False for random weights, whose vocabulary is invented: then the protocol's prompts are random ids.

    Raises:
        InferenceError: the engine failed.
    """
    messages: tuple[Message, ...] = (Message("user", "token ids"),)
    token_ids = None
    if case.what == CHAT and has_text:
        system, user = chat_messages(case.n, run)
        messages = (Message("system", system), Message("user", user))
    else:
        token_ids = plan.ids_of(case, run)
    sampling = SamplingParams(temperature=0.0, max_new_tokens=plan.new_tokens_of(case))
    request = GenerationRequest(messages, sampling)
    gc.collect()
    start = time.perf_counter()
    engine.add(request, start, token_ids)
    usage = _run_to_the_end(engine.step)
    return _figures(case, usage, 1000.0 * (time.perf_counter() - start))


def _run_to_the_end(step: Callable[[], list[RequestEvent]]) -> Usage:
    while True:
        for event in step():
            if isinstance(event, FailedEvent):
                raise event.error
            if isinstance(event, DoneEvent):
                return event.usage


def _figures(case: Case, usage: Usage, wall_ms: float) -> dict[str, float]:
    to_first = usage.time_to_first_token_ms
    found: dict[str, float] = {PROMPT_TOKENS: usage.prompt_tokens, NEW_TOKENS: usage.new_tokens}
    if usage.cached_tokens:
        found[CACHED_TOKENS] = usage.cached_tokens
    if case.what != DECODE:
        found |= {TTFT_MS: to_first, PREFILL_TOK_S: 1000.0 * usage.prompt_tokens / to_first}
    if case.what != PREFILL and usage.decode_tok_s:
        found[DECODE_TOK_S] = usage.decode_tok_s
    if case.what == CHAT:
        found[WALL_MS] = wall_ms
    return found
