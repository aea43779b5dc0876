"""GPU readings: a sleeping GPU is never woken, and a machine without a driver is a plain answer."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from pathlib import Path

import pynvml
import pytest

from app.memory.vram import (
    REST_S,
    RETRY_S,
    GpuMemory,
    GpuUnreadableError,
    GpuWatch,
    NoGpuError,
    nvidia_devices,
    read_gpus,
)
from tests.nvml_stub import library as stub_codes
from tests.nvml_stub.library import NvmlStub


def device(devices: Path, address: str, vendor: str, kind: str, state: str) -> None:
    folder = devices / address
    (folder / "power").mkdir(parents=True)
    (folder / "vendor").write_text(f"{vendor}\n")
    (folder / "class").write_text(f"{kind}\n")
    (folder / "power" / "runtime_status").write_text(f"{state}\n")
    (folder / "power" / "control").write_text("on\n")


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


class Gpu:
    """A GPU that a test puts to sleep, wakes and lets fail, and the watch over it."""

    def __init__(self, folder: Path, platform: str = "linux") -> None:
        self.folder = folder
        self.now_s = 100.0
        device(folder, "0000:01:00.0", "0x10de", "0x030200", "active")
        self.watch = GpuWatch(folder, platform, lambda: self.now_s, {"WINDIR": str(folder)})

    def set_power(self, state: str, control: str = "on") -> None:
        power = self.folder / "0000:01:00.0" / "power"
        (power / "runtime_status").write_text(f"{state}\n")
        (power / "control").write_text(f"{control}\n")

    def reason(self, is_resident: bool = True) -> str:
        with pytest.raises(GpuUnreadableError) as error:
            self.watch.read(is_resident)
        return str(error.value)


@pytest.fixture
def gpu(tmp_path: Path, nvml_stub: NvmlStub) -> Gpu:
    return Gpu(tmp_path)


def test_values_come_over_one_open_session(gpu: Gpu, nvml_stub: NvmlStub) -> None:
    assert gpu.watch.read(True) == GpuMemory("Stub GPU", 4 << 30, 1 << 30, None)
    nvml_stub.set_memory(4 << 30, 3 << 30)
    nvml_stub.set_own_process(2 << 30)
    assert gpu.watch.read(True) == GpuMemory("Stub GPU", 4 << 30, 3 << 30, 2 << 30)
    assert nvml_stub.sessions == 1
    gpu.watch.close()
    assert nvml_stub.sessions == 0


def test_other_processes_and_windows_tell_nothing_about_ours(gpu: Gpu, nvml_stub: NvmlStub) -> None:
    nvml_stub.set_process(os.getpid() + 1, 1 << 30)
    assert gpu.watch.read(True).process_bytes is None
    nvml_stub.set_own_process(None)
    assert gpu.watch.read(True).process_bytes is None
    nvml_stub.fail("nvmlDeviceGetComputeRunningProcesses_v3", stub_codes.NOT_SUPPORTED)
    assert gpu.watch.read(True).used_bytes == 1 << 30
    gpu.watch.close()


@pytest.mark.parametrize("state", ["suspended", "suspending"])
def test_no_call_reaches_a_gpu_that_sleeps(gpu: Gpu, nvml_stub: NvmlStub, state: str) -> None:
    gpu.set_power(state)
    for is_resident in (False, True):
        assert gpu.reason(is_resident) == "the NVIDIA GPU at 0000:01:00.0 is asleep and was not woken"
    assert nvml_stub.calls == 0
    gpu.set_power("active")
    assert gpu.watch.read(False).used_bytes == 1 << 30
    gpu.set_power(state)
    assert "asleep" in gpu.reason(False)
    assert nvml_stub.sessions == 0
    calls = nvml_stub.calls
    assert "asleep" in gpu.reason(False)
    assert nvml_stub.calls == calls


def test_a_gpu_that_may_sleep_is_not_kept_awake(gpu: Gpu, nvml_stub: NvmlStub) -> None:
    gpu.set_power("active", control="auto")
    gpu.watch.read(False)
    assert nvml_stub.sessions == 0
    calls = nvml_stub.calls
    gpu.now_s += REST_S - 1
    assert gpu.watch.read(False).used_bytes == 1 << 30
    assert nvml_stub.calls == calls
    gpu.watch.read(True)  # a model of ours keeps it awake anyway
    assert nvml_stub.calls > calls
    assert nvml_stub.sessions == 1
    gpu.watch.read(False)
    assert nvml_stub.sessions == 0


@pytest.mark.parametrize(
    ("call", "code", "reason"),
    [
        ("nvmlDeviceGetMemoryInfo", stub_codes.GPU_IS_LOST, "the NVIDIA driver failed (GPU is lost)"),
        ("nvmlDeviceGetCount_v2", stub_codes.GPU_IS_LOST, "the NVIDIA driver failed (GPU is lost)"),
        ("nvmlDeviceGetComputeRunningProcesses_v3", stub_codes.GPU_IS_LOST, "the NVIDIA driver failed (GPU is lost)"),
        ("nvmlInitWithFlags", stub_codes.LIBRARY_MISMATCH, "no NVIDIA driver answers"),
        ("nvmlInitWithFlags", stub_codes.DRIVER_NOT_LOADED, "no NVIDIA driver answers (Driver Not Loaded)"),
    ],
)
def test_a_failure_is_told_and_the_next_try_recovers(
    gpu: Gpu, nvml_stub: NvmlStub, call: str, code: int, reason: str
) -> None:
    gpu.watch.read(True)
    if call == "nvmlInitWithFlags":
        gpu.watch.close()
    nvml_stub.fail(call, code)
    assert gpu.reason().startswith(reason)
    calls = nvml_stub.calls
    assert gpu.reason().startswith(reason)
    assert nvml_stub.calls == calls  # not asked again at once
    nvml_stub.fail("", 0)
    gpu.now_s += RETRY_S
    assert gpu.watch.read(True).used_bytes == 1 << 30
    assert nvml_stub.sessions == 1
    gpu.watch.close()


def test_a_driver_that_is_gone_when_it_is_let_go_is_no_matter(gpu: Gpu, nvml_stub: NvmlStub) -> None:
    gpu.watch.read(True)
    nvml_stub.fail("nvmlShutdown", stub_codes.GPU_IS_LOST)
    gpu.watch.close()
    nvml_stub.fail("", 0)
    pynvml.nvmlShutdown()


def test_on_windows_only_a_gpu_with_a_model_of_ours_is_asked(tmp_path: Path, nvml_stub: NvmlStub) -> None:
    gpu = Gpu(tmp_path, "win32")
    with pytest.raises(NoGpuError, match="no NVIDIA driver is installed"):
        gpu.watch.read(False)
    (tmp_path / "System32").mkdir()
    (tmp_path / "System32" / "nvml.dll").touch()
    assert gpu.reason(False) == "the NVIDIA GPU may be asleep, and to ask it would wake it"
    assert nvml_stub.calls == 0
    assert gpu.watch.read(True).used_bytes == 1 << 30
    assert "asleep" in gpu.reason(False)
    assert nvml_stub.sessions == 0


def test_the_library_is_found_as_the_real_one_is(nvml_library: Path, project_root: Path) -> None:
    program = (
        "import ctypes; from app.memory.vram import read_gpus, GpuWatch;"
        "ctypes.CDLL('libnvidia-ml.so.1').stub_set_memory(ctypes.c_uint64(4 << 30), ctypes.c_uint64(1 << 30));"
        "(gpu,) = read_gpus(); print(gpu.name, gpu.compute_capability, gpu.free_bytes >> 30, gpu.driver);"
        "print(GpuWatch().read(False).used_bytes >> 30)"
    )
    environment = os.environ | {"LD_LIBRARY_PATH": str(nvml_library.parent)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=project_root, capture_output=True, text=True, timeout=30
    )
    assert done.stdout.splitlines() == ["Stub GPU (8, 6) 3 580.00 stub", "1"], done.stderr
