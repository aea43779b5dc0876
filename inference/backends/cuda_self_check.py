"""A small product of each kind on the GPU against plain arithmetic, before its kernels are trusted."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernels.device.driver import Device
from kernels.launch.attention import Attention, AttentionShape
from kernels.launch.linear import DeviceMatrix, Linear
from kernels.launch.matmul import Activations, Matmul
from kernels.weights.quant_format import QuantFormat, QuantizedMatrix, pack

_ROWS, _COLUMNS = 48, 256
_TOLERANCE = 0.01
"""Of the result's size: rounding is a thousandth of that, a wrong bit order a hundred times more."""
_HEAD_DIM = 64
_LENGTH = 100
_PASSED: set[str] = set()
"""GPUs that were checked by this process: a second model need not find memory for it beside the first."""


def fault(device: Device) -> str:
    """ "" where all is right, else one line that says what is wrong."""
    key = f"{device.name} {device.capability} {device.driver_version}"
    if key not in _PASSED:
        reason = _products(device) or _attention(device)
        if reason:
            return reason
        _PASSED.add(key)
    return ""


def _off(what: str, device: Device, found: NDArray[np.float32], wanted: NDArray[np.float64]) -> str:
    error = float(np.abs(found - wanted).max() / np.abs(wanted).max())
    if error <= _TOLERANCE:
        return ""
    return f"{what} on {device.name} is off by {error:.3g} of its result (limit {_TOLERANCE})."


def _products(device: Device) -> str:
    """4-bit weights times one token, and times 20."""
    rng = np.random.default_rng(1)
    of_format = QuantFormat(4, 128)
    codes = rng.integers(-8, 8, (_ROWS, _COLUMNS)).astype(np.int8)
    scales = rng.uniform(0.5, 1.0, (_ROWS, _COLUMNS // 128)).astype(np.float16)
    matrix = QuantizedMatrix(of_format, codes, scales)
    x = rng.standard_normal((20, _COLUMNS)).astype(np.float32)
    wanted = x.astype(np.float64) @ matrix.dequantize().astype(np.float64).T
    tiles = pack(matrix)
    sizes = [tiles.nbytes, x.nbytes, 4 * 20 * _ROWS, Activations.nbytes_for(20, _COLUMNS)]
    buffers = [device.allocate(size) for size in sizes]
    try:
        weights, rows, out, digits = (buffer.pointer for buffer in buffers)
        buffers[0].upload(tiles)
        buffers[1].upload(x)
        on_device = DeviceMatrix(weights, _ROWS, _COLUMNS, of_format)
        Linear(device).matvec(rows, 1, on_device, out)
        reason = _off("The matrix-vector kernel", device, buffers[2].download(np.float32, (1, _ROWS)), wanted[:1])
        matmul, activations = Matmul(device), Activations(digits, sizes[3])
        matmul.quantize_rows(rows, 20, _COLUMNS, activations)
        matmul.matmul(activations, 20, on_device, out)
        return reason or _off("The matrix kernel", device, buffers[2].download(np.float32, (20, _ROWS)), wanted)
    finally:
        for buffer in buffers:
            buffer.free()


def _attention(device: Device) -> str:
    """One query over 100 positions, without rotation; the newest key and value are appended on the way."""
    rng = np.random.default_rng(2)
    keys, values = (rng.standard_normal((128, _HEAD_DIM)).astype(np.float16) for _ in range(2))
    query = rng.standard_normal(_HEAD_DIM).astype(np.float32)
    qkv = np.concatenate([query, keys[_LENGTH - 1], values[_LENGTH - 1]]).astype(np.float32)
    scores = keys[:_LENGTH].astype(np.float64) @ query / np.sqrt(_HEAD_DIM)
    weights = np.exp(scores - scores.max())
    wanted = (weights / weights.sum()) @ values[:_LENGTH].astype(np.float64)
    # What was not written yet must not matter.
    keys[_LENGTH - 1 :], values[_LENGTH - 1 :] = np.nan, np.nan
    pages = np.concatenate([keys.reshape(-1), values.reshape(2, 64, -1).transpose(0, 2, 1).reshape(-1)])
    numbers = np.zeros(3 * 64, np.int32)
    numbers[0], numbers[64], numbers[128:130] = _LENGTH - 1, _LENGTH, (0, 1)
    attention = Attention(device, AttentionShape(1, 1, _HEAD_DIM, 2, 1), np.zeros(_HEAD_DIM // 2), 1)
    buffers = [device.allocate(size) for size in (qkv.nbytes, pages.nbytes, numbers.nbytes, 4 * _HEAD_DIM)]
    try:
        for buffer, array in zip(buffers, (qkv, pages, numbers), strict=False):
            buffer.upload(array)
        rows, cache, at, out = (buffer.pointer for buffer in buffers)
        attention.decode(rows, 1, cache, cache + pages.nbytes // 2, at, at + 256, at + 512, out)
        return _off("The attention kernel", device, buffers[3].download(np.float32, _HEAD_DIM), wanted)
    finally:
        attention.close()
        for buffer in buffers:
            buffer.free()
