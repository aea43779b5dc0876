"""Tiles as ggml's blocks: the same weights, to the last bit where the table says so."""

from __future__ import annotations

import numpy as np
import pytest

from kernels.weights.quant_format import QuantFormat, QuantizedMatrix, pack
from kernels.weights.reference import BLOCK_LAYOUTS, dequantize, row_bytes
from kernels.weights.tile_blocks import ggml_kind, to_ggml
from tests.random_weights import FORMATS, random_matrix


@pytest.mark.parametrize("of_format", FORMATS, ids=lambda f: f.name)
@pytest.mark.parametrize("shape", [(16, 128), (48, 576), (5, 32), (2000, 96)])
def test_the_weights_are_the_same(of_format: QuantFormat, shape: tuple[int, int]) -> None:
    matrix = random_matrix(of_format, *shape, seed=of_format.tile_bytes)
    kind, data = to_ggml(of_format.name, pack(matrix), shape)
    assert kind == ggml_kind(of_format.name)
    assert kind in BLOCK_LAYOUTS
    assert data.shape == (shape[0], row_bytes(kind, shape[1]))
    weights = dequantize(kind, data, shape)
    expected = dequantize(of_format.name, pack(matrix), shape)
    if kind == "q4_1":
        # The minimum moves to the lowest code and is rounded there: half a unit in the last place of float16.
        steps = np.repeat(np.abs(matrix.scales.astype(np.float32)), of_format.group_size, axis=1)[:, : shape[1]]
        offsets = np.repeat(np.abs(matrix.minima.astype(np.float32)), of_format.group_size, axis=1)[:, : shape[1]]
        assert np.all(np.abs(weights - expected) <= (8 * steps + offsets) * 2.0**-11 + 1e-6)
    else:
        assert np.array_equal(weights, expected)


def test_minima_that_float16_holds_are_exact() -> None:
    codes = np.random.default_rng(3).integers(-8, 8, (16, 128), dtype=np.int8)
    matrix = QuantizedMatrix(
        QuantFormat(4, 32, False), codes, np.full((16, 4), 0.25, "f2"), np.full((16, 4), 1.5, "f2")
    )
    kind, data = to_ggml("w4g32m", pack(matrix), (16, 128))
    assert np.array_equal(dequantize(kind, data, (16, 128)), matrix.dequantize())


def test_refusals() -> None:
    with pytest.raises(ValueError, match="multiple of 32"):
        to_ggml("w4g32", np.zeros(QuantFormat(4, 32).nbytes(16, 40), np.uint8), (16, 40))
    with pytest.raises(ValueError, match="multiple of 32"):
        to_ggml("w4g32", np.zeros(QuantFormat(4, 32).nbytes(16, 128), np.uint8), (128,))
    with pytest.raises(ValueError, match="bytes"):
        to_ggml("w4g32", np.zeros(3, np.uint8), (16, 128))
