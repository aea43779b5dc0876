"""Rows as two int8 digits, against float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from kernels.device.driver import Device
from kernels.errors import ContractError
from kernels.launch.matmul import Activations, Matmul

EPS = 1e-6


class Digits(NamedTuple):
    """What the kernel wrote, in the order of columns; scales and sums (tokens, ...)."""

    high: NDArray[np.int8]
    low: NDArray[np.int8]
    scales: NDArray[np.float32]
    sums: NDArray[np.float32]

    def values(self) -> NDArray[np.float64]:
        integers = 256 * self.high.astype(np.int64) + self.low
        return integers * np.repeat(self.scales.astype(np.float64), 128, axis=1)


def quantized(
    device: Device, guarded: Callable[..., Any], x: NDArray[np.float32], norm: NDArray[np.float32] | None = None
) -> Digits:
    tokens, columns = x.shape
    tiles, stride = -(-columns // 128), -(-tokens // 128) * 128
    memory = guarded(Activations.nbytes_for(tokens, columns))
    activations = Activations(memory.pointer, memory.nbytes)
    norm_pointer = 0 if norm is None else guarded(norm).pointer
    Matmul(device).quantize_rows(guarded(x).pointer, tokens, columns, activations, norm=norm_pointer, eps=EPS)
    layout = activations.layout(tokens, columns)
    raw = memory.download(np.uint8, memory.nbytes)

    def digits(start: int) -> NDArray[np.int8]:
        stored = raw[start : start + tiles * stride * 128].view(np.int8).reshape(tiles, stride, 2, 4, 2, 8)[:, :tokens]
        stored[:, 1::2] = stored[:, 1::2, ::-1].copy()  # odd tokens have their halves swapped
        return stored.transpose(1, 0, 2, 4, 3, 5).reshape(tokens, tiles * 128)

    scales = raw[layout.scales : layout.sums].view(np.float32).reshape(tiles, stride)[:, :tokens].T
    sums = raw[layout.sums :].view(np.float32).reshape(4 * tiles, stride)[:, :tokens].T
    return Digits(digits(0), digits(layout.low), scales, sums)


def padded(x: NDArray[Any]) -> NDArray[np.float64]:
    return np.pad(x.astype(np.float64), ((0, 0), (0, -x.shape[1] % 128)))


@pytest.mark.parametrize(
    ("tokens", "columns"), [(1, 4), (3, 132), (5, 576), (58, 896), (7, 2048), (130, 4864), (2, 11008)]
)
@pytest.mark.parametrize("with_norm", [False, True])
def test_the_digits_give_the_row_back(
    device: Device, guarded: Callable[..., Any], rng: np.random.Generator, tokens: int, columns: int, with_norm: bool
) -> None:
    x = rng.standard_normal((tokens, columns)).astype(np.float32)
    x[:, rng.integers(columns)] *= 1000
    x[rng.integers(tokens)] *= 1e-6
    norm = rng.uniform(0.1, 3, columns).astype(np.float32) if with_norm else None
    got = quantized(device, guarded, x, norm)
    expected = x.astype(np.float64)
    if norm is not None:
        expected *= norm / np.sqrt(np.mean(expected**2, axis=1, keepdims=True) + EPS)
    expected = padded(expected)
    # Half a step of the rounding, and float32's error of the norm.
    allowed = 0.502 * np.repeat(got.scales.astype(np.float64), 128, axis=1) + 1e-6 * np.abs(expected)
    assert (np.abs(got.values() - expected) <= allowed).all()
    largest = np.abs(expected).reshape(tokens, -1, 128).max(axis=2)
    np.testing.assert_allclose(got.scales, largest / 32639, rtol=1e-5)
    assert np.abs(got.high.astype(int)).max() == 127
    sums = got.values().reshape(tokens, -1, 32).sum(axis=2)
    np.testing.assert_allclose(got.sums, sums, rtol=1e-6, atol=1e-30)


def test_a_row_of_zeros_and_rows_of_extremes(device: Device, guarded: Callable[..., Any]) -> None:
    x = np.zeros((4, 256), np.float32)
    x[1, :128], x[2], x[3, 7] = 3e38, -1e-30, 1e-44
    got = quantized(device, guarded, x)
    assert not got.values()[0].any()
    assert np.isfinite(got.values()).all()
    assert np.isfinite(got.sums[:, :]).all() or np.isinf(got.sums[1]).any()
    np.testing.assert_allclose(got.values()[1:3], x[1:3], rtol=1e-4)


@pytest.mark.parametrize("with_norm", [False, True])
def test_a_row_does_not_depend_on_the_others(
    device: Device, guarded: Callable[..., Any], rng: np.random.Generator, with_norm: bool
) -> None:
    x = rng.standard_normal((33, 2048)).astype(np.float32)
    norm = rng.uniform(0.1, 3, 2048).astype(np.float32) if with_norm else None
    together, alone = quantized(device, guarded, x, norm), quantized(device, guarded, x[20:21], norm)
    for all_rows, one_row in zip(together, alone, strict=True):
        np.testing.assert_array_equal(all_rows[20:21], one_row)


def test_too_small_activations_and_odd_columns_are_refused(device: Device) -> None:
    activations = Activations(256, Activations.nbytes_for(128, 256))
    with pytest.raises(ContractError, match="smaller chunks"):
        Matmul(device).quantize_rows(256, 129, 256, activations)
    with pytest.raises(ContractError, match="multiple of 4"):
        Matmul(device).quantize_rows(256, 1, 254, activations)
