"""The tile layout: packing is undone by unpacking, and single codes lie where the drawing says."""

from __future__ import annotations

import numpy as np
import pytest

from kernels.weights.quant_format import BITS, QuantFormat, QuantizedMatrix, is_quant_format, pack, unpack
from tests.random_weights import FORMATS, random_matrix


@pytest.mark.parametrize("of_format", FORMATS, ids=lambda f: f.name)
@pytest.mark.parametrize("shape", [(16, 128), (48, 256), (5, 70), (33, 576)])
def test_round_trip(of_format: QuantFormat, shape: tuple[int, int]) -> None:
    matrix = random_matrix(of_format, *shape)
    data = pack(matrix)
    assert data.shape == (of_format.nbytes(*shape),)
    assert of_format.tile_bytes % 16 == 0
    again = unpack(of_format, data, *shape)
    assert np.array_equal(again.codes, matrix.codes)
    assert np.array_equal(again.scales, matrix.scales)
    assert (again.minima is None) if matrix.minima is None else np.array_equal(again.minima, matrix.minima)
    assert np.array_equal(again.dequantize(), matrix.dequantize())


@pytest.mark.parametrize("bits", BITS)
def test_single_codes_lie_where_the_drawing_says(bits: int) -> None:
    of_format = QuantFormat(bits, 128)
    rng = np.random.default_rng(1)
    for row, column in rng.integers(0, (16, 128), (40, 2)):
        codes = np.zeros((16, 128), dtype=np.int8)
        codes[row, column] = -1
        data = pack(QuantizedMatrix(of_format, codes, np.zeros((16, 1), np.float16)))[: of_format.code_bytes]
        half, g, t, inner = row // 8, row % 8, column // 32, column % 32
        expected = np.zeros(of_format.code_bytes, dtype=np.uint8)
        if bits == 4:
            word, place = inner // 8, inner % 8
            expected[(((half * 8 + g) * 4 + t) * 4 + word) * 4 + place % 4] = 0xF0 if place >= 4 else 0x0F
        elif bits == 8:
            expected[(((half * 2 + inner // 16) * 8 + g) * 4 + t) * 16 + inner % 16] = 0xFF
        else:
            register, byte = inner // 4, inner % 4
            expected[(((g * 4 + t) * 2 + half) * 2 + register // 4) * 4 + byte] = 3 << 2 * (register % 4)
            expected[512 + ((g * 4 + t) * 2 + half) * 4 + byte] = 1 << register
        assert np.array_equal(data, expected), (row, column)


def test_stacking_is_concatenation() -> None:
    of_format = QuantFormat(3, 64, symmetric=False)
    upper, lower = random_matrix(of_format, 32, 200, 1), random_matrix(of_format, 16, 200, 2)
    assert upper.minima is not None
    assert lower.minima is not None
    both = QuantizedMatrix(
        of_format,
        np.vstack([upper.codes, lower.codes]),
        np.vstack([upper.scales, lower.scales]),
        np.vstack([upper.minima, lower.minima]),
    )
    assert np.array_equal(pack(both), np.concatenate([pack(upper), pack(lower)]))


@pytest.mark.parametrize("of_format", FORMATS, ids=lambda f: f.name)
def test_names(of_format: QuantFormat) -> None:
    assert is_quant_format(of_format.name)
    assert QuantFormat.parse(of_format.name) == of_format


@pytest.mark.parametrize("name", ["", "w4", "w5g32", "w4g16", "q4_0", "w4g128mm"])
def test_bad_names(name: str) -> None:
    assert not is_quant_format(name)
    with pytest.raises(ValueError, match="w4g128"):
        QuantFormat.parse(name)


def test_bad_matrices() -> None:
    of_format = QuantFormat(4, 128)
    codes, scales = np.full((16, 128), 8, dtype=np.int8), np.zeros((16, 1), np.float16)
    with pytest.raises(ValueError, match="between -8 and 7"):
        pack(QuantizedMatrix(of_format, codes, scales))
    with pytest.raises(ValueError, match="takes scales of"):
        pack(QuantizedMatrix(of_format, codes * 0, scales[:8]))
    with pytest.raises(ValueError, match="takes 1056 bytes"):
        unpack(of_format, np.zeros(1000, np.uint8), 16, 128)
    with pytest.raises(ValueError, match="bits may be"):
        QuantFormat(5, 128)
