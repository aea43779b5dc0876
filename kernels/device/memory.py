"""Memory of the device and pinned memory of the host."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

if TYPE_CHECKING:
    from kernels.device.driver import Device

MEMORY_BLOCK = 2 << 20
"""The driver takes memory from the GPU in blocks of 2 MiB, as its own report of free memory shows."""
SMALL_ALLOCATION = 1 << 20
"""Allocations up to this size share blocks."""


def rounded_up(nbytes: int, multiple: int) -> int:
    """The next multiple."""
    return -(-nbytes // multiple) * multiple


def block_bytes(nbytes: int) -> tuple[int, int]:
    """(bytes in blocks of its own, bytes in a block that small allocations share)."""
    nbytes = max(1, nbytes)
    if nbytes > SMALL_ALLOCATION:
        return rounded_up(nbytes, MEMORY_BLOCK), 0
    return 0, rounded_up(nbytes, 512)


class DeviceBuffer:
    """Memory on the device; freed by `free` or with the device."""

    def __init__(self, device: Device, pointer: int, nbytes: int) -> None:
        self._device = device
        self.pointer = pointer
        self.nbytes = nbytes

    def free(self) -> None:
        """Gives the memory back once nothing on the GPU uses it; a second call does nothing."""
        if self.pointer:
            self._device.call("cuMemFree", self.pointer)
            self.pointer = 0
            self._device.forget(self)

    def fill(self, byte: int) -> None:
        """Sets every byte, in the order of the device's stream."""
        self._device.stream.fill(self.pointer, byte, self.nbytes)

    def upload(self, array: NDArray[Any], offset: int = 0) -> None:
        """Copies an array to `offset` bytes behind the start; returns when it is there."""
        array = np.ascontiguousarray(array)
        self._require(offset, array.nbytes)
        self._device.stream.copy_to_device(self.pointer + offset, array, array.nbytes)
        self._device.stream.synchronize()

    def download(self, dtype: DTypeLike, shape: int | tuple[int, ...], offset: int = 0) -> NDArray[Any]:
        """An array of what lies `offset` bytes behind the start, once the stream has done all before."""
        array = np.empty(shape, dtype)
        self._require(offset, array.nbytes)
        if array.nbytes:
            stream = self._device.stream
            self._device.call(
                "cuMemcpyDtoHAsync", array.ctypes.data, self.pointer + offset, array.nbytes, stream.handle
            )
            stream.synchronize()
        return array

    def _require(self, offset: int, nbytes: int) -> None:
        if offset < 0 or offset + nbytes > self.nbytes:
            raise ValueError(f"{nbytes} bytes at {offset} lie outside of a buffer of {self.nbytes} bytes.")


class HostBuffer:
    """Pinned host memory, seen by the device under another address.

    Attributes:
        array: uint8 view of all of it; must not be used after `free`.
    """

    def __init__(self, device: Device, nbytes: int) -> None:
        flags = device.driver.CU_MEMHOSTALLOC_PORTABLE | device.driver.CU_MEMHOSTALLOC_DEVICEMAP
        self._device = device
        self._pointer = int(device.call("cuMemHostAlloc", max(1, nbytes), flags))
        self.nbytes = nbytes
        self.device_pointer = int(device.call("cuMemHostGetDevicePointer", self._pointer, 0))
        memory = (ctypes.c_uint8 * nbytes).from_address(self._pointer)
        self.array: NDArray[np.uint8] = np.ctypeslib.as_array(memory)

    @property
    def pointer(self) -> int:
        """Address for the host."""
        return self._pointer

    def free(self) -> None:
        """Gives the memory back; a second call does nothing."""
        if self._pointer:
            self._device.call("cuMemFreeHost", self._pointer)
            self._pointer = self.device_pointer = 0
            self.array = np.empty(0, np.uint8)
            self._device.forget(self)
