"""The CPU kernels for tests: each variant that this machine runs, with small helpers around its operations."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from inference.backends.cpu_self_check import random_matrix
from kernels.cpu import compiler as cpu_compiler
from kernels.cpu import library as lib
from kernels.weights.reference import dequantize

F32 = NDArray[np.float32]
CANARY = 3


class Kernels:
    """One library with a thread pool and a workspace."""

    def __init__(self, variant: cpu_compiler.CpuVariant, threads: int) -> None:
        self.variant = variant
        self.library = lib.load_library(variant)
        self.pool = self.library.pool_create(threads)
        self.threads: int = self.library.pool_threads(self.pool)
        self.arena = lib.Arena()
        self.step = lib.StepStruct()
        self.space(80, 1024, 1, 64)

    def space(self, max_tokens: int, max_k: int, kv_heads: int, head_dim: int) -> None:
        self.workspace = lib.Workspace(self.pool, self.threads, max_tokens, max_k, kv_heads, head_dim)

    def run(self, **fields: Any) -> None:
        op = lib.OpStruct(**fields)
        self.library.run_ops(ctypes.byref(self.workspace.struct), ctypes.byref(self.step), ctypes.byref(op), 1)

    def pack(self, shapes: Sequence[tuple[str, int, int]], bias: bool = False, seed: int = 0) -> tuple[Any, list[Any]]:
        """A packed weight of random parts (kind, n, k), and the exact float64 parts with their biases."""
        matrices, exact, biases = [], [], []
        for index, (kind, n, k) in enumerate(shapes):
            tensor = random_matrix(kind, n, k, seed + index)
            matrices.append(lib.FileMatrix(kind, n, k, tensor.data))
            biases.append(np.random.default_rng(seed + index).standard_normal(n).astype(np.float32))
            weight = dequantize(kind, tensor.data, (n, k)).astype(np.float64)
            exact.append((weight, biases[-1] if bias else np.zeros(n)))
        return lib.pack_linear(self.library, self.pool, self.arena, matrices, biases if bias else ()), exact

    def linear(self, x: F32, weight: Any, mode: int = lib.LINEAR_STORE, out: F32 | None = None) -> F32:
        """Multiplies into a poisoned output between canaries and checks that these live."""
        assert x.shape[0] <= self.workspace.max_tokens
        assert x.shape[1] <= self.workspace.max_k
        columns = weight.columns // (2 if mode == lib.LINEAR_GATED else 1)
        fenced = np.full((len(x) + 2 * CANARY, columns), np.nan, np.float32)
        inner = fenced[CANARY:-CANARY]
        if out is not None:
            inner[:] = out
        self.run(
            kind=lib.OP_LINEAR,
            m=len(x),
            mode=mode,
            a=x.ctypes.data,
            b=ctypes.addressof(weight.struct),
            out=inner.ctypes.data,
            stride=x.shape[1],
            out_stride=columns,
        )
        assert np.isnan(fenced[:CANARY]).all()
        assert np.isnan(fenced[-CANARY:]).all()
        return inner


def quantized(x: F32) -> NDArray[np.float64]:
    """What the kernels multiply instead of x: 8 bits in groups of 32."""
    groups = x.reshape(len(x), -1, 32)
    top = np.abs(groups).max(axis=2, keepdims=True)
    inverse = np.divide(np.float32(127), top, out=np.zeros_like(top), where=top > 0)
    return (np.rint(groups * inverse).astype(np.float64) * (top / np.float32(127))).reshape(x.shape)


VARIANTS = [variant for variant in cpu_compiler.VARIANTS if variant.level <= cpu_compiler.cpu_level()]


@pytest.fixture(params=VARIANTS, ids=lambda variant: variant.name)
def kernels(request: pytest.FixtureRequest) -> Iterator[Kernels]:
    """Each variant with two threads."""
    made = Kernels(request.param, 2)
    yield made
    made.library.pool_destroy(made.pool)


@pytest.fixture
def quantize() -> Callable[[F32], NDArray[np.float64]]:
    """See `quantized`."""
    return quantized


@pytest.fixture
def with_threads() -> Iterator[Callable[[cpu_compiler.CpuVariant, int], Kernels]]:
    """Kernels with any number of threads."""
    made: list[Kernels] = []

    def make(variant: cpu_compiler.CpuVariant, threads: int) -> Kernels:
        made.append(Kernels(variant, threads))
        return made[-1]

    yield make
    for one in made:
        one.library.pool_destroy(one.pool)
