"""One NVIDIA GPU through the driver's own interface: memory, streams, graphs, kernels.

Everything that runs on the GPU is launched by one thread on one stream. No device exists before `Device` is called.
"""

from __future__ import annotations

import contextlib
from functools import cache
from typing import Any

from kernels.compile import compiler
from kernels.device.kernel import Kernel
from kernels.device.memory import MEMORY_BLOCK, DeviceBuffer, HostBuffer, block_bytes, rounded_up
from kernels.device.stream import Event, Graph, Stream
from kernels.errors import DeviceError, OutOfDeviceMemory

__all__ = ["Device", "DeviceBuffer", "Event", "Graph", "HostBuffer", "Kernel", "Stream"]

OLDEST_DRIVER = 12000

_INVALID_CONTEXT = 201
_CURES = {
    1: "Report this as a bug",
    2: "Close other programs that use the GPU, or choose a smaller model or context",
    3: "The driver is shutting down: start the app again",
    34: "The program was started with a stub of the driver: install NVIDIA's driver",
    35: "Update NVIDIA's driver to 525 or newer",
    100: "No NVIDIA GPU is visible: check nvidia-smi and CUDA_VISIBLE_DEVICES",
    101: "There is no GPU of that number: check CUDA_VISIBLE_DEVICES",
    209: "The compiled kernel does not fit this GPU: delete the cache of kernels",
    218: "Update NVIDIA's driver: it is older than the compiler of the kernels",
    222: "Update NVIDIA's driver: it is older than the compiler of the kernels",
    716: "A kernel was given an address that is not aligned, a bug; start the app again",
    700: "A kernel read or wrote outside its memory, a bug; start the app again",
    719: "A kernel failed, a bug or a fault of the GPU; start the app again",
    802: "The GPU is not ready yet: try again",
    803: "The loaded driver library and the kernel's driver differ: restart the computer",
    804: "This GPU needs a newer driver: update it",
    999: "The driver is in a bad state: restart the computer (often after suspend: reload nvidia_uvm)",
}


@cache
def _driver() -> Any:
    """The bindings of the driver, initialized.

    Raises:
        DeviceError: they are not installed, there is no driver or no GPU, or it is too old.
    """
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise DeviceError(
            f"the package cuda-bindings is missing ({error}). If this machine has an NVIDIA GPU, install it with:"
            " pip install 'deskinfer[cuda]'"
        ) from error
    try:
        status = driver.cuInit(0)[0]
    except (RuntimeError, OSError) as error:  # the library is not there or lacks a function
        raise DeviceError(
            "no NVIDIA driver was found, and no NVIDIA GPU works without it. If this machine has one, install NVIDIA's"
            " driver, version 525 or newer"
        ) from error
    _check(driver, "cuInit", status)
    version = int(_check(driver, "cuDriverGetVersion", *driver.cuDriverGetVersion()))
    if version < OLDEST_DRIVER:
        raise DeviceError(
            f"NVIDIA's driver supports CUDA {version // 1000}.{version % 1000 // 10} and 12.0 is needed."
            " Update the driver to 525 or newer"
        )
    return driver


def _check(driver: Any, function: str, status: Any, *results: Any) -> Any:
    """What a call of the driver gives besides its status. Raises DeviceError where that is not success."""
    if status:
        raise _error(driver, function, int(status))
    return results[0] if len(results) == 1 else results


def _error(driver: Any, function: str, code: int) -> DeviceError:
    message = "unknown error"
    with contextlib.suppress(ValueError):  # a code that the bindings do not know
        status, text = driver.cuGetErrorString(driver.CUresult(code))
        if not status and text:
            message = bytes(text).decode("ascii", "replace")
    cure = _CURES.get(code, "Start the app again; if it stays, update NVIDIA's driver")
    return DeviceError(f"{function} failed: {message} (CUDA error {code}). {cure}.", code)


class Device:
    """One GPU and its primary context, current in the thread that made it.

    Attributes:
        capability: compute capability, (8, 6).
        sm_count, total_bytes, l2_bytes: what the GPU has.
        shared_bytes_per_block: the most that one block may have, static and dynamic together.
        driver: the bindings' module, for their constants and types.
        driver_version: newest CUDA version that the driver runs, 12080.
        context_bytes: what the context took of the GPU's memory; 0 where that cannot be told.
        checks_every_launch: each launch is checked against its kernel's contract, not only the first of a size.
        allocated_bytes, peak_bytes: device memory taken from the driver by `allocate`, in whole blocks.
    """

    def __init__(self, ordinal: int = 0, memory_limit_bytes: int | None = None) -> None:
        """Opens a GPU.

        Args:
            memory_limit_bytes: the most that `allocate` takes; None is all that the GPU has.

        Raises:
            DeviceError: no driver, a driver or GPU that is too old, no GPU, or no memory for the context.
        """
        self.driver = _driver()
        self.memory_limit_bytes = memory_limit_bytes
        self.checks_every_launch = False
        self._open = False
        handle = self.call("cuDeviceGet", ordinal)
        self._handle = handle
        name = bytes(self.call("cuDeviceGetName", 256, handle))
        self.name = name.split(b"\0")[0].decode("utf-8", "replace")
        self.driver_version = int(self.call("cuDriverGetVersion"))
        self.capability = (self._attribute("COMPUTE_CAPABILITY_MAJOR"), self._attribute("COMPUTE_CAPABILITY_MINOR"))
        if self.capability[0] * 10 + self.capability[1] < compiler.OLDEST_ARCH:
            major, minor = self.capability
            raise DeviceError(f"{self.name} has compute capability {major}.{minor}; 7.5 (Turing) or newer is needed")
        self.sm_count = self._attribute("MULTIPROCESSOR_COUNT")
        self.l2_bytes = self._attribute("L2_CACHE_SIZE")
        self.shared_bytes_per_block = self._attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")
        self.total_bytes = int(self.call("cuDeviceTotalMem", handle))
        before = self._outside_free_bytes()
        self._context = self.call("cuDevicePrimaryCtxRetain", handle)
        self._open = True
        try:
            self.call("cuCtxSetCurrent", self._context)
            self.stream = Stream(self)
        except DeviceError:
            self._release()
            raise
        self.context_bytes = max(0, before - self._outside_free_bytes()) if before else 0
        self.peak_bytes = 0
        self._large_bytes = self._small_bytes = 0
        self._buffers: set[DeviceBuffer | HostBuffer] = set()
        self._modules: dict[tuple[str, tuple[tuple[str, int], ...]], Any] = {}
        self._kernels: dict[tuple[str, str, tuple[tuple[str, int], ...]], Kernel] = {}

    def call(self, function: str, *arguments: Any) -> Any:
        """Calls the driver by name; returns its results. Sets the context in a thread that has none."""
        entry = getattr(self.driver, function)
        status, *results = entry(*arguments)
        if status == _INVALID_CONTEXT and self._open:
            self.driver.cuCtxSetCurrent(self._context)
            status, *results = entry(*arguments)
        return _check(self.driver, function, status, *results)

    @property
    def is_open(self) -> bool:
        """Whether the context still exists."""
        return self._open

    def _attribute(self, name: str) -> int:
        attribute = getattr(self.driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(self.call("cuDeviceGetAttribute", attribute, self._handle))

    def _outside_free_bytes(self) -> int:
        """Free memory as NVML sees it, which needs no context; 0 where it cannot be told."""
        try:
            import pynvml
        except ImportError:
            return 0
        address = bytes(self.call("cuDeviceGetPCIBusId", 32, self._handle)).split(b"\0")[0]
        try:
            pynvml.nvmlInit()
            try:
                return int(pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByPciBusId(address)).free)
            finally:
                pynvml.nvmlShutdown()
        except pynvml.NVMLError:
            return 0

    @property
    def overlaps(self) -> bool:
        """Whether a kernel may start while the one before it still runs."""
        return self.capability >= (9, 0)

    @property
    def allocated_bytes(self) -> int:
        return self._large_bytes + rounded_up(self._small_bytes, MEMORY_BLOCK)

    def free_bytes(self) -> int:
        """What can still be allocated: within the limit, and as the driver says now."""
        free = int(self.call("cuMemGetInfo")[0])
        if self.memory_limit_bytes is not None:
            free = min(free, self.memory_limit_bytes - self.allocated_bytes)
        return max(0, free)

    def allocate(self, nbytes: int) -> DeviceBuffer:
        """Device memory, 256-byte aligned, not initialized.

        Raises:
            OutOfDeviceMemory: it does not fit. Never spills into the host's memory, as drivers of Windows would.
        """
        large, small = block_bytes(nbytes)
        needed = (
            large + rounded_up(self._small_bytes + small, MEMORY_BLOCK) - rounded_up(self._small_bytes, MEMORY_BLOCK)
        )
        if needed > (free := self.free_bytes()):
            raise OutOfDeviceMemory(nbytes, free, self.memory_limit_bytes)
        try:
            pointer = int(self.call("cuMemAlloc", max(1, nbytes)))
        except DeviceError as error:
            if error.code == 2:
                raise OutOfDeviceMemory(nbytes, self.free_bytes(), self.memory_limit_bytes) from error
            raise
        buffer = DeviceBuffer(self, pointer, nbytes)
        self._buffers.add(buffer)
        self._large_bytes += large
        self._small_bytes += small
        self.peak_bytes = max(self.peak_bytes, self.allocated_bytes)
        return buffer

    def host_buffer(self, nbytes: int) -> HostBuffer:
        """Pinned host memory that kernels can read and write too. Raises DeviceError where there is none."""
        buffer = HostBuffer(self, nbytes)
        self._buffers.add(buffer)
        return buffer

    def forget(self, buffer: DeviceBuffer | HostBuffer) -> None:
        """Takes note that a buffer was freed."""
        self._buffers.discard(buffer)
        if isinstance(buffer, DeviceBuffer):
            large, small = block_bytes(buffer.nbytes)
            self._large_bytes -= large
            self._small_bytes -= small

    def kernel(self, source: str, name: str, **defines: int) -> Kernel:
        """A kernel of kernels/cuda, compiled for this GPU unless the cache has it, and loaded once.

        Args:
            source: file name.
            defines: macros that choose the variant.

        Raises:
            CompileError: it cannot be built.
            ContractError: its header is not complete.
            DeviceError: it cannot be loaded.
        """
        variant = tuple(sorted(defines.items()))
        kernel = self._kernels.get((source, name, variant))
        if kernel is None:
            module = self._modules.get((source, variant))
            if module is None:
                built = compiler.build(source, compiler.arch_for(self.capability), defines)
                module = self._modules[source, variant] = self.call("cuModuleLoadData", built.image)
            kernel = self._kernels[source, name, variant] = Kernel(self, module, source, name, defines)
        return kernel

    def new_stream(self) -> Stream:
        """Another stream, for copies beside the kernels."""
        return Stream(self)

    def close(self) -> None:
        """Frees all memory, modules and the context. Nothing of this device may be used afterwards."""
        if not self._open:
            return
        with contextlib.suppress(DeviceError):  # after a failed kernel every call fails; the process is told by then
            self.stream.synchronize()
            for buffer in tuple(self._buffers):
                buffer.free()
            for module in self._modules.values():
                self.call("cuModuleUnload", module)
            self.stream.close()
        self._kernels.clear()
        self._modules.clear()
        self._release()

    def _release(self) -> None:
        self._open = False
        with contextlib.suppress(DeviceError):  # what it fails with has been raised before
            self.call("cuDevicePrimaryCtxRelease", self._handle)
