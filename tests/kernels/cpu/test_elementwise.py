"""elementwise.c: RMSNorm, rotation and KV append against float64, on every variant."""

from __future__ import annotations

import numpy as np
import pytest

from kernels.cpu import layouts
from kernels.cpu import library as lib

PAGE = 64


@pytest.mark.parametrize("k", [1, 7, 48, 64, 129, 1536])
@pytest.mark.parametrize("m", [1, 40])
def test_rms_norm(kernels, m, k):
    rng = np.random.default_rng(k)
    x, weight = rng.standard_normal((m, k)).astype(np.float32), rng.standard_normal(k).astype(np.float32)
    x[0] *= 1e4
    out = np.full((m + 1, k), np.nan, np.float32)
    kernels.run(kind=lib.OP_RMS_NORM, m=m, k=k, a=x.ctypes.data, b=weight.ctypes.data, out=out.ctypes.data, value=1e-5)
    wide = x.astype(np.float64)
    wanted = wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + 1e-5) * weight
    np.testing.assert_allclose(out[:m], wanted, rtol=3e-6, atol=1e-12)
    assert np.isnan(out[m]).all()


def rotated(x, positions, inv_freq):
    """Half-split rotation of (m, heads, dim) in float64."""
    angles = positions[:, None].astype(np.float64) * inv_freq
    cosines, sines = np.cos(angles)[:, None], np.sin(angles)[:, None]
    low, high = np.split(x, 2, axis=-1)
    return np.concatenate([low * cosines - high * sines, high * cosines + low * sines], axis=-1)


def normed(x, weight, eps):
    return x if weight is None else x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + eps) * weight


@pytest.mark.parametrize("qk_norm", [False, True])
@pytest.mark.parametrize(("q_heads", "kv_heads", "dim"), [(4, 2, 64), (3, 1, 10), (2, 2, 128), (2, 1, 256)])
def test_rope_append(kernels, q_heads, kv_heads, dim, qk_norm):
    rng = np.random.default_rng(dim)
    starts, firsts = np.array([0, 1, 22], np.int32), [131071, 50]
    positions = np.concatenate([np.arange(n, dtype=np.int32) + f for n, f in zip(np.diff(starts), firsts, strict=True)])
    pages = 5
    table = np.full((2, 2048), -1, np.int32)
    table[0, 131071 // PAGE] = 3
    table[1, :2] = 4, 0
    inv_freq = 10000.0 ** (-np.arange(dim // 2) * 2 / dim)
    m, wide = len(positions), layouts.value_dim(dim)
    qkv = rng.standard_normal((m + 1, (q_heads + 2 * kv_heads) * dim)).astype(np.float32)
    qkv[0, -1] = 1e6  # beyond float16
    before = qkv[:m].astype(np.float64).reshape(m, -1, dim)
    norms = [rng.uniform(0.5, 2, dim).astype(np.float32) if qk_norm else None for _ in range(2)]
    keys = np.full((pages, kv_heads, dim, PAGE), np.nan, np.float16)
    values = np.full((pages, kv_heads, PAGE, wide), np.nan, np.float16)
    angles = np.empty((2, m, dim // 2), np.float32)
    kernels.step = lib.StepStruct(
        m=m, sequences=2, max_pages=2048, page_size=PAGE, q_heads=q_heads, kv_heads=kv_heads, head_dim=dim,
        value_dim=wide, norm_eps=1e-6, scale=1.0, positions=positions.ctypes.data, query_starts=starts.ctypes.data,
        page_tables=table.ctypes.data, inv_freq=inv_freq.ctypes.data, cosines=angles[0].ctypes.data,
        sines=angles[1].ctypes.data,
    )  # fmt: skip
    kernels.run(kind=lib.OP_ROPE_ANGLES)
    kernels.run(
        kind=lib.OP_ROPE_APPEND, m=m, out=qkv.ctypes.data, out_stride=qkv.shape[1], c=keys.ctypes.data,
        d=values.ctypes.data, a=norms[0].ctypes.data if qk_norm else None, b=norms[1].ctypes.data if qk_norm else None,
    )  # fmt: skip
    wanted_q = rotated(normed(before[:, :q_heads], norms[0], 1e-6), positions, inv_freq)
    wanted_k = rotated(normed(before[:, q_heads:-kv_heads], norms[1], 1e-6), positions, inv_freq)
    wanted_v = np.clip(before[:, -kv_heads:], -65504, 65504)
    np.testing.assert_allclose(qkv[:m, : q_heads * dim].reshape(m, q_heads, dim), wanted_q, rtol=1e-5, atol=2e-6)
    written = np.zeros((pages, PAGE), bool)
    for t, position in enumerate(positions):
        page, slot = table[int(t >= 1), position // PAGE], position % PAGE
        written[page, slot] = True
        np.testing.assert_allclose(keys[page, :, :, slot], wanted_k[t], rtol=1e-3, atol=1e-6)
        np.testing.assert_allclose(values[page, :, slot, :dim], wanted_v[t], rtol=1e-3, atol=1e-6)
    assert np.isnan(keys.transpose(0, 3, 1, 2)[~written]).all()
    assert np.isnan(values.transpose(0, 2, 1, 3)[~written]).all()
