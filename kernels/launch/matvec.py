"""How the matrix-vector kernel cuts its work. Pure arithmetic.

K is cut into slices, each summed by one warp, and their sums are added in order. The slices depend on K and on the
warps of a block alone, so neither the number of tokens nor that of SMs changes a result.
"""

from __future__ import annotations

import ctypes
from ctypes import c_float, c_int, c_uint64
from dataclasses import dataclass
from functools import cache

from kernels.errors import ContractError
from kernels.weights.quant_format import TILE_COLUMNS, TILE_ROWS, QuantFormat

TOKENS = (1, 2, 4, 8)
"""Tokens that the variants of the kernel are built for."""
EPILOGUES = ("store", "add", "gated")

_PARTIAL_BYTES = 16 << 10
_MOST_UNITS = 8


class MatvecArguments(ctypes.Structure):
    """The parameter of kernels/cuda/matvec.cu."""

    _fields_ = [
        ("x", c_uint64), ("weights", c_uint64), ("bias", c_uint64), ("norm", c_uint64), ("residual", c_uint64),
        ("out", c_uint64), ("eps", c_float), ("rows", c_int), ("columns", c_int), ("tokens", c_int),
        ("tiles", c_int), ("units", c_int), ("slices", c_int), ("slice_tiles", c_int),
        ("windows", c_int), ("window_slices", c_int), ("batch_units", c_int), ("units_at_once", c_int),
        ("block_units", c_int), ("more_blocks", c_int), ("mean", c_float),
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Build:
    """How the kernel is built for a GPU and a format: warps of a block, slots of each warp's ring of tiles."""

    warps: int
    stages: int

    @classmethod
    def of(cls, of_format: QuantFormat, shared_bytes_per_block: int) -> Build:
        """The measured choice for a GPU whose blocks may have so much shared memory."""
        if shared_bytes_per_block < 96 << 10:  # sm_75: copies are not asynchronous there, more slots gain nothing
            return cls(8, 1)
        budget = 84 << 10 if shared_bytes_per_block > 160 << 10 else 66 << 10
        warps = 16 if of_format.group_size > 32 and 64 * of_format.tile_bytes <= budget else 8
        return cls(warps, max(1, min(32 // warps, budget // (2 * warps * of_format.tile_bytes))))


@dataclass(frozen=True, slots=True)
class Plan:
    """The fields of MatvecArguments of the same names, and what the launch needs.

    Attributes:
        shared_bytes: dynamic shared memory of a block.
        grid: blocks.
    """

    tiles: int
    units: int
    slices: int
    slice_tiles: int
    windows: int
    window_slices: int
    batch_units: int
    units_at_once: int
    block_units: int
    more_blocks: int
    shared_bytes: int
    grid: int


def _x_tile_bytes(of_format: QuantFormat, tokens: int) -> int:
    """Two digits of 128 columns, their scale, and sums of groups where they are needed."""
    return tokens * (2 * TILE_COLUMNS + 4 + (0 if of_format.symmetric else of_format.groups * 4))


def _most_slice_tiles(build: Build, limit: int) -> int:
    """A slice of x must fit beside the rings, also for 8 tokens."""
    if build.warps == 16:
        return 10
    return 20 if limit > 160 << 10 else 6


@cache
def plan(
    of_format: QuantFormat,
    rows: int,
    columns: int,
    tokens: int,
    epilogue: str,
    norm: bool,
    build: Build,
    limit: int,
    sm_count: int,
) -> Plan:
    """Cuts a product for `sm_count` blocks of at most `limit` bytes of shared memory; `tokens` is that of the variant.

    x of all of K lies in shared memory where it fits, else of as many slices as do, at a time.

    Raises:
        ContractError: not even one slice fits.
    """
    tiles = -(-columns // TILE_COLUMNS)
    parts = 2 if epilogue == "gated" else 1
    units = -(-rows // TILE_ROWS) // parts
    slice_tiles = min(2 * -(-tiles // (2 * build.warps)), _most_slice_tiles(build, limit))
    slices = -(-tiles // slice_tiles)
    # A block for each SM, or a smaller grid where many would idle.
    grid = sm_count if 2 * units > sm_count else units
    block_units, more_blocks = divmod(units, grid)
    ring = build.warps * build.stages * 2 * of_format.tile_bytes
    for windows in range(-(-slices // build.warps), slices + 1):
        window_slices = -(-slices // windows)
        units_at_once = build.warps // window_slices
        item_bytes = window_slices * TILE_ROWS * tokens * 4
        fixed = ring + window_slices * slice_tiles * _x_tile_bytes(of_format, tokens)
        fixed += 2 * TILE_COLUMNS * tokens if of_format.groups > 1 else 0
        fixed += -(-tiles // 4) * 4 * tokens * 4 if norm else 0
        least = 1 if window_slices == 1 else min(units_at_once, 2 * build.warps // tokens)  # else warps would idle
        most = max(least, min(_MOST_UNITS, -(-units // grid), _PARTIAL_BYTES // (2 * parts * item_bytes)))
        most = min(most, 2 * build.warps // tokens)  # a thread for each output of a batch
        for batch_units in range(most, least - 1, -1):
            shared = fixed + 2 * batch_units * parts * item_bytes
            if shared <= limit:
                return Plan(tiles, units, slices, slice_tiles, -(-slices // window_slices), window_slices, batch_units,
                            units_at_once, block_units, more_blocks, shared, grid)  # fmt: skip
    raise ContractError(
        f"A product of {columns} columns with {tokens} tokens in {of_format.name} takes {shared} bytes of shared memory"
        f" even in slices; a block of this GPU has {limit}."
    )


def defines(
    of_format: QuantFormat, tokens: int, build: Build, epilogue: str, norm: bool, windowed: bool
) -> dict[str, int]:
    """The macros of a variant of cuda/matvec.cu."""
    return {
        "BITS": of_format.bits, "GROUP": of_format.group_size, "MINIMA": int(not of_format.symmetric),
        "TOKENS": tokens, "WARPS": build.warps, "STAGES": build.stages,
        "EPILOGUE": EPILOGUES.index(epilogue), "NORM": int(norm), "WINDOWED": int(windowed),
    }  # fmt: skip
