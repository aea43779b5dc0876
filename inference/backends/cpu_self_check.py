"""One small product of each weight kind against plain arithmetic, before the CPU kernels are trusted."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from inference.formats.model_source import WeightTensor
from kernels.cpu import layouts
from kernels.cpu.library import PackedLinear
from kernels.weights.reference import dequantize

_ROWS = 20
_TOLERANCE = 0.03
"""Of the result's size: activations of 8 bits are within 0.4 %, a wrong bit order is not within 30 %."""


class Linears(Protocol):
    """What is checked."""

    def linear_weight(self, parts: list[WeightTensor]) -> PackedLinear:
        """Packs."""
        ...

    def linear(self, x: NDArray[np.float32], weight: PackedLinear) -> NDArray[np.float32]:
        """Multiplies."""
        ...


def random_matrix(kind: str, n: int, k: int, seed: int) -> WeightTensor:
    """A matrix of random bits with sound scales: any block type, values of about 0.1."""
    rng = np.random.default_rng(seed)
    of_kind = layouts.KINDS[kind]
    if of_kind.dense:
        values = (0.1 * rng.standard_normal((n, k))).astype(np.float32)
        raw = {
            "f32": lambda: values.view(np.uint8),
            "f16": lambda: values.astype(np.float16).view(np.uint8),
            "bf16": lambda: np.ascontiguousarray(values.view(np.uint16).reshape(n, k, 2)[:, :, 1]).view(np.uint8),
        }[kind]()
        return WeightTensor("random", (n, k), kind, np.ascontiguousarray(raw).reshape(n, -1))
    blocks = rng.integers(0, 256, (n, k // of_kind.block, of_kind.file_bytes), dtype=np.uint8)
    for at, least, most in _SCALES[kind]:
        scales = rng.uniform(least, most, blocks.shape[:2]).astype(np.float16)
        blocks[:, :, at : at + 2] = scales[..., None].view(np.uint8)
    return WeightTensor("random", (n, k), kind, blocks.reshape(n, -1))


_SCALES: dict[str, list[tuple[int, float, float]]] = {
    "q4_0": [(0, -0.02, 0.02)],
    "q4_1": [(0, 0.0, 0.02), (2, -0.2, 0.0)],
    "q5_0": [(0, -0.01, 0.01)],
    "q5_1": [(0, 0.0, 0.01), (2, -0.2, 0.0)],
    "q8_0": [(0, -0.001, 0.001)],
    "q4_k": [(0, 0.0, 0.0004), (2, 0.0, 0.004)],
    "q5_k": [(0, 0.0, 0.0002), (2, 0.0, 0.004)],
    "q6_k": [(208, -0.0001, 0.0001)],
}


def fault(backend: Linears) -> str:
    """ "" where all kinds are right, else one line that says what is wrong."""
    rng = np.random.default_rng(1)
    for seed, kind in enumerate(layouts.KINDS):
        tensor = random_matrix(kind, _ROWS, 256, seed)
        weight = backend.linear_weight([tensor])
        exact = dequantize(kind, tensor.data, tensor.shape).astype(np.float64)
        for tokens in (1, 6):
            x = rng.standard_normal((tokens, 256)).astype(np.float32)
            wanted = x.astype(np.float64) @ exact.T
            found = backend.linear(x, weight)
            error = float(np.abs(found - wanted).max() / np.abs(wanted).max())
            if not error <= _TOLERANCE:
                return f"the kernel for {kind} is off by {error:.3g} of its result on this CPU (limit {_TOLERANCE})."
    return ""
