"""The cases of the benchmark on a scripted engine, and the memory that it watches."""

from __future__ import annotations

import pytest

from app.bench import PeakMemory, numbers, run_case
from app.benchmark import Case, Plan
from app.terminal_errors import UsageError
from inference.errors import InferenceError
from inference.request import DoneEvent, EngineReading, FailedEvent, PrefillEvent, Usage

PLAN = Plan(prompts=(58,), depths=(0, 100), decode_tokens=64)


class ScriptedEngine:
    """Answers every request after two steps, in times that are easy to divide by."""

    def __init__(self, error: InferenceError | None = None) -> None:
        self.error = error
        self.added = []
        self.steps = 0

    def add(self, request, submitted_at=None, token_ids=None) -> None:
        self.added.append((request, token_ids))
        self.steps = 0

    def step(self):
        self.steps += 1
        request, token_ids = self.added[-1]
        if self.steps == 1:
            return [PrefillEvent(request.request_id, len(token_ids), len(token_ids))]
        if self.error is not None:
            return [FailedEvent(request.request_id, self.error)]
        usage = Usage(new_tokens=request.sampling.max_new_tokens, time_to_first_token_ms=500.0, decode_ms=2000.0)
        return [DoneEvent(request.request_id, "length", usage)]

    def reading(self) -> EngineReading:
        return EngineReading()

    def close(self) -> None:
        pass


def test_prefill_counts_prompt_tokens_until_the_first_token() -> None:
    engine = ScriptedEngine()
    assert run_case(engine, PLAN, Case("prefill", 58), 1) == pytest.approx(58 / 0.5)
    request, token_ids = engine.added[0]
    assert len(token_ids) == 58
    assert request.sampling.max_new_tokens == 1


@pytest.mark.parametrize(("depth", "prompt_tokens"), [(0, 1), (100, 100)])
def test_decode_counts_the_tokens_behind_the_first(depth: int, prompt_tokens: int) -> None:
    engine = ScriptedEngine()
    assert run_case(engine, PLAN, Case("decode@depth", depth), 1) == pytest.approx(64 / 2.0)
    request, token_ids = engine.added[0]
    assert len(token_ids) == prompt_tokens
    assert request.sampling.max_new_tokens == 65


def test_repeats_have_other_prompts() -> None:
    engine = ScriptedEngine()
    for repeat in (0, 1):
        run_case(engine, PLAN, Case("prefill", 58), repeat)
    assert engine.added[0][1] != engine.added[1][1]


def test_failure_ends_the_benchmark() -> None:
    with pytest.raises(InferenceError, match="broke"):
        run_case(ScriptedEngine(InferenceError("broke")), PLAN, Case("prefill", 58), 1)


@pytest.mark.parametrize("text", ["58,512", "58 512", " 58, 512 "])
def test_numbers(text: str) -> None:
    assert numbers(text) == (58, 512)


@pytest.mark.parametrize("text", ["many", "58,-1", "5.5"])
def test_numbers_that_are_none(text: str) -> None:
    with pytest.raises(UsageError):
        numbers(text)


def test_peak_memory_sees_a_large_block() -> None:
    with PeakMemory() as before:
        pass
    with PeakMemory() as memory:
        block = bytearray(64 << 20)
        block[::4096] = b"x" * len(block[::4096])
    assert memory.peak_bytes >= before.peak_bytes
    assert memory.peak_bytes > len(block)
