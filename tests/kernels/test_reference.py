"""Our dequantization against the gguf package's, to the last bit, on random blocks."""

from __future__ import annotations

import gguf
import numpy as np
import pytest

from kernels.reference import BLOCK_LAYOUTS, dequantize, row_bytes

KINDS = tuple(BLOCK_LAYOUTS)
SCALE_BYTES = {
    "q4_0": (0,),
    "q4_1": (0, 2),
    "q5_0": (0,),
    "q5_1": (0, 2),
    "q8_0": (0,),
    "q4_k": (0, 2),
    "q5_k": (0, 2),
    "q6_k": (208,),
}


def random_blocks(kind: str, rows: int, columns: int, seed: int) -> np.ndarray:
    """Random bytes (rows, row_bytes) whose float16 scales and plain floats are finite."""
    rng = np.random.default_rng(seed)
    if kind in ("f32", "f16"):
        dtype = {"f32": np.float32, "f16": np.float16}[kind]
        return rng.standard_normal((rows, columns)).astype(dtype).view(np.uint8)
    if kind == "bf16":
        values = rng.standard_normal((rows, columns)).astype(np.float32).view(np.uint32)
        return (values >> 16).astype(np.uint16).view(np.uint8)
    layout = BLOCK_LAYOUTS[kind]
    blocks = rng.integers(0, 256, (rows * columns // layout.values, layout.bytes), dtype=np.uint8)
    for start in SCALE_BYTES[kind]:
        scale = rng.standard_normal((len(blocks), 1)).astype(np.float16)
        blocks[:, start : start + 2] = scale.view(np.uint8)
    return blocks.reshape(rows, -1)


@pytest.mark.parametrize("kind", KINDS)
def test_equals_the_gguf_package(kind: str) -> None:
    rows, columns = 7, 768
    data = random_blocks(kind, rows, columns, seed=len(kind) * 31 + rows)
    expected = gguf.quants.dequantize(data, gguf.GGMLQuantizationType[kind.upper()])
    actual = dequantize(kind, data, (rows, columns))
    assert actual.dtype == np.float32
    assert actual.shape == (rows, columns)
    np.testing.assert_array_equal(actual, expected.astype(np.float32).reshape(rows, columns))


@pytest.mark.parametrize("kind", KINDS)
def test_a_slice_of_rows_equals_the_rows_of_the_whole(kind: str) -> None:
    data = random_blocks(kind, 6, 512, seed=5)
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
