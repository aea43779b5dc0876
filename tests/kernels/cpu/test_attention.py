"""attention.c: paged causal attention against a float64 softmax, on every variant."""

from __future__ import annotations

import numpy as np
import pytest

from kernels.cpu import layouts
from kernels.cpu import library as lib

PAGE = 64


class Paged:
    """Sequences in scattered pages; every slot that no token owns holds NaN."""

    def __init__(self, lengths, chunks, q_heads, kv_heads, dim, seed=0):
        rng = np.random.default_rng(seed)
        self.lengths, self.chunks = lengths, chunks
        self.q_heads, self.kv_heads, self.dim, self.wide = q_heads, kv_heads, dim, layouts.value_dim(dim)
        needed = [-(-length // PAGE) for length in lengths]
        pages = rng.permutation(sum(needed) + 2).astype(np.int32)
        self.table = np.full((len(lengths), max(needed) + 1), -1, np.int32)
        self.keys = np.full((len(pages), kv_heads, dim, PAGE), np.nan, np.float16)
        self.values = np.full((len(pages), kv_heads, PAGE, self.wide), np.nan, np.float16)
        self.plain = []
        for s, length in enumerate(lengths):
            self.table[s, : needed[s]], pages = pages[: needed[s]], pages[needed[s] :]
            k, v = rng.standard_normal((2, length, kv_heads, dim)).astype(np.float16)
            k[:, :, 0] *= 20
            self.plain.append((k.astype(np.float64), v.astype(np.float64)))
            for position in range(length):
                page, slot = self.table[s, position // PAGE], position % PAGE
                self.keys[page, :, :, slot] = k[position]
                self.values[page, :, slot, :dim] = v[position]
                self.values[page, :, slot, dim:] = 0
        self.q = rng.standard_normal((sum(chunks), q_heads * dim)).astype(np.float32)

    def wanted(self):
        """float64 attention of every row."""
        out, row = np.empty((len(self.q), self.q_heads, self.dim)), 0
        for (k, v), length, chunk in zip(self.plain, self.lengths, self.chunks, strict=True):
            for position in range(length - chunk, length):
                for head in range(self.q_heads):
                    of = head // (self.q_heads // self.kv_heads)
                    q = self.q[row].reshape(self.q_heads, self.dim)[head].astype(np.float64)
                    scores = k[: position + 1, of] @ q / np.sqrt(self.dim)
                    weights = np.exp(scores - scores.max())
                    out[row, head] = weights @ v[: position + 1, of] / weights.sum()
                row += 1
        return out.reshape(len(self.q), -1)

    def run(self, kernels):
        starts = np.concatenate([[0], np.cumsum(self.chunks)]).astype(np.int32)
        positions = np.concatenate([np.arange(n - c, n) for n, c in zip(self.lengths, self.chunks, strict=True)])
        positions, lengths = positions.astype(np.int32), np.array(self.lengths, np.int32)
        kernels.space(16, 64, self.kv_heads, self.dim)
        kernels.step = lib.StepStruct(
            m=len(self.q), sequences=len(lengths), max_pages=self.table.shape[1], page_size=PAGE, q_heads=self.q_heads,
            kv_heads=self.kv_heads, head_dim=self.dim, value_dim=self.wide, scale=1 / np.sqrt(self.dim),
            positions=positions.ctypes.data, query_starts=starts.ctypes.data, context_lengths=lengths.ctypes.data,
            page_tables=self.table.ctypes.data,
        )  # fmt: skip
        out = np.full((len(self.q) + 2, self.q.shape[1]), np.nan, np.float32)
        kernels.run(
            kind=lib.OP_ATTENTION, m=len(self.q), a=self.q.ctypes.data, stride=self.q.shape[1], c=self.keys.ctypes.data,
            d=self.values.ctypes.data, out=out[1:].ctypes.data, out_stride=self.q.shape[1],
        )  # fmt: skip
        assert np.isnan(out[[0, -1]]).all()
        return out[1:-1]


CASES = {
    "one token": ([1], [1]),
    "decode": ([64, 65, 3], [1, 1, 1]),
    "prefill": ([150], [150]),
    "prefill after a cache": ([700], [33]),
    "mixed": ([70, 600, 5], [1, 20, 5]),
    "long decode, split": ([1337], [1]),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    ("q_heads", "kv_heads", "dim"), [(6, 2, 64), (7, 1, 12), (2, 2, 128), (40, 1, 16), (2, 1, 256)]
)
def test_equals_float64_softmax(kernels, case, q_heads, kv_heads, dim):
    paged = Paged(*CASES[case], q_heads, kv_heads, dim)
    np.testing.assert_allclose(paged.run(kernels), paged.wanted(), rtol=2e-5, atol=2e-5)


def test_a_row_is_bitwise_the_same_in_any_batch_chunk_and_split(with_threads, kernels):
    whole = Paged([1100], [1100], 6, 2, 64)
    found = whole.run(kernels)
    for threads in (1, 2, 3):
        chosen = with_threads(kernels.variant, threads)
        for length, chunk in ((1, 1), (64, 1), (700, 1), (1100, 1), (1100, 40)):
            part = Paged([1100], [1100], 6, 2, 64)
            part.lengths, part.chunks = [length], [chunk]
            part.q = whole.q[length - chunk : length].copy()
            np.testing.assert_array_equal(part.run(chosen), found[length - chunk : length])
