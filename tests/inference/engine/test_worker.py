"""The worker thread with tiny random models, and with models that fail."""

from __future__ import annotations

import dataclasses
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from inference.backends.backend import create_backend
from inference.engine.decoder import LoadStopped
from inference.engine.device_lock import DeviceLock, DeviceLocks
from inference.engine.engine import Engine
from inference.engine.memory_plan import MemoryPlan
from inference.engine.options import EngineOptions
from inference.engine.residency import Residency
from inference.engine.worker import Worker
from inference.errors import (
    BackendUnavailableError,
    ContextOverflowError,
    DeviceFailedError,
    EngineStoppedError,
    InferenceError,
    ModelNotFoundError,
    ModelResidentError,
)
from inference.request import (
    DoneEvent,
    EngineReading,
    FailedEvent,
    GenerationRequest,
    Message,
    ModelEvent,
    ModelState,
    RequestEvent,
    SamplingParams,
    TokenCounts,
    TokenEvent,
    Usage,
)

USER_WORDS = "what a user wrote"
"""Not to be found in any log, though exceptions may quote it."""


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


def wait_until(condition: Callable[[], bool], timeout: float = 20.0) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.005)


def test_nothing_heavy_is_imported_before_the_first_command() -> None:
    code = (
        "import sys\n"
        "from inference.engine.options import EngineOptions\n"
        "from inference.engine.worker import Worker\n"
        "worker = Worker(EngineOptions(), 'none')\n"
        "heavy = {'torch', 'numpy', 'tokenizers', 'jinja2', 'huggingface_hub'} & set(sys.modules)\n"
        "worker.close()\n"
        "sys.exit(f'{heavy} imported' if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[3], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_greedy_answers_are_the_same_in_ten_runs_and_beside_others(options: EngineOptions, tiny: str) -> None:
    """With the kernels, which promise the same bits in every company; PyTorch promises that to nobody."""
    try:
        create_backend("cpu").close()
    except BackendUnavailableError as error:
        pytest.skip(str(error))
    worker = Worker(dataclasses.replace(options, backend="cpu"), tiny)
    try:
        _ask_ten_times(worker)
    finally:
        worker.close()


def _ask_ten_times(worker: Worker) -> None:
    text = "The same question again and again, long enough to need more than a page of the cache: " * 2
    answers = []
    for index in range(10):
        others = [Answer() for _ in range(index % 3)]
        for other in others:
            worker.submit(ask(f"neighbour {index}", max_new_tokens=20), other)
        answer = Answer()
        worker.submit(ask(text, max_new_tokens=24), answer)
        assert isinstance(answer.end(), DoneEvent)
        for other in others:
            other.end()
        answers.append(answer.text)
    assert answers[0]
    assert set(answers) == {answers[0]}


def test_events_of_a_request_come_in_order_on_one_thread(worker: Worker) -> None:
    threads: set[str] = set()
    answer = Answer()

    def listener(event: RequestEvent) -> None:
        threads.add(threading.current_thread().name)
        answer(event)

    worker.submit(ask("word " * 60), listener)
    answer.end()
    kinds = [type(event).__name__ for event in answer.events]
    first_token = kinds.index("TokenEvent")
    assert kinds[:first_token] == ["PrefillEvent"] * first_token
    assert first_token > 1, "the prompt is longer than a chunk"
    assert kinds[first_token:-1] == ["TokenEvent"] * (len(kinds) - first_token - 1)
    assert kinds[-1] == "DoneEvent"
    assert threads == {"engine"}


def test_cancel_ends_an_answer_within_two_tokens(worker: Worker) -> None:
    """The listener cancels from the engine's own thread, so what comes after is countable."""
    request = ask("go on for ever", max_new_tokens=400)
    answer = Answer()

    def listener(event: RequestEvent) -> None:
        answer(event)
        if len(answer.events) == 5:
            worker.cancel(request.request_id)

    worker.submit(request, listener)
    done = answer.end()
    assert isinstance(done, DoneEvent)
    assert done.finish_reason == "cancelled"
    assert len(answer.events) - 1 - 5 <= 2
    assert 0 < done.usage.new_tokens < 10
    reading = worker.reading()
    assert (reading.running, reading.waiting) == (0, 0)
    assert reading.pages_free == reading.pages_total


def test_cancelling_what_waits_and_what_is_unknown(worker: Worker) -> None:
    worker.cancel("unknown")
    requests = [ask("x " * 40, max_new_tokens=30) for _ in range(12)]
    answers = [Answer() for _ in requests]
    for request, answer in zip(requests, answers, strict=True):
        worker.submit(request, answer)
    worker.cancel(requests[-1].request_id)
    done = answers[-1].end()
    assert isinstance(done, DoneEvent)
    assert done.finish_reason == "cancelled"
    assert all(isinstance(answer.end(), DoneEvent) for answer in answers[:-1])
    worker.cancel(requests[0].request_id)


def test_a_prompt_that_is_too_long_fails_with_both_numbers_and_harms_nobody(options: EngineOptions, tiny: str) -> None:
    worker = Worker(dataclasses.replace(options, context_tokens=128), lambda: tiny)
    try:
        too_long, fine = Answer(), Answer()
        worker.submit(ask("z" * 500), too_long)
        worker.submit(ask("fine", max_new_tokens=3), fine)
        failed = too_long.end()
        assert isinstance(failed, FailedEvent)
        assert isinstance(failed.error, ContextOverflowError)
        assert failed.error.prompt_tokens > 500
        assert failed.error.context_tokens == 128
        assert isinstance(fine.end(), DoneEvent)
    finally:
        worker.close()


def test_tokens_are_counted_and_the_default_model_is_loaded_for_that(worker: Worker) -> None:
    answers: queue.SimpleQueue[tuple[str, TokenCounts | InferenceError]] = queue.SimpleQueue()
    worker.count_tokens(
        ["abc", "", "z" * 40_000], lambda answer: answers.put((threading.current_thread().name, answer))
    )
    thread, counts = answers.get(timeout=30.0)
    assert thread == "engine"
    assert isinstance(counts, TokenCounts)
    assert counts.counts[1] == 0
    assert 1 <= counts.counts[0] <= 3
    assert counts.counts[2] > 10_000
    assert counts.context_tokens == worker.reading().context_tokens


def test_answers_go_on_while_a_long_text_is_counted(worker: Worker) -> None:
    answer = Answer()
    worker.submit(ask("go on", max_new_tokens=100), answer)
    answer.wait_for(TokenEvent)
    events_at_end: list[int] = []
    counted = threading.Event()

    def on_counts(counts: TokenCounts | InferenceError) -> None:
        assert isinstance(counts, TokenCounts)
        events_at_end.append(len(answer.events))
        counted.set()

    before = len(answer.events)
    worker.count_tokens(["z" * 1_000_000], on_counts)
    assert counted.wait(60.0)
    assert events_at_end[0] > before
    assert isinstance(answer.end(), DoneEvent)


def test_counting_fails_as_a_request_does(options: EngineOptions, tmp_path: Path) -> None:
    worker = Worker(options, str(tmp_path / "missing"))
    answers: queue.SimpleQueue[TokenCounts | InferenceError] = queue.SimpleQueue()
    try:
        worker.count_tokens(["a"], answers.put)
        assert isinstance(answers.get(timeout=30.0), ModelNotFoundError)
    finally:
        worker.close()


def test_unloading_ends_the_counting(worker: Worker, tiny: str) -> None:
    worker.load(tiny)
    wait_until(lambda: worker.reading().state is ModelState.READY)
    answers: queue.SimpleQueue[TokenCounts | InferenceError] = queue.SimpleQueue()
    worker.count_tokens(["z" * 3_000_000], answers.put)
    worker.unload()
    error = answers.get(timeout=30.0)
    assert isinstance(error, InferenceError)
    assert "unloaded" in str(error)


def test_a_request_id_can_be_used_once_at_a_time(worker: Worker) -> None:
    request = ask("twice", max_new_tokens=60)
    first, second = Answer(), Answer()
    worker.submit(request, first)
    worker.submit(request, second)
    failed = second.end()
    assert isinstance(failed, FailedEvent)
    assert "under way" in str(failed.error)
    assert isinstance(first.end(), DoneEvent)
    again = Answer()
    worker.submit(request, again)
    assert isinstance(again.end(), DoneEvent)
    assert again.text == first.text


def test_listeners_that_raise_harm_nobody_and_their_message_is_not_logged(
    worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    def bad(event: object) -> None:
        raise RuntimeError(USER_WORDS)

    events: list[ModelEvent] = []
    worker.listen(bad)
    remove = worker.listen(events.append)
    worker.submit(ask("one"), bad)
    answer = Answer()
    worker.submit(ask("two"), answer)
    assert isinstance(answer.end(), DoneEvent)
    assert events[-1].state is ModelState.READY
    assert "RuntimeError" in caplog.text
    assert USER_WORDS not in caplog.text
    remove()
    remove()
    count = len(events)
    worker.unload()
    wait_until(lambda: worker.reading().state is ModelState.EMPTY)
    assert len(events) == count


def test_a_missing_model_fails_the_requests_and_the_next_ones_may_succeed(
    options: EngineOptions, tiny: str, tmp_path: Path
) -> None:
    models = [str(tmp_path / "missing"), tiny]
    worker = Worker(options, lambda: models.pop(0))
    try:
        events: list[ModelEvent] = []
        worker.listen(events.append)
        first, second = Answer(), Answer()
        worker.submit(ask("one"), first)
        failed = first.end()
        assert isinstance(failed, FailedEvent)
        assert isinstance(failed.error, ModelNotFoundError)
        assert [event.state for event in events] == [ModelState.LOADING, ModelState.FAILED]
        assert events[-1].error is failed.error
        assert worker.reading().state is ModelState.FAILED
        worker.submit(ask("two"), second)
        assert isinstance(second.end(), DoneEvent)
    finally:
        worker.close()


def test_four_loads_at_once_load_once_and_another_model_takes_its_place(
    worker: Worker, tiny: str, save_tiny_model: Callable[..., Path]
) -> None:
    events: list[ModelEvent] = []
    worker.listen(events.append)
    threads = [threading.Thread(target=worker.load, args=(tiny,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait_until(lambda: worker.reading().state is ModelState.READY)
    assert [event.progress for event in events].count(0.0) <= 2
    other = str(save_tiny_model("llama"))
    long_answer = Answer()
    worker.submit(ask("go on", max_new_tokens=400), long_answer)
    long_answer.wait_for(TokenEvent)
    worker.load(other)
    done = long_answer.end()
    assert isinstance(done, DoneEvent)
    assert done.finish_reason == "cancelled"
    wait_until(lambda: worker.reading().model == other and worker.reading().state is ModelState.READY)
    order = [(event.state, event.model) for event in events]
    assert order.index((ModelState.UNLOADING, tiny)) < order.index((ModelState.LOADING, other))
    assert order.count((ModelState.UNLOADING, tiny)) == 1


def test_two_workers_do_not_both_hold_a_model(worker: Worker, options: EngineOptions, tiny: str) -> None:
    worker.load(tiny)
    wait_until(lambda: worker.reading().state is ModelState.READY)
    second = Worker(options, tiny)
    try:
        refused, served = Answer(), Answer()
        second.submit(ask("me too"), refused)
        failed = refused.end()
        assert isinstance(failed, FailedEvent)
        assert isinstance(failed.error, ModelResidentError)
        assert tiny in str(failed.error)
        worker.unload()
        wait_until(lambda: worker.reading().state is ModelState.EMPTY)
        second.submit(ask("now"), served)
        assert isinstance(served.end(), DoneEvent)
    finally:
        second.close()


class StubEngine:
    """An engine whose steps do what the test says."""

    def __init__(self, step: Callable[[Callable[[], bool]], None]) -> None:
        self._step = step
        self.requests: list[GenerationRequest] = []
        self.closed = False
        self.spare_s = 0.0
        self.prepared = threading.Event()

    @property
    def has_work(self) -> bool:
        return bool(self.requests)

    def add(self, request: GenerationRequest, submitted_at: float) -> None:
        if "unencodable" in request.messages[0].content:
            raise KeyError(USER_WORDS)
        self.requests.append(request)

    def prepare_grammars(self) -> None:
        assert not self.prepared.is_set(), "once is enough"
        self.prepared.set()

    def step(self, should_stop: Callable[[], bool]) -> list[RequestEvent]:
        self._step(should_stop)
        return [DoneEvent(self.requests.pop(0).request_id, "stop", Usage())]

    def fail_step(self, error: InferenceError) -> list[RequestEvent]:
        return [FailedEvent(self.requests.pop(0).request_id, error)]

    fail_all = fail_step

    def cancel(self, request_id: str) -> DoneEvent | None:
        return None

    def cancel_all(self) -> list[DoneEvent]:
        events = [DoneEvent(request.request_id, "cancelled", Usage()) for request in self.requests]
        self.requests.clear()
        return events

    def reading(self) -> EngineReading:
        return EngineReading(state=ModelState.READY)

    def close(self) -> None:
        self.closed = True


class StubPlan:
    """A model that loads for as long as the test likes."""

    memory = MemoryPlan(1, 1, 1, 1, 64)

    def __init__(
        self, engine: StubEngine, tensors: int = 1, tensor_s: float = 0.0, error: Exception | None = None
    ) -> None:
        self._engine, self._tensors, self._tensor_s, self._error = engine, tensors, tensor_s, error

    def load(self, on_progress: Callable[[float], None], should_stop: Callable[[], bool]) -> Engine:
        for index in range(self._tensors):
            if should_stop():
                raise LoadStopped
            time.sleep(self._tensor_s)
            on_progress((index + 1) / self._tensors)
        if self._error is not None:
            raise self._error
        return cast(Engine, self._engine)

    def close(self) -> None:
        pass


def stub_worker(plan: StubPlan, lock_dir: Path, **options: bool) -> Worker:
    def residency(options: Callable[[], EngineOptions], notify: Callable[[ModelEvent], None]) -> Residency:
        return Residency(lambda name, freed, device: plan, DeviceLocks(lock_dir), notify)

    return Worker(EngineOptions(**options), "stub", residency)


def test_an_exception_in_a_step_fails_its_requests_and_the_worker_lives(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    failures = [ZeroDivisionError(USER_WORDS), InferenceError("known")]

    def step(should_stop: Callable[[], bool]) -> None:
        if failures:
            raise failures.pop(0)

    worker = stub_worker(StubPlan(StubEngine(step)), tmp_path)
    try:
        results = []
        for text in ("one", "two", "unencodable", "three"):
            answer = Answer()
            worker.submit(ask(text), answer)
            results.append(answer.end())
        kinds = [type(result).__name__ for result in results]
        assert kinds == ["FailedEvent", "FailedEvent", "FailedEvent", "DoneEvent"]
        errors = [str(result.error) for result in results if isinstance(result, FailedEvent)]
        assert "ZeroDivisionError" in errors[0]
        assert errors[1] == "known"
        assert "KeyError" in errors[2]
        assert "ZeroDivisionError" in caplog.text
        assert USER_WORDS not in caplog.text
    finally:
        worker.close()


@pytest.mark.parametrize("prepares", [True, False])
def test_grammars_are_prepared_once_when_nobody_is_in_a_hurry(
    prepares: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inference.engine.worker._QUIET_S", 0.1)
    engine = StubEngine(lambda should_stop: None)
    worker = stub_worker(StubPlan(engine), tmp_path, prepares_grammars=prepares)
    try:
        for _ in range(2):
            answer = Answer()
            worker.submit(ask("x"), answer)
            assert isinstance(answer.end(), DoneEvent)
            assert engine.prepared.wait(0.4 if not prepares else 5) is prepares
    finally:
        worker.close()


def test_who_comes_while_a_step_is_under_way_is_seen_before_the_next_one(tmp_path: Path) -> None:
    begun, seen = threading.Event(), list[list[str]]()

    def step(should_stop: Callable[[], bool]) -> None:
        seen.append([request.messages[0].content for request in engine.requests])
        engine.spare_s = 0.3 if not begun.is_set() else 0.0
        begun.set()

    engine, answers = StubEngine(step), [Answer() for _ in range(3)]
    worker = stub_worker(StubPlan(engine, tensors=3, tensor_s=0.05), tmp_path)
    try:
        worker.submit(ask("first"), answers[0])
        worker.submit(ask("second"), answers[1])
        assert begun.wait(5)
        worker.submit(ask("late"), answers[2])
        for answer in answers:
            assert isinstance(answer.end(), DoneEvent)
    finally:
        worker.close()
    assert seen == [["first", "second"], ["second", "late"], ["late"]]


def test_a_gpu_that_fails_gives_the_model_back_and_the_next_request_loads_it_again(tmp_path: Path) -> None:
    failures = [DeviceFailedError("the GPU fell off the bus")]

    def step(should_stop: Callable[[], bool]) -> None:
        if failures:
            raise failures.pop(0)

    plan = StubPlan(StubEngine(step))
    worker = stub_worker(plan, tmp_path)
    events: list[ModelEvent] = []
    worker.listen(events.append)
    try:
        first, second = Answer(), Answer()
        worker.submit(ask("one"), first)
        failed = first.end()
        assert isinstance(failed, FailedEvent)
        assert str(failed.error) == "the GPU fell off the bus"
        worker.submit(ask("two"), second)
        assert isinstance(second.end(), DoneEvent)
        states = [event.state for event in events if event.progress in (0.0, 1.0)]
        assert states.count(ModelState.READY) == 2
        assert ModelState.UNLOADING in states
    finally:
        worker.close()


def test_an_unforeseen_failure_of_a_load_fails_the_requests_and_the_worker_lives(tmp_path: Path) -> None:
    plan = StubPlan(StubEngine(lambda should_stop: None), error=RuntimeError("boom"))
    worker = stub_worker(plan, tmp_path)
    try:
        answer = Answer()
        worker.submit(ask("one"), answer)
        failed = answer.end()
        assert isinstance(failed, FailedEvent)
        assert "RuntimeError: boom" in str(failed.error)
        assert worker.reading().state is ModelState.FAILED
        plan._error = None
        answer = Answer()
        worker.submit(ask("two"), answer)
        assert isinstance(answer.end(), DoneEvent)
    finally:
        worker.close()


def test_close_ends_a_load(tmp_path: Path) -> None:
    worker = stub_worker(StubPlan(StubEngine(lambda should_stop: None), tensors=600, tensor_s=0.05), tmp_path)
    answer = Answer()
    worker.submit(ask("one"), answer)
    wait_until(lambda: worker.reading().state is ModelState.LOADING)
    start = time.monotonic()
    worker.close()
    assert time.monotonic() - start < 1.5
    done = answer.end()
    assert isinstance(done, DoneEvent)
    assert done.finish_reason == "cancelled"
    assert worker.reading().state is ModelState.EMPTY
    DeviceLock(tmp_path).acquire("free again")


def test_stop_and_unload_take_effect_during_a_load(tmp_path: Path) -> None:
    worker = stub_worker(StubPlan(StubEngine(lambda should_stop: None), tensors=600, tensor_s=0.05), tmp_path)
    try:
        stopped, unloaded = ask("one"), ask("two")
        first, second = Answer(), Answer()
        worker.submit(stopped, first)
        worker.submit(unloaded, second)
        wait_until(lambda: worker.reading().state is ModelState.LOADING)
        start = time.monotonic()
        worker.cancel(stopped.request_id)
        done = first.end()
        assert time.monotonic() - start < 1.5
        assert isinstance(done, DoneEvent)
        assert done.finish_reason == "cancelled"
        assert worker.reading().state is ModelState.LOADING, "the other request still waits for the model"
        worker.unload()
        assert isinstance(second.end(), DoneEvent)
        wait_until(lambda: worker.reading().state is ModelState.EMPTY, timeout=2.0)
    finally:
        worker.close()


def test_close_ends_a_long_step(tmp_path: Path) -> None:
    """A prefill asks before each layer; here a layer takes 50 ms."""
    started = threading.Event()

    def step(should_stop: Callable[[], bool]) -> None:
        started.set()
        for _ in range(600):
            if should_stop():
                return
            time.sleep(0.05)

    engine = StubEngine(step)
    worker = stub_worker(StubPlan(engine), tmp_path)
    worker.submit(ask("one"), Answer())
    assert started.wait(20.0)
    start = time.monotonic()
    worker.close()
    assert time.monotonic() - start < 1.5
    assert engine.closed


def test_after_close_calls_are_refused_and_a_second_close_is_not(options: EngineOptions, tiny: str) -> None:
    worker = Worker(options, tiny)
    running, answer = ask("one", max_new_tokens=400), Answer()
    worker.submit(running, answer)
    answer.wait_for(TokenEvent)
    worker.close()
    done = answer.end()
    assert isinstance(done, DoneEvent)
    assert done.finish_reason == "cancelled"
    worker.close()
    assert worker.reading().state is ModelState.EMPTY
    calls: list[Callable[[], None]] = [
        lambda: worker.submit(ask("x"), answer),
        lambda: worker.cancel("x"),
        lambda: worker.load("x"),
        worker.unload,
    ]
    for call in calls:
        with pytest.raises(EngineStoppedError):
            call()


def test_close_from_a_listener_ends_the_worker(options: EngineOptions, tiny: str) -> None:
    worker = Worker(options, tiny)
    answer = Answer()

    def listener(event: RequestEvent) -> None:
        answer(event)
        if isinstance(event, TokenEvent):
            worker.close()

    worker.submit(ask("one", max_new_tokens=400), listener)
    done = answer.end()
    assert isinstance(done, DoneEvent)
    assert done.finish_reason == "cancelled"
    worker._thread.join(5.0)
    assert not worker._thread.is_alive()


def test_an_idle_worker_takes_no_processor_time(worker: Worker) -> None:
    answer = Answer()
    worker.submit(ask("one"), answer)
    answer.end()
    wait_until(lambda: worker.reading().running == 0)
    time.sleep(0.05)
    before = time.process_time()
    time.sleep(0.5)
    assert time.process_time() - before < 0.05


def test_new_options_hold_from_the_next_load_on_which_loads_the_same_model_anew(worker: Worker, tiny: str) -> None:
    loaded: queue.SimpleQueue[ModelEvent] = queue.SimpleQueue()
    worker.listen(lambda event: loaded.put(event) if event.state is ModelState.READY else None)
    worker.load(tiny)
    loaded.get(timeout=30)
    before = worker.reading().context_tokens
    options = dataclasses.replace(worker._options, context_tokens=before // 2)
    worker.set_options(options)
    answer = Answer()
    worker.submit(ask("hello", max_new_tokens=1), answer)
    assert isinstance(answer.end(), DoneEvent)
    assert worker.reading().context_tokens == before
    worker.load(tiny)
    loaded.get(timeout=30)
    wait_until(lambda: worker.reading().context_tokens == before // 2)


def test_options_that_are_the_same_load_nothing_anew(options: EngineOptions, tmp_path: Path) -> None:
    plan = StubPlan(StubEngine(lambda should_stop: None))
    worker = stub_worker(plan, tmp_path)
    ready: queue.SimpleQueue[ModelEvent] = queue.SimpleQueue()
    worker.listen(ready.put)
    try:
        worker.load("stub")
        while ready.get(timeout=10).state is not ModelState.READY:
            pass
        worker.set_options(EngineOptions())
        worker.load("stub")
        assert ready.get(timeout=10).state is ModelState.READY
    finally:
        worker.close()
