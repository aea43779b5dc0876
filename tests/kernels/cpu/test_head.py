"""head.c: the first pass over the upper bits loses nothing that matters."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from inference.backends.cpu_self_check import random_matrix
from kernels.cpu import library as lib
from kernels.errors import ContractError
from kernels.weights.reference import dequantize

DEPTH = 5.0


def head_of(kernels, kind, n, k, depth=DEPTH):
    tensor = random_matrix(kind, n, k, seed=4)
    matrix = lib.FileMatrix(kind, n, k, tensor.data)
    table = lib.pack_table(kernels.library, kernels.pool, kernels.arena, matrix)
    head = lib.prepare_head(kernels.library, kernels.pool, table, depth)
    linear = lib.pack_linear(kernels.library, kernels.pool, kernels.arena, [matrix])
    return head, linear, dequantize(kind, tensor.data, (n, k)).astype(np.float64)


def logits(kernels, head, x, exact_rows=None):
    fenced = np.full((len(x) + 2, head.columns), np.nan, np.float32)
    kernels.run(
        kind=lib.OP_LOGITS,
        m=len(x),
        a=x.ctypes.data,
        b=ctypes.addressof(head.struct),
        c=None if exact_rows is None else exact_rows.ctypes.data,
        out=fenced[1:].ctypes.data,
        out_stride=head.columns,
    )
    assert np.isnan(fenced[[0, -1]]).all()
    return fenced[1:-1]


def hidden(m, k, weights, seed=0):
    """Hidden states that favour some rows, with outliers."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((m, k))
    x[:, rng.integers(0, k, 5)] *= 8
    favoured = weights[rng.integers(0, len(weights), m)]
    return (x + 12 * favoured / favoured.std(axis=1, keepdims=True) * 0.05).astype(np.float32)


def logsumexp(logits):
    best = logits.max(axis=1, keepdims=True).astype(np.float64)
    return best + np.log(np.exp(logits - best).sum(axis=1, keepdims=True))


@pytest.mark.parametrize("kind", ["q6_k", "q8_0"])
def test_likely_logits_are_exact_and_the_others_near(kernels, kind):
    head, linear, weights = head_of(kernels, kind, 3003, 512)
    for seed in range(10):
        x = hidden(3, 512, weights, seed)
        found, exact = logits(kernels, head, x), kernels.linear(x, linear)
        matters = exact > logsumexp(exact) - DEPTH
        assert matters.any()
        np.testing.assert_array_equal(found[matters], exact[matters])
        np.testing.assert_array_equal(found.argmax(axis=1), exact.argmax(axis=1))
        error = (found - exact).std()
        assert 0 < error < 0.35 * exact.std()


@pytest.mark.parametrize("kind", ["q6_k", "q8_0"])
def test_the_error_of_the_first_pass_is_what_it_is_said_to_be(kernels, kind):
    head, linear, weights = head_of(kernels, kind, 2000, 512, depth=-1e30)  # nothing but the best tiles exact
    x = hidden(4, 512, weights)
    spread = np.frombuffer((ctypes.c_float * 2000).from_address(head.struct.spread), np.float32)
    channel = np.frombuffer((ctypes.c_float * 512).from_address(head.struct.channel), np.float32)
    assert abs(channel.sum() - 1) < 1e-5
    deviation = np.sqrt((x.astype(np.float64) ** 2) @ channel)[:, None] * spread
    error = logits(kernels, head, x) + deviation**2 / 2 - kernels.linear(x, linear)
    rough = error != deviation**2 / 2
    share = (error / deviation)[rough]
    assert 0.9 < share.std() < 1.1
    assert np.abs(share).max() < 6


@pytest.mark.parametrize("kind", ["q6_k", "q8_0"])
def test_an_endless_depth_is_exact_everywhere(kernels, kind):
    head, linear, weights = head_of(kernels, kind, 100, 256, depth=np.inf)
    x = hidden(7, 256, weights)
    np.testing.assert_array_equal(logits(kernels, head, x), kernels.linear(x, linear))


def test_single_rows_can_be_exact_everywhere(kernels):
    head, linear, weights = head_of(kernels, "q6_k", 1500, 256)
    x = hidden(9, 256, weights)
    rough, exact = logits(kernels, head, x), kernels.linear(x, linear)
    chosen = np.array([0, 1, 0, 0, 0, 1, 0, 0, 1], np.uint8)
    found = logits(kernels, head, x, chosen)
    assert (rough != exact).any(axis=1).all()
    np.testing.assert_array_equal(found, np.where(chosen[:, None] == 1, exact, rough))


def test_a_row_is_the_same_in_any_batch(kernels):
    head, _, weights = head_of(kernels, "q6_k", 1500, 256)
    x = hidden(9, 256, weights)
    alone = np.concatenate([logits(kernels, head, x[i : i + 1].copy()) for i in range(9)])
    for m in (2, 3, 4, 7, 9):
        np.testing.assert_array_equal(logits(kernels, head, x[:m].copy()), alone[:m])


@pytest.mark.parametrize(
    ("kind", "k"),
    [(kind, 256) for kind in ("q4_0", "q5_1", "q8_0", "q4_k", "q5_k", "q6_k")] + [("f16", 37), ("bf16", 5), ("f32", 8)],
)
def test_a_table_gives_its_rows_back(kernels, kind, k):
    tensor = random_matrix(kind, 50, k, seed=1)
    table = lib.pack_table(kernels.library, kernels.pool, kernels.arena, lib.FileMatrix(kind, 50, k, tensor.data))
    ids = np.array([0, 49, 17, 17, 16, 15], np.int32)
    out = np.full((7, k), np.nan, np.float32)
    kernels.run(kind=lib.OP_EMBED, m=6, a=ids.ctypes.data, b=ctypes.addressof(table.part), out=out.ctypes.data)
    np.testing.assert_allclose(out[:6], dequantize(kind, tensor.data, (50, k))[ids], rtol=3e-7, atol=1e-9)
    assert np.isnan(out[6]).all()


def test_a_kind_without_upper_bits_is_refused(kernels):
    tensor = random_matrix("q4_k", 16, 256, seed=1)
    table = lib.pack_table(kernels.library, kernels.pool, kernels.arena, lib.FileMatrix("q4_k", 16, 256, tensor.data))
    with pytest.raises(ContractError, match="q4_k"):
        lib.prepare_head(kernels.library, kernels.pool, table, DEPTH)
