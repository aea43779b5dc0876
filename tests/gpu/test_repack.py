"""The GPU's tiles against the NumPy twin's, to the bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernels.device.driver import Device
from kernels.launch.repack import KINDS, repack
from kernels.weights.block_tiles import common_format, repack_reference, tile_format
from kernels.weights.quant_format import QuantFormat
from kernels.weights.reference import BLOCK_LAYOUTS, row_bytes
from tests.random_weights import random_weights


def wide_weights(kind: str, rows: int, columns: int, rng: np.random.Generator) -> np.ndarray:
    """Scales from 1e-9 to 1, floats from 1e-9 to 1e4."""
    sizes = 0.02 * 10.0 ** rng.integers(-7, 5, (rows, 1))
    return random_weights(kind, rows, columns, rng, wide_scales, sizes)


def wide_scales(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.standard_normal(count) * 10.0 ** rng.integers(-7, 1, count)


def test_kinds_are_all() -> None:
    assert sorted(KINDS) == sorted(BLOCK_LAYOUTS)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(16, 256), (5, 768), (100, 2304)])
def test_equals_the_twin(
    kind: str, shape: tuple[int, int], device: Device, rng: np.random.Generator, guarded: Callable[..., Any]
) -> None:
    data = wide_weights(kind, *shape, rng)
    expected = repack_reference(kind, data, shape)
    source, destination = guarded(data), guarded(expected.size)
    repack(device, kind, source.pointer, *shape, destination.pointer)
    assert np.array_equal(destination.download(np.uint8, expected.size), expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", ["q4_1", "q8_0", "q5_k"])
def test_wider_tiles(
    kind: str, other: str, device: Device, rng: np.random.Generator, guarded: Callable[..., Any]
) -> None:
    wide = common_format([kind, other])
    data = wide_weights(kind, 24, 512, rng)
    expected = repack_reference(kind, data, (24, 512), wide)
    source, destination = guarded(data), guarded(expected.size)
    repack(device, kind, source.pointer, 24, 512, destination.pointer, of_format=wide)
    assert np.array_equal(destination.download(np.uint8, expected.size), expected)


@pytest.mark.parametrize("kind", ["q4_0", "q8_0", "f16", "f32"])
@pytest.mark.parametrize("columns", [32, 576])
def test_widths_that_fill_no_tile(
    kind: str, columns: int, device: Device, rng: np.random.Generator, guarded: Callable[..., Any]
) -> None:
    data = wide_weights(kind, 33, columns, rng)
    expected = repack_reference(kind, data, (33, columns))
    source, destination = guarded(data), guarded(expected.size)
    repack(device, kind, source.pointer, 33, columns, destination.pointer)
    assert np.array_equal(destination.download(np.uint8, expected.size), expected)


def test_pieces_join(device: Device, rng: np.random.Generator, guarded: Callable[..., Any]) -> None:
    data = wide_weights("q6_k", 72, 512, rng)
    expected = repack_reference("q6_k", data, (72, 512))
    destination = guarded(expected.size)
    for first, count in ((0, 32), (32, 16), (48, 24)):
        source = guarded(data[first : first + count])
        repack(device, "q6_k", source.pointer, count, 512, destination.pointer, first_row=first)
    assert np.array_equal(destination.download(np.uint8, expected.size), expected)
    with pytest.raises(ValueError, match="multiple of 16"):
        repack(device, "q6_k", source.pointer, 16, 512, destination.pointer, first_row=8)


def test_tiles_are_copied(device: Device, rng: np.random.Generator, guarded: Callable[..., Any]) -> None:
    of_format = QuantFormat(3, 64)
    data = rng.integers(0, 256, of_format.nbytes(48, 200), dtype=np.uint8)
    source, destination = guarded(data), guarded(data.size)
    repack(device, "w3g64", source.pointer, 48, 200, destination.pointer)
    assert tile_format("w3g64") == of_format
    assert np.array_equal(destination.download(np.uint8, data.size), data)


@pytest.mark.parametrize("kind", ["f32", "bf16"])
def test_floats_at_the_edges(kind: str, device: Device, guarded: Callable[..., Any]) -> None:
    weights = np.zeros((16, 128), dtype=np.float32)
    weights[1] = 1e-9
    weights[2] = np.linspace(-2e-4, 2e-4, 128)
    weights[3, :32] = 1e9
    weights[4, 40] = np.nan
    weights[5, 3] = -np.inf
    weights[6] = 127.5 * 2.0 ** np.arange(-40, 88)
    data = weights.view(np.uint8)
    if kind == "bf16":
        data = (weights.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
    assert row_bytes(kind, 128) == data.shape[1]
    expected = repack_reference(kind, data, (16, 128))
    source, destination = guarded(data), guarded(expected.size)
    repack(device, kind, source.pointer, 16, 128, destination.pointer)
    assert np.array_equal(destination.download(np.uint8, expected.size), expected)
