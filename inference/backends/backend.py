"""The seam between the transformer and a device: what every backend computes, and the registry of backends.

Arrays and weight handles are opaque to the decoder (np.ndarray, torch.Tensor, device pointers): only the backend that
made them looks inside. M is the number of tokens of a step, over all its sequences; hidden states are (M, hidden_size).
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from inference.errors import BackendUnavailableError
from inference.formats.model_source import WeightTensor
from inference.models.model_spec import ModelSpec

Array = Any
Weight = Any

PAGE_SIZE = 64
"""Tokens per KV page, on every backend."""
HOST_PREFILL_CHUNK = 256
"""`prefill_chunk` of CPUs."""
HOST_MAX_RUNNING = 8
"""`max_running` of CPUs: 16 at once write no more tokens a second, and each of them half as many."""


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """The tokens of one step: S sequences, each with one token (decode) or a chunk of its prompt (prefill).

    Attributes:
        token_ids: int32 (M,).
        positions: int32 (M,), position of each token in its sequence.
        query_starts: int32 (S + 1,): sequence s owns rows query_starts[s] to query_starts[s + 1].
        context_lengths: int32 (S,): tokens of the sequence in the cache once this step has appended its own.
        page_tables: int32 (S, max_pages): page i holds positions i * PAGE_SIZE onward; unused entries are -1.
        logit_rows: int32 (L,): rows of M whose logits are wanted, often the last of each sequence, () for mid-prompt
            chunks.
        exact_rows: bool (L,), whose logits are to be exact down to the least likely token, because a grammar may rule
            out all the likely ones; None for no row.
    """

    token_ids: NDArray[np.int32]
    positions: NDArray[np.int32]
    query_starts: NDArray[np.int32]
    context_lengths: NDArray[np.int32]
    page_tables: NDArray[np.int32]
    logit_rows: NDArray[np.int32]
    exact_rows: NDArray[np.bool_] | None = None


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """Memory of a device of its own, in bytes.

    Attributes:
        free_bytes: what a model can have.
        reserve_bytes: what the device takes beside weights, KV and workspace.
    """

    free_bytes: int
    reserve_bytes: int


class Backend(Protocol):
    """One device. All methods are called by one thread, the worker's.

    Attributes:
        device: what holds the model: "cpu", or a GPU's name for locks, "gpu0".
        prefill_chunk: most prompt tokens of a step where the user does not say; smaller answers a cancel sooner and
            takes less memory, larger computes faster.
        max_running: requests at once; each adds a row to the step and takes pages from the others.
        peak_bytes: the most that was ever allocated of the device's memory; 0 for the host's.
    """

    name: str
    device: str
    prefill_chunk: int
    max_running: int

    @property
    def peak_bytes(self) -> int: ...

    def device_memory(self, freed_bytes: int) -> DeviceMemory | None:
        """None where models lie in the host's memory.

        Args:
            freed_bytes: what a model that is resident on this device will have given back.
        """
        ...

    def planned_model_bytes(self, spec: ModelSpec, tensors: Mapping[str, tuple[str, tuple[int, ...]]]) -> int:
        """Bytes that a whole model will occupy on the device.

        Args:
            tensors: kind and shape of all that is loaded, by name.
        """
        ...

    def begin_load(self, spec: ModelSpec, weight_bytes: int) -> None:
        """Told before the first weight whose they are and what all of them will take."""
        ...

    def planned_weight_bytes(self, kind: str, shape: tuple[int, ...]) -> int:
        """Bytes that a tensor of this kind and shape will occupy once loaded."""
        ...

    def planned_kv_page_bytes(self, spec: ModelSpec) -> int:
        """Bytes of one KV page over all layers, keys and values."""
        ...

    def planned_workspace_bytes(self, spec: ModelSpec, max_batch_tokens: int) -> int:
        """Bytes of activations and workspace for steps of up to `max_batch_tokens` tokens, logits included."""
        ...

    def vector(self, tensor: WeightTensor) -> Weight:
        """A norm's weight, in float32."""
        ...

    def linear_weight(self, parts: Sequence[WeightTensor], biases: Sequence[WeightTensor] = ()) -> Weight:
        """One weight of `parts` stacked along N; copies what it needs. `biases` is empty or one per part."""
        ...

    def embedding_weight(self, tensor: WeightTensor) -> Weight:
        """A table for `embed`."""
        ...

    def head_weight(self, tensor: WeightTensor, tied: Weight | None) -> Weight:
        """A matrix for `logits`; `tied` is the embedding's handle where the model shares them."""
        ...

    def allocate(self, spec: ModelSpec, inv_freq: NDArray[np.float64], num_pages: int, max_batch_tokens: int) -> None:
        """Allocates KV pages and workspace, once, after the weights. Nothing grows later.

        Args:
            inv_freq: (head_dim / 2,), rotation per position of each frequency, scaling included.
        """
        ...

    def embed(self, table: Weight, batch: Batch) -> Array:
        """(M, hidden_size)."""
        ...

    def rms_norm(self, x: Array, weight: Weight, eps: float) -> Array:
        """x / sqrt(mean(x^2) + eps) * weight, over the last dimension; float32 sums."""
        ...

    def linear(self, x: Array, weight: Weight) -> Array:
        """(M, N) = x (M, K) W^T + bias."""
        ...

    def add_linear(self, residual: Array, x: Array, weight: Weight) -> Array:
        """residual + linear(x, weight); may overwrite `residual`."""
        ...

    def gated_linear(self, x: Array, gate_up: Weight) -> Array:
        """silu(gate) * up of a weight that stacks gate and up: (M, intermediate_size)."""
        ...

    def rope_append(self, qkv: Array, layer: int, q_norm: Weight | None, k_norm: Weight | None, batch: Batch) -> Array:
        """Splits (M, q_size + 2 kv_size), norms and rotates Q and K, appends K and V to the pages; returns Q."""
        ...

    def attention(self, q: Array, layer: int, batch: Batch) -> Array:
        """Causal attention of each token over its sequence's pages, scale 1 / sqrt(head_dim): (M, q_size)."""
        ...

    def take_rows(self, x: Array, rows: NDArray[np.int32]) -> Array:
        """The rows of x whose logits are wanted."""
        ...

    def logits(self, x: Array, head: Weight) -> Array:
        """(L, vocab_size), float32, on the host where that holds the model.

        See the backend for what it promises of tokens that cannot win in rows that are not among the batch's
        `exact_rows`.
        """
        ...

    def close(self) -> None:
        """Frees weights, KV, workspace and threads; the backend may not be used again."""
        ...


_REGISTRY: dict[str, str] = {
    "cpu": "inference.backends.cpu_backend:CpuBackend",
    "cuda": "inference.backends.cuda_backend:CudaBackend",
    "torch": "inference.backends.torch_backend:TorchBackend",
}


def sum_of_weights(backend: Backend, tensors: Mapping[str, tuple[str, tuple[int, ...]]]) -> int:
    """Bytes of a model whose tensors are kept one by one."""
    return sum(backend.planned_weight_bytes(kind, shape) for kind, shape in tensors.values())


def backend_names() -> tuple[str, ...]:
    """Names that `create_backend` takes."""
    return tuple(_REGISTRY)


def create_backend(name: str, **options: Any) -> Backend:
    """Imports and builds a backend.

    Raises:
        BackendUnavailableError: no such backend, or it cannot work here.
    """
    target = _REGISTRY.get(name)
    if target is None:
        raise BackendUnavailableError(name, f"there is none of that name; it must be auto, {', '.join(_REGISTRY)}")
    module, _, attribute = target.partition(":")
    try:
        backend: Backend = getattr(importlib.import_module(module), attribute)(**options)
    except ImportError as error:
        raise BackendUnavailableError(name, f"a part of it cannot be imported ({error})") from error
    return backend
