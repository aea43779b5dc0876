"""Attention on the GPU over the paged KV cache: launches attention_decode.cu, attention_prefill.cu and rope_append.cu.

A layer's cache is two arrays of pages of 64 tokens, float16: keys [page][kv_head][64][head_dim], values transposed,
[page][kv_head][head_dim][64]. Slots that no token was written to may hold anything, NaN included.
"""

from __future__ import annotations

import math
from ctypes import Structure, c_float, c_int32, c_uint64
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kernels.errors import ContractError

if TYPE_CHECKING:
    from kernels.device.driver import Device, Kernel

PAGE_SIZE = 64
MAX_SPLITS = 96
"""Blocks of attention_decode.cu that share a row's context at most; its macro of that name."""

_QUERIES = 8
_SPLIT_TOKENS = 128
_DECODE_THREADS = 128
_STAGED_DIMS = 128
"""Head sizes up to which a step's keys and values are held; its macro STAGED."""
_COPIED_PAGES = 2
"""Of keys, and of values, in a block's shared memory."""
_LEAST_SPLITS = 4
_PREFILL_THREADS = 128
_ROPE_THREADS = 256


class AttentionDecodeArguments(Structure):
    """Mirrors the struct of attention_decode.cu."""

    _fields_ = (
        ("qkv", c_uint64),
        ("keys", c_uint64),
        ("values", c_uint64),
        ("positions", c_uint64),
        ("context_lengths", c_uint64),
        ("page_tables", c_uint64),
        ("turns", c_uint64),
        ("q_norm", c_uint64),
        ("k_norm", c_uint64),
        ("out", c_uint64),
        ("partials", c_uint64),
        ("counters", c_uint64),
        ("rows", c_int32),
        ("q_heads", c_int32),
        ("kv_heads", c_int32),
        ("max_pages", c_int32),
        ("most", c_int32),
        ("early", c_int32),
        ("exchange", c_int32),
        ("eps", c_float),
        ("scale", c_float),
    )


class AttentionPrefillArguments(Structure):
    """Mirrors the struct of attention_prefill.cu."""

    _fields_ = (
        ("qkv", c_uint64),
        ("keys", c_uint64),
        ("values", c_uint64),
        ("query_starts", c_uint64),
        ("context_lengths", c_uint64),
        ("page_tables", c_uint64),
        ("out", c_uint64),
        ("q_heads", c_int32),
        ("kv_heads", c_int32),
        ("max_pages", c_int32),
        ("scale", c_float),
    )


class RopeAppendArguments(Structure):
    """Mirrors the struct of rope_append.cu."""

    _fields_ = (
        ("qkv", c_uint64),
        ("keys", c_uint64),
        ("values", c_uint64),
        ("positions", c_uint64),
        ("query_starts", c_uint64),
        ("page_tables", c_uint64),
        ("turns", c_uint64),
        ("q_norm", c_uint64),
        ("k_norm", c_uint64),
        ("tokens", c_int32),
        ("sequences", c_int32),
        ("q_heads", c_int32),
        ("kv_heads", c_int32),
        ("max_pages", c_int32),
        ("eps", c_float),
    )


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """Heads and pages of a model; max_pages is the width of the page tables.

    Raises:
        ContractError: heads that do not divide, or a head size that the kernels do not take.
    """

    q_heads: int
    kv_heads: int
    head_dim: int
    max_pages: int
    num_layers: int

    def __post_init__(self) -> None:
        if self.kv_heads < 1 or self.q_heads < 1 or self.q_heads % self.kv_heads:
            raise ContractError(f"{self.q_heads} query heads cannot share {self.kv_heads} KV heads evenly.")
        if self.head_dim % 16 or not 32 <= self.head_dim <= 256:
            raise ContractError(f"head_dim is {self.head_dim}, but it must be a multiple of 16 from 32 to 256.")
        if self.max_pages < 1:
            raise ContractError(f"max_pages is {self.max_pages}, but it must be at least 1.")

    @property
    def page_bytes(self) -> int:
        """Bytes of one page of one layer's keys; its values take as many."""
        return self.kv_heads * PAGE_SIZE * self.head_dim * 2

    @property
    def decode_blocks(self) -> int:
        """Blocks of a row that each have up to 8 query heads of one KV head."""
        return self.kv_heads * -(-(self.q_heads // self.kv_heads) // _QUERIES)

    def most_splits(self, sm_count: int) -> int:
        """Blocks among which a row is split at most, whatever else is in the batch: one of every SM.

        Args:
            sm_count: of the GPU; 0 for the most that any GPU takes.
        """
        if not sm_count:
            return MAX_SPLITS
        return max(_LEAST_SPLITS, min(MAX_SPLITS, sm_count // self.decode_blocks))


def rope_turns(inv_freq: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Turns of each pair per position as fractions of 2^64, so that an integer product gives the angle at any position.

    Args:
        inv_freq: radians per position.
    """
    turns = np.asarray(inv_freq, np.float64) / (2 * math.pi) % 1.0
    return np.floor(np.ldexp(turns, 64)).astype(np.uint64)


class Attention:
    """Attention of one model. All arguments named like arrays are device pointers, 16-byte aligned.

    Args:
        inv_freq: (head_dim / 2,) radians per position, scaling included.
        max_rows: the most rows that `decode` is given.
        sm_count: SMs that the device's stream may use, where those are not all.
        exchange: whether blocks that share a row may wait for each other where all of them run at once.

    Raises:
        OutOfDeviceMemory: the workspace does not fit.
    """

    def __init__(
        self,
        device: Device,
        shape: AttentionShape,
        inv_freq: NDArray[np.float64],
        max_rows: int,
        *,
        sm_count: int = 0,
        exchange: bool = True,
    ) -> None:
        if inv_freq.shape != (shape.head_dim // 2,):
            raise ContractError(f"inv_freq has the shape {inv_freq.shape}; head_dim is {shape.head_dim}.")
        self._device = device
        self._shape = shape
        self._max_rows = max_rows
        self._scale = 1.0 / math.sqrt(shape.head_dim)
        self._exchange = exchange
        sm_count = sm_count or device.sm_count
        # From sm_90 on, pages come by bulk copies: COPIED of attention_splits.cuh.
        copied = device.overlaps and shape.head_dim <= _STAGED_DIMS
        self._copied_bytes = _COPIED_PAGES * 2 * PAGE_SIZE * shape.head_dim * 2 if copied else 0
        self._at_once = 0
        self._sm_count = sm_count
        self._most = shape.most_splits(sm_count)
        partial_bytes, counter_bytes = _workspace(shape, max_rows, self._most)
        self._memory = device.allocate(partial_bytes + counter_bytes + shape.head_dim // 2 * 8)
        self._counters = self._memory.pointer + partial_bytes
        self._turns = self._counters + counter_bytes
        self._memory.fill(0)
        self._memory.upload(rope_turns(inv_freq), partial_bytes + counter_bytes)

    @staticmethod
    def workspace_bytes(shape: AttentionShape, max_rows: int, sm_count: int = 0) -> int:
        """Bytes that the constructor allocates, at once; with 0 SMs the most that it does on any GPU."""
        return sum(_workspace(shape, max_rows, shape.most_splits(sm_count))) + shape.head_dim // 2 * 8

    def decode(
        self,
        qkv: int,
        rows: int,
        keys: int,
        values: int,
        positions: int,
        context_lengths: int,
        page_tables: int,
        out: int,
        q_norm: int = 0,
        k_norm: int = 0,
        eps: float = 0.0,
        *,
        early: bool = False,
    ) -> None:
        """One new token of each row's sequence: RoPE, append to the cache, attention, in one kernel.

        Args:
            qkv: float32 (rows, (q_heads + 2 kv_heads) head_dim): queries, keys, values.
            keys, values: the layer's pages; rows append to pages that no other row writes to.
            positions: int32 (rows,); -1 is padding: nothing is appended and the result is zeros.
            context_lengths: int32 (rows,): positions + 1.
            page_tables: int32 (rows, max_pages).
            out: float32 (rows, q_heads head_dim).
            q_norm, k_norm: float32 (head_dim,) of the heads' RMSNorm, both or neither.
            early: positions, context_lengths, page_tables and the cache before these positions were written before
                the last launch that did not overlap its predecessor (a graph's first is one), so the kernel may read
                them while the previous one still runs.

        Raises:
            ContractError: more rows than the workspace was made for.
        """
        shape = self._shape
        if not 1 <= rows <= self._max_rows:
            raise ContractError(f"There are {rows} rows, but attention was set up for 1 to {self._max_rows}.")
        longest = -(-shape.max_pages * PAGE_SIZE // _SPLIT_TOKENS)
        grid = (min(self._most, longest), shape.decode_blocks, rows)
        kernel = self._kernel("attention_decode")
        if not self._at_once:
            self._at_once = self._sm_count * kernel.max_blocks_per_sm(_DECODE_THREADS, self._copied_bytes)
        exchange = self._exchange and grid[0] * grid[1] * grid[2] <= self._at_once
        arguments = AttentionDecodeArguments(
            qkv, keys, values, positions, context_lengths, page_tables, self._turns, q_norm, k_norm, out,
            self._memory.pointer, self._counters, rows, shape.q_heads, shape.kv_heads, shape.max_pages, self._most,
            early, exchange, eps, self._scale,
        )  # fmt: skip
        kernel.launch(arguments, grid, _DECODE_THREADS, self._copied_bytes)
        if not exchange and longest > 1:
            grid = (_QUERIES, shape.decode_blocks, rows)
            self._kernel("attention_decode", "attention_combine").launch(arguments, grid, _DECODE_THREADS)

    def rope_append(
        self,
        qkv: int,
        tokens: int,
        sequences: int,
        keys: int,
        values: int,
        positions: int,
        query_starts: int,
        page_tables: int,
        q_norm: int = 0,
        k_norm: int = 0,
        eps: float = 0.0,
    ) -> None:
        """Queries are normed and rotated in place, keys too and then appended to the cache with the values.

        Args:
            qkv: float32 (tokens, (q_heads + 2 kv_heads) head_dim).
            positions: int32 (tokens,); -1 is padding: nothing happens.
            query_starts: int32 (sequences + 1,): rows of each sequence's chunk.
            page_tables: int32 (sequences, max_pages).
        """
        shape = self._shape
        arguments = RopeAppendArguments(
            qkv, keys, values, positions, query_starts, page_tables, self._turns, q_norm, k_norm, tokens, sequences,
            shape.q_heads, shape.kv_heads, shape.max_pages, eps,
        )  # fmt: skip
        self._kernel("rope_append").launch(arguments, tokens, _ROPE_THREADS)

    def prefill(
        self,
        qkv: int,
        longest_chunk: int,
        sequences: int,
        keys: int,
        values: int,
        query_starts: int,
        context_lengths: int,
        page_tables: int,
        out: int,
    ) -> None:
        """Causal attention of chunks whose queries `rope_append` has rotated and whose keys and values it appended.

        Args:
            qkv: float32 (tokens, (q_heads + 2 kv_heads) head_dim); only the queries are read.
            longest_chunk: tokens of the longest chunk (more do no harm).
            query_starts: int32 (sequences + 1,): rows of each sequence's chunk.
            context_lengths: int32 (sequences,): tokens of each sequence, its chunk being the last of them.
            page_tables: int32 (sequences, max_pages).
            out: float32 (tokens, q_heads head_dim).
        """
        shape = self._shape
        arguments = AttentionPrefillArguments(
            qkv, keys, values, query_starts, context_lengths, page_tables, out, shape.q_heads, shape.kv_heads,
            shape.max_pages, self._scale,
        )  # fmt: skip
        block_queries = _PREFILL_THREADS // 32 * _QUERIES * (2 if shape.head_dim <= 128 else 1)
        blocks = -(-longest_chunk * (shape.q_heads // shape.kv_heads) // block_queries)
        self._kernel("attention_prefill").launch(arguments, (blocks, shape.kv_heads, sequences), _PREFILL_THREADS)

    def close(self) -> None:
        """Frees the workspace."""
        self._memory.free()

    def _kernel(self, source: str, name: str = "") -> Kernel:
        return self._device.kernel(f"{source}.cu", name or source, HEAD_DIM=self._shape.head_dim)


def _workspace(shape: AttentionShape, max_rows: int, most: int) -> tuple[int, int]:
    """Bytes of partial results and of counters."""
    blocks = max_rows * shape.decode_blocks
    return blocks * most * _QUERIES * (shape.head_dim + 2) * 8, -(-blocks * 4 // 256) * 256
