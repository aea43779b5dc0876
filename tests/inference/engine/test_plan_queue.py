"""What a model would take, told by the worker without loading it."""

from __future__ import annotations

import dataclasses
import queue

import psutil
import pytest

from inference.engine import loader
from inference.engine.loader import PlannedModel, plan_model
from inference.engine.options import EngineOptions
from inference.engine.plan_queue import PlanQueue
from inference.engine.worker import Worker
from inference.errors import InferenceError, InvalidRequestError, ModelNotFoundError, OutOfMemoryError
from inference.request import ModelEvent, ModelPlan, ModelState

Answers = queue.SimpleQueue[ModelPlan | InferenceError]


def plan_of(worker: Worker, model: str, context_tokens: int | None = None) -> ModelPlan | InferenceError:
    answers: Answers = queue.SimpleQueue()
    worker.plan(model, context_tokens, answers.put)
    return answers.get(timeout=30)


def wait_for_ready(worker: Worker, model: str) -> None:
    states: queue.SimpleQueue[ModelEvent] = queue.SimpleQueue()
    worker.listen(states.put)
    worker.load(model)
    while states.get(timeout=30).state is not ModelState.READY:
        pass


def test_a_plan_is_what_a_load_then_takes_and_loads_nothing(worker: Worker, options: EngineOptions, tiny: str) -> None:
    plan = plan_of(worker, tiny, 128)
    assert isinstance(plan, ModelPlan)
    assert worker.reading().state is ModelState.EMPTY
    planned = PlannedModel(tiny, dataclasses.replace(options, context_tokens=128))
    assert plan.needed_bytes == planned.memory.total_bytes
    assert (plan.context_tokens, plan.kv_bytes) == (planned.memory.context_tokens, planned.memory.kv_bytes)
    assert (plan.model, plan.backend, plan.device) == (tiny, "torch", "cpu")
    planned.close()


def test_a_plan_counts_what_leaves(worker: Worker, tiny: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "available_bytes", lambda: 10**9)
    wait_for_ready(worker, tiny)
    reading = worker.reading()
    plan = plan_of(worker, tiny)
    assert isinstance(plan, ModelPlan)
    held = reading.weight_bytes + reading.kv_bytes + reading.workspace_bytes
    assert plan.freed_bytes == held > 0
    assert plan.available_bytes == 10**9 + held
    assert worker.reading().state is ModelState.READY


def test_what_does_not_fit_is_told_with_its_numbers(tiny: str, options: EngineOptions) -> None:
    reserve = plan_model(tiny, options).reserve_bytes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loader, "available_bytes", lambda: reserve)
        plan = plan_model(tiny, options)
        with pytest.raises(OutOfMemoryError) as refusal:
            PlannedModel(tiny, options)
    assert not plan.fits
    assert plan.largest_context_tokens == 0
    assert (plan.needed_bytes, plan.available_bytes) == (refusal.value.needed_bytes, refusal.value.free_bytes)
    assert plan.cure == str(refusal.value)


def test_the_largest_context_fits_and_a_page_more_does_not(tiny: str, options: EngineOptions) -> None:
    small = dataclasses.replace(options, context_tokens=64)
    one_page = plan_model(tiny, small)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loader, "available_bytes", lambda: one_page.needed_bytes + one_page.kv_bytes)
        plan = plan_model(tiny, small)
        assert plan.largest_context_tokens == 128
        assert plan_model(tiny, dataclasses.replace(options, context_tokens=128)).fits
        assert not plan_model(tiny, dataclasses.replace(options, context_tokens=129)).fits


def test_why_a_model_cannot_be_planned_is_told(worker: Worker, tiny: str) -> None:
    assert isinstance(plan_of(worker, "no-such-model"), ModelNotFoundError)
    assert isinstance(plan_of(worker, tiny, 3), InvalidRequestError)


def test_plans_leave_no_file_open(tiny: str, options: EngineOptions) -> None:
    plan_model(tiny, options)
    plan_model(tiny, dataclasses.replace(options, context_tokens=64))
    open_files = [file.path for file in psutil.Process().open_files()]
    assert not any(path.startswith(tiny) for path in open_files)


def test_a_question_that_fails_unforeseen_is_answered() -> None:
    def fails(*_: object) -> ModelPlan:
        raise ZeroDivisionError

    plans = PlanQueue(fails)
    answers: list[ModelPlan | InferenceError] = []
    plans.put("a", None, answers.append)
    listener, answer = plans.answer(EngineOptions(), (0, "cpu"))
    listener(answer)
    assert "ZeroDivisionError" in str(answers[0])
    assert not plans


def test_questions_are_answered_when_the_worker_ends(worker: Worker, tiny: str) -> None:
    answers: Answers = queue.SimpleQueue()
    for _ in range(20):
        worker.plan(tiny, None, answers.put)
    worker.close()
    assert [answers.get(timeout=5) for _ in range(20)]
