"""The device's sampler against the plain functions, token for token."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from inference.engine.sampler import choose, uniform
from inference.errors import InferenceError
from inference.request import SamplingParams
from kernels.device.driver import Device
from kernels.errors import ContractError
from kernels.launch.sampling import (
    ALL_MINUS_INFINITE,
    BROKEN_LOGITS,
    LOGIT_IS_INFINITE,
    LOGIT_IS_NAN,
    ROW_IS_IDLE,
    Sampler,
    UniformArguments,
    planned_sampler_bytes,
)

ROWS = 8


def expected_token(logits: np.ndarray, seen: list[int], params: SamplingParams, seed: int, index: int) -> int:
    try:
        with np.errstate(all="ignore"):
            return choose(logits, seen, params, seed, index)
    except InferenceError as error:
        text = str(error)
        return LOGIT_IS_NAN if " nan," in text else ALL_MINUS_INFINITE if " -inf," in text else LOGIT_IS_INFINITE


class Rig:
    """A sampler, its rows' arrays between guards, and the same state on the host."""

    def __init__(self, device: Device, guarded: Callable[..., Any], vocab_size: int, ring_slots: int = 4) -> None:
        self.sampler = Sampler(device, ROWS, vocab_size, ring_slots)
        self.logits = guarded(4 * ROWS * vocab_size)
        self.token_ids, self.positions, self.lengths = (guarded(np.zeros(ROWS, np.int32)) for _ in range(3))
        self.vocab_size = vocab_size

    def place(self, positions: list[int]) -> None:
        self.token_ids.upload(np.full(ROWS, 7, np.int32))
        self.positions.upload(np.array(positions, np.int32))
        self.lengths.upload(np.array(positions, np.int32) + 1)

    def launch(self, rows: int = ROWS, first_row: int = 0) -> None:
        pointers = (self.token_ids.pointer, self.positions.pointer, self.lengths.pointer)
        self.sampler.launch(self.logits.pointer, rows, *pointers, first_row=first_row)

    def step(self, logits: np.ndarray, first_row: int = 0) -> list[int]:
        self.logits.upload(logits)
        self.launch(len(logits), first_row)
        return self.sampler.read(self.sampler.begin_step(len(logits), first_row))

    def state(self) -> tuple[list[int], ...]:
        return tuple(
            buffer.download(np.int32, ROWS).tolist() for buffer in (self.token_ids, self.positions, self.lengths)
        )


@pytest.fixture
def rig(device: Device, guarded: Callable[..., Any]) -> Iterator[Callable[..., Rig]]:
    made: list[Rig] = []

    def make(vocab_size: int, ring_slots: int = 4) -> Rig:
        made.append(Rig(device, guarded, vocab_size, ring_slots))
        return made[-1]

    yield make
    for one in made:
        one.sampler.close()


def test_numbers_are_numpys(device: Device, rng: np.random.Generator, guarded: Callable[..., Any]) -> None:
    seeds = rng.integers(0, 2**64, 2000, dtype=np.uint64)
    indices = rng.integers(0, 5000, 2000, dtype=np.uint64)
    seeds[:4] = (0, 1, 2**64 - 1, 2**63)
    indices[:4] = (0, 2**64 - 1, 2**64 - 1, 2**32)
    numbers = guarded(8 * 2000)
    arguments = UniformArguments(guarded(seeds).pointer, guarded(indices).pointer, numbers.pointer, 2000)
    device.kernel("sampling.cu", "uniform_numbers").launch(arguments, 8, 256)
    ours = numbers.download(np.float64, 2000)
    assert ours.tolist() == [uniform(int(seed), int(index)) for seed, index in zip(seeds, indices, strict=True)]


# Between differences of 1e-22 and 1e-11 the weights differ by few units in the last place, and two exp() may order them
# differently: no logits here are so.
def random_logits(kind: int, vocab_size: int, rng: np.random.Generator) -> np.ndarray:
    logits = rng.standard_normal(vocab_size) * rng.choice([0.1, 1.0, 3.0, 10.0])
    if kind == 1:
        logits = np.round(logits * 2) / 2  # many ties
    elif kind == 2:
        logits[:] = rng.choice([0.0, -3.5, 1e-30, 7.25])
    elif kind == 3:
        logits[rng.integers(vocab_size)] += 60  # one dominates
    elif kind == 4:
        logits *= 10.0 ** rng.choice([-35, -30, -25, -8, -6, -4, 2, 4, 10, 20, 30, 35])
    elif kind == 5:
        logits *= 10.0 ** rng.choice([-44, -40, -35, -30, -6, -3, 0, 1], vocab_size)  # of all sizes at once
    elif kind == 6:
        logits[rng.random(vocab_size) < 0.9] = -np.inf
    elif kind == 7:
        logits = -np.sort(rng.exponential(2.0, vocab_size))[rng.permutation(vocab_size)]
    elif kind == 8:
        logits = logits.astype(np.float16)
    elif kind == 9:
        logits = rng.choice([-1.0, 0.0, -0.0, 1e-30, -1e-30, 1.0], vocab_size)
    return logits.astype(np.float32)


KINDS = 10


def random_params(vocab_size: int, rng: np.random.Generator) -> SamplingParams:
    def pick(*values: Any) -> Any:
        return values[rng.integers(len(values))]

    return SamplingParams(
        temperature=pick(0.0, 0.01, 0.1, 0.7, 0.7, 1.0, 1.0, 2.0, 10.0),
        top_k=pick(0, 0, 0, 1, 2, 20, 40, 1000, vocab_size - 1, vocab_size, vocab_size + 5),
        top_p=pick(1.0, 1.0, 1e-6, 0.1, 0.5, 0.8, 0.9, 0.95, 0.999),
        min_p=pick(0.0, 0.0, 0.01, 0.05, 0.5, 1.0),
        repetition_penalty=pick(1.0, 1.0, 1.1, 0.8, 3.0),
    )


@pytest.mark.parametrize(
    ("vocab_size", "steps"), [(49152, 60), (151936, 30), (152064, 30), (1000, 200), (5003, 200), (33, 60), (1, 4)]
)
def test_same_token_as_choose(vocab_size: int, steps: int, rng: np.random.Generator, rig: Callable[..., Rig]) -> None:
    one = rig(vocab_size)
    with ThreadPoolExecutor(8) as pool:
        for _ in range(steps):
            kinds = rng.integers(KINDS, size=ROWS)
            logits = np.stack([random_logits(kind, vocab_size, rng) for kind in kinds])
            cases = []
            for row in range(ROWS):
                params = random_params(vocab_size, rng)
                seen = rng.integers(vocab_size, size=rng.integers(200)).tolist()
                seed, index = int(rng.integers(2**63)), int(rng.integers(3000))
                one.sampler.set_row(row, params, seed, index, seen)
                cases.append((logits[row], seen, params, seed, index))
            one.place([5] * ROWS)
            tokens = one.step(logits)
            expected = list(pool.map(lambda case: expected_token(*case), cases))
            wrong = [(kinds[r], *cases[r][2:], expected[r], tokens[r]) for r in range(ROWS) if expected[r] != tokens[r]]
            assert not wrong
            kept = [token if token >= 0 else 7 for token in tokens]
            moved = [int(token >= 0) for token in tokens]
            assert one.state() == (kept, [5 + more for more in moved], [6 + more for more in moved])


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_logits_that_are_no_numbers(temperature: float, rig: Callable[..., Rig]) -> None:
    one = rig(9000)
    logits = np.zeros((ROWS, 9000), np.float32)
    logits[0, 8999] = np.nan
    logits[1, 17] = np.inf
    logits[2] = -np.inf
    logits[3, 4000] = np.nan
    logits[3, 1] = np.inf
    logits[4, 5000:5002] = 1.0
    logits[5] = -np.inf
    logits[5, 77] = -3.0
    for row in range(ROWS):
        one.sampler.set_row(row, SamplingParams(temperature=temperature, top_p=0.9), 1, 0)
    one.place([3] * ROWS)
    tokens = one.step(logits)
    assert tokens[:4] == [LOGIT_IS_NAN, LOGIT_IS_INFINITE, ALL_MINUS_INFINITE, LOGIT_IS_NAN]
    assert tokens[5] == 77
    assert set(tokens[:4]) == set(BROKEN_LOGITS)
    if temperature == 0.0:
        assert tokens[4] == 5000
        assert tokens[6:] == [0, 0]
    assert one.state()[1] == [3, 3, 3, 3, 4, 4, 4, 4]


def test_an_answer_counts_and_remembers(rng: np.random.Generator, rig: Callable[..., Rig]) -> None:
    """The index counts up, the penalty sees each new token; idle rows and cleared rows stay as they are."""
    vocab_size = 2000
    one = rig(vocab_size)
    params = [SamplingParams(temperature=t, repetition_penalty=1.5, top_k=50) for t in (0.0, 0.3, 1.0, 2.0)]
    seen = [rng.integers(vocab_size, size=20).tolist() for _ in params]
    for row, of_row in enumerate(params):
        one.sampler.set_row(row, of_row, 11 + row, 3, seen[row])
    one.sampler.set_row(5, params[0], 1, 0)
    one.sampler.clear_row(5)
    one.place([10, 20, 30, 40, -1, 50, 60, -1])
    for step in range(20):
        logits = rng.standard_normal((ROWS, vocab_size)).astype(np.float32)
        tokens = one.step(logits)
        for row, of_row in enumerate(params):
            assert tokens[row] == choose(logits[row], seen[row], of_row, 11 + row, 3 + step)
            seen[row].append(tokens[row])
        assert tokens[4:] == [ROW_IS_IDLE] * 4
    ids, positions, lengths = one.state()
    assert ids == [*(ids_of[-1] for ids_of in seen), 7, 7, 7, 7]
    assert positions == [30, 40, 50, 60, -1, 50, 60, -1]
    assert lengths == [31, 41, 51, 61, 0, 51, 61, 0]


def test_one_row_of_many(rng: np.random.Generator, rig: Callable[..., Rig]) -> None:
    one = rig(3000)
    logits = rng.standard_normal((1, 3000)).astype(np.float32)
    params = SamplingParams(temperature=1.0)
    one.sampler.set_row(6, params, 5, 0)
    one.place([4] * ROWS)
    assert one.step(logits, first_row=6) == [choose(logits[0], [], params, 5, 0)]
    assert one.state()[1] == [4, 4, 4, 4, 4, 4, 5, 4]


def test_replays_of_a_graph(device: Device, rng: np.random.Generator, rig: Callable[..., Rig]) -> None:
    """One captured launch serves every request; three steps are queued before the first is read."""
    one = rig(50000, ring_slots=3)
    logits = rng.standard_normal((2, 50000)).astype(np.float32)
    one.logits.upload(logits)
    one.launch(2)  # compiled and warm before the capture
    one.sampler.read(one.sampler.begin_step(2))
    with device.stream.capture() as graph:
        one.launch(2)
    for request in range(30):
        params = [SamplingParams(temperature=0.9, top_p=0.7, repetition_penalty=1.3), SamplingParams()]
        for row in range(2):
            one.sampler.set_row(row, params[row], request, 0, [request])
        one.place([9] * ROWS)
        steps = []
        for _ in range(3):
            graph.launch()
            steps.append(one.sampler.begin_step(2))
        with pytest.raises(ContractError, match="3 slots"):
            one.sampler.begin_step(2)
        seen = [request]
        for index, step in enumerate(steps):
            tokens = one.sampler.read(step)
            assert tokens == [choose(logits[0], seen, params[0], request, index), int(np.argmax(logits[1]))]
            seen.append(tokens[0])
    assert one.state()[1][:2] == [12, 12]
    graph.close()


def test_runs_are_equal_to_the_bit(rng: np.random.Generator, rig: Callable[..., Rig]) -> None:
    one = rig(151936)
    logits = np.repeat(rng.standard_normal((1, 151936)).astype(np.float32), ROWS, axis=0)
    runs = []
    for _ in range(2):
        for row in range(ROWS):
            one.sampler.set_row(row, SamplingParams(temperature=5.0, top_p=0.99), row, 0)
        one.place([0] * ROWS)
        runs.append([one.step(logits) for _ in range(5)])
    assert runs[0] == runs[1]
    assert len({token for tokens in runs[0] for token in tokens}) > ROWS


def test_memory_is_as_planned(device: Device) -> None:
    before = device.allocated_bytes
    sampler = Sampler(device, ROWS, 152064)
    assert planned_sampler_bytes(ROWS, 152064) <= 1 << 20
    assert device.allocated_bytes - before <= 2 << 20
    sampler.close()
    with pytest.raises(ContractError, match="cannot be sampled"):
        Sampler(device, 0, 100)
