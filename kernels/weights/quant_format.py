"""How quantized weights lie in a checkpoint and on the GPU, which read the same bytes. Pure NumPy.

A weight is `scale * code` (symmetric) or `scale * code + minimum`: codes are signed integers of 3, 4 or 8 bits, scales
and minima float16, one for each group of 32, 64 or 128 neighbouring columns of a row.

The matrix W (N, K) is cut into tiles of 16 rows by 128 columns, tile after tile along K, then along N; N and K are
padded with zeros. A tile is: codes, scales (groups, 16 rows), minima (groups, 16 rows) where the format has them.

Tensor cores want of each lane of a warp two rows, g and g + 8 (g = lane / 4), and it does not matter which columns, as
long as the activations come in the same order. So lane 4 g + t holds columns 32 t to 32 t + 31 of its rows, and both
the weights and the activations are read in runs of 16 bytes:

    bits  codes of a tile as an array             element holds
    4     u32 [half 2][g 8][t 4][word 4]          word j: columns 8 j .. 8 j + 3 in the low nibbles of its bytes,
                                                  8 j + 4 .. 8 j + 7 in the high ones (of the lane's 32 columns)
    8     i8  [half 2][part 2][g 8][t 4][16]      byte b: column 16 part + b
    3     u32 [g 8][t 4][half 2][word 2], then    the two low bits: word i, byte b, bits 2 f and 2 f + 1: column
                                                  16 i + 4 f + b
          u32 [g 8][t 4][half 2]                  the top bit: byte b, bit r: column 4 r + b

Codes are two's complement. Rows of a matrix that stacks others need no seam, because every part is a multiple of 16.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

TILE_ROWS = 16
TILE_COLUMNS = 128
BITS = (3, 4, 8)
GROUP_SIZES = (32, 64, 128)

_NAME = re.compile(r"w([348])g(32|64|128)(m?)")


@dataclass(frozen=True, slots=True)
class QuantFormat:
    """Bits of a weight, columns of a group, and whether groups have no minimum.

    Raises:
        ValueError: bits or a group size that the kernels do not know.
    """

    bits: int
    group_size: int
    symmetric: bool = True

    def __post_init__(self) -> None:
        if self.bits not in BITS or self.group_size not in GROUP_SIZES:
            raise ValueError(
                f"A format of {self.bits} bits in groups of {self.group_size} is not known;"
                f" bits may be {BITS}, groups {GROUP_SIZES}."
            )

    @classmethod
    def parse(cls, name: str) -> QuantFormat:
        """The format of a name such as "w4g128" or, with minima, "w4g32m".

        Raises:
            ValueError: no such name.
        """
        match = _NAME.fullmatch(name)
        if match is None:
            raise ValueError(f"The weight format is {name!r}, but it must be like w4g128, or w4g32m with minima.")
        return cls(int(match[1]), int(match[2]), not match[3])

    @property
    def name(self) -> str:
        """What `parse` takes."""
        return f"w{self.bits}g{self.group_size}{'' if self.symmetric else 'm'}"

    @property
    def groups(self) -> int:
        """Groups of a row of a tile."""
        return TILE_COLUMNS // self.group_size

    @property
    def code_bytes(self) -> int:
        """Bytes of the codes of a tile."""
        return TILE_ROWS * TILE_COLUMNS * self.bits // 8

    @property
    def tile_bytes(self) -> int:
        """Bytes of a tile."""
        return self.code_bytes + self.groups * TILE_ROWS * 2 * (1 if self.symmetric else 2)

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the largest code."""
        return -(1 << self.bits - 1), (1 << self.bits - 1) - 1

    def nbytes(self, rows: int, columns: int) -> int:
        """Bytes of a matrix."""
        return -(-rows // TILE_ROWS) * -(-columns // TILE_COLUMNS) * self.tile_bytes


def is_quant_format(kind: str) -> bool:
    """True where `kind` names one of these formats, not one of a GGUF or a float type."""
    return _NAME.fullmatch(kind) is not None


@dataclass(frozen=True, slots=True, eq=False)
class QuantizedMatrix:
    """A matrix before packing and after unpacking.

    Attributes:
        codes: int8 (N, K).
        scales: float16 (N, groups of K), the last group may be short.
        minima: float16 like `scales`, None where the format is symmetric.
    """

    format: QuantFormat
    codes: NDArray[np.int8]
    scales: NDArray[np.float16]
    minima: NDArray[np.float16] | None = None

    def dequantize(self) -> NDArray[np.float32]:
        """float32 (N, K)."""
        columns, size = self.codes.shape[1], self.format.group_size
        weights = self.codes.astype(np.float32)
        weights *= np.repeat(self.scales.astype(np.float32), size, axis=1)[:, :columns]
        if self.minima is not None:
            weights += np.repeat(self.minima.astype(np.float32), size, axis=1)[:, :columns]
        return weights


def pack(matrix: QuantizedMatrix) -> NDArray[np.uint8]:
    """The bytes of the tiles, uint8 (nbytes,).

    Raises:
        ValueError: codes out of the format's range, or arrays whose shapes do not belong together.
    """
    of_format, (rows, columns) = matrix.format, matrix.codes.shape
    groups = -(-columns // of_format.group_size)
    low, high = of_format.limits
    if matrix.scales.shape != (rows, groups) or (matrix.minima is None) != of_format.symmetric:
        raise ValueError(f"{of_format.name} of {rows} rows, {columns} columns takes scales of {(rows, groups)}.")
    if matrix.codes.size and not low <= matrix.codes.min() <= matrix.codes.max() <= high:
        raise ValueError(f"Codes of {of_format.name} lie between {low} and {high}.")
    codes = _tiles(matrix.codes, TILE_COLUMNS)
    parts = [_PACK[of_format.bits](codes)]
    for values in (matrix.scales, matrix.minima):
        if values is not None:
            tiles = _tiles(values, of_format.groups).transpose(0, 2, 1)
            parts.append(np.ascontiguousarray(tiles).view(np.uint8).reshape(len(tiles), -1))
    return np.concatenate(parts, axis=1).reshape(-1)


def unpack(of_format: QuantFormat, data: NDArray[np.uint8], rows: int, columns: int) -> QuantizedMatrix:
    """The matrix of `pack`'s bytes.

    Raises:
        ValueError: another number of bytes than the shape takes.
    """
    if data.size != of_format.nbytes(rows, columns):
        raise ValueError(
            f"{of_format.name} of {rows} rows, {columns} columns takes {of_format.nbytes(rows, columns)} bytes,"
            f" but {data.size} were given."
        )
    across = -(-columns // TILE_COLUMNS)
    tiles = np.ascontiguousarray(data).reshape(-1, of_format.tile_bytes)
    scale_bytes = of_format.groups * TILE_ROWS * 2
    codes = _UNPACK[of_format.bits](np.ascontiguousarray(tiles[:, : of_format.code_bytes]))

    def numbers(start: int) -> NDArray[np.float16]:
        values = np.ascontiguousarray(tiles[:, start : start + scale_bytes]).view(np.float16)
        of_tile = values.reshape(-1, of_format.groups, TILE_ROWS).transpose(0, 2, 1)
        return _matrix(of_tile, across, rows, -(-columns // of_format.group_size))

    minima = None if of_format.symmetric else numbers(of_format.code_bytes + scale_bytes)
    return QuantizedMatrix(of_format, _matrix(codes, across, rows, columns), numbers(of_format.code_bytes), minima)


def _tiles(matrix: NDArray[Any], width: int) -> NDArray[Any]:
    """(N, K) padded with zeros, as (tiles, 16, width)."""
    rows, columns = matrix.shape
    down, across = -(-rows // TILE_ROWS), -(-columns // width)
    padded = np.zeros((down * TILE_ROWS, across * width), dtype=matrix.dtype)
    padded[:rows, :columns] = matrix
    return padded.reshape(down, TILE_ROWS, across, width).transpose(0, 2, 1, 3).reshape(-1, TILE_ROWS, width)


def _matrix(tiles: NDArray[Any], across: int, rows: int, columns: int) -> NDArray[Any]:
    """The inverse of `_tiles`."""
    width = tiles.shape[2]
    matrix = tiles.reshape(-1, across, TILE_ROWS, width).transpose(0, 2, 1, 3).reshape(-1, across * width)
    return np.ascontiguousarray(matrix[:rows, :columns])


def _pack4(codes: NDArray[np.int8]) -> NDArray[np.uint8]:
    # (tile, half, g, t, word, nibble, byte)
    nibbles = codes.view(np.uint8).reshape(-1, 2, 8, 4, 4, 2, 4) & 0x0F
    packed: NDArray[Any] = nibbles[..., 0, :] | nibbles[..., 1, :] << 4
    return packed.reshape(len(codes), -1)


def _unpack4(data: NDArray[np.uint8]) -> NDArray[np.int8]:
    words = data.reshape(-1, 2, 8, 4, 4, 4)
    high = np.stack([words << 4, words & 0xF0], axis=-2).view(np.int8)
    return np.right_shift(high, 4).reshape(-1, TILE_ROWS, TILE_COLUMNS)


def _pack8(codes: NDArray[np.int8]) -> NDArray[np.uint8]:
    # (tile, half, g, t, part, byte) to (tile, half, part, g, t, byte)
    lanes = codes.view(np.uint8).reshape(-1, 2, 8, 4, 2, 16).transpose(0, 1, 4, 2, 3, 5)
    return np.ascontiguousarray(lanes).reshape(len(codes), -1)


def _unpack8(data: NDArray[np.uint8]) -> NDArray[np.int8]:
    lanes = data.reshape(-1, 2, 2, 8, 4, 16).transpose(0, 1, 3, 4, 2, 5)
    return np.ascontiguousarray(lanes).view(np.int8).reshape(-1, TILE_ROWS, TILE_COLUMNS)


def _pack3(codes: NDArray[np.int8]) -> NDArray[np.uint8]:
    bits = codes.view(np.uint8) & 7
    # (tile, half, g, t, register 8, byte 4): register r holds columns 4 r to 4 r + 3.
    lanes = bits.reshape(-1, 2, 8, 4, 8, 4).transpose(0, 2, 3, 1, 4, 5)
    fields = (lanes & 3).reshape(*lanes.shape[:4], 2, 4, 4)
    shifts = (2 * np.arange(4, dtype=np.uint8))[:, None]
    low = np.bitwise_or.reduce(fields << shifts, axis=-2)
    top = np.bitwise_or.reduce((lanes >> 2) << np.arange(8, dtype=np.uint8)[:, None], axis=-2)
    return np.concatenate([low.reshape(len(codes), -1), top.reshape(len(codes), -1)], axis=1)


def _unpack3(data: NDArray[np.uint8]) -> NDArray[np.int8]:
    low = data[:, :512].reshape(-1, 8, 4, 2, 2, 1, 4)
    top = data[:, 512:].reshape(-1, 8, 4, 2, 1, 4)
    shifts = (2 * np.arange(4, dtype=np.uint8))[:, None]
    fields = (low >> shifts & 3).reshape(-1, 8, 4, 2, 8, 4)
    codes = fields | (top >> np.arange(8, dtype=np.uint8)[:, None] & 1) << 2
    signed = np.right_shift((codes << 5).view(np.int8), 5)
    return np.ascontiguousarray(signed.transpose(0, 3, 1, 2, 4, 5)).reshape(-1, TILE_ROWS, TILE_COLUMNS)


_PACK = {3: _pack3, 4: _pack4, 8: _pack8}
_UNPACK = {3: _unpack3, 4: _unpack4, 8: _unpack8}
