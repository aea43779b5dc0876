"""One model resident, ever: the state machine over models that weigh what the test says."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from inference.engine.decoder import LoadStopped
from inference.engine.engine import Engine
from inference.engine.memory_plan import MemoryPlan
from inference.engine.residency import Residency
from inference.errors import InferenceError, ModelResidentError, OutOfMemoryError
from inference.request import ModelEvent, ModelState

EMPTY, LOADING, READY, UNLOADING, FAILED = (
    ModelState.EMPTY,
    ModelState.LOADING,
    ModelState.READY,
    ModelState.UNLOADING,
    ModelState.FAILED,
)


class FakeEngine:
    def __init__(self, machine: Machine, size: int) -> None:
        self.machine, self.size = machine, size
        machine.used += size
        assert machine.used <= machine.memory, "two models were resident"

    def close(self) -> None:
        self.machine.used -= self.size


class FakePlan:
    """A model of 10 bytes and more; `failure` is raised while it loads."""

    def __init__(self, machine: Machine, name: str) -> None:
        self.machine, self.name = machine, name
        self.memory = MemoryPlan(
            weight_bytes=machine.sizes[name], kv_bytes=0, workspace_bytes=0, reserve_bytes=5, context_tokens=64
        )
        self.closed = False

    def load(self, on_progress: Callable[[float], None], should_stop: Callable[[], bool]) -> Engine:
        self.closed = True
        self.machine.loads.append(self.name)
        for share in range(1, 1001):
            if should_stop():
                raise LoadStopped
            on_progress(share / 1000)
            if share == 500 and self.machine.failure is not None:
                raise self.machine.failure
        return cast(Engine, FakeEngine(self.machine, self.memory.weight_bytes))

    def close(self) -> None:
        self.closed = True


class Machine:
    """100 bytes of memory, and everything that a residency moves."""

    def __init__(self) -> None:
        self.memory, self.used = 100, 0
        self.sizes = {"a": 60, "b": 70, "big": 101}
        self.failure: Exception | None = None
        self.lock_failure: InferenceError | None = None
        self.locked_for = ""
        self.loads: list[str] = []
        self.plans: list[FakePlan] = []
        self.events: list[ModelEvent] = []
        self.ended = 0
        self.residency = Residency(self.plan, self, self.events.append)

    def plan(self, name: str, freed_bytes: int, freed_device: str) -> FakePlan:
        if name not in self.sizes:
            raise InferenceError(f"no model {name}")
        free = self.memory - self.used + freed_bytes
        if self.sizes[name] > free:
            raise OutOfMemoryError(self.sizes[name], free, "Close something.")
        self.plans.append(FakePlan(self, name))
        return self.plans[-1]

    def settle(self, model: str, device: str) -> None:
        assert device == "cpu"
        self.acquire(model)

    def acquire(self, model: str) -> None:
        if self.lock_failure is not None:
            raise self.lock_failure
        self.locked_for = model

    def release(self) -> None:
        self.locked_for = ""

    def load(self, model: str, stop: Callable[[], bool] = lambda: False) -> None:
        self.residency.load(model, stop, self.end_requests)

    def end_requests(self) -> None:
        assert self.residency.engine is not None, "requests end before their model leaves"
        self.ended += 1

    def states(self) -> list[tuple[ModelState, str]]:
        """Changes of state since the last call, progress left out."""
        changes = [(event.state, event.model) for event in self.events if event.progress in (0.0, 1.0)]
        self.events.clear()
        return [change for index, change in enumerate(changes) if index == 0 or changes[index - 1] != change]

    def check(self, state: ModelState, model: str, loads: list[str]) -> None:
        residency = self.residency
        assert (residency.state, residency.model) == (state, model)
        assert (residency.engine is not None) == (state is READY)
        assert self.used == (self.sizes[model] if state is READY else 0)
        assert self.locked_for == (model if state is READY else "")
        assert self.loads == loads
        assert all(plan.closed for plan in self.plans)


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_load_and_unload(machine: Machine) -> None:
    machine.check(EMPTY, "", [])
    machine.load("a")
    shares = [event.progress for event in machine.events]
    assert shares == sorted(shares)
    assert 90 < len(shares) < 110, "progress is reported by the hundredth"
    assert machine.states() == [(LOADING, "a"), (READY, "a")]
    machine.check(READY, "a", ["a"])
    machine.residency.unload()
    assert machine.states() == [(UNLOADING, "a"), (EMPTY, "")]
    machine.check(EMPTY, "", ["a"])
    assert machine.ended == 0


def test_four_loads_of_one_model_load_once(machine: Machine) -> None:
    for _ in range(4):
        machine.load("a")
    assert machine.states() == [(LOADING, "a"), (READY, "a")]
    machine.check(READY, "a", ["a"])


def test_an_outdated_model_is_loaded_anew_and_a_refusal_leaves_it(machine: Machine) -> None:
    machine.load("a")
    machine.residency.outdate()
    machine.sizes["a"] = 101
    with pytest.raises(OutOfMemoryError):
        machine.load("a")
    machine.sizes["a"] = 60
    machine.check(READY, "a", ["a"])
    machine.sizes["a"] = 80
    machine.load("a")
    machine.load("a")
    machine.check(READY, "a", ["a", "a"])


def test_another_model_takes_the_place_of_the_first(machine: Machine) -> None:
    machine.load("a")
    machine.states()
    machine.load("b")
    assert machine.states() == [(UNLOADING, "a"), (LOADING, "b"), (READY, "b")]
    machine.check(READY, "b", ["a", "b"])
    assert machine.ended == 1


@pytest.mark.parametrize("name", ["big", "unknown"])
def test_a_refused_load_leaves_the_resident_model_alone(machine: Machine, name: str) -> None:
    machine.load("a")
    machine.states()
    with pytest.raises(InferenceError):
        machine.load(name)
    assert machine.events[0].error is not None
    assert machine.states() == [(FAILED, name), (READY, "a")]
    machine.check(READY, "a", ["a"])
    assert machine.ended == 0


@pytest.mark.parametrize("name", ["big", "unknown"])
def test_a_refused_load_leaves_nothing_where_nothing_was(machine: Machine, name: str) -> None:
    with pytest.raises(InferenceError):
        machine.load(name)
    assert machine.states() == [(LOADING, name), (FAILED, name)]
    machine.check(FAILED, name, [])
    machine.load("a")
    machine.check(READY, "a", ["a"])


@pytest.mark.parametrize("first", [None, "a"])
def test_a_load_that_fails_on_its_way_can_be_tried_again(machine: Machine, first: str | None) -> None:
    loads = []
    if first is not None:
        machine.load(first)
        loads.append(first)
    machine.failure = InferenceError("damaged")
    with pytest.raises(InferenceError, match="damaged"):
        machine.load("b")
    assert machine.events[-1].error is machine.failure
    machine.check(FAILED, "b", [*loads, "b"])
    machine.failure = None
    machine.load("b")
    machine.check(READY, "b", [*loads, "b", "b"])


def test_memory_that_turns_out_to_be_missing_is_an_error_of_ours(machine: Machine) -> None:
    machine.failure = MemoryError()
    with pytest.raises(OutOfMemoryError, match="Close other programs"):
        machine.load("a")
    machine.check(FAILED, "a", ["a"])


def test_a_stopped_load_leaves_nothing(machine: Machine) -> None:
    answers = iter([False] * 300 + [True])
    machine.load("a", lambda: next(answers))
    assert machine.states() == [(LOADING, "a"), (EMPTY, "")]
    machine.check(EMPTY, "", ["a"])
    machine.load("b")
    machine.check(READY, "b", ["a", "b"])


def test_a_model_in_another_process_is_the_others(machine: Machine) -> None:
    machine.lock_failure = ModelResidentError("another has it")
    with pytest.raises(ModelResidentError):
        machine.load("a")
    machine.check(FAILED, "a", [])
    machine.lock_failure = None
    machine.load("a")
    machine.check(READY, "a", ["a"])


def test_a_lock_that_is_lost_on_the_way_leaves_nothing(machine: Machine) -> None:
    machine.load("a")
    machine.lock_failure = InferenceError("the disk is full")
    with pytest.raises(InferenceError, match="disk"):
        machine.load("b")
    machine.check(FAILED, "b", ["a"])


def test_unforeseen_failures_leave_a_state_that_can_be_left(machine: Machine) -> None:
    machine.failure = RuntimeError("nobody thought of this")
    with pytest.raises(RuntimeError):
        machine.load("a")
    machine.residency.fail("a", InferenceError("unforeseen"))
    machine.check(FAILED, "a", ["a"])
    machine.failure = None
    machine.load("a")
    machine.states()
    machine.residency.fail("b", InferenceError("while planning another"))
    assert machine.states() == [(FAILED, "b"), (READY, "a")]
    machine.check(READY, "a", ["a", "a"])


def test_unloading_nothing_is_fine(machine: Machine) -> None:
    machine.residency.unload()
    machine.check(EMPTY, "", [])
