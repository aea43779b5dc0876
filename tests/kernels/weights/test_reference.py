"""Our dequantization against the gguf package's, to the last bit, on random blocks."""

from __future__ import annotations

import gguf
import numpy as np
import pytest

from kernels.weights.reference import BLOCK_LAYOUTS, dequantize, row_bytes
from tests.random_weights import random_weights

KINDS = tuple(BLOCK_LAYOUTS)


@pytest.mark.parametrize("kind", KINDS)
def test_equals_the_gguf_package(kind: str) -> None:
    rows, columns = 7, 768
    data = random_weights(kind, rows, columns, np.random.default_rng(len(kind) * 31 + rows))
    expected = gguf.quants.dequantize(data, gguf.GGMLQuantizationType[kind.upper()])
    actual = dequantize(kind, data, (rows, columns))
    assert actual.dtype == np.float32
    assert actual.shape == (rows, columns)
    np.testing.assert_array_equal(actual, expected.astype(np.float32).reshape(rows, columns))


@pytest.mark.parametrize("kind", KINDS)
def test_a_slice_of_rows_equals_the_rows_of_the_whole(kind: str) -> None:
    data = random_weights(kind, 6, 512, np.random.default_rng(5))
    whole = dequantize(kind, data, (6, 512))
    np.testing.assert_array_equal(dequantize(kind, data[1::2], (3, 512)), whole[1::2])


def test_a_vector_keeps_its_shape_and_owns_its_memory() -> None:
    data = np.arange(5, dtype=np.float32).view(np.uint8).reshape(1, 20)
    vector = dequantize("f32", data, (5,))
    vector[0] = 9
    assert vector.tolist() == [9, 1, 2, 3, 4]
    assert data.view(np.float32)[0, 0] == 0


@pytest.mark.parametrize("kind", KINDS)
def test_block_sizes_are_those_of_the_gguf_package(kind: str) -> None:
    assert gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind.upper()]] == BLOCK_LAYOUTS[kind]


def test_bytes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="takes 36 bytes"):
        dequantize("q4_0", np.zeros((1, 35), np.uint8), (2, 32))
    with pytest.raises(ValueError, match="of int8 were given"):
        dequantize("q4_0", np.zeros((1, 18), np.int8), (1, 32))
    with pytest.raises(ValueError, match="multiple of 256"):
        row_bytes("q4_k", 576)
    with pytest.raises(ValueError, match="one of f32"):
        row_bytes("iq2_xs", 256)
