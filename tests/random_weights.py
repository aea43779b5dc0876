"""Random bytes of every kind of weight in a file, with scales that are numbers, and matrices of every tile format."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernels.weights.quant_format import BITS, GROUP_SIZES, QuantFormat, QuantizedMatrix
from kernels.weights.reference import BLOCK_LAYOUTS

FORMATS = [QuantFormat(bits, size, symmetric) for bits in BITS for size in GROUP_SIZES for symmetric in (True, False)]

FLOATS = ("f32", "f16", "bf16")

SCALE_BYTES = {
    "q4_0": (0,),
    "q4_1": (0, 2),
    "q5_0": (0,),
    "q5_1": (0, 2),
    "q8_0": (0,),
    "q4_k": (0, 2),
    "q5_k": (0, 2),
    "q6_k": (208,),
}
"""Where the float16 scales of a block begin: random bytes there would be infinite now and then."""

Scales = Callable[[np.random.Generator, int], NDArray[np.float64]]


def scales_of_a_model(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    """(count,), of either sign."""
    return rng.standard_normal(count) * 0.003


def random_weights(
    kind: str,
    rows: int,
    columns: int,
    rng: np.random.Generator,
    scales: Scales = scales_of_a_model,
    size: ArrayLike = 0.02,
) -> NDArray[np.uint8]:
    """Bytes (rows, row_bytes).

    Args:
        scales: makes those of blocks.
        size: standard deviation of floats, for all or (rows, 1).
    """
    if kind in FLOATS:
        values = (rng.standard_normal((rows, columns)) * size).astype(np.float32)
        if kind == "bf16":
            return (values.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
        return values.astype({"f32": np.float32, "f16": np.float16}[kind]).view(np.uint8)
    layout = BLOCK_LAYOUTS[kind]
    blocks = rng.integers(0, 256, (rows * columns // layout.values, layout.bytes), dtype=np.uint8)
    for start in SCALE_BYTES[kind]:
        blocks[:, start : start + 2] = scales(rng, len(blocks)).astype(np.float16)[:, None].view(np.uint8)
    return blocks.reshape(rows, -1)


def random_matrix(of_format: QuantFormat, rows: int, columns: int, seed: int = 0) -> QuantizedMatrix:
    """Any codes, scales and minima of size 1."""
    rng = np.random.default_rng(seed)
    low, high = of_format.limits
    shape = (rows, -(-columns // of_format.group_size))
    minima = None if of_format.symmetric else rng.normal(size=shape).astype(np.float16)
    codes = rng.integers(low, high + 1, (rows, columns), dtype=np.int8)
    return QuantizedMatrix(of_format, codes, rng.normal(size=shape).astype(np.float16), minima)
