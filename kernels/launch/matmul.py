"""Products of many tokens with a quantized matrix on the GPU: cuda/quantize_rows.cu, then cuda/matmul.cu.

A row is first split into two int8 digits with one scale for 128 columns (`Activations`); the product runs on the int8
tensor cores and its result for a token depends neither on the other tokens nor on the shape of the blocks.

Measured on an H200, all linear layers with the splitting of their rows, random weights, one CUDA graph, median of 7,
milliseconds (columns: tokens; `python -m kernels.measure.matmul_rate`, there without RMSNorm and biases). Qwen2.5-3B's
36 layers, w4g128; 7B's 28 layers, w4g128 with gate, up and down in w3g64:

               16    58   128   256   512   2048
    3B        2.0   3.2   4.9   6.7  12.1   41.1
    7B        3.5   7.4  10.0  15.8  28.6  111.7
    3B, 1 digit     2.7               9.3   29.2
    7B, 1 digit     6.0              21.1   80.0

For 8 tokens this takes 2.0 ms (3B) and 3.7 ms (7B), and the matrix-vector kernel of `Linear.matvec` 1.2 and 2.2: that
one is faster for as many tokens as it takes. mma.sync on int8 alone reaches 1,235 TOPS there, with four multiply-adds
of float32 beside each instruction 735; the products of 2,048 tokens reach 600.
"""

from __future__ import annotations

from ctypes import Structure, c_float, c_uint32, c_uint64
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from kernels.errors import ContractError
from kernels.weights.quant_format import TILE_COLUMNS, TILE_ROWS, QuantFormat

if TYPE_CHECKING:
    from kernels.device.driver import Device, Kernel
    from kernels.launch.linear import DeviceMatrix

EPILOGUES = {"store": 0, "add": 1, "gated": 2}
_STRIDE = 128
"""Tokens are padded to a multiple of this, so that a block of tokens is read as a whole."""


class QuantizeRowsArguments(Structure):
    """Mirrors the struct of quantize_rows.cu."""

    _fields_ = (
        ("x", c_uint64),
        ("norm", c_uint64),
        ("high", c_uint64),
        ("low", c_uint64),
        ("scales", c_uint64),
        ("sums", c_uint64),
        ("tokens", c_uint32),
        ("token_stride", c_uint32),
        ("columns", c_uint32),
        ("eps", c_float),
    )


class MatmulArguments(Structure):
    """Mirrors the struct of matmul.cu."""

    _fields_ = (
        ("weights", c_uint64),
        ("high", c_uint64),
        ("low", c_uint64),
        ("scales", c_uint64),
        ("sums", c_uint64),
        ("bias", c_uint64),
        ("residual", c_uint64),
        ("out", c_uint64),
        ("tokens", c_uint32),
        ("token_stride", c_uint32),
        ("rows", c_uint32),
        ("columns", c_uint32),
        ("epilogue", c_uint32),
    )


class _Layout(NamedTuple):
    """Offsets in bytes of the arrays of `Activations`, and the tokens between two rows of scales."""

    low: int
    scales: int
    sums: int
    nbytes: int
    token_stride: int


def _layout(tokens: int, columns: int) -> _Layout:
    tiles, stride = -(-columns // TILE_COLUMNS), -(-tokens // _STRIDE) * _STRIDE
    low = stride * tiles * TILE_COLUMNS
    scales = 2 * low
    sums = scales + tiles * stride * 4
    return _Layout(low, scales, sums, sums + 4 * tiles * stride * 4, stride)


@dataclass(frozen=True, slots=True)
class Activations:
    """Device memory for rows as digits; what lies in it belongs to the last `quantize_rows`.

    Attributes:
        pointer: start, 16-byte aligned.
        nbytes: size.
    """

    pointer: int
    nbytes: int

    @staticmethod
    def nbytes_for(tokens: int, columns: int) -> int:
        """Bytes of that many rows, padded to 128: 2 for a column, 20 / 128 more for scales and sums."""
        return _layout(tokens, columns).nbytes

    def layout(self, tokens: int, columns: int) -> _Layout:
        """Where the arrays of that shape lie.

        Raises:
            ContractError: they do not fit.
        """
        layout = _layout(tokens, columns)
        if layout.nbytes > self.nbytes:
            raise ContractError(
                f"Activations of {tokens} tokens, {columns} columns take {layout.nbytes} bytes, but {self.nbytes} were"
                " allocated: split the tokens into smaller chunks."
            )
        return layout


@dataclass(frozen=True, slots=True)
class BlockShape:
    """How the threads of a block share a part of the product.

    Attributes:
        row_warps: warps along the rows of W.
        row_tiles: times 16 rows of a warp; "gated" takes 2.
        token_warps: warps along the tokens, which read the same weights.
        token_tiles: times 8 tokens of a warp.
        stage_tiles: tiles of 128 columns in a stage of the pipeline.
        least_stages: of the pipeline; the shape is left out where fewer fit.
        most_stages: of the pipeline, where shared memory suffices.
        blocks_per_sm: that many fit an SM at once; bounds the registers.
        shared_ns: time that a block takes of an SM for 128 columns when the SM is full, measured on an H200.
        alone_ns: the same for a block that has an SM for itself.
    """

    row_warps: int
    row_tiles: int
    token_warps: int
    token_tiles: int
    stage_tiles: int
    least_stages: int
    most_stages: int
    blocks_per_sm: int
    shared_ns: int
    alone_ns: int

    @property
    def rows(self) -> int:
        return TILE_ROWS * self.row_tiles * self.row_warps

    @property
    def tokens(self) -> int:
        return 8 * self.token_warps * self.token_tiles

    @property
    def threads(self) -> int:
        return 32 * self.row_warps * self.token_warps

    def stage_bytes(self, of_format: QuantFormat, digits: int) -> int:
        """Shared memory of one stage of the pipeline: its columns of the block's weights and tokens."""
        numbers = 4 if of_format.symmetric else 20
        part = self.rows // TILE_ROWS * of_format.tile_bytes + self.tokens * (TILE_COLUMNS * digits + numbers)
        return self.stage_tiles * part

    def stages(self, of_format: QuantFormat, digits: int, shared_bytes: int) -> int:
        """Stages that shared memory holds for all blocks of an SM, small shapes for one; 0 where too few are left."""
        stage = self.stage_bytes(of_format, digits)
        for blocks in (self.blocks_per_sm, 1):
            if (stages := (shared_bytes // blocks - 1024) // stage) >= self.least_stages:
                return min(self.most_stages, stages)
            if self.least_stages > 2:
                break
        return 0

    def cost(self, rows: int, tokens: int, sm_count: int) -> float:
        """Estimated nanoseconds for 128 columns: full rounds of the SMs, then what is left."""
        blocks = -(-rows // self.rows) * -(-tokens // self.tokens)
        rounds, left = divmod(-(-blocks // sm_count), self.blocks_per_sm)
        full = self.blocks_per_sm * self.shared_ns
        more = (full - self.alone_ns) / max(1, self.blocks_per_sm - 1)  # of a block beside others
        return rounds * full + (self.alone_ns + (left - 1) * more if left else 0)

    def defines(self, of_format: QuantFormat, digits: int, stages: int) -> dict[str, int]:
        """Macros of matmul.cu."""
        return {
            "BITS": of_format.bits,
            "GROUP": of_format.group_size,
            "MINIMA": int(not of_format.symmetric),
            "DIGITS": digits,
            "ROW_WARPS": self.row_warps,
            "ROW_TILES": self.row_tiles,
            "TOKEN_WARPS": self.token_warps,
            "TOKEN_TILES": self.token_tiles,
            "STAGES": stages,
            "STAGE_TILES": self.stage_tiles,
            "BLOCKS_PER_SM": self.blocks_per_sm if of_format.symmetric and of_format.groups <= 2 else 1,
        }


BLOCK_SHAPES = (
    BlockShape(4, 2, 1, 8, 1, 3, 4, 2, 969, 1264),
    BlockShape(2, 2, 2, 4, 1, 2, 4, 2, 504, 670),
    BlockShape(2, 2, 2, 2, 1, 2, 4, 3, 292, 448),
    BlockShape(2, 2, 2, 2, 2, 2, 4, 2, 326, 399),
    BlockShape(4, 1, 2, 1, 2, 2, 4, 2, 235, 252),
    BlockShape(2, 2, 2, 1, 1, 2, 4, 4, 179, 299),
)


class _Plan(NamedTuple):
    kernel: Kernel
    grid: tuple[int, int]
    threads: int
    shared_bytes: int


class Matmul:
    """Launches the two kernels on the device's stream."""

    def __init__(self, device: Device, digits: int = 2, shared_bytes: int = 0) -> None:
        """Compiles nothing yet.

        Args:
            digits: 2, or 1 to round activations to 8 bits, which is faster and less exact.
            shared_bytes: shared memory that a block may take, where that is less than the device has.
        """
        self._device = device
        self._digits = digits
        self._shared_bytes = shared_bytes or device.shared_bytes_per_block
        self._plans: dict[tuple[QuantFormat, int, int, bool, BlockShape | None], _Plan] = {}
        self._quantize = device.kernel("quantize_rows.cu", "quantize_rows")

    def quantize_rows(
        self, x: int, tokens: int, columns: int, activations: Activations, *, norm: int = 0, eps: float = 0.0
    ) -> None:
        """Splits rows into digits, after RMSNorm where `norm` is given.

        Args:
            x: float32 (tokens, columns), columns a multiple of 4.
            norm: float32 (columns), or 0.

        Raises:
            ContractError: the activations are too small, or columns is not a multiple of 4.
        """
        if tokens < 1 or columns < 4 or columns % 4:
            raise ContractError(f"Rows of {columns} columns, {tokens} tokens: columns must be a multiple of 4.")
        layout, base = activations.layout(tokens, columns), activations.pointer
        arguments = QuantizeRowsArguments(
            x, norm, base, base + layout.low, base + layout.scales, base + layout.sums,
            tokens, layout.token_stride, columns, eps,
        )  # fmt: skip
        chunks = -(-columns // TILE_COLUMNS)
        if norm:
            self._quantize.launch(arguments, (tokens, 1), 512)
        else:
            self._quantize.launch(arguments, (tokens, -(-chunks // 8)), 256)

    def matmul(
        self,
        activations: Activations,
        tokens: int,
        matrix: DeviceMatrix,
        out: int,
        *,
        epilogue: str = "store",
        residual: int = 0,
        shape: BlockShape | None = None,
    ) -> None:
        """Multiplies the rows that `quantize_rows` split last with W^T.

        Args:
            out: float32 (tokens, rows); with "gated" (tokens, rows / 2).
            epilogue: "store", "add" (out = residual + product, out may be residual) or "gated" (silu of the product
                with the upper half of W, times the product with the lower half).
            residual: float32 (tokens, rows) for "add".
            shape: which shape of blocks runs, the estimated fastest by default; the result is the same bits.

        Raises:
            ContractError: the epilogue does not go with the matrix.
        """
        code = EPILOGUES[epilogue]
        if tokens < 1 or (code == 1 and not residual) or (code == 2 and matrix.rows % (2 * TILE_ROWS)):
            raise ContractError(
                f"{epilogue} of {tokens} tokens, {matrix.rows} rows: add takes a residual, gated 32 rows."
            )
        key = (matrix.format, matrix.rows, tokens, code == 2, shape)
        plan = self._plans.get(key)
        if plan is None:
            if len(self._plans) > 4096:  # prompts have many lengths
                self._plans.clear()
            plan = self._plans[key] = self._plan(*key)
        layout, base = activations.layout(tokens, matrix.columns), activations.pointer
        arguments = MatmulArguments(
            matrix.pointer, base, base + layout.low, base + layout.scales, base + layout.sums, matrix.bias_pointer,
            residual, out, tokens, layout.token_stride, matrix.rows, matrix.columns, code,
        )  # fmt: skip
        plan.kernel.launch(arguments, plan.grid, plan.threads, plan.shared_bytes)

    def shapes(self, of_format: QuantFormat, gated: bool = False) -> list[BlockShape]:
        """The shapes of blocks that fit this device."""
        return block_shapes(of_format, gated, self._digits, self._shared_bytes)

    def _plan(self, of_format: QuantFormat, rows: int, tokens: int, gated: bool, shape: BlockShape | None) -> _Plan:
        if shape is None:
            sm_count, shapes = self._device.sm_count, self.shapes(of_format, gated)
            shape = min(shapes, key=lambda each: each.cost(rows, tokens, sm_count))
        stages = shape.stages(of_format, self._digits, self._shared_bytes)
        kernel = self._device.kernel("matmul.cu", "matmul", **shape.defines(of_format, self._digits, stages))
        grid = (-(-rows // shape.rows), -(-tokens // shape.tokens))
        return _Plan(kernel, grid, shape.threads, stages * shape.stage_bytes(of_format, self._digits))


def block_shapes(of_format: QuantFormat, gated: bool, digits: int, shared_bytes: int) -> list[BlockShape]:
    """The shapes that work with that much shared memory for a block."""
    return [
        shape
        for shape in BLOCK_SHAPES
        if shape.stages(of_format, digits, shared_bytes) and (shape.row_tiles == 2 or not gated)
    ]
