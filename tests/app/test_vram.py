"""GPU readings: a sleeping GPU is never woken, and a machine without a driver is a plain answer."""

from __future__ import annotations

import types
from pathlib import Path

import pynvml
import pytest

from app.vram import GpuUnreadableError, nvidia_devices, read_gpus


def device(devices: Path, address: str, vendor: str, kind: str, state: str) -> None:
    folder = devices / address
    (folder / "power").mkdir(parents=True)
    (folder / "vendor").write_text(f"{vendor}\n")
    (folder / "class").write_text(f"{kind}\n")
    (folder / "power" / "runtime_status").write_text(f"{state}\n")


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A scripted NVML with one GPU; the list holds the names of the calls."""
    calls: list[str] = []

    def scripted(name: str, value: object):
        def call(*arguments: object) -> object:
            calls.append(name)
            if isinstance(value, Exception):
                raise value
            return value

        monkeypatch.setattr(pynvml, name, call)

    scripted("nvmlInit", None)
    scripted("nvmlShutdown", None)
    scripted("nvmlSystemGetDriverVersion", "580.1")
    scripted("nvmlDeviceGetCount", 1)
    scripted("nvmlDeviceGetHandleByIndex", "handle")
    scripted("nvmlDeviceGetName", "RTX 3050 Laptop")
    scripted("nvmlDeviceGetCudaComputeCapability", (8, 6))
    scripted("nvmlDeviceGetMemoryInfo", types.SimpleNamespace(total=4 << 30, free=3 << 30))
    return calls


def test_only_nvidia_display_devices_count(tmp_path: Path) -> None:
    device(tmp_path, "0000:00:02.0", "0x8086", "0x030000", "active")
    device(tmp_path, "0000:01:00.0", "0x10de", "0x030200", "suspended")
    device(tmp_path, "0000:01:00.1", "0x10de", "0x040300", "active")
    assert nvidia_devices(tmp_path) == {"0000:01:00.0": "suspended"}


def test_sleeping_gpu_is_not_asked(tmp_path: Path, nvml: list[str]) -> None:
    device(tmp_path, "0000:01:00.0", "0x10de", "0x030200", "suspended")
    with pytest.raises(GpuUnreadableError, match=r"0000:01:00\.0 is asleep"):
        read_gpus(tmp_path)
    assert nvml == []


def test_reading(tmp_path: Path, nvml: list[str]) -> None:
    device(tmp_path, "0000:01:00.0", "0x10de", "0x030200", "active")
    (gpu,) = read_gpus(tmp_path)
    assert (gpu.name, gpu.compute_capability, gpu.total_bytes, gpu.free_bytes) == (
        "RTX 3050 Laptop",
        (8, 6),
        4 << 30,
        3 << 30,
    )
    assert nvml[-1] == "nvmlShutdown"


def test_memory_that_the_driver_does_not_tell(tmp_path: Path, nvml: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(handle: object) -> object:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    monkeypatch.setattr(pynvml, "nvmlDeviceGetMemoryInfo", unsupported)
    assert read_gpus(tmp_path)[0].free_bytes is None


def test_no_driver_is_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlInit", missing)
    with pytest.raises(GpuUnreadableError, match="no NVIDIA driver answers"):
        read_gpus(tmp_path)
