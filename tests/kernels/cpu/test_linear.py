"""linear.c, quantize.c, dense.c and pack.c: every weight kind against float64 products, on every variant."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from kernels.cpu import layouts
from kernels.cpu import library as lib
from kernels.errors import ContractError

KINDS = tuple(layouts.KINDS)
TOKENS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 17, 64)


def rows(m, k, seed=0):
    """Activations with an outlier, a group of zeros and a group of tiny values."""
    x = np.random.default_rng(seed).standard_normal((m, k)).astype(np.float32)
    x[:, 5] *= 40
    if k >= 96:
        x[0, 32:64] = 0
        x[-1, 64:96] *= 1e-6
    return x


def widths(kind):
    """Widths of a kind: the smallest, an odd one."""
    return {1: (37, 80), 32: (32, 32 * 7), 256: (256, 768)}[layouts.KINDS[kind].block]


def exact_product(x, parts, quantize):
    """float64 result of the parts, with x quantized where the part is, and a bound of float32's error."""
    wanted, bound = [], []
    for (kind, _, _), (weight, bias) in parts:
        used = x.astype(np.float64) if layouts.KINDS[kind].dense else quantize(x)
        wanted.append(used @ weight.T + bias)
        bound.append(np.abs(used) @ np.abs(weight).T + np.abs(bias))
    return np.concatenate(wanted, axis=1), 4e-6 * np.concatenate(bound, axis=1) + 1e-7


@pytest.mark.parametrize("kind", KINDS)
def test_equals_the_float64_product(kernels, quantize, kind):
    for k in widths(kind):
        shapes = [(kind, 43, k)]
        weight, parts = kernels.pack(shapes, bias=True)
        for m in TOKENS:
            x = rows(m, k, seed=m)
            wanted, bound = exact_product(x, list(zip(shapes, parts, strict=True)), quantize)
            assert (np.abs(kernels.linear(x, weight) - wanted) <= bound).all(), (k, m)


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_is_bitwise_the_same_in_any_batch(kernels, kind):
    k = widths(kind)[-1]
    weight, _ = kernels.pack([(kind, 35, k)])
    x = rows(64, k)
    alone = np.concatenate([kernels.linear(x[i : i + 1].copy(), weight) for i in range(64)])
    for m in TOKENS:
        np.testing.assert_array_equal(kernels.linear(x[:m].copy(), weight), alone[:m])


@pytest.mark.parametrize("kind", ["q4_k", "q6_k", "q8_0", "bf16"])
def test_the_number_of_threads_changes_no_bit(with_threads, kernels, kind):
    results = []
    for threads in (1, 2, 3):
        chosen = with_threads(kernels.variant, threads)
        weight, _ = chosen.pack([(kind, 400, 256)])
        results.extend(chosen.linear(rows(m, 256), weight).copy() for m in (1, 20))
    for few, many in zip(results[2:4], results[4:], strict=True):
        np.testing.assert_array_equal(few, many)
    np.testing.assert_array_equal(results[0], results[2])
    np.testing.assert_array_equal(results[1], results[3])


def test_parts_of_different_kinds_write_their_columns(kernels, quantize):
    shapes = [("q4_k", 20, 256), ("q6_k", 5, 256), ("f16", 16, 256), ("q8_0", 33, 256)]
    weight, parts = kernels.pack(shapes, bias=True)
    for m in (1, 9):
        x = rows(m, 256)
        wanted, bound = exact_product(x, list(zip(shapes, parts, strict=True)), quantize)
        assert (np.abs(kernels.linear(x, weight) - wanted) <= bound).all()


def test_adds_to_the_residual(kernels):
    weight, _ = kernels.pack([("q5_k", 50, 512)], bias=True)
    for m in (1, 6):
        x, residual = rows(m, 512), rows(m, 50, seed=3)
        plain = kernels.linear(x, weight)
        np.testing.assert_array_equal(kernels.linear(x, weight, lib.LINEAR_ADD, residual), plain + residual)


def test_gated_is_silu_of_gate_times_up(kernels):
    weight, _ = kernels.pack([("q4_k", 45, 256), ("q4_1", 45, 256)], bias=True)
    for m in (1, 4, 12):
        x = 120 * rows(m, 256)
        gate, up = np.split(kernels.linear(x, weight).astype(np.float64), 2, axis=1)
        assert np.abs(gate).max() > 88, "an exponent beyond float32 must be among the cases"
        with np.errstate(over="ignore"):
            wanted = gate / (1 + np.exp(-gate)) * up
        np.testing.assert_allclose(kernels.linear(x, weight, lib.LINEAR_GATED), wanted, rtol=2e-6, atol=1e-30)


def test_many_tiles_and_a_wide_input(kernels, quantize):
    kernels.space(16, 8960, 1, 64)
    for kind, n, k in (("q6_k", 17, 8960), ("q4_1", 1000, 576)):
        weight, parts = kernels.pack([(kind, n, k)])
        for m in (1, 16):
            x = rows(m, k)
            wanted, bound = exact_product(x, [((kind, n, k), parts[0])], quantize)
            assert (np.abs(kernels.linear(x, weight) - wanted) <= bound).all()


def test_activations_are_the_nearest_of_8_bits_with_their_sums(kernels, quantize):
    k, space = 96, kernels.workspace
    for m in (1, 4, 8, 13):
        x = rows(m, k)
        kernels.library.quantize(ctypes.byref(space.struct), x.ctypes.data, k, m, k)
        found = read_activations(space.struct, m, k)
        np.testing.assert_allclose(found["q"] * np.repeat(found["scale"], 32, axis=1), quantize(x), rtol=1e-6)
        sums = found["q"].reshape(m, -1, 32).sum(axis=2)
        np.testing.assert_array_equal(found["neg"], -sums)
        np.testing.assert_allclose(found["sum"], sums * found["scale"], rtol=1e-6)
        np.testing.assert_array_equal(found["neg16"], -found["q"].reshape(m, -1, 16).sum(axis=2))


def read_activations(struct, m, k):
    """The quantized rows, put back into the order of rows."""

    def memory(address, count, kind):
        return np.frombuffer((ctypes.c_char * (count * np.dtype(kind).itemsize)).from_address(address), kind)

    shapes = {"q": (k // 4, 4, np.int8), "scale": (k // 32, 1, np.float32), "sum": (k // 32, 1, np.float32)}
    shapes |= {"neg": (k // 32, 1, np.int32), "neg16": (k // 16, 1, np.int32)}
    found = {}
    for name, (units, size, kind) in shapes.items():
        flat, blocks, start = memory(getattr(struct, f"act_{name}"), m * units * size, kind), [], 0
        while start < m:
            width = next(w for w in (8, 4, 2, 1) if w <= m - start)
            block = flat[start * units * size : (start + width) * units * size].reshape(units, width, size)
            blocks.append(block.transpose(1, 0, 2).reshape(width, -1))
            start += width
        found[name] = np.concatenate(blocks).astype(np.float64 if kind == np.float32 else np.int64)
    return found


@pytest.mark.parametrize(
    ("kind", "n", "k", "data"),
    [
        ("q4_k", 4, 200, np.zeros(4, np.uint8)),
        ("q4_0", 4, 32, np.zeros(71, np.uint8)),
        ("q9_9", 4, 32, np.zeros(72, np.uint8)),
        ("f32", 2, 3, np.zeros((24, 2), np.uint8)[:, 0]),
    ],
)
def test_refuses_what_does_not_fit(kind, n, k, data):
    with pytest.raises(ContractError):
        lib.FileMatrix(kind, n, k, data)


def test_refuses_parts_of_different_widths(kernels):
    with pytest.raises(ContractError, match="widths 32 and 64"):
        kernels.pack([("q4_0", 4, 32), ("q4_0", 4, 64)])
