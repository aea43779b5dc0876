"""Tiles of quant_format.py as ggml's blocks, for devices that run those. Pure NumPy.

    tiles                  blocks  exact because
    w4 and w3, symmetric   q4_0    d (q - 8) with d the scale and q the code + 8
    w4 and w3, minima      q4_1    d q + m with m the minimum less 8 (or 4) scales, rounded to float16 once
    w8, symmetric          q8_0    the same numbers
    w8, minima             f32     no block holds 8 bits and a minimum; only the float32 weights are the same

A scale of a larger group is repeated. The bits move in whole words: nothing is ever unpacked to one byte a code.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernels.weights.quant_format import TILE_ROWS, QuantFormat, unpack
from kernels.weights.reference import BLOCK_LAYOUTS

_BLOCK = 32
_CHUNK_BYTES = 1 << 19
"""Tiles that are converted at a time: their temporaries stay in the cache."""


def ggml_kind(kind: str) -> str:
    """The kind that `to_ggml` makes of tiles of `kind`."""
    of_format = QuantFormat.parse(kind)
    if of_format.bits == 8:
        return "q8_0" if of_format.symmetric else "f32"
    return "q4_0" if of_format.symmetric else "q4_1"


def to_ggml(kind: str, data: NDArray[np.uint8], shape: tuple[int, ...]) -> tuple[str, NDArray[np.uint8]]:
    """The same weights in ggml's blocks.

    Args:
        kind: a name of quant_format.py.
        data: uint8, the bytes of the tiles, of any shape.
        shape: (N, K), K a multiple of 32.

    Returns:
        The kind of the blocks, and uint8 (N, row bytes) in memory of its own.

    Raises:
        ValueError: not a matrix, a K that has no whole blocks, or another number of bytes than the shape takes.
    """
    of_format = QuantFormat.parse(kind)
    if len(shape) != 2 or shape[1] % _BLOCK:
        raise ValueError(f"{kind} of shape {shape} cannot become blocks: a row must be a multiple of {_BLOCK} wide.")
    rows, columns = shape
    if data.size != of_format.nbytes(rows, columns):
        raise ValueError(f"{kind} of shape {shape} takes {of_format.nbytes(rows, columns)} bytes, not {data.size}.")
    target = ggml_kind(kind)
    if target == "f32":
        return target, unpack(of_format, data.reshape(-1), rows, columns).dequantize().view(np.uint8)
    block_bytes = BLOCK_LAYOUTS[target].bytes
    across = of_format.nbytes(TILE_ROWS, columns) // of_format.tile_bytes
    down = -(-rows // TILE_ROWS)
    tiles = np.ascontiguousarray(data).reshape(down, across, of_format.tile_bytes)
    step = max(1, _CHUNK_BYTES // (across * of_format.tile_bytes))
    result = np.empty((rows, columns // _BLOCK * block_bytes), dtype=np.uint8)
    for start in range(0, down, step):
        blocks = _blocks(of_format, tiles[start : start + step]).view(f"V{block_bytes}")
        in_order = blocks.transpose(0, 2, 1, 3).reshape(-1, across * 4).view(np.uint8)
        part = result[start * TILE_ROWS : (start + step) * TILE_ROWS]
        part[:] = in_order[: len(part), : result.shape[1]]
    return target, result


def _blocks(of_format: QuantFormat, tiles: NDArray[np.uint8]) -> NDArray[np.void]:
    """Tiles (D, A, bytes) as blocks (D, A, 16 rows, 4)."""
    down, across = tiles.shape[:2]
    packed = _CODES[of_format.bits](np.ascontiguousarray(tiles[..., : of_format.code_bytes]), of_format.symmetric)
    codes = packed.reshape(down, across, TILE_ROWS, 4, -1).view(f"V{4 * packed.size // (down * across * 64)}")[..., 0]
    scales = _numbers(of_format, tiles, of_format.code_bytes)
    fields = [("scale", "<f2"), ("codes", codes.dtype)]
    blocks = np.empty(scales.shape, dtype=fields if of_format.symmetric else [fields[0], ("minimum", "<f2"), fields[1]])
    blocks["scale"] = scales
    blocks["codes"] = codes
    if not of_format.symmetric:
        minima = _numbers(of_format, tiles, of_format.code_bytes + of_format.groups * TILE_ROWS * 2)
        lowest = np.float32(of_format.limits[0])
        with np.errstate(over="ignore", invalid="ignore"):  # scales of a damaged file
            blocks["minimum"] = minima.astype(np.float32) + lowest * scales.astype(np.float32)
    return blocks


def _numbers(of_format: QuantFormat, tiles: NDArray[np.uint8], start: int) -> NDArray[np.float16]:
    """Scales or minima, float16 (D, A, 16 rows, 4 blocks)."""
    down, across = tiles.shape[:2]
    stored = np.ascontiguousarray(tiles[..., start : start + of_format.groups * TILE_ROWS * 2]).view(np.float16)
    by_row = stored.reshape(down, across, of_format.groups, TILE_ROWS).transpose(0, 1, 3, 2)
    return np.ascontiguousarray(np.repeat(by_row, 4 // of_format.groups, axis=3))


def _codes4(codes: NDArray[np.uint8], symmetric: bool) -> NDArray[np.uint32]:
    # Word j: columns 8 j .. + 3 in the low nibbles, the next four in the high ones. A block wants columns c and c + 16
    # in one byte, which are nibbles of words j and j + 2.
    words = codes.view("<u4").reshape(*codes.shape[:2], TILE_ROWS, 4, 4)
    first, second = words[..., :2], words[..., 2:]
    packed = np.empty_like(words)
    packed[..., 0::2] = first & np.uint32(0x0F0F0F0F) | (second & np.uint32(0x0F0F0F0F)) << np.uint32(4)
    packed[..., 1::2] = (first & np.uint32(0xF0F0F0F0)) >> np.uint32(4) | second & np.uint32(0xF0F0F0F0)
    packed ^= np.uint32(0x88888888)  # the code + 8
    return packed


def _codes3(codes: NDArray[np.uint8], symmetric: bool) -> NDArray[np.uint32]:
    # Register r holds columns 4 r .. 4 r + 3, a byte each; a block wants registers r and r + 4 in one word.
    down, across = codes.shape[:2]
    words = codes.view("<u4")
    low = words[..., :128].reshape(down, across, 8, 4, 2, 2)
    top = words[..., 128:].reshape(down, across, 8, 4, 2)
    packed = np.empty((down, across, 2, 8, 4, 4), dtype="<u4")
    for r in range(4):
        two, one = np.uint32(2 * r), np.uint32(r)
        word = low[..., 0] >> two & np.uint32(0x03030303) | (low[..., 1] >> two & np.uint32(0x03030303)) << np.uint32(4)
        # Bits r and r + 4 of the top bits' bytes become bits 2 and 6.
        word |= (top >> one & np.uint32(0x11111111)) << np.uint32(2)
        word ^= np.uint32(0x44444444)  # the code + 4, which is what q4_1 takes
        if symmetric:
            word += np.uint32(0x44444444)
        packed[..., r] = word.transpose(0, 1, 4, 2, 3)
    return packed


def _codes8(codes: NDArray[np.uint8], symmetric: bool) -> NDArray[np.uint32]:
    down, across = codes.shape[:2]
    # Whole runs of 16 bytes move.
    parts = codes.view("V16").reshape(down, across, 2, 2, 8, 4).transpose(0, 1, 2, 4, 5, 3)
    return np.ascontiguousarray(parts).view("<u4")


_CODES = {3: _codes3, 4: _codes4, 8: _codes8}
