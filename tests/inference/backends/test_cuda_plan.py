"""Where things lie on the GPU; no GPU is needed to count."""

from __future__ import annotations

import itertools

import pytest

from inference.backends import cuda_plan
from inference.backends.backend import PAGE_SIZE
from inference.backends.cuda_memory import workspace_bytes
from inference.backends.cuda_plan import MAX_ROWS, PREFILL_CHUNK, RESERVE_BYTES, Regions
from inference.formats.random_model import RandomModel
from kernels.launch.matmul import Activations
from kernels.weights.quant_format import QuantFormat

GIB = 1 << 30
CARD_BYTES = int(3.237 * GIB)
"""What a card of 4 GB has for programs."""


def test_what_a_step_needs_at_the_same_time_does_not_overlap() -> None:
    spec = RandomModel("random:qwen2.5-7b:mixed").spec
    tokens, digits = PREFILL_CHUNK + MAX_ROWS, Activations.nbytes_for(PREFILL_CHUNK + MAX_ROWS, cuda_plan.widest(spec))
    regions = cuda_plan.step_regions(spec, tokens, 128, digits)
    sizes = {
        "hidden": 4 * tokens * spec.hidden_size,
        "qkv": 4 * tokens * (spec.q_size + 2 * spec.kv_size),
        "attention": 4 * tokens * spec.q_size,
        "gated": 4 * tokens * spec.intermediate_size,
        "taken": 4 * MAX_ROWS * spec.hidden_size,
        "logits": 4 * MAX_ROWS * spec.vocab_size,
        "batch": cuda_plan.prefill_arrays(tokens, 128).nbytes,
        "rows": cuda_plan.decode_arrays(128).nbytes,
        "activations": digits,
    }
    assert set(regions.offsets) == set(sizes)
    apart = {frozenset(pair) for one in ("qkv", "attention") for pair in ((one, "gated"), (one, "logits"))}
    apart.add(frozenset(("gated", "logits")))
    for one, other in itertools.combinations(sizes, 2):
        starts, ends = zip(
            *((regions.offsets[name], regions.offsets[name] + sizes[name]) for name in (one, other)), strict=True
        )
        if frozenset((one, other)) not in apart:
            assert max(starts) >= min(ends), f"{one} and {other} overlap"
    assert max(regions.offsets[name] + size for name, size in sizes.items()) <= regions.nbytes


def test_regions_are_aligned_and_in_order() -> None:
    regions = Regions.of({"a": 1, "b": 256, "c": 257})
    assert dict(regions.offsets) == {"a": 0, "b": 256, "c": 512}
    assert regions.nbytes == 1024


@pytest.mark.parametrize("sms", [16, 132])
@pytest.mark.parametrize(("name", "context"), [("qwen2.5-3b:w4", 32_768), ("qwen2.5-7b:mixed", 8192)])
def test_models_that_fit_a_card_of_4_gb(name: str, context: int, sms: int) -> None:
    source = RandomModel(f"random:{name}")
    spec = source.spec
    tensors = {tensor: source.tensor_kind(tensor) for tensor in source.tensor_names()}
    total = (
        cuda_plan.model_bytes(spec, tensors)
        + cuda_plan.kv_page_bytes(spec) * context // PAGE_SIZE
        + workspace_bytes(spec, PREFILL_CHUNK + MAX_ROWS, sms)
    )
    assert total + RESERVE_BYTES <= CARD_BYTES


def test_a_stack_of_different_kinds_has_8_bits() -> None:
    assert cuda_plan.stack_format(["w4g128", "w4g128"]) == QuantFormat(4, 128)
    assert cuda_plan.stack_format(["w4g128", "w3g128"]).bits == 8
