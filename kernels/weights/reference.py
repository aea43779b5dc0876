"""Dequantization of every weight kind in plain NumPy: the oracle that the C kernels are checked against.

A row of K weights is stored as K / block.values blocks, one after the other. Within a block the numbers are little
endian; `d` is the block's scale and `m` its offset, both float16. All arithmetic is float32, in the order that ggml
uses, so that the results are the same to the last bit.

    kind   values bytes  layout of a block                                      value
    q4_0       32    18  d, 16 bytes of nibbles                                 d (q - 8)
    q4_1       32    20  d, m, 16 bytes of nibbles                              d q + m
    q5_0       32    22  d, 32 fifth bits, 16 bytes of nibbles                  d (q - 16)
    q5_1       32    24  d, m, 32 fifth bits, 16 bytes of nibbles               d q + m
    q8_0       32    34  d, 32 int8                                             d q
    q4_k      256   144  d, dmin, 12 bytes of scales, 128 bytes of nibbles      (d sc) q - dmin mn
    q5_k      256   176  d, dmin, 12 bytes of scales, 32 of fifth bits, 128     (d sc) q - dmin mn
    q6_k      256   210  128 bytes of nibbles, 64 of high bits, 16 int8 sc, d   (d sc) (q - 32)

Nibbles of the 32-value kinds: byte j holds value j below and value j + 16 above.
Source of the layouts: ggml's block types.

Kinds like "w4g128" are the tiles of quant_format.py: a matrix of them has no rows of bytes, only whole tiles.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernels.weights.quant_format import QuantFormat, is_quant_format, unpack

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]


class BlockLayout(NamedTuple):
    """How many weights share one block, and how many bytes it takes."""

    values: int
    bytes: int


BLOCK_LAYOUTS: dict[str, BlockLayout] = {
    "f32": BlockLayout(1, 4),
    "f16": BlockLayout(1, 2),
    "bf16": BlockLayout(1, 2),
    "q4_0": BlockLayout(32, 18),
    "q4_1": BlockLayout(32, 20),
    "q5_0": BlockLayout(32, 22),
    "q5_1": BlockLayout(32, 24),
    "q8_0": BlockLayout(32, 34),
    "q4_k": BlockLayout(256, 144),
    "q5_k": BlockLayout(256, 176),
    "q6_k": BlockLayout(256, 210),
}


def row_bytes(kind: str, num_values: int) -> int:
    """Bytes of a row of `num_values` weights.

    Raises:
        ValueError: an unknown kind, or a width that is no multiple of the kind's block.
    """
    layout = BLOCK_LAYOUTS.get(kind)
    if layout is None:
        raise ValueError(f"The weight kind is {kind!r}, but it must be one of {', '.join(BLOCK_LAYOUTS)}.")
    if num_values % layout.values:
        raise ValueError(f"A row of {kind} has {num_values} weights, but it must be a multiple of {layout.values}.")
    return num_values // layout.values * layout.bytes


def tensor_bytes(kind: str, shape: tuple[int, ...]) -> int:
    """Bytes of a tensor of any kind, tiles included.

    Raises:
        ValueError: an unknown kind, a width that is no multiple of the kind's block, or tiles that are no matrix.
    """
    if is_quant_format(kind):
        if len(shape) != 2:
            raise ValueError(f"A {kind} tensor has the shape {shape}, but only a matrix can be made of tiles.")
        return QuantFormat.parse(kind).nbytes(*shape)
    return row_bytes(kind, shape[-1] if shape else 1) * math.prod(shape[:-1])


def dequantize(kind: str, data: Bytes, shape: tuple[int, ...]) -> Floats:
    """The weights of a tensor as float32.

    Args:
        kind: a key of BLOCK_LAYOUTS, or a name of quant_format.py.
        data: uint8, (N, row_bytes), or (1, bytes) for a vector: a WeightTensor's `data`. Any slice of rows will do. Of
            tiles only the number of bytes counts, and a slice is one of whole rows of tiles.
        shape: (N, K) or (N,).

    Returns:
        float32 of `shape`, in memory of its own.

    Raises:
        ValueError: an unknown kind, or bytes that do not fit the shape.
    """
    expected = tensor_bytes(kind, shape)
    if data.dtype != np.uint8 or data.size != expected:
        raise ValueError(
            f"A {kind} tensor of shape {shape} takes {expected} bytes of uint8,"
            f" but {data.size} of {data.dtype} were given."
        )
    if is_quant_format(kind):
        return unpack(QuantFormat.parse(kind), data.reshape(-1), *shape).dequantize()
    blocks = np.ascontiguousarray(data).reshape(-1, BLOCK_LAYOUTS[kind].bytes)
    return np.ascontiguousarray(_DEQUANTIZE[kind](blocks).reshape(shape), dtype=np.float32)


def _f32(blocks: Bytes) -> Floats:
    return blocks.view("<f4").astype(np.float32)


def _f16(blocks: Bytes) -> Floats:
    return blocks.view("<f2").astype(np.float32)


def _bf16(blocks: Bytes) -> Floats:
    # bfloat16 is the upper half of a float32.
    return (blocks.view("<u2").astype(np.uint32) << 16).view(np.float32)


def float16_at(blocks: Bytes, start: int) -> Floats:
    """The float16 at byte `start` of every block: (B, 1)."""
    return np.ascontiguousarray(blocks[:, start : start + 2]).view("<f2").astype(np.float32)


def nibbles(packed: Bytes) -> Floats:
    """(B, 16) bytes to (B, 32) values: all low nibbles, then all high ones."""
    return np.concatenate([packed & 0x0F, packed >> 4], axis=1).astype(np.float32)


def fifth_bits(packed: Bytes) -> Floats:
    """(B, 4) bytes to (B, 32): 16 where the bit of that value is set, else 0."""
    return np.unpackbits(packed, axis=1, bitorder="little").astype(np.float32) * np.float32(16)


def _q4_0(blocks: Bytes) -> Floats:
    return float16_at(blocks, 0) * (nibbles(blocks[:, 2:]) - np.float32(8))


def _q4_1(blocks: Bytes) -> Floats:
    return float16_at(blocks, 0) * nibbles(blocks[:, 4:]) + float16_at(blocks, 2)


def _q5_0(blocks: Bytes) -> Floats:
    quants = nibbles(blocks[:, 6:]) + fifth_bits(blocks[:, 2:6])
    return float16_at(blocks, 0) * (quants - np.float32(16))


def _q5_1(blocks: Bytes) -> Floats:
    quants = nibbles(blocks[:, 8:]) + fifth_bits(blocks[:, 4:8])
    return float16_at(blocks, 0) * quants + float16_at(blocks, 2)


def _q8_0(blocks: Bytes) -> Floats:
    return float16_at(blocks, 0) * blocks[:, 2:].view(np.int8).astype(np.float32)


def k_scales(packed: Bytes) -> tuple[Floats, Floats]:
    """(B, 12) bytes to the eight 6-bit scales and eight 6-bit minima of a q4_k or q5_k block, each (B, 8).

    Bytes 0-3 hold scales 0-3 in their low 6 bits, bytes 4-7 minima 0-3 likewise. Bytes 8-11 hold the low 4 bits of
    scales 4-7 below and of minima 4-7 above; the upper 2 bits of those lie in the upper 2 bits of bytes 0-3 and 4-7.
    """
    first, second, third = packed[:, 0:4], packed[:, 4:8], packed[:, 8:12]
    scales = np.concatenate([first & 0x3F, (third & 0x0F) | (first >> 6 << 4)], axis=1)
    minima = np.concatenate([second & 0x3F, (third >> 4) | (second >> 6 << 4)], axis=1)
    return scales.astype(np.float32), minima.astype(np.float32)


def _k_affine(blocks: Bytes, quants: Floats) -> Floats:
    """Scales and minima of a q4_k or q5_k block applied to its quants, (B, 8, 32)."""
    scales, minima = k_scales(blocks[:, 4:16])
    return (float16_at(blocks, 0) * scales)[:, :, None] * quants - (float16_at(blocks, 2) * minima)[:, :, None]


def k_nibbles(packed: Bytes) -> Bytes:
    """(B, 128) bytes to (B, 8, 32): each run of 32 bytes holds one group below and the next one above."""
    runs = packed.reshape(-1, 4, 32)
    return np.stack([runs & 0x0F, runs >> 4], axis=2).reshape(-1, 8, 32)


def _q4_k(blocks: Bytes) -> Floats:
    return _k_affine(blocks, k_nibbles(blocks[:, 16:]).astype(np.float32))


def _q5_k(blocks: Bytes) -> Floats:
    # Bit g of high byte j is the fifth bit of value j of group g.
    groups = np.arange(8, dtype=np.uint8)[None, :, None]
    fifth = blocks[:, None, 16:48] >> groups & 1
    return _k_affine(blocks, (k_nibbles(blocks[:, 48:]) | fifth << 4).astype(np.float32))


def _q6_k(blocks: Bytes) -> Floats:
    # Each half of 128 values has 64 bytes of nibbles and 32 bytes of high bits. Value 32 i + j takes its low nibble
    # from byte 32 (i % 2) + j (from its lower half where i < 2), and bits 2 i and 2 i + 1 of high byte j.
    low = blocks[:, :128].reshape(-1, 2, 1, 64)
    nibbles = np.concatenate([low & 0x0F, low >> 4], axis=2).reshape(-1, 2, 4, 32)
    shifts = np.arange(0, 8, 2, dtype=np.uint8)[None, None, :, None]
    high = blocks[:, 128:192].reshape(-1, 2, 1, 32) >> shifts & 3
    quants = (nibbles | high << 4).astype(np.float32) - np.float32(32)
    scales: Floats = float16_at(blocks, 208) * np.ascontiguousarray(blocks[:, 192:208]).view(np.int8).astype(np.float32)
    weights: Floats = scales[:, :, None] * quants.reshape(-1, 16, 16)
    return weights


_DEQUANTIZE: dict[str, Callable[[Bytes], NDArray[Any]]] = {
    "f32": _f32,
    "f16": _f16,
    "bf16": _bf16,
    "q4_0": _q4_0,
    "q4_1": _q4_1,
    "q5_0": _q5_0,
    "q5_1": _q5_1,
    "q8_0": _q8_0,
    "q4_k": _q4_k,
    "q5_k": _q5_k,
    "q6_k": _q6_k,
}
