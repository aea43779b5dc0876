"""Sizes before anything is allocated, and the context that fits."""

from __future__ import annotations

import dataclasses

import pytest

from inference.backends.backend import PAGE_SIZE
from inference.engine.memory_plan import LEAST_CONTEXT_TOKENS, RESERVE_BYTES, MemoryPlan, estimate_memory
from inference.errors import InvalidRequestError, OutOfMemoryError
from inference.models.model_spec import ModelSpec

MIB = 1024**2
SPEC = ModelSpec(
    architecture="qwen2",
    num_layers=4,
    hidden_size=64,
    intermediate_size=96,
    num_q_heads=4,
    num_kv_heads=2,
    head_dim=16,
    vocab_size=50,
    max_context=32768,
    rms_norm_eps=1e-6,
    rope_theta=10000.0,
)
PAGE_BYTES = MIB
WORKSPACE_BYTES = 50 * MIB
WEIGHT_BYTES = 100 * 1024 + 64


class Sizes:
    """A backend that only knows sizes: a MiB for a page."""

    name = "sizes"
    device = "cpu"

    def planned_kv_page_bytes(self, spec: ModelSpec) -> int:
        return PAGE_BYTES

    def planned_workspace_bytes(self, spec: ModelSpec, max_batch_tokens: int) -> int:
        return WORKSPACE_BYTES * max_batch_tokens // 256


def plan(free_bytes: int, context_tokens: int | None = None, spec: ModelSpec = SPEC, **changes: int) -> MemoryPlan:
    settings = {"default_context": 8192, "max_batch_tokens": 256, **changes}
    return estimate_memory(
        spec, WEIGHT_BYTES, Sizes(), free_bytes=free_bytes, context_tokens=context_tokens, **settings
    ).checked()  # type: ignore[arg-type]


FIXED = WEIGHT_BYTES + WORKSPACE_BYTES + RESERVE_BYTES


def test_everything_is_counted() -> None:
    found = plan(free_bytes=10**12)
    assert found == MemoryPlan(WEIGHT_BYTES, 128 * PAGE_BYTES, WORKSPACE_BYTES, RESERVE_BYTES, 8192)
    assert found.total_bytes == FIXED + 128 * PAGE_BYTES
    assert found.num_pages == 128
    assert plan(10**12, max_batch_tokens=512).workspace_bytes == 2 * WORKSPACE_BYTES


@pytest.mark.parametrize("pages", [8, 9, 100, 127])
def test_the_largest_context_that_fits_is_taken(pages: int) -> None:
    assert plan(FIXED + pages * PAGE_BYTES).context_tokens == pages * PAGE_SIZE
    assert plan(FIXED + (pages + 1) * PAGE_BYTES - 1).context_tokens == pages * PAGE_SIZE


def test_no_more_than_the_default_and_the_model_allow() -> None:
    assert plan(10**12, default_context=4096).context_tokens == 4096
    short = dataclasses.replace(SPEC, max_context=2000)
    found = plan(10**12, spec=short)
    assert found.context_tokens == 2000
    assert found.num_pages == 32
    tight = plan(FIXED + 31 * PAGE_BYTES, spec=short)
    assert tight.context_tokens == 31 * PAGE_SIZE


def test_a_context_by_choice_is_rounded_up_to_pages() -> None:
    assert plan(10**12, context_tokens=1000).context_tokens == 1024
    assert plan(10**12, context_tokens=20000).context_tokens == 20032
    assert plan(10**12, context_tokens=PAGE_SIZE).context_tokens == PAGE_SIZE


def test_a_context_by_choice_is_cut_to_what_the_model_was_trained_for() -> None:
    found = plan(10**12, context_tokens=4096, spec=dataclasses.replace(SPEC, max_context=2000))
    assert (found.context_tokens, found.num_pages) == (2000, 32)


@pytest.mark.parametrize("context", [0, -5, PAGE_SIZE - 1])
def test_a_context_below_a_page_is_refused(context: int) -> None:
    with pytest.raises(InvalidRequestError, match=f"{context} tokens, but it must be 64 or more"):
        plan(10**12, context_tokens=context)


def test_a_model_that_does_not_fit_is_refused_with_both_numbers_and_a_cure() -> None:
    with pytest.raises(OutOfMemoryError, match="a smaller model") as caught:
        plan(free_bytes=30 * MIB)
    assert caught.value.free_bytes == 30 * MIB
    assert caught.value.needed_bytes == FIXED + LEAST_CONTEXT_TOKENS // PAGE_SIZE * PAGE_BYTES
    with pytest.raises(OutOfMemoryError, match="a smaller model"):
        plan(FIXED + 7 * PAGE_BYTES)


def test_a_context_that_does_not_fit_is_refused_with_the_one_that_would() -> None:
    with pytest.raises(OutOfMemoryError, match="A context of 1280 tokens would fit") as caught:
        plan(FIXED + 20 * PAGE_BYTES, context_tokens=4096)
    assert caught.value.needed_bytes == FIXED + 64 * PAGE_BYTES
    assert plan(FIXED + 20 * PAGE_BYTES, context_tokens=1280).context_tokens == 1280
