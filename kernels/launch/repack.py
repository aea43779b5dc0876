"""Turns matrices as files hold them into tiles on the GPU: launches repack.cu."""

from __future__ import annotations

from ctypes import Structure, c_int32, c_int64, c_uint64
from typing import TYPE_CHECKING

from kernels.weights.block_tiles import target_format, tile_format
from kernels.weights.quant_format import TILE_COLUMNS, TILE_ROWS, QuantFormat, is_quant_format
from kernels.weights.reference import row_bytes

if TYPE_CHECKING:
    from kernels.device.driver import Device, Stream

__all__ = ["KINDS", "RepackArguments", "repack", "tile_format"]

KINDS = ("q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q4_k", "q5_k", "q6_k", "f16", "bf16", "f32")
"""In the order of the kernel's numbers."""

_THREADS = 256
_TILES_PER_BLOCK = 4


class RepackArguments(Structure):
    """Mirrors the struct of repack.cu."""

    _fields_ = (
        ("source", c_uint64),
        ("destination", c_uint64),
        ("row_bytes", c_int64),
        ("kind", c_int32),
        ("bits", c_int32),
        ("minima", c_int32),
        ("rows", c_int32),
        ("columns", c_int32),
    )


def repack(
    device: Device,
    kind: str,
    source: int,
    rows: int,
    columns: int,
    destination: int,
    *,
    of_format: QuantFormat | None = None,
    first_row: int = 0,
    stream: Stream | None = None,
) -> None:
    """Queues the repacking of a piece of a matrix.

    Args:
        kind: a key of reference.BLOCK_LAYOUTS, or a name of quant_format.py, whose tiles are only copied.
        source: pointer to the piece's rows as the file has them, row after row (of tiles: whole rows of tiles).
        rows: of the piece; a multiple of 16 unless it is the matrix's last.
        destination: pointer to the first tile of the whole matrix, `nbytes(N, K)` of its format.
        of_format: the tiles, where they are wider than `tile_format(kind)`; see block_tiles.common_format.
        first_row: of the piece in the matrix, a multiple of 16.
        stream: the device's own by default.

    Raises:
        ValueError: an unknown kind, a width that has no whole blocks, tiles that do not hold the numbers, or a piece
            that does not begin with a tile.
    """
    of_format = target_format(kind, of_format)
    if first_row % TILE_ROWS:
        raise ValueError(f"A piece begins at row {first_row}, but it must be a multiple of {TILE_ROWS}.")
    destination += of_format.nbytes(first_row, columns)
    if is_quant_format(kind):
        (stream or device.stream).copy(destination, source, of_format.nbytes(rows, columns))
        return
    arguments = RepackArguments(
        source=source,
        destination=destination,
        row_bytes=row_bytes(kind, columns),
        kind=KINDS.index(kind),
        bits=of_format.bits,
        minima=not of_format.symmetric,
        rows=rows,
        columns=columns,
    )
    tiles = -(-rows // TILE_ROWS) * -(-columns // TILE_COLUMNS)
    kernel = device.kernel("repack.cu", "repack")
    kernel.launch(arguments, -(-tiles // _TILES_PER_BLOCK), _THREADS, stream=stream)
