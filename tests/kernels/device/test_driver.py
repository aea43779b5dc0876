"""driver.py without a GPU: what users are told, how memory is counted, what a launch hands to the driver."""

from __future__ import annotations

import ctypes
import enum
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cuda.bindings import nvrtc

from kernels.device import driver as cuda_driver
from kernels.device.driver import Device
from kernels.errors import ContractError, DeviceError, OutOfDeviceMemory

MIB = 1 << 20


class Result(enum.IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_NO_DEVICE = 100
    CUDA_ERROR_INVALID_CONTEXT = 201
    CUDA_ERROR_NOT_READY = 600
    CUDA_ERROR_ILLEGAL_ADDRESS = 700
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803


class Names:
    """Any constant, as its own name."""

    def __getattr__(self, name: str) -> str:
        return name


class FakeDriver:
    """The calls that the device makes.

    Attributes:
        fails: {function: code} of calls that fail from now on.
        calls: names, in order.
        copied: (address, bytes) of each copy to the device.
        launches: (grid, block, dynamic shared memory, attributes, bytes of the arguments) of each launch.
    """

    CU_MEMHOSTALLOC_PORTABLE = 1
    CU_MEMHOSTALLOC_DEVICEMAP = 2
    CUresult = Result

    def __init__(self) -> None:
        self.capability = (8, 6)
        self.version = 12080
        self.total = 4096 * MIB
        self.fails: dict[str, int] = {}
        self.calls: list[str] = []
        self.launches: list[tuple[Any, ...]] = []
        self.argument_bytes = 0
        self.memory: dict[int, int] = {}
        self.host_memory: list[Any] = []
        self.copied: list[tuple[int, bytes]] = []
        self._next = 1 << 32
        for name in ("CUdevice_attribute", "CUfunction_attribute", "CUstream_flags", "CUevent_flags",
                     "CUstreamCaptureMode", "CUlaunchAttributeID"):  # fmt: skip
            setattr(self, name, Names())
        self.CUlaunchConfig = SimpleNamespace
        self.CUlaunchAttribute = lambda: SimpleNamespace(value=SimpleNamespace())

    def __getattr__(self, name: str) -> Callable[..., tuple[Any, ...]]:
        """A call without an answer of its own succeeds and gives a handle."""
        if not name.startswith("cu"):
            raise AttributeError(name)

        def call(*arguments: Any) -> tuple[Any, ...]:
            self.calls.append(name)
            if name in self.fails:
                return (Result(self.fails[name]), None)
            answer = getattr(self, f"_{name}", None)
            return (Result.CUDA_SUCCESS, *answer(*arguments)) if answer else (Result.CUDA_SUCCESS, 1)

        return call

    def cuGetErrorString(self, code: Result) -> tuple[Result, bytes]:
        return Result.CUDA_SUCCESS, f"text of {code.name}".encode()

    def _cuDriverGetVersion(self) -> tuple[int]:
        return (self.version,)

    def _cuDeviceGetName(self, length: int, device: int) -> tuple[bytes]:
        return (b"Fake GPU".ljust(length, b"\0"),)

    def _cuDeviceGetPCIBusId(self, length: int, device: int) -> tuple[bytes]:
        return (b"0000:ff:00.0".ljust(length, b"\0"),)

    def _cuDeviceGetAttribute(self, name: str, device: int) -> tuple[int]:
        major, minor = self.capability
        special = {"MAJOR": major, "MINOR": minor, "OPTIN": 99 * 1024}
        return (special.get(name.rsplit("_", 1)[1], 16),)

    def _cuDeviceTotalMem(self, device: int) -> tuple[int]:
        return (self.total,)

    def _cuMemGetInfo(self) -> tuple[int, int]:
        return self.total - sum(self.memory.values()), self.total

    def _cuMemAlloc(self, nbytes: int) -> tuple[int]:
        self._next += -(-nbytes // 512) * 512
        self.memory[self._next] = nbytes
        return (self._next,)

    def _cuMemFree(self, pointer: int) -> tuple[()]:
        del self.memory[pointer]
        return ()

    def _cuStreamSynchronize(self, stream: Any) -> tuple[()]:
        return ()

    def _cuMemHostAlloc(self, nbytes: int, flags: int) -> tuple[int]:
        self.host_memory.append(ctypes.create_string_buffer(nbytes))
        return (ctypes.addressof(self.host_memory[-1]),)

    def _cuMemHostGetDevicePointer(self, pointer: int, flags: int) -> tuple[int]:
        return (pointer + (1 << 50),)

    def _cuMemcpyHtoDAsync(self, dst: int, src: int, nbytes: int, stream: Any) -> tuple[()]:
        self.copied.append((dst, ctypes.string_at(src, nbytes)))
        return ()

    def _cuMemcpyDtoHAsync(self, dst: int, src: int, nbytes: int, stream: Any) -> tuple[()]:
        ctypes.memset(dst, 7, nbytes)
        return ()

    def _cuEventElapsedTime(self, start: Any, end: Any) -> tuple[float]:
        return (2.5,)

    def _cuFuncGetAttribute(self, name: str, function: Any) -> tuple[int]:
        return (1024 if "SHARED" in name else 40,)

    def _cuLaunchKernelEx(self, config: Any, function: Any, parameters: int, extra: int) -> tuple[()]:
        address = ctypes.c_void_p.from_address(parameters).value
        assert address
        grid = (config.gridDimX, config.gridDimY, config.gridDimZ)
        attributes = [attribute.id for attribute in getattr(config, "attrs", [])]
        given = ctypes.string_at(address, self.argument_bytes)
        self.launches.append((grid, config.blockDimX, config.sharedMemBytes, attributes, given))
        return ()


SOURCE = """\
// Computes: out[0] = factor
// Arguments: out, count, factor
// Requires: 1 <= count <= LIMIT
// Launch: one block
// Numerics: exact
// Oracle: none
// Measured: nothing
// Source: written for this test
struct OneArguments { float* out; int count; float factor; };
extern "C" __global__ void one(const __grid_constant__ OneArguments a) { a.out[0] = a.factor; }
"""


class OneArguments(ctypes.Structure):
    _fields_ = (("out", ctypes.c_void_p), ("count", ctypes.c_int), ("factor", ctypes.c_float))


@pytest.fixture
def fake(monkeypatch):
    driver = FakeDriver()
    driver.argument_bytes = ctypes.sizeof(OneArguments)
    monkeypatch.setitem(sys.modules, "cuda.bindings", SimpleNamespace(driver=driver, nvrtc=nvrtc))
    cuda_driver._driver.cache_clear()
    yield driver
    cuda_driver._driver.cache_clear()


@pytest.fixture
def kernel(fake, tmp_path, monkeypatch):
    """A kernel of a fake device; compiled as always, by the real compiler."""
    path = tmp_path / "one.cu"
    path.write_text(SOURCE)
    return Device().kernel(str(path), "one", LIMIT=5)


# -- what users are told ----------------------------------------------------------------------------------------------


def test_bindings_that_are_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    cuda_driver._driver.cache_clear()
    with pytest.raises(DeviceError, match=r"cuda-bindings is missing .* pip install 'deskinfer\[cuda\]'"):
        Device()


def test_a_driver_that_is_not_installed(fake, monkeypatch):
    def missing(flags):
        raise RuntimeError('"cuda" is an NVIDIA driver library and can only be found via system search')

    monkeypatch.setattr(fake, "cuInit", missing, raising=False)
    with pytest.raises(DeviceError, match=r"^no NVIDIA driver was found,.*\. If this machine has one, install"):
        Device()


@pytest.mark.parametrize(
    ("function", "code", "message"),
    [
        ("cuInit", 100, r"cuInit failed: text of CUDA_ERROR_NO_DEVICE \(CUDA error 100\)\. No NVIDIA GPU is visible"),
        ("cuInit", 803, "restart the computer"),
        ("cuDevicePrimaryCtxRetain", 2, "Close other programs that use the GPU"),
    ],
)
def test_a_call_that_fails_is_named_with_its_cure(fake, function, code, message):
    fake.fails[function] = code
    with pytest.raises(DeviceError, match=message) as caught:
        Device()
    assert caught.value.code == code


def test_a_driver_that_is_too_old(fake):
    fake.version = 11080
    with pytest.raises(DeviceError, match=r"supports CUDA 11\.8 and 12\.0 is needed"):
        Device()


def test_a_gpu_that_is_too_old(fake):
    fake.capability = (6, 1)
    with pytest.raises(DeviceError, match=r"Fake GPU has compute capability 6\.1; 7\.5"):
        Device()
    assert "cuDevicePrimaryCtxRetain" not in fake.calls


def test_a_context_is_given_back_where_the_device_cannot_be_used(fake):
    fake.fails["cuStreamCreate"] = 2
    with pytest.raises(DeviceError, match="cuStreamCreate"):
        Device()
    assert fake.calls.count("cuDevicePrimaryCtxRelease") == 1


# -- memory -----------------------------------------------------------------------------------------------------------


def test_memory_is_counted_in_blocks_of_the_driver(fake):
    device = Device()
    large = [device.allocate(2 * MIB + 1), device.allocate(MIB + 1), device.allocate(2 * MIB)]
    assert device.allocated_bytes == (4 + 2 + 2) * MIB
    small = [device.allocate(1) for _ in range(4096)]  # 512 bytes each: together one block
    assert device.allocated_bytes == 10 * MIB
    small.append(device.allocate(512))
    assert device.allocated_bytes == device.peak_bytes == 12 * MIB
    for buffer in [*large, *small]:
        buffer.free()
        buffer.free()
    assert device.allocated_bytes == 0
    assert device.peak_bytes == 12 * MIB
    assert fake.memory == {}


def test_a_limit_is_a_limit(fake):
    device = Device(memory_limit_bytes=10 * MIB)
    kept = device.allocate(7 * MIB)
    assert device.free_bytes() == 2 * MIB
    with pytest.raises(OutOfDeviceMemory, match=r"3\.0 MiB of GPU memory .* 2\.0 MiB of a limit of 10 MiB are free"):
        device.allocate(3 * MIB)
    device.allocate(2 * MIB)
    assert device.free_bytes() == 0
    with pytest.raises(OutOfDeviceMemory):
        device.allocate(1)
    kept.free()
    device.allocate(1)


def test_nothing_is_taken_beyond_what_is_free(fake):
    """Windows' driver would take it from the computer's memory instead, and be slow."""
    device = Device()
    fake.memory[1] = fake.total - 5 * MIB  # another program's
    with pytest.raises(OutOfDeviceMemory) as caught:
        device.allocate(6 * MIB)
    assert (caught.value.wanted_bytes, caught.value.free_bytes, caught.value.limit_bytes) == (6 * MIB, 5 * MIB, None)
    assert "cuMemAlloc" not in fake.calls


def test_memory_that_is_gone_meanwhile(fake):
    device = Device()
    fake.fails["cuMemAlloc"] = 2
    with pytest.raises(OutOfDeviceMemory):
        device.allocate(MIB)
    assert device.allocated_bytes == 0


def test_close_frees_all_memory_once(fake):
    device = Device()
    buffer = device.allocate(5)
    device.close()
    device.close()
    assert fake.memory == {}
    assert buffer.pointer == 0
    assert fake.calls.count("cuDevicePrimaryCtxRelease") == 1


def test_close_works_after_a_kernel_has_failed(fake):
    device = Device()
    device.allocate(5)
    fake.fails.update(dict.fromkeys(("cuStreamSynchronize", "cuMemFree", "cuStreamDestroy"), 700))
    device.close()
    assert fake.calls[-1] == "cuDevicePrimaryCtxRelease"


# -- copies, events, graphs -------------------------------------------------------------------------------------------


def test_copies_stay_inside_their_buffers(fake):
    device = Device()
    buffer, host = device.allocate(16), device.host_buffer(16)
    host.array[:] = range(16)
    stream = device.stream
    stream.copy_to_device(buffer.pointer, host, 4, offset=12)
    stream.copy_to_device(buffer.pointer, np.arange(4, dtype=np.uint8), 2, offset=1)
    buffer.upload(np.arange(8, dtype=np.uint8)[::2], offset=12)
    assert fake.copied == [
        (buffer.pointer, bytes([12, 13, 14, 15])),
        (buffer.pointer, bytes([1, 2])),
        (buffer.pointer + 12, bytes([0, 2, 4, 6])),
    ]
    stream.copy_to_host(host, buffer.pointer, 2, offset=3)
    assert host.array.tolist()[:6] == [0, 1, 2, 7, 7, 5]
    assert buffer.download(np.uint16, (2, 3)).tolist() == [[0x0707] * 3] * 2
    for refused in (
        lambda: stream.copy_to_device(buffer.pointer, host, 5, offset=12),
        lambda: stream.copy_to_host(host, buffer.pointer, 1, offset=-1),
        lambda: stream.copy_to_device(buffer.pointer, np.zeros(8, np.uint8)[::2], 4),
        lambda: buffer.upload(np.zeros(5, np.uint8), offset=12),
        lambda: buffer.download(np.float64, 3),
    ):
        with pytest.raises(ValueError, match=r"lie outside of a buffer|contiguous"):
            refused()
    assert host.device_pointer == host.pointer + (1 << 50)
    host.free()
    host.free()
    assert host.array.size == 0
    assert fake.calls.count("cuMemFreeHost") == 1


def test_an_event_that_is_not_reached_is_no_error(fake):
    device = Device()
    event = device.stream.record()
    assert event.query()
    fake.fails["cuEventQuery"] = 600
    assert not event.query()
    fake.fails["cuEventQuery"] = 700
    with pytest.raises(DeviceError, match="outside its memory"):
        event.query()
    assert device.stream.record(event) is event
    assert event.elapsed_ms(event) == 2.5
    assert fake.calls.count("cuEventCreate") == 1
    event.close()
    event.close()
    assert fake.calls.count("cuEventDestroy") == 1


def test_a_capture_becomes_a_graph(fake):
    stream = Device().stream
    with stream.capture() as graph:
        assert fake.calls[-1] == "cuStreamBeginCapture"
        with pytest.raises(DeviceError, match="never captured"):
            graph.launch()
    assert fake.calls[-3:] == ["cuStreamEndCapture", "cuGraphInstantiate", "cuGraphDestroy"]
    graph.launch()
    graph.close()
    graph.close()
    assert fake.calls[-2:] == ["cuGraphLaunch", "cuGraphExecDestroy"]
    with pytest.raises(DeviceError, match="closed"):
        graph.launch()


def test_what_breaks_a_capture_is_raised_and_ends_it(fake):
    stream = Device().stream
    fake.fails["cuStreamEndCapture"] = 700
    with pytest.raises(KeyError, match="mine"), stream.capture():
        raise KeyError("mine")
    assert fake.calls[-1] == "cuStreamEndCapture"


def test_a_graph_that_the_driver_refuses(fake):
    stream = Device().stream
    fake.fails["cuGraphInstantiate"] = 2
    with pytest.raises(DeviceError, match="cuGraphInstantiate"), stream.capture():
        pass
    assert fake.calls[-1] == "cuGraphDestroy"
    fake.fails["cuGraphLaunch"] = 700
    del fake.fails["cuGraphInstantiate"]
    with stream.capture() as graph:
        pass
    with pytest.raises(DeviceError, match="cuGraphLaunch"):
        graph.launch()


# -- launches ---------------------------------------------------------------------------------------------------------


def test_a_launch_hands_over_the_bytes_of_the_struct(fake, kernel):
    arguments = OneArguments(4096, 3, 2.5)
    kernel.launch(arguments, 7, 128)
    kernel.launch(arguments, (2, 3), 64, 512)
    assert fake.launches == [
        ((7, 1, 1), 128, 0, [], bytes(arguments)),
        ((2, 3, 1), 64, 512, [], bytes(arguments)),
    ]


@pytest.mark.parametrize(
    ("capability", "overlap", "expected"), [((8, 9), True, 0), ((9, 0), True, 1), ((9, 0), False, 0)]
)
def test_kernels_overlap_where_the_gpu_can(fake, tmp_path, capability, overlap, expected):
    fake.capability = capability
    (tmp_path / "one.cu").write_text(SOURCE)
    kernel = Device().kernel(str(tmp_path / "one.cu"), "one", LIMIT=5)
    kernel.launch(OneArguments(0, 1, 0), 1, 32, overlap=overlap)
    attributes = fake.launches[0][3]
    assert attributes == ["CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION"] * expected


def test_the_first_launch_of_a_size_is_checked(fake, kernel):
    arguments = OneArguments(4096, 6, 2.5)
    with pytest.raises(ContractError, match=r"requires 1 <= count <= LIMIT; given: LIMIT = 5, count = 6"):
        kernel.launch(arguments, 1, 32)
    arguments.count = 5
    kernel.launch(arguments, 1, 32)
    arguments.count = 6
    kernel.launch(arguments, 1, 32)  # not checked again
    kernel._device.checks_every_launch = True
    with pytest.raises(ContractError):
        kernel.launch(arguments, 1, 32)
    assert len(fake.launches) == 2


def test_a_struct_that_differs_from_the_kernels_is_refused(fake, kernel):
    class Swapped(ctypes.Structure):
        _fields_ = (("out", ctypes.c_void_p), ("factor", ctypes.c_float), ("count", ctypes.c_int))

    with pytest.raises(ContractError, match="Swapped has the field factor"):
        kernel.launch(Swapped(0, 1.0, 1), 1, 32)


@pytest.mark.parametrize(
    ("grid", "block", "shared_bytes", "message"),
    [
        (0, 32, 0, "grid of 0 x 1 x 1 blocks of 32"),
        ((1, 65536), 32, 0, "65536"),
        (1, 1025, 0, "of 1025 threads"),
        (1, 32, 98 * 1024 + 1, "101377 bytes of shared memory and Fake GPU has 101376"),
    ],
)
def test_impossible_launches(fake, kernel, grid, block, shared_bytes, message):
    with pytest.raises(DeviceError, match=message):
        kernel.launch(OneArguments(0, 1, 0), grid, block, shared_bytes)
    assert fake.launches == []


def test_a_launch_that_the_driver_refuses_names_the_kernel(fake, kernel):
    fake.fails["cuLaunchKernelEx"] = 700
    with pytest.raises(DeviceError, match=r"kernel one of .*one\.cu: cuLaunchKernelEx failed: .* outside its memory"):
        kernel.launch(OneArguments(0, 1, 0), 1, 32)


def test_a_thread_without_a_context_gets_it(fake, kernel, monkeypatch):
    def needs_context(*arguments):
        if fake.calls[-1] != "cuCtxSetCurrent":
            return (Result.CUDA_ERROR_INVALID_CONTEXT,)
        return (0,)

    fake.calls.append("something else")
    kernel._launch = needs_context
    monkeypatch.setattr(fake, "cuLaunchKernelEx", needs_context, raising=False)
    kernel.launch(OneArguments(0, 1, 0), 1, 32)
    assert fake.calls[-1] == "cuCtxSetCurrent"
