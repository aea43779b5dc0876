"""Questions about what a model would take, answered on the worker's thread, one at a time between its steps."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable

from inference.engine.options import EngineOptions
from inference.engine.unforeseen import log_error
from inference.errors import InferenceError
from inference.request import ModelPlan

PlanListener = Callable[[ModelPlan | InferenceError], None]
Planner = Callable[[str, EngineOptions, int, str], ModelPlan]


def plan_by_loader(name: str, options: EngineOptions, freed_bytes: int, freed_device: str) -> ModelPlan:
    """See loader.plan_model, which is imported on the thread that asks."""
    from inference.engine.loader import plan_model

    return plan_model(name, options, freed_bytes, freed_device)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Question:
    model: str
    context_tokens: int | None
    listener: PlanListener


class PlanQueue:
    """Questions that wait. For one thread."""

    def __init__(self, plan: Planner = plan_by_loader) -> None:
        self._plan = plan
        self._questions: deque[_Question] = deque()

    def __bool__(self) -> bool:
        return bool(self._questions)

    def put(self, model: str, context_tokens: int | None, listener: PlanListener) -> None:
        """Adds a question; a context of None is the one of the options."""
        self._questions.append(_Question(model, context_tokens, listener))

    def answer(self, options: EngineOptions, freed: tuple[int, str]) -> tuple[PlanListener, ModelPlan | InferenceError]:
        """The oldest question's listener, and what it is to be told.

        Args:
            freed: bytes that the resident model would give back, and of which device.
        """
        question = self._questions.popleft()
        if question.context_tokens is not None:
            options = dataclasses.replace(options, context_tokens=question.context_tokens)
        try:
            return question.listener, self._plan(question.model, options, *freed)
        except InferenceError as error:
            return question.listener, error
        except Exception as error:  # noqa: BLE001 - a part of the worker's loop: a question harms no request
            log_error("A plan", error)
            return question.listener, InferenceError(
                f"What {question.model} would take cannot be told ({type(error).__name__}: {error})."
                " Check its files, or load it: the load says more."
            )

    def drop(self, error: InferenceError) -> list[tuple[PlanListener, ModelPlan | InferenceError]]:
        """Takes all questions away; each listener is to be told the error."""
        questions, self._questions = self._questions, deque()
        return [(question.listener, error) for question in questions]
