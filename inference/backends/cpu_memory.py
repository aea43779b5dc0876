"""Memory of the cpu backend's steps: workspace, activations, KV pages, and the batch that a step works on."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.backends.backend import PAGE_SIZE, Batch
from inference.formats.model_source import WeightTensor
from inference.models.model_spec import ModelSpec
from kernels.cpu import layouts
from kernels.cpu import library as lib
from kernels.errors import ContractError

FloatArray = NDArray[np.float32]

_LOGIT_ROWS = 8
"""Rows of logits that have memory of their own; more are allocated when they are asked for."""


def _widths(spec: ModelSpec) -> dict[str, int]:
    """Width of what each method of the backend returns; "angles" are RoPE's cosines and sines."""
    return {
        "embed": spec.hidden_size,
        "rms_norm": spec.hidden_size,
        "linear": spec.q_size + 2 * spec.kv_size,
        "attention": spec.q_size,
        "gated_linear": spec.intermediate_size,
        "take_rows": spec.hidden_size,
        "angles": spec.head_dim,
    }


def _max_k(spec: ModelSpec) -> int:
    return max(spec.hidden_size, spec.q_size, spec.intermediate_size)


def kv_page_bytes(spec: ModelSpec) -> int:
    """Bytes of one KV page over all layers: float16."""
    return 2 * sum(layouts.kv_page_elements(spec.num_kv_heads, spec.head_dim, PAGE_SIZE)) * spec.num_layers


def workspace_bytes(spec: ModelSpec, max_batch_tokens: int, threads: int) -> int:
    """Bytes of all that `StepMemory.allocate` and a split head take beside KV and weights."""
    sizes = layouts.workspace_sizes(max_batch_tokens, _max_k(spec), spec.num_kv_heads, spec.head_dim)
    floats = max_batch_tokens * sum(_widths(spec).values()) + min(_LOGIT_ROWS, max_batch_tokens) * spec.vocab_size
    return sizes.total(threads) + 4 * floats + layouts.head_bytes(spec.vocab_size, spec.hidden_size)


def float_vector(tensor: WeightTensor) -> FloatArray:
    """A vector of float32, float16 or bfloat16 as float32; always a copy."""
    data = np.ascontiguousarray(tensor.data).reshape(-1)
    if tensor.kind == "f32":
        return data.view(np.float32).copy()
    if tensor.kind == "f16":
        return data.view(np.float16).astype(np.float32)
    if tensor.kind == "bf16":
        return (data.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    raise ContractError(f"The kind of {tensor.name} is {tensor.kind!r}, but a vector must be f32, f16 or bf16.")


class StepMemory:
    """What the operations of a step read and write.

    Attributes:
        step, workspace: the kernels' structures.
        keys, values: address of each layer's pages.
        token_ids: of the current batch.
    """

    def __init__(self, pool: int, threads: int) -> None:
        self._pool, self._threads = pool, threads
        self.step = lib.StepStruct(page_size=PAGE_SIZE, q_heads=1, kv_heads=1, head_dim=2, value_dim=16)
        self.workspace = lib.Workspace(pool, threads, 16, 512, 1, 64)
        self.allocated = False
        self.keys: list[int] = []
        self.values: list[int] = []
        self.token_ids: NDArray[np.int32] = np.empty(0, np.int32)
        self.buffers: dict[str, FloatArray] = {}
        self.pages: NDArray[np.uint8] = np.empty(0, np.uint8)
        self._inv_freq: NDArray[np.float64] = np.empty(0)
        self._batch: Batch | None = None
        self._held: tuple[Any, ...] = ()

    def allocate(self, spec: ModelSpec, inv_freq: NDArray[np.float64], num_pages: int, max_batch_tokens: int) -> None:
        """Takes everything; nothing grows later."""
        self.workspace = lib.Workspace(
            self._pool, self._threads, max_batch_tokens, _max_k(spec), spec.num_kv_heads, spec.head_dim
        )
        self.buffers = {name: np.zeros((max_batch_tokens, width), np.float32) for name, width in _widths(spec).items()}
        self.buffers["logits"] = np.zeros((min(_LOGIT_ROWS, max_batch_tokens), spec.vocab_size), np.float32)
        self.pages = lib.Arena().take(kv_page_bytes(spec) * num_pages)
        keys, values = layouts.kv_page_elements(spec.num_kv_heads, spec.head_dim, PAGE_SIZE)
        for layer in range(spec.num_layers):
            self.keys.append(self.pages.ctypes.data + 2 * (keys + values) * num_pages * layer)
            self.values.append(self.keys[-1] + 2 * keys * num_pages)
        self._inv_freq = np.ascontiguousarray(inv_freq, np.float64)
        step, angles = self.step, self.buffers["angles"]
        step.q_heads, step.kv_heads, step.head_dim = spec.num_q_heads, spec.num_kv_heads, spec.head_dim
        step.value_dim = layouts.value_dim(spec.head_dim)
        step.norm_eps, step.scale = spec.rms_norm_eps, 1.0 / math.sqrt(spec.head_dim)
        step.inv_freq = self._inv_freq.ctypes.data
        step.cosines, step.sines = angles.ctypes.data, angles.ctypes.data + angles.nbytes // 2
        self.allocated = True

    def out(self, name: str, rows: int, width: int) -> FloatArray:
        """Memory for what a method returns; before the allocation, or beyond it, a fresh array."""
        buffer = self.buffers.get(name)
        if buffer is None or buffer.shape[1] != width or buffer.shape[0] < rows:
            return np.empty((rows, width), np.float32)
        return buffer[:rows]

    def reserve(self, tokens: int, k: int) -> None:
        """Makes sure that the workspace holds a step of that size; grows it before the allocation only."""
        space = self.workspace
        if tokens <= space.max_tokens and k <= space.max_k:
            return
        if self.allocated:
            raise ContractError(
                f"A step has {tokens} tokens and width {k}, but {space.max_tokens} and {space.max_k} were allocated."
            )
        tokens, k = max(tokens, space.max_tokens), max(k, space.max_k)
        self.workspace = lib.Workspace(self._pool, self._threads, tokens, k, 1, 64)

    def take_batch(self, batch: Batch) -> bool:
        """Points the step at the batch's arrays; False where it does so already."""
        if batch is self._batch:
            return False
        positions, starts, lengths, tables, self.token_ids = arrays = tuple(
            np.ascontiguousarray(array, np.int32)
            for array in (
                batch.positions,
                batch.query_starts,
                batch.context_lengths,
                batch.page_tables,
                batch.token_ids,
            )
        )
        step = self.step
        step.m, step.sequences, step.max_pages = len(positions), len(lengths), tables.shape[1]
        step.positions, step.query_starts = positions.ctypes.data, starts.ctypes.data
        step.context_lengths, step.page_tables = lengths.ctypes.data, tables.ctypes.data
        self._batch, self._held = batch, arrays
        return True

    def clear(self) -> None:
        """Gives everything back."""
        self.workspace = lib.Workspace(self._pool, self._threads, 1, 32, 1, 2)
        self.buffers.clear()
        self.keys.clear()
        self.values.clear()
        self.pages = np.empty(0, np.uint8)

    def forget_batch(self) -> None:
        """A new step begins: even the same batch is taken again."""
        self._batch = None
