"""What a model will take, in bytes, before anything is allocated; and the largest context that fits. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from inference.backends.backend import PAGE_SIZE, Backend
from inference.engine.kv_cache import pages_for
from inference.errors import InvalidRequestError, OutOfMemoryError
from inference.models.model_spec import ModelSpec

RESERVE_BYTES = 192 * 1024**2
"""For the interpreter, the tokenizer and parts of tensors on their way; measured, rounded up."""
LEAST_CONTEXT_TOKENS = 512
"""A context that no longer holds an action's prompt with a paragraph is no help."""


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Sizes in bytes; `context_tokens` is what one request can have, and `num_pages` what all share.

    `device` is the backend's: what the memory belongs to.
    """

    weight_bytes: int
    kv_bytes: int
    workspace_bytes: int
    reserve_bytes: int
    context_tokens: int
    device: str = "cpu"

    @property
    def total_bytes(self) -> int:
        """All of it."""
        return self.weight_bytes + self.kv_bytes + self.workspace_bytes + self.reserve_bytes

    @property
    def place(self) -> str:
        """Where it lies, for a sentence; "" is the machine's memory."""
        return "" if self.device == "cpu" else "on the GPU"

    @property
    def num_pages(self) -> int:
        """KV pages of the context."""
        return pages_for(self.context_tokens)


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """What a model would take, whether that fits or not.

    Attributes:
        free_bytes: what is free now, and what a resident model would give back.
        largest_context_tokens: the largest context that fits, at most what the model was trained for; 0 where none.
    """

    plan: MemoryPlan
    free_bytes: int
    largest_context_tokens: int

    def checked(self) -> MemoryPlan:
        """The plan. Raises OutOfMemoryError where it does not fit; the message says what would."""
        plan = self.plan
        if plan.total_bytes > self.free_bytes:
            cure = _cure(self.largest_context_tokens, plan.device)
            raise OutOfMemoryError(plan.total_bytes, self.free_bytes, cure, plan.place)
        return plan


def estimate_memory(
    spec: ModelSpec,
    weight_bytes: int,
    backend: Backend,
    *,
    free_bytes: int,
    default_context: int,
    context_tokens: int | None = None,
    max_batch_tokens: int = 256,
    reserve_bytes: int = RESERVE_BYTES,
) -> MemoryEstimate:
    """What a model will take.

    Args:
        weight_bytes: of all weights, as they will lie on the device.
        free_bytes: what is free now, and what a resident model would give back.
        default_context: where `context_tokens` is None, the largest context up to this one is taken.
        context_tokens: this context, rounded up to whole pages and cut to what the model was trained for, and no
            smaller one.
        max_batch_tokens: most tokens of a step.
        reserve_bytes: what is needed beside.

    Raises:
        InvalidRequestError: `context_tokens` is less than a page.
    """
    workspace = backend.planned_workspace_bytes(spec, max_batch_tokens)
    fixed = MemoryPlan(weight_bytes, 0, workspace, reserve_bytes, 0)
    page_bytes = backend.planned_kv_page_bytes(spec)
    fitting = min(spec.max_context, max(0, free_bytes - fixed.total_bytes) // page_bytes * PAGE_SIZE)
    if context_tokens is None:
        wanted = min(default_context, spec.max_context)
        least = min(LEAST_CONTEXT_TOKENS, wanted)
        context = min(wanted, fitting) if fitting >= least else least
    else:
        if context_tokens < PAGE_SIZE:
            raise InvalidRequestError(f"The context is {context_tokens} tokens, but it must be {PAGE_SIZE} or more.")
        context = min(pages_for(context_tokens) * PAGE_SIZE, spec.max_context)
    plan = MemoryPlan(weight_bytes, pages_for(context) * page_bytes, workspace, reserve_bytes, context, backend.device)
    return MemoryEstimate(plan, free_bytes, fitting)


def _cure(fitting: int, device: str) -> str:
    others = "hold much memory" if device == "cpu" else "use the GPU"
    if fitting >= LEAST_CONTEXT_TOKENS:
        return f"A context of {fitting} tokens would fit; or close other programs that {others}."
    if device != "cpu":
        return "No context would fit. Close other programs that use the GPU, or choose a smaller model or fewer bits."
    return "Close other programs that hold much memory, a browser for example, or choose a smaller model."
