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

TOKENS = (1, 2, 4, 8, 16)
"""Tokens that the variants of the kernel are built for."""
EPILOGUES = ("store", "add", "gated")

_PARTIAL_BYTES = 16 << 10
_MOST_UNITS = 8
_FEW_ROUNDS = 4
"""Reading the input so often costs less than reading the weights twice."""


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
class Product:
    """A matrix (rows, columns) and what is done with its product: see Linear.matvec."""

    format: QuantFormat
    rows: int
    columns: int
    epilogue: str
    norm: bool


@dataclass(frozen=True, slots=True)
class Build:
    """How the kernel is built for a GPU and a format: warps of a block, slots of each warp's ring of tiles."""

    warps: int
    stages: int

    @classmethod
    def of(cls, of_format: QuantFormat, shared_bytes_per_block: int) -> Build:
        """The measured choice for a GPU whose blocks may have so much shared memory, with the most slots."""
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
        tokens, build: the variant of the kernel.
        input_rounds: how often a block reads and quantizes x, a window of it at a time.
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
    tokens: int
    build: Build
    input_rounds: int


def _x_tile_bytes(of_format: QuantFormat, tokens: int) -> int:
    """Two digits of 128 columns, their scale, and sums of groups where they are needed."""
    return tokens * (2 * TILE_COLUMNS + 4 + (0 if of_format.symmetric else of_format.groups * 4))


def _most_slice_tiles(build: Build, limit: int) -> int:
    """A slice of x must fit beside the rings, for any number of tokens."""
    if build.warps == 16:
        return 10
    return 20 if limit > 160 << 10 else 6


def plan(product: Product, tokens: int, limit: int, sm_count: int) -> list[tuple[int, Plan]]:
    """The launches of a product: tokens and plan of each.

    One that reads each weight once; two of half as many tokens where x of all takes so much room that it would be
    read more often.

    Args:
        limit: bytes of shared memory that a block may have.
        sm_count: SMs that share the work.

    Raises:
        ContractError: not even one slice fits.
    """
    variant = next(count for count in TOKENS if count >= tokens)
    whole = _cut(product, variant, limit, sm_count)
    if variant == TOKENS[-1]:
        half = _cut(product, variant // 2, limit, sm_count)
        if half is not None and (whole is None or whole.input_rounds > max(_FEW_ROUNDS, half.input_rounds)):
            return [(variant // 2, half), (tokens - variant // 2, half)]
    if whole is None:
        raise ContractError(
            f"A product of {product.columns} columns with {tokens} tokens in {product.format.name} does not fit into"
            f" the {limit} bytes of shared memory that a block of this GPU has, even in slices."
        )
    return [(tokens, whole)]


@cache
def _cut(product: Product, tokens: int, limit: int, sm_count: int) -> Plan | None:
    """The plan of a variant; None where not even one slice fits.

    Where x does not fit beside the rings as a whole, shorter rings make room for more of it: to read and quantize it
    again for every batch of rows costs more than they gain.
    """
    most = Build.of(product.format, limit)
    builds = [Build(most.warps, stages) for stages in range(most.stages, 0, -1)]
    plans = [_cut_for(build, product, tokens, limit, sm_count) for build in builds]
    return min((each for each in plans if each is not None), key=lambda each: each.input_rounds, default=None)


def _cut_for(build: Build, product: Product, tokens: int, limit: int, sm_count: int) -> Plan | None:
    """x of all of K lies in shared memory where it fits, else of as many slices as do, at a time."""
    of_format = product.format
    tiles = -(-product.columns // TILE_COLUMNS)
    parts = 2 if product.epilogue == "gated" else 1
    units = -(-product.rows // TILE_ROWS) // parts
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
        fixed += -(-tiles // 4) * 4 * tokens * 4 if product.norm else 0
        least = 1 if window_slices == 1 else min(units_at_once, 2 * build.warps // tokens)  # else warps would idle
        most = max(least, min(_MOST_UNITS, -(-units // grid), _PARTIAL_BYTES // (2 * parts * item_bytes)))
        most = min(most, 2 * build.warps // tokens)  # a thread for each output of a batch
        for batch_units in range(most, least - 1, -1):
            shared = fixed + 2 * batch_units * parts * item_bytes
            if shared <= limit:
                windows = -(-slices // window_slices)
                batches = -(-(block_units + (more_blocks > 0)) // batch_units)
                return Plan(tiles, units, slices, slice_tiles, windows, window_slices, batch_units, units_at_once,
                            block_units, more_blocks, shared, grid, tokens, build,
                            windows * batches if windows > 1 else 1)  # fmt: skip
    return None


def defines(product: Product, of_plan: Plan) -> dict[str, int]:
    """The macros of a variant of cuda/matvec.cu."""
    of_format = product.format
    return {
        "BITS": of_format.bits, "GROUP": of_format.group_size, "MINIMA": int(not of_format.symmetric),
        "TOKENS": of_plan.tokens, "WARPS": of_plan.build.warps, "STAGES": of_plan.build.stages,
        "EPILOGUE": EPILOGUES.index(product.epilogue), "NORM": int(product.norm), "WINDOWED": int(of_plan.windows > 1),
    }  # fmt: skip
