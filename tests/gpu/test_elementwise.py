"""Embedding rows of every weight format, and rows that are taken, against NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernels.device.driver import Device
from kernels.launch.elementwise import Elementwise
from kernels.launch.linear import DeviceMatrix
from kernels.weights.quant_format import BITS, GROUP_SIZES, QuantFormat, QuantizedMatrix, pack

FORMATS = [QuantFormat(*choice) for choice in itertools.product(BITS, GROUP_SIZES, (True, False))]


def random_matrix(rng: np.random.Generator, of_format: QuantFormat, rows: int, columns: int) -> QuantizedMatrix:
    groups = -(-columns // of_format.group_size)
    codes = rng.integers(of_format.limits[0], of_format.limits[1] + 1, (rows, columns)).astype(np.int8)
    scales = rng.uniform(0.001, 0.1, (rows, groups)).astype(np.float16)
    minima = None if of_format.symmetric else rng.uniform(-1, 1, (rows, groups)).astype(np.float16)
    return QuantizedMatrix(of_format, codes, scales, minima)


@pytest.mark.parametrize("of_format", FORMATS, ids=lambda f: f.name)
@pytest.mark.parametrize("shape", [(100, 576), (37, 2048), (16, 100)])
def test_embed(
    device: Device, guarded: Callable[..., Any], rng: np.random.Generator, of_format: QuantFormat,
    shape: tuple[int, int],
) -> None:  # fmt: skip
    rows, columns = shape
    matrix = random_matrix(rng, of_format, rows, columns)
    table = guarded(pack(matrix))
    ids = np.concatenate([rng.permutation(rows)[:20], [0, rows - 1, -1, rows, 2**31 - 1]]).astype(np.int32)
    given, out = guarded(ids), guarded(4 * len(ids) * columns)
    Elementwise(device).embed(
        DeviceMatrix(table.pointer, rows, columns, of_format), given.pointer, len(ids), out.pointer
    )
    wanted = np.zeros((len(ids), columns), np.float32)
    wanted[:-3] = matrix.dequantize()[ids[:-3]]
    np.testing.assert_array_equal(out.download(np.float32, wanted.shape), wanted)


def test_embed_from_host_memory(device: Device, guarded: Callable[..., Any], rng: np.random.Generator) -> None:
    matrix = random_matrix(rng, QuantFormat(4, 128), 1000, 3584)
    packed = pack(matrix)
    host = device.host_buffer(packed.nbytes)
    host.array[:] = packed
    ids = rng.integers(0, 1000, 9).astype(np.int32)
    given, out = guarded(ids), guarded(4 * len(ids) * 3584)
    Elementwise(device).embed(
        DeviceMatrix(host.device_pointer, 1000, 3584, matrix.format), given.pointer, len(ids), out.pointer
    )
    np.testing.assert_array_equal(out.download(np.float32, (len(ids), 3584)), matrix.dequantize()[ids])
    host.free()


@pytest.mark.parametrize("columns", [4, 576, 2048, 3584])
def test_take_rows(device: Device, guarded: Callable[..., Any], rng: np.random.Generator, columns: int) -> None:
    x = rng.standard_normal((50, columns), np.float32)
    rows = rng.integers(0, 50, 7).astype(np.int32)
    given, at, out = guarded(x), guarded(rows), guarded(4 * 7 * columns)
    Elementwise(device).take_rows(given.pointer, at.pointer, 7, columns, out.pointer)
    np.testing.assert_array_equal(out.download(np.float32, (7, columns)), x[rows])
