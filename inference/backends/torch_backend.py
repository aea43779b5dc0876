"""PyTorch on the CPU: the float32 oracle, and the fallback where our own kernels cannot be built.

The oracle (the default) dequantizes every weight to float32 at load and uses nothing but PyTorch's plain operations.
The fallback (`packed=True`) is for machines with little memory: 4-bit weights stay 4-bit, all others become bfloat16,
keys and values float16. PyTorch's packed int4 operation is private, so it is compared with plain arithmetic before it
is used. Its time grows with every token, but unpacking a weight by other operations takes as long as 300 tokens.

PyTorch multiplies one token and many by different code, so the last bits of a token's logits depend on its company.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from inference.backends.backend import HOST_MAX_RUNNING, HOST_PREFILL_CHUNK, PAGE_SIZE, Batch, sum_of_weights
from inference.errors import BackendUnavailableError
from inference.formats.model_source import WeightTensor
from inference.models.model_spec import ModelSpec
from kernels.weights.quant_format import TILE_ROWS, is_quant_format
from kernels.weights.reference import dequantize
from kernels.weights.tile_blocks import ggml_kind, to_ggml

INT4_GROUP = 32
INT4_KINDS = ("q4_0", "q4_1", "q4_k")
INT4_ROWS = 16
"""PyTorch's packed operation takes heights that divide by this."""
FEW_TOKENS = 4
"""Up to so many tokens reading a weight takes longer than multiplying by it, so it is used in the form that it has."""

LIBRARY_BYTES = 384 * 1024**2
"""PyTorch itself, and what its allocator keeps of the pieces of a load; measured with the 1.5B, rounded up."""
DENSE_ROWS = 512
"""Rows that are dequantized at a time."""

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


class _Matrix(Protocol):
    """A weight (N, K) in whatever form."""

    def linear(self, x: Tensor) -> Tensor:
        """(M, N) float32 of x (M, K) float32."""
        ...


class _Table(Protocol):
    """An embedding (N, K) in whatever form."""

    def rows(self, ids: NDArray[np.int32]) -> Tensor:
        """(M, K) float32."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class _Dense:
    """float32 or bfloat16; `many_dtype` is what this machine multiplies fastest where there are many tokens."""

    weight: Tensor
    many_dtype: torch.dtype

    def linear(self, x: Tensor) -> Tensor:
        weight = self.weight if x.shape[0] <= FEW_TOKENS else self.weight.to(self.many_dtype)
        return functional.linear(x.to(weight.dtype), weight).float()

    def rows(self, ids: NDArray[np.int32]) -> Tensor:
        return self.weight[torch.from_numpy(ids).long()].float()


@dataclass(frozen=True, slots=True, eq=False)
class _Int4:
    """4-bit weights in the order of PyTorch's operation, which differs between CPUs.

    Attributes:
        packed: uint8 (N, K / 2), opaque.
        scales_zeros: bfloat16 (K / 32, N, 2); a weight is (q - 8) * scale + zero.
    """

    packed: Tensor
    scales_zeros: Tensor

    def linear(self, x: Tensor) -> Tensor:
        return _int4_linear(x.to(torch.bfloat16), self.packed, self.scales_zeros).float()


@dataclass(frozen=True, slots=True, eq=False)
class _FileRows:
    """A table as it lies in the file: rows that are read one by one need no other form."""

    kind: str
    data: NDArray[np.uint8]
    width: int

    def rows(self, ids: NDArray[np.int32]) -> Tensor:
        return torch.from_numpy(dequantize(self.kind, self.data[ids], (len(ids), self.width)))


def _int4_linear(x: Tensor, packed: Tensor, scales_zeros: Tensor) -> Tensor:
    result: Tensor = torch.ops.aten._weight_int4pack_mm_for_cpu(x, packed, INT4_GROUP, scales_zeros)
    return result


def _in_blocks(tensor: WeightTensor) -> WeightTensor:
    """Tiles of a checkpoint as ggml's blocks; any other kind as it is."""
    if not is_quant_format(tensor.kind):
        return tensor
    return WeightTensor(tensor.name, tensor.shape, *to_ggml(tensor.kind, tensor.data, tensor.shape))


def _int4_groups(tensor: WeightTensor) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Nibbles (N, K / 2) and scales and zeros (K / 32, N, 2) of a 4-bit tensor, without rounding anything."""
    tensor = _in_blocks(tensor)
    blocks = tensor.data.reshape(tensor.shape[0], -1, {"q4_0": 18, "q4_1": 20, "q4_k": 144}[tensor.kind])
    head = np.ascontiguousarray(blocks[..., :4]).view("<f2").astype(np.float32)
    if tensor.kind == "q4_k":
        first, second, third = blocks[..., 4:8], blocks[..., 8:12], blocks[..., 12:16]
        scales = head[..., :1] * np.concatenate([first & 63, (third & 15) | (first >> 6 << 4)], axis=-1)
        minima = head[..., 1:] * np.concatenate([second & 63, (third >> 4) | (second >> 6 << 4)], axis=-1)
        zeros = 8 * scales - minima
        # Each run of 32 bytes holds one group in its low nibbles and the next in its high ones.
        runs = blocks[..., 16:].reshape(*blocks.shape[:2], 4, 32)
        quants = np.stack([runs & 15, runs >> 4], axis=3)
        nibbles = quants[..., :16] | (quants[..., 16:] << 4)
    else:
        scales = head[..., :1]
        zeros = np.zeros_like(scales) if tensor.kind == "q4_0" else head[..., 1:] + 8 * scales
        nibbles = blocks[..., -16:]
    rows = tensor.shape[0]
    scales_zeros = np.stack([scales.reshape(rows, -1).T, zeros.reshape(rows, -1).T], axis=-1)
    return np.ascontiguousarray(nibbles).reshape(rows, -1), scales_zeros


def _int4_matrix(parts: Sequence[WeightTensor]) -> _Int4:
    groups = [_int4_groups(part) for part in parts]
    nibbles = torch.from_numpy(np.concatenate([g[0] for g in groups]))
    # The operation reads the memory as it lies, and NumPy keeps the order of a transposed array.
    scales_zeros = torch.from_numpy(np.concatenate([g[1] for g in groups], axis=1)).to(torch.bfloat16).contiguous()
    by_group = nibbles.view(nibbles.shape[0], -1, INT4_GROUP // 2)
    quants = torch.cat((by_group & 15, by_group >> 4), dim=-1).flatten(1).to(torch.int32)
    return _Int4(torch.ops.aten._convert_weight_to_int4pack_for_cpu(quants, 2), scales_zeros)


def _int4_works() -> bool:
    """Compares two small products with plain arithmetic: the operation is private and may change or be missing."""
    rows, columns = 2 * INT4_ROWS, 2 * INT4_GROUP
    data = np.random.default_rng(0).integers(0, 256, (rows, 2, 18), dtype=np.uint8)
    data[..., 1] = 0x2C  # the high byte of a float16 of about 0.06
    tensor = WeightTensor("probe", (rows, columns), "q4_0", data.reshape(rows, -1))
    weight = torch.from_numpy(dequantize("q4_0", tensor.data, tensor.shape))
    for num_tokens in (1, 9):
        x = torch.linspace(-1, 1, num_tokens * columns).view(num_tokens, columns)
        try:
            found = _int4_matrix([tensor]).linear(x)
        except (AttributeError, RuntimeError):
            return False
        if not torch.allclose(found, functional.linear(x, weight), rtol=0.02, atol=0.1):
            return False
    return True


def _fastest_dtype() -> torch.dtype:
    """float32, or bfloat16 where this CPU multiplies it faster (some are many times slower at it)."""
    seconds = {}
    for dtype in (torch.float32, torch.bfloat16):
        x, weight = torch.ones(128, 512, dtype=dtype), torch.ones(512, 512, dtype=dtype)
        times = []
        for _ in range(4):
            start = time.perf_counter()
            functional.linear(x, weight)
            times.append(time.perf_counter() - start)
        seconds[dtype] = min(times)
    return min(seconds, key=lambda dtype: seconds[dtype])


@dataclass(frozen=True, slots=True, eq=False)
class _Linear:
    """Matrices stacked along N, and their bias."""

    matrices: tuple[_Matrix, ...]
    bias: Tensor | None

    def __call__(self, x: Tensor) -> Tensor:
        results = [matrix.linear(x) for matrix in self.matrices]
        y = results[0] if len(results) == 1 else torch.cat(results, dim=-1)
        return y if self.bias is None else y + self.bias


class TorchBackend:
    """Backend over torch tensors on the CPU; hidden states are float32 throughout.

    Args:
        threads: of PyTorch's pool, which the whole process shares; None keeps PyTorch's choice.
        dtype: of dense weights, "float32" or "bfloat16".
        packed: the fallback's small form of the weights; `dtype` is then not used.

    Raises:
        BackendUnavailableError: `dtype` is another.
    """

    name = "torch"
    device = "cpu"
    prefill_chunk = HOST_PREFILL_CHUNK
    max_running = HOST_MAX_RUNNING
    peak_bytes = 0

    def __init__(self, threads: int | None = None, dtype: str = "float32", packed: bool = False) -> None:
        if dtype not in _DTYPES:
            raise BackendUnavailableError(self.name, f"dtype is {dtype!r}, but it must be float32 or bfloat16")
        if threads is not None:
            torch.set_num_threads(threads)
        self._dtype = torch.bfloat16 if packed else _DTYPES[dtype]
        self._many_dtype = _fastest_dtype() if packed else self._dtype
        self._int4 = packed and _int4_works()
        self._kv_dtype = torch.float16 if packed else torch.float32
        self._kv = torch.empty(0)
        self._rotation: tuple[Batch, Tensor, Tensor] | None = None

    def device_memory(self, freed_bytes: int) -> None:
        """See Backend: models lie in the host's memory."""

    def planned_model_bytes(self, spec: ModelSpec, tensors: Mapping[str, tuple[str, tuple[int, ...]]]) -> int:
        """See Backend."""
        return sum_of_weights(self, tensors)

    def begin_load(self, spec: ModelSpec, weight_bytes: int) -> None:
        """See Backend: nothing to prepare."""

    def planned_weight_bytes(self, kind: str, shape: tuple[int, ...]) -> int:
        """Bytes that a tensor of this kind and shape will occupy once loaded."""
        size = math.prod(shape)
        if len(shape) < 2:
            return 4 * size
        if self._takes_int4(kind, shape):
            return size // 2 + 4 * (size // INT4_GROUP)
        return size * self._dtype.itemsize

    def planned_kv_page_bytes(self, spec: ModelSpec) -> int:
        """Bytes of one KV page over all layers, keys and values."""
        return 2 * spec.num_layers * PAGE_SIZE * spec.kv_size * self._kv_dtype.itemsize

    def planned_workspace_bytes(self, spec: ModelSpec, max_batch_tokens: int) -> int:
        """Activations in float32, logits, in the fallback the copy of a weight; and PyTorch itself."""
        widths = 4 * spec.hidden_size + 3 * spec.q_size + 2 * spec.kv_size + 4 * spec.intermediate_size
        # Where many tokens want another type, one weight at a time has a copy.
        copies = 4 * 2 * spec.hidden_size * spec.intermediate_size if self._many_dtype != self._dtype else 0
        return 4 * (max_batch_tokens * widths + 2 * spec.vocab_size) + copies + LIBRARY_BYTES

    def vector(self, tensor: WeightTensor) -> Tensor:
        """float32, of the tensor's shape."""
        return torch.from_numpy(dequantize(tensor.kind, tensor.data, tensor.shape))

    def linear_weight(self, parts: Sequence[WeightTensor], biases: Sequence[WeightTensor] = ()) -> _Linear:
        """Parts of one kind become one matrix; a mixture stays apart and its products are joined."""
        bias = torch.cat([self.vector(tensor) for tensor in biases]) if biases else None
        packable = [self._takes_int4(part.kind, part.shape) for part in parts]
        if all(packable):
            return _Linear((_int4_matrix(parts),), bias)
        if not any(packable):
            weight = torch.cat([self._dense(part) for part in parts])
            return _Linear((_Dense(weight, self._many_dtype),), bias)
        return _Linear(tuple(self._matrix(part) for part in parts), bias)

    def embedding_weight(self, tensor: WeightTensor) -> _Table:
        """A table whose rows are read."""
        if self._takes_int4(tensor.kind, tensor.shape):
            tensor = _in_blocks(tensor)
            return _FileRows(tensor.kind, tensor.data.copy(), tensor.shape[1])
        return _Dense(self._dense(tensor), self._many_dtype)

    def head_weight(self, tensor: WeightTensor, tied: _Table | None) -> _Matrix:
        """The embedding itself where they are tied and it can be multiplied by."""
        return tied if isinstance(tied, _Dense) else self._matrix(tensor)

    def allocate(self, spec: ModelSpec, inv_freq: NDArray[np.float64], num_pages: int, max_batch_tokens: int) -> None:
        """Allocates the pages; activations are PyTorch's affair."""
        del max_batch_tokens
        self._spec = spec
        self._inv_freq = torch.from_numpy(inv_freq)
        shape = (spec.num_layers, 2, num_pages * PAGE_SIZE, spec.num_kv_heads, spec.head_dim)
        # Zeros are written at once, so that a machine without the memory fails here and not in the middle of an answer.
        self._kv = torch.empty(shape, dtype=self._kv_dtype).zero_()

    def embed(self, table: _Table, batch: Batch) -> Tensor:
        """(M, hidden_size) float32."""
        return table.rows(batch.token_ids)

    def rms_norm(self, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        """x / sqrt(mean(x^2) + eps) * weight over the last dimension."""
        return x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + eps) * weight

    def linear(self, x: Tensor, weight: _Linear) -> Tensor:
        """(M, N) float32."""
        return weight(x)

    def add_linear(self, residual: Tensor, x: Tensor, weight: _Linear) -> Tensor:
        """residual + linear(x, weight)."""
        return residual + weight(x)

    def gated_linear(self, x: Tensor, gate_up: _Linear) -> Tensor:
        """silu(gate) * up."""
        gate, up = gate_up(x).chunk(2, dim=-1)
        return functional.silu(gate) * up

    def rope_append(
        self, qkv: Tensor, layer: int, q_norm: Tensor | None, k_norm: Tensor | None, batch: Batch
    ) -> Tensor:
        """Norms and rotates Q and K, appends K and V to the pages; returns Q as (M, num_q_heads, head_dim)."""
        spec = self._spec
        heads = qkv.view(len(qkv), -1, spec.head_dim)
        q, k, v = torch.split(heads, [spec.num_q_heads, spec.num_kv_heads, spec.num_kv_heads], dim=1)
        if q_norm is not None:
            q = self.rms_norm(q, q_norm, spec.rms_norm_eps)
        if k_norm is not None:
            k = self.rms_norm(k, k_norm, spec.rms_norm_eps)
        slots = torch.from_numpy(_slots(batch))
        self._kv[layer, 0, slots] = self._rotate(k, batch).to(self._kv_dtype)
        self._kv[layer, 1, slots] = v.to(self._kv_dtype)
        return self._rotate(q, batch)

    def _rotate(self, x: Tensor, batch: Batch) -> Tensor:
        if self._rotation is None or self._rotation[0] is not batch:
            angles = torch.from_numpy(batch.positions).double()[:, None] * self._inv_freq
            self._rotation = (batch, angles.cos().float()[:, None], angles.sin().float()[:, None])
        _, cos, sin = self._rotation
        first, second = x.chunk(2, dim=-1)
        return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)

    def attention(self, q: Tensor, layer: int, batch: Batch) -> Tensor:
        """(M, q_size) float32, each sequence over its own gathered pages."""
        results = []
        for index, length in enumerate(batch.context_lengths.tolist()):
            rows = slice(int(batch.query_starts[index]), int(batch.query_starts[index + 1]))
            num_pages = -(-length // PAGE_SIZE)
            pages = torch.from_numpy(batch.page_tables[index, :num_pages]).long()
            keys, values = (
                side.view(-1, PAGE_SIZE, *side.shape[1:])[pages].flatten(0, 1)[:length].float().transpose(0, 1)[None]
                for side in self._kv[layer]
            )
            positions = torch.from_numpy(batch.positions[rows])
            mask = positions[:, None] >= torch.arange(length)
            query = q[rows].transpose(0, 1)[None]
            result = functional.scaled_dot_product_attention(query, keys, values, attn_mask=mask, enable_gqa=True)
            results.append(result[0].transpose(0, 1).flatten(1))
        return torch.cat(results)

    def take_rows(self, x: Tensor, rows: NDArray[np.int32]) -> Tensor:
        """The rows of x whose logits are wanted."""
        return x[torch.from_numpy(rows).long()]

    def logits(self, x: Tensor, head: _Matrix) -> NDArray[np.float32]:
        """(L, vocab_size), every one exact within the arithmetic of the weights' form."""
        result: NDArray[np.float32] = head.linear(x).numpy()
        return result

    def close(self) -> None:
        """Frees keys and values; weights go with their handles."""
        self._kv = torch.empty(0)
        self._rotation = None

    def _takes_int4(self, kind: str, shape: tuple[int, ...]) -> bool:
        kind = ggml_kind(kind) if is_quant_format(kind) else kind
        return self._int4 and kind in INT4_KINDS and len(shape) == 2 and shape[0] % INT4_ROWS == 0

    def _dense(self, tensor: WeightTensor) -> Tensor:
        # A few rows at a time: a head in float32 beside its bfloat16 would need three times the memory.
        weight = torch.empty(tensor.shape, dtype=self._dtype)
        # Of tiles a sixteenth of a row of tiles: slices of 512 rows begin and end with whole ones.
        stored_rows = -(-tensor.shape[0] // TILE_ROWS) * TILE_ROWS if is_quant_format(tensor.kind) else tensor.shape[0]
        data, row_bytes = tensor.data.reshape(-1), tensor.data.size // stored_rows
        for start in range(0, tensor.shape[0], DENSE_ROWS):
            count = min(DENSE_ROWS, tensor.shape[0] - start)
            part = data[start * row_bytes : (start + DENSE_ROWS) * row_bytes]
            weight[start : start + count] = torch.from_numpy(dequantize(tensor.kind, part, (count, tensor.shape[1])))
        return weight

    def _matrix(self, tensor: WeightTensor) -> _Matrix:
        if self._takes_int4(tensor.kind, tensor.shape):
            return _int4_matrix([tensor])
        return _Dense(self._dense(tensor), self._many_dtype)


def _slots(batch: Batch) -> NDArray[np.int64]:
    """Row of the flattened pages that each token's key and value go to: (M,)."""
    sequences = np.repeat(np.arange(len(batch.context_lengths)), np.diff(batch.query_starts))
    pages = batch.page_tables[sequences, batch.positions // PAGE_SIZE].astype(np.int64)
    return pages * PAGE_SIZE + batch.positions % PAGE_SIZE
