"""How much of a device's memory is left for weights beside a context: what scheme auto fills."""

from __future__ import annotations

from inference.backends.backend import PAGE_SIZE
from inference.engine.kv_cache import pages_for
from inference.formats.weight_shapes import weight_shapes
from inference.models.model_spec import ModelSpec

PREFILL_TOKENS = 264
"""Of a step: a chunk of a prompt and the other running requests."""
FIXED_BYTES = 64 * 2**20
"""Loaded kernels, graphs and what an allocator rounds up."""


def kv_bytes(spec: ModelSpec, context_tokens: int) -> int:
    """Keys and values in float16, in whole pages."""
    return pages_for(context_tokens) * PAGE_SIZE * 2 * spec.kv_size * 2 * spec.num_layers


def workspace_bytes(spec: ModelSpec) -> int:
    """Activations of a step in float32, their 8-bit digits, and logits of eight rows."""
    widths = 3 * spec.hidden_size + 2 * spec.q_size + 2 * spec.kv_size + 2 * spec.intermediate_size
    return 4 * (PREFILL_TOKENS * widths + 8 * spec.vocab_size) + FIXED_BYTES


def matrix_budget(spec: ModelSpec, fit_bytes: int, context_tokens: int) -> int:
    """Bytes that the matrices on the device may have; negative where there is no room at all.

    An embedding of its own is not among them: its rows are read from the host's memory.
    """
    vectors = sum(4 * shape[0] for shape in weight_shapes(spec).values() if len(shape) == 1)
    return fit_bytes - kv_bytes(spec, context_tokens) - workspace_bytes(spec) - vectors
