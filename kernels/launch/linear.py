"""Linear layers on the GPU: quantized weights times activations in float32.

Few tokens go through the matrix-vector kernel (cuda/matvec.cu), which reads each weight once and is bound by that.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernels.device.driver import Device
from kernels.device.stream import Stream
from kernels.errors import ContractError
from kernels.launch import matvec
from kernels.weights.quant_format import QuantFormat


@dataclass(frozen=True, slots=True)
class DeviceMatrix:
    """A quantized matrix W (rows, columns) on the device.

    Attributes:
        pointer: address of its tiles (kernels/weights/quant_format.py), 16-byte aligned.
        bias_pointer: address of float32 (rows,), 0 where there is none.
    """

    pointer: int
    rows: int
    columns: int
    format: QuantFormat
    bias_pointer: int = 0


class Linear:
    """Launches the products with quantized matrices on the device's stream."""

    def __init__(self, device: Device, sm_count: int = 0, stream: Stream | None = None) -> None:
        """Takes a device.

        Args:
            sm_count: SMs that the stream may use, where those are not all of the device's.
            stream: the device's own by default.
        """
        self._device = device
        self._sm_count = sm_count or device.sm_count
        self._stream = stream

    def matvec(
        self,
        x: int,
        tokens: int,
        matrix: DeviceMatrix,
        out: int,
        *,
        norm: int = 0,
        eps: float = 0.0,
        epilogue: str = "store",
        residual: int = 0,
    ) -> None:
        """out = W x (+ bias) for 1 to 16 tokens; each weight is read once, or twice for over 8.

        A token's result is bitwise the same for any `tokens`, neighbours and GPU of this kind.

        Args:
            x: address of float32 (tokens, columns), 16-byte aligned.
            out: address of float32 (tokens, rows), for "gated" (tokens, rows / 2).
            norm: address of float32 (columns,): x is normalized first, x / rms(x) * norm; 0 for none.
            eps: added to the mean square of x there.
            epilogue: "store"; "add": out = residual + W x; "gated": W stacks gate over up, out = silu(gate) * up.
            residual: address of float32 (tokens, rows) for "add"; may be `out`.

        Raises:
            ContractError: a shape that the kernel does not take.
        """
        if not 1 <= tokens <= matvec.TOKENS[-1] or epilogue not in matvec.EPILOGUES:
            raise ContractError(
                f"The matrix-vector product takes 1 to {matvec.TOKENS[-1]} tokens and an epilogue of"
                f" {matvec.EPILOGUES}; {tokens} and {epilogue!r} were given."
            )
        product = matvec.Product(matrix.format, matrix.rows, matrix.columns, epilogue, bool(norm))
        out_bytes = 4 * (matrix.rows // 2 if epilogue == "gated" else matrix.rows)
        for count, plan in matvec.plan(product, tokens, self._device.shared_bytes_per_block, self._sm_count):
            arguments = matvec.MatvecArguments(
                x, matrix.pointer, matrix.bias_pointer, norm, residual, out, eps, matrix.rows, matrix.columns, count,
                plan.tiles, plan.units, plan.slices, plan.slice_tiles, plan.windows, plan.window_slices,
                plan.batch_units, plan.units_at_once, plan.block_units, plan.more_blocks, 1.0 / matrix.columns,
            )  # fmt: skip
            kernel = self._device.kernel("matvec.cu", "matvec", **matvec.defines(product, plan))
            kernel.launch(arguments, plan.grid, plan.build.warps * 32, plan.shared_bytes, self._stream)
            x, out, residual = x + count * 4 * matrix.columns, out + count * out_bytes, residual + count * out_bytes
