"""Readings come while they are wanted and never otherwise, and what is held is let go in between."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator

import pytest

from app.memory.sampler import Sampler


class Source:
    """Counts, and tells its closes."""

    def __init__(self) -> None:
        self.count = 0
        self.closes: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read(self) -> int:
        self.count += 1
        return self.count

    def close(self) -> None:
        self.closes.put(threading.current_thread().name)


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def readings() -> queue.SimpleQueue[int]:
    return queue.SimpleQueue()


@pytest.fixture
def sampler(source: Source, readings: queue.SimpleQueue[int]) -> Iterator[Sampler[int]]:
    sampler = Sampler(source, readings.put)
    yield sampler
    sampler.close()


def test_nothing_runs_before_it_is_wanted(source: Source, sampler: Sampler[int]) -> None:
    sampler.set_interval(None)
    assert "memory-sampler" not in {thread.name for thread in threading.enumerate()}
    assert source.count == 0


def test_the_first_reading_comes_at_once_and_others_follow(
    sampler: Sampler[int], readings: queue.SimpleQueue[int]
) -> None:
    sampler.set_interval(60.0)
    assert readings.get(timeout=2) == 1
    sampler.set_interval(0.01)
    assert [readings.get(timeout=2) for _ in range(3)] == [2, 3, 4]


def test_the_source_is_let_go_on_its_own_thread_and_taken_up_again(
    source: Source, sampler: Sampler[int], readings: queue.SimpleQueue[int]
) -> None:
    sampler.set_interval(60.0)
    readings.get(timeout=2)
    sampler.set_interval(None)
    assert source.closes.get(timeout=2) == "memory-sampler"
    before = source.count
    sampler.set_interval(60.0)
    assert readings.get(timeout=2) == before + 1


def test_the_end_lets_go_and_is_final(source: Source, sampler: Sampler[int], readings: queue.SimpleQueue[int]) -> None:
    sampler.set_interval(60.0)
    readings.get(timeout=2)
    sampler.close()
    assert source.closes.get(timeout=2) == "memory-sampler"
    sampler.set_interval(0.01)
    assert readings.empty()
