"""What is computed when: chunks, priorities, admission, preemption and fairness."""

from __future__ import annotations

import random

import pytest

from inference.backends.backend import PAGE_SIZE
from inference.engine.kv_cache import KvCache
from inference.engine.scheduler import (
    ANSWER_RESERVE_TOKENS,
    DECODE_SHARE,
    OVERTAKEN_LIMIT,
    PASSED_LIMIT,
    REST_LIMIT,
    Chunk,
    Scheduler,
    Sequence,
)
from inference.request import Priority

ACTION, CHAT, API = Priority.ACTION, Priority.CHAT, Priority.API


class Bench:
    """A scheduler whose model answers at once: every wanted token is the next number."""

    def __init__(self, num_pages: int = 64, prefill_chunk: int = 256, max_running: int = 8) -> None:
        self.cache = KvCache(num_pages)
        self.scheduler = Scheduler(self.cache, prefill_chunk, max_running)
        self.sequences: dict[str, Sequence] = {}
        self.finished: list[str] = []
        self._next_token = 1_000_000

    def add(self, name: str, prompt: int, priority: Priority = CHAT, answer: int = 8) -> Sequence:
        # Different prompts, so that nothing is shared by accident.
        token_ids = [len(self.sequences) * 10_000 + i for i in range(prompt)]
        sequence = Sequence(name, int(priority), token_ids, prompt, prompt + answer)
        self.sequences[name] = sequence
        self.scheduler.add(sequence)
        return sequence

    def step(self) -> dict[str, int]:
        """Plans and computes a step: tokens by sequence."""
        chunks = self.scheduler.plan()
        self.check(chunks)
        self.scheduler.advance(chunks)
        for chunk in chunks:
            if not chunk.wants_logits:
                continue
            sequence = chunk.sequence
            sequence.token_ids.append(self._next_token)
            self._next_token += 1
            if len(sequence.token_ids) == sequence.max_tokens:
                self.scheduler.remove(sequence)
                self.finished.append(sequence.request_id)
        return {chunk.sequence.request_id: chunk.count for chunk in chunks}

    def check(self, chunks: list[Chunk]) -> None:
        names = [chunk.sequence.request_id for chunk in chunks]
        assert len(set(names)) == len(names)
        written: set[int] = set()
        for chunk in chunks:
            sequence, end = chunk.sequence, chunk.start + chunk.count
            assert chunk.count > 0
            assert chunk.start == sequence.num_computed
            assert end <= len(sequence.token_ids)
            assert sequence.table.capacity >= end
            pages = set(sequence.table.pages[chunk.start // PAGE_SIZE :])
            assert not pages & written
            written |= pages

    def run(self, limit: int = 10_000) -> None:
        while self.scheduler.waiting or self.scheduler.running:
            assert self.step(), "nothing is computed although something waits"
            limit -= 1
            assert limit, "no end"


def test_a_prompt_comes_in_chunks_and_then_tokens_one_by_one() -> None:
    bench = Bench(prefill_chunk=100)
    bench.add("a", prompt=250, answer=3)
    assert [bench.step() for _ in range(5)] == [{"a": 100}, {"a": 100}, {"a": 50}, {"a": 1}, {"a": 1}]
    assert bench.finished == ["a"]
    assert bench.scheduler.plan() == []
    assert bench.cache.pages_free == 64


def test_answers_go_on_while_a_prompt_is_read_and_the_chunks_are_smaller_then() -> None:
    bench = Bench(prefill_chunk=100)
    bench.add("a", prompt=20, answer=50)
    bench.step()
    bench.add("b", prompt=60)
    assert bench.step() == {"a": 1, "b": 100 // DECODE_SHARE}
    assert bench.step() == {"a": 1, "b": 25}
    assert bench.step() == {"a": 1, "b": 10}
    assert bench.step() == {"a": 1, "b": 1}


def test_a_prompt_that_is_more_important_than_all_answers_goes_alone_and_at_full_size() -> None:
    bench = Bench(prefill_chunk=100)
    bench.add("a", prompt=20, priority=API, answer=50)
    bench.step()
    bench.add("b", prompt=90, priority=API)
    bench.add("hotkey", prompt=150, priority=ACTION, answer=2)
    assert bench.step() == {"hotkey": 100}
    assert bench.step() == {"hotkey": 50}
    assert bench.step() == {"a": 1, "hotkey": 1, "b": 100 // DECODE_SHARE}


def test_answers_rest_for_a_few_steps_only() -> None:
    bench = Bench(prefill_chunk=100)
    bench.add("job", prompt=50, priority=API, answer=30)
    bench.step()
    bench.add("hotkey", prompt=2_000, priority=ACTION)
    steps = [bench.step() for _ in range(3 * (REST_LIMIT + 1))]
    assert [number for number, step in enumerate(steps) if "job" in step] == [
        REST_LIMIT,
        2 * REST_LIMIT + 1,
        3 * REST_LIMIT + 2,
    ]
    assert all(step["hotkey"] == 100 for step in steps)


@pytest.mark.parametrize("hotkeys", [1, 3])
def test_a_prompt_that_is_being_read_is_not_passed_over_for_ever(hotkeys: int) -> None:
    bench = Bench(prefill_chunk=100)
    bench.add("answer", prompt=50, priority=API, answer=3_000)
    bench.step()
    job = bench.add("job", prompt=200, priority=API)
    since, pressed = 0, 0
    while job.remaining > 1:
        while sum(each.priority == ACTION for each in bench.scheduler.running) < hotkeys:
            bench.add(f"hotkey {pressed}", prompt=400, priority=ACTION, answer=1)
            pressed += 1
            bench.scheduler.plan()
        step = bench.step()
        assert sum(step.values()) <= 100 + 1
        since = 0 if "job" in step else since + 1
        assert since <= PASSED_LIMIT
    assert pressed > hotkeys


def test_answers_do_not_rest_for_their_like() -> None:
    bench = Bench(prefill_chunk=100)
    bench.add("job", prompt=50, priority=API, answer=30)
    bench.step()
    bench.add("other job", prompt=100, priority=API)
    assert bench.step() == {"job": 1, "other job": 100 // DECODE_SHARE}


def test_one_step_reads_several_prompts() -> None:
    bench = Bench(prefill_chunk=100)
    for name in "abc":
        bench.add(name, prompt=40)
    assert bench.step() == {"a": 40, "b": 40, "c": 20}


def test_actions_go_before_chats_before_api_jobs() -> None:
    bench = Bench(prefill_chunk=100, max_running=1)
    for name, priority in (("api", API), ("chat", CHAT), ("action", ACTION), ("action 2", ACTION)):
        bench.add(name, prompt=10, priority=priority, answer=1)
    bench.run()
    assert bench.finished == ["action", "action 2", "chat", "api"]


def test_an_action_takes_the_budget_of_a_prompt_that_is_being_read() -> None:
    bench = Bench(prefill_chunk=100)
    bench.add("api", prompt=500, priority=API)
    assert bench.step() == {"api": 100}
    bench.add("action", prompt=70, priority=ACTION)
    assert bench.step() == {"action": 70, "api": 30}


def test_an_action_does_not_wait_for_the_pages_of_an_api_job() -> None:
    bench = Bench(num_pages=8)
    api = bench.add("api", prompt=5 * PAGE_SIZE, priority=API, answer=100)
    for _ in range(4):
        bench.step()
    had = list(api.token_ids)
    assert len(had) > 5 * PAGE_SIZE
    bench.add("action", prompt=6 * PAGE_SIZE, priority=ACTION, answer=10)
    assert set(bench.step()) == {"action"}
    assert bench.scheduler.waiting == [api]
    bench.run()
    assert bench.finished == ["action", "api"]
    assert api.token_ids[: len(had)] == had, "what it had answered stays"
    assert bench.cache.pages_free == 8


def test_requests_of_one_priority_do_not_take_pages_from_each_other() -> None:
    bench = Bench(num_pages=8)
    bench.add("a", prompt=5 * PAGE_SIZE, answer=10)
    bench.step()
    bench.add("b", prompt=5 * PAGE_SIZE, answer=10)
    while "a" not in bench.finished:
        assert set(bench.step()) == {"a"}
    bench.run()
    assert bench.finished == ["a", "b"]


def test_a_request_is_let_in_only_with_room_for_its_answer_and_those_under_way() -> None:
    reserve = ANSWER_RESERVE_TOKENS // PAGE_SIZE
    bench = Bench(num_pages=2 + 2 * reserve - 1)
    bench.add("a", prompt=PAGE_SIZE, answer=10_000)
    bench.add("b", prompt=PAGE_SIZE, answer=10_000)
    assert set(bench.step()) == {"a"}
    bench = Bench(num_pages=2 + 2 * reserve)
    bench.add("a", prompt=PAGE_SIZE, answer=10_000)
    bench.add("b", prompt=PAGE_SIZE, answer=10_000)
    assert set(bench.step()) == {"a", "b"}


def test_when_pages_run_out_the_later_of_two_answers_waits_and_goes_on() -> None:
    bench = Bench(num_pages=12)
    first = bench.add("a", prompt=PAGE_SIZE, answer=10 * PAGE_SIZE)
    second = bench.add("b", prompt=PAGE_SIZE, answer=10 * PAGE_SIZE)
    bench.step()
    assert len(bench.scheduler.running) == 2
    while second in bench.scheduler.running:
        bench.step()
    assert first in bench.scheduler.running
    had = list(second.token_ids)
    bench.run()
    assert bench.finished == ["a", "b"]
    assert second.token_ids[: len(had)] == had
    assert len(second.token_ids) == 11 * PAGE_SIZE


def test_a_preempted_request_computes_again_only_what_was_overwritten() -> None:
    bench = Bench(num_pages=20, max_running=1)
    api = bench.add("api", prompt=4 * PAGE_SIZE, priority=API, answer=20)
    bench.step()
    bench.step()
    bench.add("action", prompt=PAGE_SIZE, priority=ACTION, answer=1)
    assert set(bench.step()) == {"action"}
    bench.step()
    assert api.num_computed > 4 * PAGE_SIZE


def test_nobody_waits_for_ever() -> None:
    bench = Bench(max_running=1)
    bench.add("api", prompt=10, priority=API, answer=1)
    for index in range(40):
        bench.add(f"action {index}", prompt=10, priority=ACTION, answer=1)
        bench.step()
        if "api" in bench.finished:
            break
    assert bench.finished.index("api") == 2 * OVERTAKEN_LIMIT


def test_removing_frees_the_pages_at_once_in_every_state() -> None:
    bench = Bench(num_pages=8, prefill_chunk=100, max_running=2)
    decoding, reading, waiting = (bench.add(name, prompt=150, answer=20) for name in "abc")
    for _ in range(3):
        bench.step()
    assert decoding.remaining == 1
    assert reading.remaining > 1
    for sequence in (waiting, reading, decoding):
        bench.scheduler.remove(sequence)
    assert bench.cache.pages_free == 8
    assert bench.scheduler.plan() == []


@pytest.mark.parametrize(
    ("places", "newcomer", "is_certain"), [(2, API, True), (2, ACTION, False), (3, API, False), (2, None, True)]
)
def test_the_step_after_is_certain_unless_somebody_may_come_in(
    places: int, newcomer: Priority | None, is_certain: bool
) -> None:
    bench = Bench(max_running=places)
    for name in "ab":
        bench.add(name, prompt=5, priority=CHAT, answer=50)
    bench.step()
    if newcomer is not None:
        bench.add("c", prompt=5, priority=newcomer)
    running = list(bench.scheduler.running)
    ahead = bench.scheduler.plan_ahead([Chunk(each, each.num_computed, 1) for each in running])
    assert [(each.sequence, each.start) for each in ahead] == [
        (each, each.num_computed + 1) for each in (running if is_certain else [])
    ]


def test_planning_twice_gives_the_same_step() -> None:
    bench = Bench(prefill_chunk=100)
    bench.add("a", prompt=70)
    bench.step()
    bench.add("b", prompt=200)

    def described() -> list[tuple[str, int, int]]:
        return [(chunk.sequence.request_id, chunk.start, chunk.count) for chunk in bench.scheduler.plan()]

    assert described() == described()


def test_who_gives_way_makes_room_in_the_same_plan() -> None:
    """So that planning again gives the same."""
    bench = Bench(num_pages=4)
    bench.add("a", prompt=10, priority=ACTION, answer=40)
    later = bench.add("b", prompt=100, priority=ACTION, answer=10)
    bench.step()
    waiting = bench.add("c", prompt=150, priority=ACTION, answer=1)
    waiting.arrival, later.arrival = later.arrival, waiting.arrival  # c waited while b was more important
    bench.step()
    assert waiting in bench.scheduler.waiting
    later.max_tokens = 300
    later.token_ids += range(130)  # the grammar left no choice

    def described() -> list[tuple[str, int, int]]:
        return [(chunk.sequence.request_id, chunk.start, chunk.count) for chunk in bench.scheduler.plan()]

    assert described() == described()
    assert waiting in bench.scheduler.running
    assert later in bench.scheduler.waiting


def test_one_token_of_several_is_not_the_last_of_an_answer() -> None:
    """Runners choose the next token after a row of an answer; what is left of a step may have room for one only."""
    bench = Bench(prefill_chunk=100)
    answer = bench.add("grammar", prompt=20, priority=CHAT)
    bench.step()
    answer.token_ids += [1, 2, 3]  # the grammar left no choice
    bench.add("hotkey", prompt=99, priority=ACTION, answer=1)
    chunks = bench.scheduler.plan()
    assert [(chunk.sequence.request_id, chunk.count, chunk.is_decode) for chunk in chunks] == [
        ("hotkey", 99, False),
        ("grammar", 1, False),
    ]
    for count in (1, 2):
        bench.step()
        assert answer.remaining > 0, count
    (chunk,) = bench.scheduler.plan()
    assert chunk.is_decode


@pytest.mark.parametrize("seed", range(20))
def test_whatever_comes_everything_ends_and_every_page_is_given_back(seed: int) -> None:
    rng = random.Random(seed)
    bench = Bench(num_pages=16, prefill_chunk=rng.choice([16, 100, 256]), max_running=rng.choice([1, 3, 8]))
    cancelled = 0
    for index in range(60):
        prompt = rng.randint(1, 14 * PAGE_SIZE)
        answer = rng.randint(1, 16 * PAGE_SIZE - prompt)
        bench.add(str(index), prompt, rng.choice([ACTION, CHAT, API]), answer)
        for _ in range(rng.randint(0, 40)):
            bench.step()
        under_way = [*bench.scheduler.running, *bench.scheduler.waiting]
        if under_way and rng.random() < 0.3:
            bench.scheduler.remove(rng.choice(under_way))
            cancelled += 1
    bench.run(limit=50_000)
    assert len(bench.finished) == 60 - cancelled
    assert bench.cache.pages_free == 16
    for name in bench.finished:
        assert len(bench.sequences[name].token_ids) == bench.sequences[name].max_tokens
