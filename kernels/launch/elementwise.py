"""Rows of matrices on the GPU: the embedding of tokens (embed.cu) and the choice of rows (take_rows.cu)."""

from __future__ import annotations

from ctypes import Structure, c_int32, c_uint64
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernels.device.driver import Device
    from kernels.launch.linear import DeviceMatrix

_EMBED_THREADS = 128
_TAKE_THREADS = 256


class EmbedArguments(Structure):
    """Mirrors the struct of embed.cu."""

    _fields_ = (
        ("table", c_uint64),
        ("token_ids", c_uint64),
        ("out", c_uint64),
        ("rows", c_int32),
        ("columns", c_int32),
        ("tokens", c_int32),
    )


class TakeRowsArguments(Structure):
    """Mirrors the struct of take_rows.cu."""

    _fields_ = (
        ("x", c_uint64),
        ("rows", c_uint64),
        ("out", c_uint64),
        ("count", c_int32),
        ("columns", c_int32),
    )


class Elementwise:
    """Launches on a device's stream. Pointers are the device's, 16-byte aligned."""

    def __init__(self, device: Device) -> None:
        self._device = device

    def embed(self, table: DeviceMatrix, token_ids: int, tokens: int, out: int) -> None:
        """The rows of a table, which may lie in mapped host memory.

        Args:
            token_ids: int32 (tokens,); ids that are no row of the table give zeros.
            out: float32 (tokens, table.columns).
        """
        arguments = EmbedArguments(table.pointer, token_ids, out, table.rows, table.columns, tokens)
        of_format = table.format
        kernel = self._device.kernel(
            "embed.cu", "embed", BITS=of_format.bits, GROUP=of_format.group_size, MINIMA=int(not of_format.symmetric)
        )
        kernel.launch(arguments, (-(-table.columns // (4 * _EMBED_THREADS)), tokens), _EMBED_THREADS)

    def take_rows(self, x: int, rows: int, count: int, columns: int, out: int) -> None:
        """Copies `count` rows of x (any, columns), float32, to out (count, columns).

        Args:
            rows: int32 (count,), each a row of x.
            columns: a multiple of 4.
        """
        arguments = TakeRowsArguments(x, rows, out, count, columns)
        kernel = self._device.kernel("take_rows.cu", "take_rows")
        kernel.launch(arguments, (-(-columns // (4 * _TAKE_THREADS)), count), _TAKE_THREADS)
