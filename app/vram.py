"""NVIDIA GPUs and their memory, read through NVML without ever waking a GPU that sleeps."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_PCI_DEVICES = Path("/sys/bus/pci/devices")
_NVIDIA_VENDOR = "0x10de"
_DISPLAY_CLASS = "0x03"


@dataclass(frozen=True, slots=True)
class GpuReading:
    """One GPU. Sizes in bytes; free memory is None where the driver does not tell."""

    name: str
    compute_capability: tuple[int, int]
    total_bytes: int
    free_bytes: int | None
    driver: str


class GpuUnreadableError(Exception):
    """No reading: no driver, or a GPU that sleeps and stays asleep. The message says which."""


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
    asleep = [address for address, state in nvidia_devices(devices).items() if state == "suspended"]
    if asleep:
        raise GpuUnreadableError(f"the NVIDIA GPU at {asleep[0]} is asleep and was not woken")
    try:
        import pynvml
    except ImportError as error:
        raise GpuUnreadableError(f"the package nvidia-ml-py is missing ({error})") from error
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise GpuUnreadableError(f"no NVIDIA driver answers ({error})") from error
    try:
        driver = str(pynvml.nvmlSystemGetDriverVersion())
        return [_read(index, driver) for index in range(pynvml.nvmlDeviceGetCount())]
    except pynvml.NVMLError as error:
        raise GpuUnreadableError(f"the NVIDIA driver failed ({error})") from error
    finally:
        pynvml.nvmlShutdown()


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
