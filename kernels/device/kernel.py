"""A loaded kernel and how it is launched."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from ctypes import addressof, c_void_p
from typing import TYPE_CHECKING, Any

from kernels.compile.contracts import contract_of
from kernels.errors import DeviceError

if TYPE_CHECKING:
    from kernels.device.driver import Device
    from kernels.device.stream import Stream

SHARED_MEMORY_CARVEOUT = 100
"""Percent of L1 given to shared memory, the same for every kernel: a change between two kernels drains the SMs."""

_MAX_CONFIGURATIONS = 512


class Kernel:
    """One kernel of a module. Its only parameter is a struct.

    Attributes:
        registers: for each thread.
        local_bytes: stack and spilled registers of each thread.
        shared_bytes: static shared memory of each block.
    """

    def __init__(self, device: Device, module: Any, source: str, name: str, defines: Mapping[str, int]) -> None:
        """Finds a kernel in a loaded module. Raises DeviceError where there is none of that name."""
        self.name = name
        self._device = device
        self._source = source
        self._defines = defines
        self._function = device.call("cuModuleGetFunction", module, name.encode())
        self._contract = contract_of(source, name)
        self._structure: type[ctypes.Structure] | None = None
        self._launch = device.driver.cuLaunchKernelEx
        self._configurations: dict[tuple[Any, ...], Any] = {}
        self.registers = self._attribute("NUM_REGS")
        self.local_bytes = self._attribute("LOCAL_SIZE_BYTES")
        self.shared_bytes = self._attribute("SHARED_SIZE_BYTES")
        self._set("MAX_DYNAMIC_SHARED_SIZE_BYTES", device.shared_bytes_per_block - self.shared_bytes)
        self._set("PREFERRED_SHARED_MEMORY_CARVEOUT", SHARED_MEMORY_CARVEOUT)

    def _attribute(self, name: str) -> int:
        attribute = getattr(self._device.driver.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
        return int(self._device.call("cuFuncGetAttribute", attribute, self._function))

    def _set(self, name: str, value: int) -> None:
        attribute = getattr(self._device.driver.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
        self._device.call("cuFuncSetAttribute", self._function, attribute, value)

    def max_blocks_per_sm(self, threads: int, shared_bytes: int = 0) -> int:
        """Blocks of `threads` threads and that much dynamic shared memory that one SM runs at once."""
        function = "cuOccupancyMaxActiveBlocksPerMultiprocessor"
        return int(self._device.call(function, self._function, threads, shared_bytes))

    def launch(
        self,
        arguments: ctypes.Structure,
        grid: int | tuple[int, ...],
        block: int,
        shared_bytes: int = 0,
        stream: Stream | None = None,
        overlap: bool = True,
    ) -> None:
        """Queues the kernel; `arguments` is copied.

        The first launch of each size is checked against the kernel's contract.

        Args:
            grid: blocks along x, or along x, y, z.
            block: threads of a block.
            shared_bytes: dynamic shared memory of a block.
            stream: the device's own by default.
            overlap: the kernel may start before the one ahead of it has ended, where the GPU can; it must then call
                wait_for_previous().

        Raises:
            ContractError: the arguments are not what the kernel requires.
            DeviceError: the driver refuses; errors of a running kernel show up in a later call.
        """
        key = (grid, block, shared_bytes, stream, overlap)
        configuration = self._configurations.get(key)
        if configuration is None or self._device.checks_every_launch:
            self.check(arguments)
            configuration = configuration or self._configure(*key)
        parameter = c_void_p(addressof(arguments))
        if self._launch(configuration, self._function, addressof(parameter), 0)[0]:
            self._launch_again(configuration, parameter)

    def check(self, arguments: ctypes.Structure) -> None:
        """Raises ContractError where `arguments` is not what the header of the source requires."""
        if type(arguments) is not self._structure:
            self._contract.check_structure(type(arguments))
            self._structure = type(arguments)
        self._contract.check(arguments, self._defines)

    def _launch_again(self, configuration: Any, parameter: c_void_p) -> None:
        """Works in a thread that had no context yet, else says why the launch failed."""
        try:
            self._device.call("cuLaunchKernelEx", configuration, self._function, addressof(parameter), 0)
        except DeviceError as error:
            raise DeviceError(f"kernel {self.name} of {self._source}: {error.reason}", error.code) from error

    def _configure(
        self, grid: int | tuple[int, ...], block: int, shared_bytes: int, stream: Stream | None, overlap: bool
    ) -> Any:
        driver = self._device.driver
        x, y, z = (grid, 1, 1) if isinstance(grid, int) else (*grid, 1, 1)[:3]
        if min(x, y, z, block) < 1 or y > 65535 or z > 65535 or block > 1024:
            raise DeviceError(f"{self.name} cannot run on a grid of {x} x {y} x {z} blocks of {block} threads")
        if self.shared_bytes + shared_bytes > self._device.shared_bytes_per_block:
            raise DeviceError(
                f"{self.name} wants {self.shared_bytes + shared_bytes} bytes of shared memory and"
                f" {self._device.name} has {self._device.shared_bytes_per_block} for a block"
            )
        configuration = driver.CUlaunchConfig()
        configuration.gridDimX, configuration.gridDimY, configuration.gridDimZ = x, y, z
        configuration.blockDimX, configuration.blockDimY, configuration.blockDimZ = block, 1, 1
        configuration.sharedMemBytes = shared_bytes
        configuration.hStream = (stream or self._device.stream).handle
        if overlap and self._device.overlaps:
            attribute = driver.CUlaunchAttribute()
            attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
            attribute.value.programmaticStreamSerializationAllowed = 1
            configuration.attrs = [attribute]
            configuration.numAttrs = 1
        if len(self._configurations) >= _MAX_CONFIGURATIONS:  # grids follow the lengths of prompts
            self._configurations.clear()
        self._configurations[grid, block, shared_bytes, stream, overlap] = configuration
        return configuration
