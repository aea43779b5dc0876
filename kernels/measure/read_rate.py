"""How fast a GPU reads its memory: what every figure of a kernel that streams weights is compared with."""

from __future__ import annotations

import ctypes

import numpy as np

from kernels.compile.contracts import contract_of
from kernels.device.driver import Device

_BLOCK_BYTES = 1 << 30
_SEED_BYTES = 16 << 20
_THREADS = 512
_REPEATS = 10


class ReadRateArguments(ctypes.Structure):
    """Mirrors the struct of read_rate.cu."""

    _fields_ = (("data", ctypes.c_uint64), ("count", ctypes.c_uint64), ("out", ctypes.c_uint64))


def gpu_read_rate(device: Device | None = None) -> float:
    """Bytes per second: the best of a few passes over random bytes that no cache holds.

    Args:
        device: a GPU of the caller's; None opens the first one and closes it again.

    Raises:
        KernelError: no GPU, or no memory.
    """
    if device is not None:
        return _measure(device)
    own = Device()
    try:
        return _measure(own)
    finally:
        own.close()


def _measure(device: Device) -> float:
    nbytes = min(_BLOCK_BYTES, device.free_bytes() // 2) // _SEED_BYTES * _SEED_BYTES
    data = device.allocate(max(nbytes, _SEED_BYTES))
    out = device.allocate(16)
    try:
        device.stream.fill(data.pointer, 0, data.nbytes)
        seed = np.frombuffer(np.random.default_rng(0).bytes(_SEED_BYTES), np.uint8)
        for start in range(0, data.nbytes, _SEED_BYTES):
            device.stream.copy_to_device(data.pointer + start, seed, _SEED_BYTES)
        kernel = device.kernel("read_rate.cu", "read_rate")
        blocks = device.sm_count * kernel.max_blocks_per_sm(_THREADS, 0)
        arguments = ReadRateArguments(data.pointer, data.nbytes // 16, out.pointer)
        contract_of("read_rate.cu", "read_rate").check(arguments, {})
        best = float("inf")
        for _ in range(_REPEATS + 1):
            start_event = device.stream.record(timing=True)
            kernel.launch(arguments, blocks, _THREADS, overlap=False)
            end_event = device.stream.record(timing=True)
            end_event.synchronize()
            best = min(best, end_event.elapsed_ms(start_event))
    finally:
        data.free()
        out.free()
    return data.nbytes / (best / 1000.0)
