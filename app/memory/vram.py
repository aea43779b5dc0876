"""NVIDIA GPUs and their memory, read through NVML without ever waking a GPU that sleeps."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.translation import UserText

_PCI_DEVICES = Path("/sys/bus/pci/devices")
_NVIDIA_VENDOR = "0x10de"
_DISPLAY_CLASS = "0x03"
# Words of power/runtime_status; any question wakes a GPU in these states.
_ASLEEP = ("suspended", "suspending")
# A GPU that the kernel may put to sleep is left alone for so long between two readings while no model of ours lies on
# it: each reading counts as use, and a meter must not keep it awake.
REST_S = 20.0
# After a failure; a driver that is being updated comes back after some seconds.
RETRY_S = 5.0


@dataclass(frozen=True, slots=True)
class GpuReading:
    """One GPU. Sizes in bytes; free memory is None where the driver does not tell."""

    name: str
    compute_capability: tuple[int, int]
    total_bytes: int
    free_bytes: int | None
    driver: str


class GpuUnreadableError(Exception):
    """No reading: no driver, or a GPU that sleeps and stays asleep. The message says which.

    Attributes:
        text: the message, for the user.
    """

    def __init__(self, text: UserText) -> None:
        self.text = text
        super().__init__(str(text))


class NoGpuError(GpuUnreadableError):
    """There is no NVIDIA GPU that a program could ask for its memory, and there will be none."""


def nvidia_devices(devices: Path = _PCI_DEVICES) -> dict[str, str]:
    """{PCI address: power state} of NVIDIA's display devices, as the Linux kernel knows them; {} on other systems."""
    found = {}
    for device in sorted(devices.glob("*")):
        if _line(device / "vendor") == _NVIDIA_VENDOR and _line(device / "class").startswith(_DISPLAY_CLASS):
            found[device.name] = _line(device / "power" / "runtime_status") or "unknown"
    return found


def _line(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def read_gpus(devices: Path = _PCI_DEVICES) -> list[GpuReading]:
    """Reads all GPUs; [] where the driver knows none.

    Raises:
        GpuUnreadableError: NVML is missing or fails, or a GPU is suspended: asking it anything would wake it.
    """
    _refuse_sleeper(devices)
    pynvml = _open_nvml()
    try:
        driver = str(pynvml.nvmlSystemGetDriverVersion())
        return [_read(index, driver) for index in range(pynvml.nvmlDeviceGetCount())]
    except pynvml.NVMLError as error:
        raise _failure(error) from error
    finally:
        _close_nvml(pynvml)


def _refuse_sleeper(devices: Path) -> None:
    for address, state in nvidia_devices(devices).items():
        if state in _ASLEEP:
            raise GpuUnreadableError(
                UserText("the NVIDIA GPU at {address} is asleep and was not woken", address=address)
            )


def _open_nvml() -> Any:
    """Imports and opens NVML, which may take some milliseconds; gives the module."""
    try:
        import pynvml
    except ImportError as error:
        raise NoGpuError(UserText("the package nvidia-ml-py is missing ({reason})", reason=error)) from error
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        kind = NoGpuError if error.value in (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND,) else GpuUnreadableError
        raise kind(UserText("no NVIDIA driver answers ({reason})", reason=error)) from error
    return pynvml


def _close_nvml(pynvml: Any) -> None:
    try:
        pynvml.nvmlShutdown()
    except pynvml.NVMLError:  # the driver went away under us: there is nothing left to close
        return


def _failure(error: Exception) -> GpuUnreadableError:
    return GpuUnreadableError(UserText("the NVIDIA driver failed ({reason})", reason=error))


def _read(index: int, driver: str) -> GpuReading:
    from pynvml import (
        NVMLError,
        nvmlDeviceGetCudaComputeCapability,
        nvmlDeviceGetHandleByIndex,
        nvmlDeviceGetMemoryInfo,
        nvmlDeviceGetName,
    )

    handle = nvmlDeviceGetHandleByIndex(index)
    major, minor = nvmlDeviceGetCudaComputeCapability(handle)
    try:
        memory = nvmlDeviceGetMemoryInfo(handle)
        total, free = int(memory.total), int(memory.free)
    except NVMLError:  # integrated GPUs share the system's memory
        total, free = 0, None
    return GpuReading(str(nvmlDeviceGetName(handle)), (int(major), int(minor)), total, free, driver)


@dataclass(frozen=True, slots=True)
class GpuMemory:
    """Memory of one GPU at one moment, in bytes.

    Attributes:
        used_bytes: by all programs and the driver together.
        process_bytes: by this process, as the driver counts; None where it does not tell (Windows, some containers).
    """

    name: str
    total_bytes: int
    used_bytes: int
    process_bytes: int | None


class GpuWatch:
    """Reads a GPU's memory again and again over one open NVML. One thread only.

    A GPU that sleeps is never asked: Linux tells its power state beside NVML; Windows does not, so there a GPU is asked
    only while a model of ours lies on it, which keeps it awake anyway.
    """

    def __init__(
        self,
        devices: Path = _PCI_DEVICES,
        platform: str = sys.platform,
        clock: Callable[[], float] = time.monotonic,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._devices, self._platform, self._clock, self._environment = devices, platform, clock, environment
        self._nvml: Any = None
        self._last: GpuMemory | GpuUnreadableError | None = None
        self._rest_until = 0.0
        self._was_resident = False

    def read(self, is_resident: bool) -> GpuMemory:
        """The GPU that this process uses, else the first one.

        Args:
            is_resident: whether a model of ours lies on it.

        Raises:
            NoGpuError: there is none to be asked, now and later.
            GpuUnreadableError: it sleeps, or the driver failed; ask again later.
        """
        if is_resident != self._was_resident:
            self._was_resident, self._rest_until = is_resident, 0.0
        self._refuse(is_resident)
        now = self._clock()
        if self._last is None or now >= self._rest_until:
            self._last = self._outcome()
            self._rest_until = now + self._pause_s(is_resident)
        if isinstance(self._last, GpuUnreadableError):
            raise self._last
        return self._last

    def close(self) -> None:
        """Closes NVML; the next reading opens it again."""
        if self._nvml is not None:
            _close_nvml(self._nvml)
        self._nvml, self._last = None, None

    def _refuse(self, is_resident: bool) -> None:
        try:
            _refuse_sleeper(self._devices)
            if self._platform == "win32":
                self._refuse_on_windows(is_resident)
        except GpuUnreadableError:
            self.close()
            raise

    def _refuse_on_windows(self, is_resident: bool) -> None:
        library = Path(self._environment.get("WINDIR", "C:/Windows")) / "System32" / "nvml.dll"
        if not is_resident and not library.exists():
            raise NoGpuError(UserText("no NVIDIA driver is installed"))
        if not is_resident:
            raise GpuUnreadableError(UserText("the NVIDIA GPU may be asleep, and to ask it would wake it"))

    def _outcome(self) -> GpuMemory | GpuUnreadableError:
        try:
            if self._nvml is None:
                self._nvml = _open_nvml()
        except GpuUnreadableError as error:
            return error
        try:
            return _memory(self._nvml)
        except self._nvml.NVMLError as error:
            self.close()
            return _failure(error)

    def _pause_s(self, is_resident: bool) -> float:
        if isinstance(self._last, GpuUnreadableError):
            return RETRY_S
        if is_resident or not may_sleep(self._devices):
            return 0.0
        if self._nvml is not None:
            _close_nvml(self._nvml)
            self._nvml = None
        return REST_S


def may_sleep(devices: Path = _PCI_DEVICES) -> bool:
    """Whether the Linux kernel puts an NVIDIA GPU to sleep when nobody uses it."""
    return any(_line(devices / address / "power" / "control") == "auto" for address in nvidia_devices(devices))


def _memory(pynvml: Any) -> GpuMemory:
    handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
    if not handles:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
    own = [_own_bytes(pynvml, handle) for handle in handles]
    chosen = next((index for index, count in enumerate(own) if count is not None), 0)
    memory = pynvml.nvmlDeviceGetMemoryInfo(handles[chosen])
    name = str(pynvml.nvmlDeviceGetName(handles[chosen]))
    return GpuMemory(name, int(memory.total), int(memory.used), own[chosen])


def _own_bytes(pynvml: Any, handle: Any) -> int | None:
    """What this process has on a GPU; None where it has nothing there or the driver does not tell."""
    try:
        processes = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
    except pynvml.NVMLError as error:
        if error.value in (
            pynvml.NVML_ERROR_NOT_SUPPORTED,
            pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
            pynvml.NVML_ERROR_NO_PERMISSION,
        ):
            return None
        raise
    counts = [process.usedGpuMemory for process in processes if process.pid == os.getpid()]
    return int(counts[0]) if counts and counts[0] is not None else None
