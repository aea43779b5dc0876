"""Brings a model's tensors to the GPU: from the mapped file through pinned memory, matrices as tiles.

Tiles are copied as they are, the parts of a stack one behind the other. Blocks of GGUF files and floats are turned into
tiles on the GPU, some rows at a time. All of it is queued on the device's stream; the host only fills pinned buffers,
with a few threads, while the one before is copied.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.backends.cuda_plan import COMMON_KIND, aligned, stack_format
from inference.formats.model_source import WeightTensor
from kernels.device.driver import Device, DeviceBuffer, Event, HostBuffer
from kernels.errors import ContractError
from kernels.launch.linear import DeviceMatrix
from kernels.launch.repack import repack
from kernels.weights.block_tiles import tile_format
from kernels.weights.quant_format import TILE_ROWS, is_quant_format
from kernels.weights.reference import dequantize

STAGING_BYTES = 16 << 20
STAGING_BUFFERS = 3
READERS = 4
"""Threads that fill a pinned buffer: one alone does not reach the speed of the bus."""
_READ_BYTES = 1 << 20
"""Less is copied by the calling thread."""

Bytes = NDArray[np.uint8]


class _Staging:
    """Pinned buffers that are filled and copied in turns."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._buffers = [device.host_buffer(STAGING_BYTES) for _ in range(STAGING_BUFFERS)]
        self._copied: list[Event | None] = [None] * STAGING_BUFFERS
        self._at, self._used = 0, 0
        self._readers = ThreadPoolExecutor(min(READERS, os.cpu_count() or 1), thread_name_prefix="weights")

    def upload(self, pointer: int, data: Bytes) -> None:
        """Queues a copy of contiguous bytes; they have been read when this returns."""
        done = 0
        while done < data.size:
            if self._used == STAGING_BYTES:
                self._turn()
            size = min(data.size - done, STAGING_BYTES - self._used)
            buffer, start = self._buffers[self._at], self._used
            self.read(buffer.array[start : start + size], data[done : done + size])
            self._device.stream.copy_to_device(pointer + done, buffer, size, start)
            done += size
            self._used = min(STAGING_BYTES, aligned(self._used + size))

    def read(self, target: Bytes, source: Bytes) -> None:
        """Copies within the host, by several threads where that pays."""
        if source.size <= _READ_BYTES:
            target[:] = source
            return
        step = -(-source.size // READERS)
        jobs: list[Future[Any]] = [
            self._readers.submit(np.copyto, target[start : start + step], source[start : start + step])
            for start in range(0, source.size, step)
        ]
        for job in jobs:
            job.result()

    def _turn(self) -> None:
        """Takes the next buffer once what it held is copied."""
        self._copied[self._at] = self._device.stream.record(self._copied[self._at])
        self._at, self._used = (self._at + 1) % STAGING_BUFFERS, 0
        event = self._copied[self._at]
        if event is not None:
            event.synchronize()

    def end_readers(self) -> None:
        """Ends the threads."""
        self._readers.shutdown()

    def close(self) -> None:
        """Waits for the copies and gives the buffers back."""
        self.end_readers()
        self._device.stream.synchronize()
        for buffer in self._buffers:
            buffer.free()


class WeightLoader:
    """Fills one allocation with weights.

    Args:
        nbytes: of all weights, see cuda_plan.model_bytes.

    Attributes:
        memory: the allocation; lives on after `finish`.
        tables: pinned memory of tables that stay on the host.
    """

    def __init__(self, device: Device, nbytes: int) -> None:
        self._device = device
        self._used = 0
        self.memory = device.allocate(max(1, nbytes))
        self.tables: list[HostBuffer] = []
        self._staging = _Staging(device)
        self._scratch: DeviceBuffer | None = None

    def matrix(self, parts: Sequence[WeightTensor], biases: Sequence[WeightTensor] = ()) -> DeviceMatrix:
        """One matrix of stacked parts."""
        of_format = stack_format(part.kind for part in parts)
        columns, rows = parts[0].shape[1], sum(part.shape[0] for part in parts)
        if any(part.shape[0] % TILE_ROWS for part in parts[:-1]):
            raise ContractError(f"Parts of {[part.shape for part in parts]} rows cannot be stacked: not whole tiles.")
        pointer = at = self._take(sum(of_format.nbytes(*part.shape) for part in parts))
        for part in parts:
            self._tiles(part, at, keep=tile_format(part.kind) == of_format)
            at += of_format.nbytes(*part.shape)
        return DeviceMatrix(pointer, rows, columns, of_format, self.vector(*biases) if biases else 0)

    def host_table(self, tensor: WeightTensor) -> DeviceMatrix:
        """A table in pinned memory, whose rows the GPU reads one by one."""
        of_format = tile_format(tensor.kind)
        table = self._device.host_buffer(of_format.nbytes(*tensor.shape))
        self.tables.append(table)
        if is_quant_format(tensor.kind):
            self._staging.read(table.array, tensor.data.reshape(-1))
        else:
            self._tiles(tensor, table.device_pointer, keep=True)
        return DeviceMatrix(table.device_pointer, tensor.shape[0], tensor.shape[1], of_format)

    def vector(self, *tensors: WeightTensor) -> int:
        """Vectors one behind the other as float32; the address."""
        values = np.concatenate([dequantize(each.kind, each.data, each.shape) for each in tensors])
        pointer = self._take(values.nbytes)
        self._staging.upload(pointer, values.astype(np.float32, copy=False).view(np.uint8))
        return pointer

    def close(self) -> None:
        """Ends the readers of a load that was given up; the memory is the device's matter."""
        self._staging.end_readers()

    def finish(self) -> None:
        """Waits until everything is there and frees what only loading needed."""
        self._staging.close()
        if self._scratch is not None:
            self._scratch.free()

    def _take(self, nbytes: int) -> int:
        pointer = self.memory.pointer + self._used
        self._used += aligned(nbytes)
        if self._used > self.memory.nbytes:
            raise ContractError(f"Weights take {self._used} bytes and more, but {self.memory.nbytes} were planned.")
        return pointer

    def _scratch_of(self, nbytes: int) -> int:
        """Memory for pieces that are turned into tiles. It is gone before KV and workspace come, which take more."""
        if self._scratch is None or self._scratch.nbytes < nbytes:
            if self._scratch is not None:
                self._device.stream.synchronize()
                self._scratch.free()
            self._scratch = self._device.allocate(nbytes)
        return self._scratch.pointer

    def _tiles(self, tensor: WeightTensor, pointer: int, keep: bool) -> None:
        """Queues a tensor's tiles to an address; where its own ones are not to be kept, by way of its weights."""
        if keep and is_quant_format(tensor.kind):
            self._staging.upload(pointer, tensor.data.reshape(-1))
            return
        rows, columns = tensor.shape
        kind = tensor.kind if keep else COMMON_KIND
        data = tensor.data.reshape(rows, -1) if keep else dequantize(tensor.kind, tensor.data, tensor.shape)
        row_bytes = data.nbytes // rows
        step = min(max(TILE_ROWS, STAGING_BYTES // row_bytes // TILE_ROWS * TILE_ROWS), rows)
        scratch = self._scratch_of(step * row_bytes)
        for start in range(0, rows, step):
            part = np.ascontiguousarray(data[start : start + step])
            self._staging.upload(scratch, part.reshape(-1).view(np.uint8))
            repack(self._device, kind, scratch, len(part), columns, pointer, first_row=start)
