"""The cases of the benchmark on a scripted engine whose times are easy to divide by."""

from __future__ import annotations

import dataclasses

import pytest

from app.bench.figures import CACHED_TOKENS, DECODE_TOK_S, PREFILL_TOK_S, TTFT_MS, WALL_MS
from app.bench.our_engine import run_case
from app.bench.protocol import CHAT, DECODE, PREFILL, PROMPT_TOKENS, PROMPTS, Case, Plan
from inference.errors import InferenceError
from inference.request import DoneEvent, EngineReading, FailedEvent, PrefillEvent, Usage

PLAN = Plan(prompts=(58,), depths=(0, 100), decode_tokens=64)


class ScriptedEngine:
    """Answers every request after two steps."""

    def __init__(self, error: InferenceError | None = None) -> None:
        self.error = error
        self.added = []
        self.steps = 0

    def add(self, request, submitted_at=None, token_ids=None) -> None:
        self.added.append((request, submitted_at, token_ids))
        self.steps = 0

    def step(self):
        self.steps += 1
        request, _, token_ids = self.added[-1]
        prompt_tokens = len(token_ids or range(40))
        if self.steps == 1:
            return [PrefillEvent(request.request_id, prompt_tokens, prompt_tokens)]
        if self.error is not None:
            return [FailedEvent(request.request_id, self.error)]
        new_tokens = request.sampling.max_new_tokens
        usage = Usage(prompt_tokens, new_tokens=new_tokens, time_to_first_token_ms=500.0, decode_ms=2000.0)
        return [DoneEvent(request.request_id, "length", usage)]

    def reading(self) -> EngineReading:
        return EngineReading()

    def close(self) -> None:
        pass


def test_prefill_counts_prompt_tokens_until_the_first_token() -> None:
    engine = ScriptedEngine()
    figures = run_case(engine, PLAN, Case(PREFILL, 58), 1)
    assert figures[PREFILL_TOK_S] == pytest.approx(58 / 0.5)
    assert figures[TTFT_MS] == 500.0
    assert DECODE_TOK_S not in figures
    request, submitted_at, token_ids = engine.added[0]
    assert len(token_ids) == 58
    assert request.sampling.max_new_tokens == 1
    assert submitted_at is not None


@pytest.mark.parametrize(("depth", "prompt_tokens"), [(0, 1), (100, 100)])
def test_decode_counts_the_tokens_behind_the_first(depth: int, prompt_tokens: int) -> None:
    engine = ScriptedEngine()
    figures = run_case(engine, PLAN, Case(DECODE, depth), 1)
    assert figures[DECODE_TOK_S] == pytest.approx(64 / 2.0)
    # Filling the cache is no prefill that anybody asked about.
    assert PREFILL_TOK_S not in figures
    request, _, token_ids = engine.added[0]
    assert len(token_ids) == prompt_tokens
    assert request.sampling.max_new_tokens == 65


def test_a_prompt_of_the_protocol_is_a_chat_of_64_tokens_at_temperature_0() -> None:
    engine = ScriptedEngine()
    figures = run_case(engine, PLAN, Case(CHAT, 1), 3)
    request, _, token_ids = engine.added[0]
    assert token_ids is None
    assert [message.role for message in request.messages] == ["system", "user"]
    assert request.messages[1].content == PROMPTS[1]
    assert request.sampling.max_new_tokens == 64
    assert request.sampling.temperature == 0.0
    assert figures[DECODE_TOK_S] == pytest.approx(63 / 2.0)
    assert figures[PREFILL_TOK_S] == pytest.approx(40 / 0.5)
    assert figures[WALL_MS] > 0


def test_random_weights_get_a_prompt_of_random_ids_of_that_length() -> None:
    engine = ScriptedEngine()
    run_case(engine, PLAN, Case(CHAT, 1), 3, has_text=False)
    assert len(engine.added[0][2]) == PROMPT_TOKENS[1]


def test_repeats_have_other_prompts() -> None:
    engine = ScriptedEngine()
    for repeat in (0, 1):
        run_case(engine, PLAN, Case(PREFILL, 58), repeat)
        run_case(engine, PLAN, Case(CHAT, 0), repeat)
    assert engine.added[0][2] != engine.added[2][2]
    assert engine.added[1][0].messages != engine.added[3][0].messages


def test_tokens_out_of_a_cache_are_told() -> None:
    class Caching(ScriptedEngine):
        def step(self):
            return [
                dataclasses.replace(event, usage=dataclasses.replace(event.usage, cached_tokens=64))
                if isinstance(event, DoneEvent)
                else event
                for event in super().step()
            ]

    assert run_case(Caching(), PLAN, Case(PREFILL, 58), 1)[CACHED_TOKENS] == 64
    assert CACHED_TOKENS not in run_case(ScriptedEngine(), PLAN, Case(PREFILL, 58), 1)


def test_failure_ends_the_benchmark() -> None:
    with pytest.raises(InferenceError, match="broke"):
        run_case(ScriptedEngine(InferenceError("broke")), PLAN, Case(PREFILL, 58), 1)
