"""The device itself: memory and its accounting, launches, graphs, events."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernels.compile import compiler
from kernels.device.driver import Device, Kernel
from kernels.errors import DeviceError, OutOfDeviceMemory

MIB = 1 << 20
SOURCE = """\
// Computes: out[i] = x[i] * factor + SHIFT, by way of shared memory; `fail` writes far outside.
// Arguments: x, out, count, factor
// Requires: count >= 1; factor != 0
// Launch: grid (count / 256, rounded up), block 256
// Numerics: float32
// Oracle: NumPy
// Measured: nothing
// Source: written for this test
#include "device.cuh"
struct ScaleArguments {
  const float* x;
  float* out;
  int count;
  float factor;
};
extern "C" __global__ void scale(const __grid_constant__ ScaleArguments a) {
  let_next_start();
  wait_for_previous();
  extern __shared__ float staged[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  staged[threadIdx.x] = i < a.count ? a.x[i] : 0.f;
  __syncthreads();
  if (i < a.count) a.out[i] = staged[threadIdx.x] * a.factor + SHIFT;
}
extern "C" __global__ void fail(const __grid_constant__ ScaleArguments a) { a.out[1ll << 40] = 1.f; }
"""


class ScaleArguments(ctypes.Structure):
    _fields_ = [
        ("x", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("count", ctypes.c_int),
        ("factor", ctypes.c_float),
    ]


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kernels") / "scale.cu"
    path.write_text(SOURCE, encoding="ascii")
    return path


@pytest.fixture
def scale(device: Device, source: Path) -> Kernel:
    return device.kernel(str(source), "scale", SHIFT=0)


def test_the_gpu_is_described(device: Device) -> None:
    assert device.name
    assert device.capability >= (7, 5)
    assert device.sm_count > 0
    assert 48 * 1024 < device.shared_bytes_per_block <= 256 * 1024
    assert 0 < device.free_bytes() <= device.total_bytes
    assert device.l2_bytes > 0
    assert 0 <= device.context_bytes < 2 << 30


@pytest.mark.parametrize(
    "sizes",
    [[1000] * 5000, [65536] * 100, [MIB] * 33, [MIB + 1] * 20, [3 * MIB] * 17, [300 * MIB + 5, 700 * MIB]],
    ids=["1000", "64k", "1m", "1m+1", "3m", "large"],
)
def test_accounts_agree_with_the_driver(device: Device, scale: Kernel, sizes: list[int]) -> None:
    device.stream.synchronize()
    counted, free = device.allocated_bytes, device.free_bytes()
    buffers = [device.allocate(size) for size in sizes]
    counted, taken = device.allocated_bytes - counted, free - device.free_bytes()
    for buffer in buffers:
        buffer.free()
    assert counted == pytest.approx(taken, rel=0.03, abs=2 * MIB)
    assert all(buffer.pointer == 0 for buffer in buffers)
    assert device.free_bytes() >= free - 2 * MIB


def test_a_limit_holds(device: Device) -> None:
    small = Device(memory_limit_bytes=64 * MIB)
    try:
        kept = small.allocate(40 * MIB)
        assert small.free_bytes() == 24 * MIB
        with pytest.raises(OutOfDeviceMemory, match=r"30\.0 MiB .* 24\.0 MiB of a limit of 64 MiB") as caught:
            small.allocate(30 * MIB)
        assert (caught.value.wanted_bytes, caught.value.free_bytes) == (30 * MIB, 24 * MIB)
        kept.free()
        small.allocate(64 * MIB)
        assert small.peak_bytes == 64 * MIB
    finally:
        small.close()
    assert device.allocate(1).pointer % 256 == 0  # the context is still there


def test_more_than_the_gpu_has_is_refused(device: Device) -> None:
    with pytest.raises(OutOfDeviceMemory, match="close other programs"):
        device.allocate(device.total_bytes + 1)


@pytest.mark.parametrize("shared_bytes", [1024, 60 * 1024])
def test_a_kernel_runs(
    device: Device, source: Path, guarded: Callable[..., Any], rng: np.random.Generator, shared_bytes: int
) -> None:
    x = rng.standard_normal(1001, np.float32)
    given, out = guarded(x), guarded(x.nbytes)
    kernel = device.kernel(str(source), "scale", SHIFT=3)
    kernel.launch(ScaleArguments(given.pointer, out.pointer, x.size, 2.0), 4, 256, shared_bytes)
    np.testing.assert_array_equal(out.download(np.float32, x.size), x * np.float32(2) + np.float32(3))
    assert kernel.registers > 0
    assert kernel.local_bytes == 0
    assert kernel.max_blocks_per_sm(256, shared_bytes) >= 1
    assert device.kernel(str(source), "scale", SHIFT=3) is kernel


def test_ptx_runs_where_the_compiler_is_older_than_the_gpu(
    device: Device, source: Path, guarded: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiler, "arch_for", lambda capability: "compute_75")
    x = np.arange(256, dtype=np.float32)
    given, out = guarded(x), guarded(x.nbytes)
    device.kernel(str(source), "scale", SHIFT=7).launch(
        ScaleArguments(given.pointer, out.pointer, 256, 1.0), 1, 256, 1024, overlap=False
    )
    np.testing.assert_array_equal(out.download(np.float32, 256), x + 7)


@pytest.mark.parametrize("overlap", [True, False])
def test_kernels_that_depend_on_each_other(
    device: Device, scale: Kernel, guarded: Callable[..., Any], overlap: bool
) -> None:
    """Each doubles what the one before wrote, eager and as a graph; a late start must not read old values."""
    x = np.ones(100_000, np.float32)
    pair = [guarded(x), guarded(x.nbytes)]
    arguments = [ScaleArguments(pair[i].pointer, pair[1 - i].pointer, x.size, 2.0) for i in (0, 1)]

    def chain() -> None:
        for step in range(50):
            scale.launch(arguments[step % 2], (391, 1), 256, 1024, overlap=overlap)

    chain()
    np.testing.assert_array_equal(pair[0].download(np.float32, x.size), np.full(x.size, 2.0**50, np.float32))
    with device.stream.capture() as graph:
        chain()
    np.testing.assert_array_equal(pair[0].download(np.float32, x.size), np.full(x.size, 2.0**50, np.float32))
    pair[0].upload(x)
    graph.launch()
    graph.launch()
    np.testing.assert_array_equal(pair[0].download(np.float32, x.size), np.full(x.size, 2.0**100, np.float32))
    graph.close()
    with pytest.raises(DeviceError, match="closed"):
        graph.launch()


def test_a_capture_that_breaks_leaves_the_stream_usable(device: Device, scale: Kernel) -> None:
    with pytest.raises(KeyError), device.stream.capture():
        raise KeyError
    device.stream.synchronize()
    with pytest.raises(DeviceError), device.stream.capture():
        device.stream.synchronize()
    device.stream.synchronize()


def test_events(device: Device, guarded: Callable[..., Any]) -> None:
    memory = guarded(256 * MIB)
    first = device.stream.record(timing=True)
    device.stream.copy(memory.pointer, memory.pointer + 128 * MIB, 128 * MIB)
    last = device.stream.record(timing=True)
    plain = device.stream.record()
    last.synchronize()
    assert last.query()
    assert 0.005 < last.elapsed_ms(first) < 1000
    beside = device.new_stream()
    beside.wait(plain)
    beside.fill(memory.pointer, 7, 5)
    beside.record(plain)
    beside.synchronize()
    assert plain.query()
    assert memory.download(np.uint8, 6).tolist() == [7, 7, 7, 7, 7, 255]
    beside.close()


def test_host_buffers(device: Device, scale: Kernel, guarded: Callable[..., Any]) -> None:
    host, out = device.host_buffer(4096), guarded(4096)
    numbers = host.array.view(np.float32)
    numbers[:] = np.arange(1024)
    scale.launch(ScaleArguments(host.device_pointer, host.device_pointer, 1000, 3.0), 4, 256, 1024)
    device.stream.copy_to_device(out.pointer, host, 4092, offset=4)
    device.stream.copy_to_device(out.pointer + 4092, np.float32([5]), 4)
    device.stream.synchronize()
    expected = np.arange(1024, dtype=np.float32)
    expected[:1000] *= 3
    np.testing.assert_array_equal(numbers, expected)
    np.testing.assert_array_equal(out.download(np.float32, 1024), np.append(expected[1:], np.float32(5)))
    device.stream.copy_to_host(host, out.pointer, 8, offset=16)
    device.stream.synchronize()
    assert numbers[4:6].tolist() == [3.0, 6.0]
    with pytest.raises(ValueError, match="outside"):
        device.stream.copy_to_device(out.pointer, host, 4096, offset=4)
    host.free()


def test_another_thread_may_launch(device: Device, scale: Kernel, guarded: Callable[..., Any]) -> None:
    x = np.arange(256, dtype=np.float32)
    given, out = guarded(x), guarded(x.nbytes)
    arguments = ScaleArguments(given.pointer, out.pointer, 256, 2.0)
    thread = threading.Thread(target=scale.launch, args=(arguments, 1, 256, 1024))
    thread.start()
    thread.join()
    np.testing.assert_array_equal(out.download(np.float32, 256), 2 * x)


def test_impossible_launches_are_explained(device: Device, scale: Kernel, source: Path) -> None:
    arguments = ScaleArguments(0, 0, 1, 1.0)
    with pytest.raises(DeviceError, match=r"scale .* of shared memory"):
        scale.launch(arguments, 1, 256, 300 * 1024)
    with pytest.raises(DeviceError, match="grid of 0 x 1 x 1"):
        scale.launch(arguments, 0, 256)
    with pytest.raises(DeviceError, match="cuModuleGetFunction"):
        device.kernel(str(source), "missing", SHIFT=0)


def test_a_kernel_that_fails_is_an_error_with_its_cure(device: Device, source: Path) -> None:
    """In a process of its own: the context is lost."""
    code = """
    import sys
    from kernels.device.driver import Device
    from test_device import ScaleArguments
    device = Device()
    out = device.allocate(4)
    device.kernel(sys.argv[1], "fail", SHIFT=0).launch(ScaleArguments(0, out.pointer, 1, 1.0), 1, 32)
    try:
        device.stream.synchronize()
    except Exception as error:
        print(type(error).__name__, error)
    device.close()
    """
    paths = [str(Path(__file__).parent), str(compiler.SOURCE_DIR.parent.parent)]
    code = f"import sys; sys.path[:0] = {paths}\n" + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", code, str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "DeviceError cuStreamSynchronize failed" in done.stdout
    assert "outside its memory" in done.stdout
