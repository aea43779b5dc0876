"""Attention, RoPE and the append to the cache against float64, over scattered pages whose other slots hold NaN."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from kernels.device.driver import Device
from kernels.launch.attention import PAGE_SIZE, Attention, AttentionShape

TOLERANCE = 5e-4
"""Of a head's result: weights of float16 and their sum give about 1e-4, float16 queries would give 1e-2 here."""
SPARE_PAGES = 3
EPS = 1e-6


def rope(x: np.ndarray, positions: np.ndarray, inv_freq: np.ndarray) -> np.ndarray:
    """float64, x (tokens, heads, dim)."""
    angles = positions.astype(np.float64)[:, None, None] * inv_freq
    first, second = np.split(x.astype(np.float64), 2, axis=-1)
    cos, sin = np.cos(angles), np.sin(angles)
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


def rms_norm(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    x = x.astype(np.float64)
    return x / np.sqrt(np.square(x).mean(-1, keepdims=True) + EPS) * weight


def attend(q: np.ndarray, keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    """float64 (heads, dim): q (heads, dim) over keys and values (kv_heads, tokens, dim)."""
    ratio = len(q) // len(keys)
    grouped = q.reshape(len(keys), ratio, -1)
    scores = grouped @ keys.astype(np.float64).transpose(0, 2, 1) / np.sqrt(q.shape[-1])
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return (weights @ values.astype(np.float64)).reshape(q.shape)


def error(found: np.ndarray, wanted: np.ndarray) -> float:
    """The largest relative error of a head; NaN where there is one."""
    return float((np.linalg.norm(found - wanted, axis=-1) / np.linalg.norm(wanted, axis=-1)).max())


class World:
    """Sequences of random lengths on the device, and what is known of them on the host."""

    def __init__(
        self, device: Device, guarded: Callable[..., Any], rng: np.random.Generator, heads: tuple[int, int, int],
        lengths: Sequence[int], exchange: bool, max_rows: int = 16, norm: bool = False,
    ) -> None:  # fmt: skip
        self.guarded, self.rng = guarded, rng
        self.q_heads, self.kv_heads, self.dim = heads
        needed = [-(-length // PAGE_SIZE) for length in lengths]
        self.pages = sum(needed) + SPARE_PAGES
        free = iter(rng.permutation(self.pages).astype(np.int32))
        self.tables = np.full((len(lengths), max(needed) + 2), -1, np.int32)
        for row, count in enumerate(needed):
            self.tables[row, :count] = list(itertools.islice(free, count))
        page = self.pages * self.kv_heads * PAGE_SIZE * self.dim
        self.keys_memory, self.values_memory = guarded(2 * page), guarded(2 * page)
        self.tables_memory = guarded(self.tables)
        self.inv_freq = 1e6 ** (-np.arange(0, self.dim, 2) / self.dim)
        self.norms = rng.uniform(0.5, 2, (2, self.dim)).astype(np.float32) if norm else None
        self.norms_memory = guarded(self.norms) if norm else None
        self.norm_arguments: dict[str, Any] = {}
        if self.norms_memory:
            pointer = self.norms_memory.pointer
            self.norm_arguments = {"q_norm": pointer, "k_norm": pointer + 4 * self.dim, "eps": EPS}
        self.shape = AttentionShape(self.q_heads, self.kv_heads, self.dim, self.tables.shape[1], 1)
        self.attention = Attention(device, self.shape, self.inv_freq, max_rows, exchange=exchange)

    @property
    def cache(self) -> tuple[np.ndarray, np.ndarray]:
        """Keys (pages, kv_heads, 64, dim) and values (pages, kv_heads, dim, 64)."""
        shape = (self.pages, self.kv_heads, PAGE_SIZE, self.dim)
        keys = self.keys_memory.download(np.float16, shape)
        return keys, self.values_memory.download(np.float16, (*shape[:2], self.dim, PAGE_SIZE))

    def history(self, lengths: Sequence[int]) -> None:
        """Random keys and values for the first tokens of each sequence; keys with the huge bias of some models."""
        keys, values = self.cache
        for row, length in enumerate(lengths):
            for first in range(0, length, PAGE_SIZE):
                count, page = min(PAGE_SIZE, length - first), self.tables[row, first // PAGE_SIZE]
                k, v = self.rng.standard_normal((2, count, self.kv_heads, self.dim), np.float32)
                k[..., 3] += 200
                k[..., self.dim // 2] *= 5
                keys[page, :, :count] = k.transpose(1, 0, 2)
                values[page, :, :, :count] = v.transpose(1, 2, 0)
        self.keys_memory.upload(keys)
        self.values_memory.upload(values)

    def sequence(self, row: int, length: int) -> tuple[np.ndarray, np.ndarray]:
        """What the cache holds of a sequence: (kv_heads, length, dim) each."""
        keys, values = self.cache
        pages = self.tables[row, : -(-length // PAGE_SIZE)]
        k = keys[pages].transpose(1, 0, 2, 3).reshape(self.kv_heads, -1, self.dim)
        v = values[pages].transpose(1, 0, 3, 2).reshape(self.kv_heads, -1, self.dim)
        return k[:, :length], v[:, :length]

    def random_qkv(self, tokens: int) -> np.ndarray:
        """(tokens, q_heads + 2 kv_heads, dim)."""
        return self.rng.standard_normal((tokens, self.q_heads + 2 * self.kv_heads, self.dim), np.float32)

    def rotated(self, qkv: np.ndarray, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Queries and keys in float64 after norm and RoPE."""
        q, k = qkv[:, : self.q_heads], qkv[:, self.q_heads : self.q_heads + self.kv_heads]
        if self.norms is not None:
            q, k = rms_norm(q, self.norms[0]), rms_norm(k, self.norms[1])
        return rope(q, positions, self.inv_freq), rope(k, positions, self.inv_freq)

    def decode(
        self, qkv: np.ndarray, positions: np.ndarray, rows: Sequence[int] | None = None, early: bool = False
    ) -> np.ndarray:
        """(rows, q_heads, dim); `rows` are the sequences, all by default."""
        tables = self.guarded(self.tables if rows is None else self.tables[list(rows)])
        given, at = self.guarded(np.ascontiguousarray(qkv)), self.guarded(positions.astype(np.int32))
        lengths = self.guarded((positions + 1).astype(np.int32))
        out = self.guarded(4 * len(qkv) * self.q_heads * self.dim)
        self.attention.decode(
            given.pointer, len(qkv), self.keys_memory.pointer, self.values_memory.pointer, at.pointer, lengths.pointer,
            tables.pointer, out.pointer, early=early, **self.norm_arguments,
        )  # fmt: skip
        return out.download(np.float32, (len(qkv), self.q_heads, self.dim))

    def prefill(self, qkv: np.ndarray, chunks: Sequence[int], lengths: Sequence[int]) -> np.ndarray:
        """Appends a chunk to each sequence, whose lengths are then `lengths`: (tokens, q_heads, dim)."""
        positions = np.concatenate([np.arange(n - c, n) for c, n in zip(chunks, lengths, strict=True)])
        starts = self.guarded(np.concatenate([[0], np.cumsum(chunks)]).astype(np.int32))
        given, at = self.guarded(np.ascontiguousarray(qkv)), self.guarded(positions.astype(np.int32))
        ends = self.guarded(np.array(lengths, np.int32))
        out = self.guarded(4 * len(qkv) * self.q_heads * self.dim)
        keys, values, tables = self.keys_memory.pointer, self.values_memory.pointer, self.tables_memory.pointer
        self.attention.rope_append(
            given.pointer, len(qkv), len(chunks), keys, values, at.pointer, starts.pointer, tables,
            **self.norm_arguments,
        )  # fmt: skip
        self.attention.prefill(
            given.pointer, max(chunks), len(chunks), keys, values, starts.pointer, ends.pointer, tables, out.pointer
        )
        return out.download(np.float32, (len(qkv), self.q_heads, self.dim))


@pytest.fixture(params=[False, True], ids=["kernel", "all"])
def world(
    request: pytest.FixtureRequest, device: Device, guarded: Callable[..., Any], rng: np.random.Generator
) -> Callable[..., World]:
    """Both ways in which splits are combined: by another kernel, and by all where they run at once."""

    def make(heads: tuple[int, int, int], lengths: Sequence[int], **options: Any) -> World:
        return World(device, guarded, rng, heads, lengths, request.param, **options)

    return make


HEADS = [
    (16, 2, 128), (28, 4, 128), (9, 3, 64), (6, 1, 80), (7, 7, 64), (14, 1, 96), (16, 1, 128), (8, 1, 256), (40, 2, 64)
]  # fmt: skip
LENGTHS = [1, 2, 63, 64, 65, 127, 500, 257]


@pytest.mark.parametrize("heads", HEADS, ids=str)
@pytest.mark.parametrize("norm", [False, True])
def test_decode(world: Callable[..., World], heads: tuple[int, int, int], norm: bool) -> None:
    w = world(heads, LENGTHS, norm=norm)
    w.history([n - 1 for n in LENGTHS])
    positions, qkv = np.array(LENGTHS) - 1, w.random_qkv(len(LENGTHS))
    out = w.decode(qkv, positions)
    q, k = w.rotated(qkv, positions)
    for row, length in enumerate(LENGTHS):
        keys, values = w.sequence(row, length)
        np.testing.assert_allclose(keys[:, -1], k[row], rtol=2**-10, atol=1e-5)
        np.testing.assert_array_equal(values[:, -1], qkv[row, -w.kv_heads :].astype(np.float16))
        assert error(out[row], attend(q[row], keys, values)) < TOLERANCE


@pytest.mark.parametrize("length", [4096, 8192, 8193, 33000])
def test_decode_of_long_contexts(world: Callable[..., World], length: int) -> None:
    w = world((16, 2, 128), [length])
    w.history([length - 1])
    positions, qkv = np.array([length - 1]), w.random_qkv(1)
    out = w.decode(qkv, positions)
    q, k = w.rotated(qkv, positions)
    keys, values = w.sequence(0, length)
    np.testing.assert_allclose(keys[:, -1], k[0], rtol=2**-10, atol=1e-5)
    assert error(out[0], attend(q[0], keys, values)) < TOLERANCE


def test_decode_writes_nothing_but_its_token(world: Callable[..., World]) -> None:
    lengths = [70, 64, 300]
    w = world((8, 2, 64), lengths)
    w.history([n - 1 for n in lengths])
    before = [part.view(np.uint16).copy() for part in w.cache]
    w.decode(w.random_qkv(3), np.array(lengths) - 1)
    keys, values = (part.view(np.uint16) for part in w.cache)
    for row, length in enumerate(lengths):
        page, slot = w.tables[row, (length - 1) // PAGE_SIZE], (length - 1) % PAGE_SIZE
        before[0][page, :, slot] = keys[page, :, slot]
        before[1][page, :, :, slot] = values[page, :, :, slot]
    np.testing.assert_array_equal(keys, before[0])
    np.testing.assert_array_equal(values, before[1])


def test_padding_rows(world: Callable[..., World]) -> None:
    w = world((16, 2, 128), [100, 100])
    w.history([99, 50])
    before = [part.view(np.uint16).copy() for part in w.cache]
    qkv = w.random_qkv(4)
    qkv[1:] = np.nan
    alone = w.decode(qkv[:1], np.array([99]), [0])
    out = w.decode(qkv, np.array([99, -1, -1, -1]), [0, 1, 1, 1])
    np.testing.assert_array_equal(out[0], alone[0])
    np.testing.assert_array_equal(out[1:], 0)
    pages = w.tables[1, :2]
    for part, old in zip(w.cache, before, strict=True):
        np.testing.assert_array_equal(part.view(np.uint16)[pages], old[pages])


@pytest.mark.parametrize("heads", [(16, 2, 128), (12, 1, 64)], ids=str)
def test_decode_is_the_same_bits_in_every_batch(world: Callable[..., World], heads: tuple[int, int, int]) -> None:
    lengths = [1, 90, 2000, 256, 257, 700, *range(33, 43)]
    w = world(heads, lengths)
    w.history([n - 1 for n in lengths])
    qkv, positions = w.random_qkv(len(lengths)), np.array(lengths) - 1
    together = w.decode(qkv, positions)
    for _ in range(3):
        np.testing.assert_array_equal(w.decode(qkv, positions), together)
        np.testing.assert_array_equal(w.decode(qkv, positions, early=True), together)
    for row in range(len(lengths)):
        np.testing.assert_array_equal(w.decode(qkv[[row]], positions[[row]], [row])[0], together[row])


@pytest.mark.parametrize("heads", [(16, 2, 128), (12, 1, 64)], ids=str)
def test_splits_are_combined_to_the_same_bits_by_all_and_by_a_kernel(
    device: Device, guarded: Callable[..., Any], rng: np.random.Generator, heads: tuple[int, int, int]
) -> None:
    lengths = [1, 128, 129, 400, 900, 1100, 2100, 5000]
    w = World(device, guarded, rng, heads, lengths, exchange=False)
    w.history([n - 1 for n in lengths])
    qkv, positions = w.random_qkv(len(lengths)), np.array(lengths) - 1
    by_kernel = w.decode(qkv, positions)
    w.attention = Attention(device, w.shape, w.inv_freq, 1)
    for row in range(len(lengths)):
        np.testing.assert_array_equal(w.decode(qkv[[row]], positions[[row]], [row])[0], by_kernel[row])


def test_one_captured_graph_serves_every_length(
    device: Device, world: Callable[..., World], guarded: Callable[..., Any]
) -> None:
    lengths = [3000, 3000]
    w = world((28, 4, 128), lengths)
    w.history(lengths)
    qkv = w.random_qkv(2)
    given, at, ends = guarded(qkv), guarded(np.zeros(2, np.int32)), guarded(np.ones(2, np.int32))
    out = guarded(4 * 2 * w.q_heads * w.dim)
    pointers = (w.keys_memory.pointer, w.values_memory.pointer, at.pointer, ends.pointer, w.tables_memory.pointer)
    w.attention.decode(given.pointer, 2, *pointers, out.pointer, early=True)  # the kernel is loaded
    with device.stream.capture() as graph:
        for _ in range(2):
            w.attention.decode(given.pointer, 2, *pointers, out.pointer, early=True)
    for positions in ([0, 5], [2999, 40], [64, 2500], [-1, 700]):
        at.upload(np.array(positions, np.int32))
        ends.upload(np.array(positions, np.int32) + 1)
        graph.launch()
        found = out.download(np.float32, (2, w.q_heads, w.dim))
        np.testing.assert_array_equal(found, w.decode(qkv, np.array(positions)))
    graph.close()


@pytest.mark.parametrize("heads", HEADS, ids=str)
@pytest.mark.parametrize("norm", [False, True])
def test_prefill(world: Callable[..., World], heads: tuple[int, int, int], norm: bool) -> None:
    lengths, chunks = [130, 58, 1, 64, 33], [70, 58, 1, 3, 32]
    w = world(heads, lengths, norm=norm)
    w.history([n - c for n, c in zip(lengths, chunks, strict=True)])
    qkv = w.random_qkv(sum(chunks))
    out = w.prefill(qkv, chunks, lengths)
    positions = np.concatenate([np.arange(n - c, n) for c, n in zip(chunks, lengths, strict=True)])
    q, k = w.rotated(qkv, positions)
    row = 0
    for sequence, (chunk, length) in enumerate(zip(chunks, lengths, strict=True)):
        keys, values = w.sequence(sequence, length)
        for position in range(length - chunk, length):
            np.testing.assert_allclose(keys[:, position], k[row], rtol=2**-10, atol=1e-5)
            np.testing.assert_array_equal(values[:, position], qkv[row, -w.kv_heads :].astype(np.float16))
            wanted = attend(q[row], keys[:, : position + 1], values[:, : position + 1])
            assert error(out[row], wanted) < TOLERANCE
            row += 1


def test_prefill_is_the_same_bits_in_every_chunking(world: Callable[..., World]) -> None:
    length = 300
    w = world((14, 2, 64), [length, 40])
    qkv, other = w.random_qkv(length), w.random_qkv(40)
    whole = w.prefill(np.concatenate([qkv, other]), [length, 40], [length, 40])
    for sizes in ([1] * 5 + [295], [64] * 4 + [44], [37] * 8 + [4]):
        w.keys_memory.upload(np.full(w.keys_memory.nbytes // 2, np.nan, np.float16))
        w.values_memory.upload(np.full(w.values_memory.nbytes // 2, np.nan, np.float16))
        parts, end = [], 0
        for size in sizes:
            parts.append(w.prefill(qkv[end : end + size], [size, 0], [end + size, 0]))
            end += size
        np.testing.assert_array_equal(np.concatenate(parts), whole[:length])


def test_decode_after_prefill_is_as_one_prefill(world: Callable[..., World]) -> None:
    length, start = 200, 120
    w = world((16, 2, 128), [length, length])
    qkv = w.random_qkv(length)
    whole = w.prefill(np.concatenate([qkv[:0], qkv]), [0, length], [0, length])
    first = w.prefill(qkv[:start], [start, 0], [start, 0])
    np.testing.assert_array_equal(first, whole[:start])
    for position in range(start, length):
        out = w.decode(qkv[[position]], np.array([position]), [0])
        assert error(out[0], whole[position].astype(np.float64)) < TOLERANCE
    for one, other in zip(w.sequence(0, length), w.sequence(1, length), strict=True):
        np.testing.assert_array_equal(one, other)


def test_rope_at_a_far_position(world: Callable[..., World], guarded: Callable[..., Any]) -> None:
    """A product of a position and a frequency in float32 would be off by 1e-3 there."""
    positions = np.array([32000, 32767, 131071, -1, 0])
    w = world((4, 2, 128), [131072])
    qkv = w.random_qkv(len(positions))
    given, at = guarded(qkv), guarded(positions.astype(np.int32))
    starts = guarded(np.array([0, len(positions)], np.int32))
    w.attention.rope_append(
        given.pointer, len(positions), 1, w.keys_memory.pointer, w.values_memory.pointer, at.pointer, starts.pointer,
        w.tables_memory.pointer,
    )  # fmt: skip
    found = given.download(np.float32, qkv.shape)
    q, k = w.rotated(qkv, positions)
    real = positions >= 0
    np.testing.assert_allclose(found[real, : w.q_heads], q[real], atol=2e-6)
    np.testing.assert_array_equal(found[~real], qkv[~real])
    np.testing.assert_array_equal(found[:, w.q_heads :], qkv[:, w.q_heads :])
    keys = w.sequence(0, 131072)[0]
    np.testing.assert_allclose(keys[:, positions[real]].transpose(1, 0, 2), k[real], rtol=2**-10, atol=1e-5)
