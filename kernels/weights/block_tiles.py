"""ggml's blocks and float matrices as tiles of quant_format.py: what the GPU makes at load, in plain NumPy.

    kind           tiles    codes                scale           minimum
    q4_0           w4g32    q - 8                d               none
    q4_1           w4g32m   q - 8                d               m + 8 d
    q4_k           w4g32m   q - 8                d sc            8 d sc - dmin mn
    q5_0           w8g32    q - 16               d               none
    q5_1           w8g32m   q                    d               m
    q5_k           w8g32m   q - 16               d sc            16 d sc - dmin mn
    q8_0           w8g32    q                    d               none
    q6_k           w8g32    nearest to w / scale largest |w| / 127
    f16, bf16, f32 w8g32    nearest to w / scale largest |w| / 127

Scales and minima are computed in float32 and rounded to float16 once; no code of a quantized kind changes but those of
q6_k, whose scales hold for 16 columns only. Codes lie about zero where the minimum is rounded anyway: that loses least.
A group becomes NaN where a number of it is infinite, is none, or lies beyond what float16 can scale.
Where matrices of several kinds are stacked, all go into the tiles of 8 bits that hold them, with the same numbers.
`repack.cu` gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels.weights.quant_format import TILE_ROWS, QuantFormat, QuantizedMatrix, is_quant_format, pack
from kernels.weights.reference import (
    BLOCK_LAYOUTS,
    Bytes,
    Floats,
    dequantize,
    fifth_bits,
    float16_at,
    k_nibbles,
    k_scales,
    nibbles,
    row_bytes,
)

GROUP = 32
"""Columns of a group of every kind that is repacked."""

_FORMATS = {
    "q4_0": QuantFormat(4, GROUP),
    "q4_1": QuantFormat(4, GROUP, symmetric=False),
    "q4_k": QuantFormat(4, GROUP, symmetric=False),
    "q5_0": QuantFormat(8, GROUP),
    "q5_1": QuantFormat(8, GROUP, symmetric=False),
    "q5_k": QuantFormat(8, GROUP, symmetric=False),
    "q8_0": QuantFormat(8, GROUP),
    "q6_k": QuantFormat(8, GROUP),
    "f16": QuantFormat(8, GROUP),
    "bf16": QuantFormat(8, GROUP),
    "f32": QuantFormat(8, GROUP),
}
_CHUNK_VALUES = 1 << 20


def tile_format(kind: str) -> QuantFormat:
    """The tiles that hold a matrix of `kind` on the GPU; a kind that names tiles is its own.

    Raises:
        ValueError: an unknown kind.
    """
    if is_quant_format(kind):
        return QuantFormat.parse(kind)
    if kind not in _FORMATS:
        raise ValueError(f"The weight kind is {kind!r}, but it must be one of {', '.join(_FORMATS)}.")
    return _FORMATS[kind]


def common_format(kinds: Iterable[str]) -> QuantFormat:
    """The smallest tiles that hold matrices of all these kinds, each with the numbers that it has alone.

    Raises:
        ValueError: an unknown kind, or kinds that name different tiles: those cannot be turned into others.
    """
    formats = {tile_format(kind) for kind in kinds}
    if len(formats) == 1:
        return formats.pop()
    if any(of_format.group_size != GROUP or of_format.bits == 3 for of_format in formats):
        raise ValueError(f"No tiles hold all of {', '.join(sorted(of_format.name for of_format in formats))}.")
    bits = max(of_format.bits for of_format in formats)
    return QuantFormat(bits, GROUP, all(of_format.symmetric for of_format in formats))


def target_format(kind: str, of_format: QuantFormat | None) -> QuantFormat:
    """The format to repack to: `of_format`, or the kind's own where that is None.

    Raises:
        ValueError: an unknown kind, or tiles that do not hold its numbers.
    """
    own = tile_format(kind)
    if of_format is None or of_format == own:
        return own
    if is_quant_format(kind) or common_format([kind, of_format.name]) != of_format:
        raise ValueError(f"A matrix of {kind} becomes {own.name}; it cannot become {of_format.name}.")
    return of_format


def repack_reference(
    kind: str, data: Bytes, shape: tuple[int, int], of_format: QuantFormat | None = None
) -> NDArray[np.uint8]:
    """The bytes of the tiles.

    Args:
        kind: a key of reference.BLOCK_LAYOUTS.
        data: uint8 (N, row_bytes), a WeightTensor's.
        shape: (N, K).
        of_format: wider tiles than the kind's own, see `common_format`.

    Returns:
        uint8 (of_format.nbytes(N, K),).

    Raises:
        ValueError: an unknown kind, bytes that do not fit the shape, or tiles that do not hold the numbers.
    """
    of_format, (rows, columns) = target_format(kind, of_format), shape
    width = row_bytes(kind, columns)
    if data.dtype != np.uint8 or data.size != rows * width:
        raise ValueError(f"{kind} of shape {shape} takes {rows * width} bytes, but {data.size} were given.")
    by_row = data.reshape(rows, width)
    result = np.empty(of_format.nbytes(rows, columns), dtype=np.uint8)
    step = max(1, _CHUNK_VALUES // (columns * TILE_ROWS)) * TILE_ROWS
    with np.errstate(over="ignore", invalid="ignore"):  # numbers of a damaged file
        for start in range(0, rows, step):
            part = by_row[start : start + step]
            tiles = pack(_quantized(kind, part, columns, of_format))
            place = of_format.nbytes(start, columns)
            result[place : place + tiles.size] = tiles
    return result


def _quantized(kind: str, data: Bytes, columns: int, of_format: QuantFormat) -> QuantizedMatrix:
    rows = len(data)
    minima: Floats | None = None
    scales: NDArray[Any]
    if kind in _BLOCKS:
        blocks = np.ascontiguousarray(data).reshape(-1, BLOCK_LAYOUTS[kind].bytes)
        codes, scales, minima = _BLOCKS[kind](blocks)
    else:
        codes, scales = _nearest(dequantize(kind, data, (rows, columns)))
    if minima is None and not of_format.symmetric:
        minima = np.zeros(scales.shape, dtype=np.float32)
    return QuantizedMatrix(
        of_format,
        codes.reshape(rows, -1)[:, :columns],
        scales.astype(np.float16).reshape(rows, -1),
        None if minima is None else minima.astype(np.float16).reshape(rows, -1),
    )


def _nearest(weights: Floats) -> tuple[NDArray[np.int8], NDArray[np.float16]]:
    """Weights (N, K) as 8 bits in groups of 32: codes (N, K rounded up), scales (N, groups)."""
    rows, columns = weights.shape
    groups = -(-columns // GROUP)
    padded = np.zeros((rows, groups * GROUP), dtype=np.float32)
    padded[:, :columns] = weights
    grouped = padded.reshape(rows, groups, GROUP)
    largest = np.abs(grouped).max(axis=2)
    scales = (largest / np.float32(127)).astype(np.float16)
    # Small scales have few bits: the next larger one is taken where the largest weight would lie beyond the codes.
    short = np.float32(127.5) * scales.astype(np.float32) < largest
    scales = (scales.view(np.uint16) + short.astype(np.uint16)).view(np.float16)
    scales[~np.isfinite(scales)] = np.float16(np.nan)
    divisors = scales.astype(np.float32)[:, :, None]
    codes = np.rint(np.divide(grouped, divisors, where=divisors > 0, out=np.zeros_like(grouped)))
    codes = np.minimum(np.maximum(codes, np.float32(-127)), np.float32(127))
    return codes.astype(np.int8), scales


_Parts = tuple[NDArray[np.int8], Floats, Floats | None]


def _signed(quants: NDArray[Any], middle: int) -> NDArray[np.int8]:
    return (quants.astype(np.int16) - middle).astype(np.int8)


def _q4_0(blocks: Bytes) -> _Parts:
    return _signed(nibbles(blocks[:, 2:]), 8), float16_at(blocks, 0), None


def _q4_1(blocks: Bytes) -> _Parts:
    scales = float16_at(blocks, 0)
    return _signed(nibbles(blocks[:, 4:]), 8), scales, float16_at(blocks, 2) + np.float32(8) * scales


def _q5_0(blocks: Bytes) -> _Parts:
    return _signed(nibbles(blocks[:, 6:]) + fifth_bits(blocks[:, 2:6]), 16), float16_at(blocks, 0), None


def _q5_1(blocks: Bytes) -> _Parts:
    quants = nibbles(blocks[:, 8:]) + fifth_bits(blocks[:, 4:8])
    return quants.astype(np.int8), float16_at(blocks, 0), float16_at(blocks, 2)


def _q8_0(blocks: Bytes) -> _Parts:
    return blocks[:, 2:].view(np.int8), float16_at(blocks, 0), None


def _k_parts(blocks: Bytes, quants: NDArray[Any], middle: int) -> _Parts:
    packed_scales, packed_minima = k_scales(blocks[:, 4:16])
    scales = float16_at(blocks, 0) * packed_scales
    minima = np.float32(middle) * scales - float16_at(blocks, 2) * packed_minima
    return _signed(quants, middle), scales, minima


def _q4_k(blocks: Bytes) -> _Parts:
    return _k_parts(blocks, k_nibbles(blocks[:, 16:]), 8)


def _q5_k(blocks: Bytes) -> _Parts:
    fifth = blocks[:, None, 16:48] >> np.arange(8, dtype=np.uint8)[None, :, None] & 1
    return _k_parts(blocks, k_nibbles(blocks[:, 48:]) | fifth << 4, 16)


_BLOCKS = {
    "q4_0": _q4_0,
    "q4_1": _q4_1,
    "q4_k": _q4_k,
    "q5_0": _q5_0,
    "q5_1": _q5_1,
    "q5_k": _q5_k,
    "q8_0": _q8_0,
}
