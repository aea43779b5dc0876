"""The worker thread with tiny random models, and with models that fail."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from inference.engine.options import EngineOptions
from inference.engine.worker import Worker
from inference.request import (
    DoneEvent,
    FailedEvent,
    GenerationRequest,
    Message,
    ModelEvent,
    ModelState,
    RequestEvent,
    SamplingParams,
    TokenEvent,
)


class Answer:
    """Collects the events of one request."""

    def __init__(self) -> None:
        self.events: list[RequestEvent] = []
        self._queue: queue.SimpleQueue[RequestEvent] = queue.SimpleQueue()

    def __call__(self, event: RequestEvent) -> None:
        self.events.append(event)
        self._queue.put(event)

    def wait_for(self, *kinds: type, timeout: float = 30.0) -> RequestEvent:
        """The next event of one of these kinds."""
        while not isinstance(event := self._queue.get(timeout=timeout), kinds):
            pass
        return event

    def end(self, timeout: float = 30.0) -> RequestEvent:
        return self.wait_for(DoneEvent, FailedEvent, timeout=timeout)

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, TokenEvent))


def ask(text: str, max_new_tokens: int = 12) -> GenerationRequest:
    return GenerationRequest((Message("user", text),), SamplingParams(max_new_tokens=max_new_tokens))


@pytest.fixture(scope="module")
def tiny(save_tiny_model: Callable[..., Path]) -> str:
    return str(save_tiny_model("qwen2"))


@pytest.fixture
def options(tmp_path: Path) -> EngineOptions:
    return EngineOptions(backend="torch", threads=1, lock_dir=tmp_path, prefill_chunk=64)


@pytest.fixture
def worker(options: EngineOptions, tiny: str) -> Iterator[Worker]:
    worker = Worker(options, tiny)
    yield worker
    worker.close()


def test_the_first_request_loads_the_default_model(worker: Worker, tiny: str) -> None:
    events: list[ModelEvent] = []
    worker.listen(events.append)
    answer = Answer()
    request = ask("hello")
    worker.submit(request, answer)
    done = answer.end()
    assert isinstance(done, DoneEvent)
    assert done.request_id == request.request_id
    assert done.usage.new_tokens <= 12
    assert answer.text
    states = [event.state for event in events]
    assert states[0] is ModelState.LOADING
    assert states[-1] is ModelState.READY
    assert {event.model for event in events} == {tiny}
    shares = [event.progress for event in events]
    assert shares == sorted(shares)
    assert worker.reading().state is ModelState.READY
