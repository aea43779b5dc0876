"""Whether this machine has an NVIDIA GPU at all, told without waking it and without loading its driver."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_DRIVER_FILES = ("/proc/driver/nvidia/version", "/dev/nvidiactl", "/usr/lib/wsl/lib/libcuda.so.1")
_PCI_DEVICES = Path("/sys/bus/pci/devices")
_VENDOR = "0x10de"
_DISPLAY_CLASS = "0x03"


def has_nvidia_gpu(driver_files: tuple[str, ...] = _DRIVER_FILES, devices: Path = _PCI_DEVICES) -> bool:
    """True where a driver is installed, or a GPU is there whose driver is missing."""
    if sys.platform == "win32":
        return (Path(os.environ.get("SYSTEMROOT", r"C:\Windows")) / "System32" / "nvcuda.dll").exists()
    return any(Path(file).exists() for file in driver_files) or any(map(_is_nvidia_gpu, _entries(devices)))


def _entries(devices: Path) -> list[Path]:
    try:
        return list(devices.iterdir())
    except OSError:
        return []


def _is_nvidia_gpu(device: Path) -> bool:
    try:
        vendor = (device / "vendor").read_text(encoding="ascii").strip()
        return vendor == _VENDOR and (device / "class").read_text(encoding="ascii").startswith(_DISPLAY_CLASS)
    except (OSError, ValueError):
        return False
