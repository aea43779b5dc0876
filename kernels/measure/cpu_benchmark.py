"""Speed of the CPU kernels alone: `python -m kernels.measure.cpu_benchmark [--threads N] [--variant avx2]`.

Weights of each kind are read in turns from 256 MB, more than any cache holds, by one token; many tokens multiply one
matrix; a matrix is rounded to some of the tile formats. Every figure is the best of several runs, so that other
programs disturb it less.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from kernels.cpu import compiler as cpu_compiler
from kernels.cpu import layouts
from kernels.cpu import library as lib
from kernels.weights.quant_format import QuantFormat
from kernels.weights.rounding import GroupRounder

_K = 1536
_READ_BYTES = 256 << 20
_MANY_TOKENS = 512
_ROUNDED_FORMATS = ("w3g128", "w4g128", "w4g32", "w4g32m", "w8g128")


def _best_seconds(run: Callable[[], None], repeats: int) -> float:
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


class _Bench:
    def __init__(self, variant: cpu_compiler.CpuVariant, threads: int) -> None:
        self.library = lib.load_library(variant)
        self.pool = self.library.pool_create(threads)
        self.workspace = lib.Workspace(self.pool, threads, _MANY_TOKENS, _K, 1, 64)
        self.step = lib.StepStruct()
        self.held: list[Any] = []

    def operations(self, weights: list[lib.PackedLinear], tokens: int) -> Callable[[], None]:
        x = np.random.default_rng(0).standard_normal((tokens, _K)).astype(np.float32)
        out = np.zeros((tokens, weights[0].columns), np.float32)
        ops: Any = (lib.OpStruct * len(weights))()
        for op, weight in zip(ops, weights, strict=True):
            op.kind, op.m, op.mode = lib.OP_LINEAR, tokens, lib.LINEAR_STORE
            op.a, op.b, op.out = x.ctypes.data, ctypes.addressof(weight.struct), out.ctypes.data
            op.stride, op.out_stride = _K, weight.columns

        def run() -> None:
            self.library.run_ops(ctypes.byref(self.workspace.struct), ctypes.byref(self.step), ops, len(ops))

        self.held = [*self.held[-1:], (x, out, ops)]
        return run

    def measure(self, kind: str) -> tuple[float, float]:
        """GB/s of one token, and 10^9 operations a second of many."""
        n = 2048
        data = np.zeros(n * layouts.row_bytes(kind, _K), np.uint8)
        matrix, arena = lib.FileMatrix(kind, n, _K, data), lib.Arena()
        copies = max(1, _READ_BYTES // layouts.packed_bytes(kind, n, _K))
        weights = [lib.pack_linear(self.library, self.pool, arena, [matrix]) for _ in range(copies)]
        read = sum(weight.num_bytes for weight in weights) / _best_seconds(self.operations(weights, 1), 10)
        many = 2.0 * _MANY_TOKENS * n * _K / _best_seconds(self.operations(weights[:1], _MANY_TOKENS), 5)
        return read / 1e9, many / 1e9

    def jobs(self) -> float:
        """Microseconds of a job of two empty chunks."""
        counts = np.zeros(2, np.int32)
        return 1e6 * _best_seconds(lambda: self.library.pool_count(self.pool, counts.ctypes.data, 2, 1000), 20) / 1000


def rounding_speed(variant: cpu_compiler.CpuVariant, threads: int, name: str) -> float:
    """10^6 weights a second, with all candidate scales tried."""
    weights = np.random.default_rng(0).standard_normal((2048, 2048)).astype(np.float32)
    rounder = GroupRounder(threads, variant)
    try:
        return weights.size / 1e6 / _best_seconds(lambda: _drop(rounder.round(weights, QuantFormat.parse(name))), 5)
    finally:
        rounder.close()


def _drop(_: object) -> None:
    """A result that nobody needs."""


def main() -> None:
    """Prints one line for each kind."""
    parser = argparse.ArgumentParser(prog="python -m kernels.measure.cpu_benchmark")
    parser.add_argument("--threads", type=int, default=lib.physical_cores())
    parser.add_argument("--variant", default=cpu_compiler.best_variant().name)
    options = parser.parse_args()
    bench = _Bench(cpu_compiler.variant(options.variant), options.threads)
    write = sys.stdout.write
    write(f"{options.variant}, {options.threads} threads; an empty job: {bench.jobs():.2f} us\n")
    write("kind   one token, GB/s   512 tokens, GOP/s\n")
    for kind in layouts.KINDS:
        read, many = bench.measure(kind)
        write(f"{kind:5}  {read:15.1f}   {many:17.0f}\n")
    bench.library.pool_destroy(bench.pool)
    write("format  rounded, 10^6 weights/s\n")
    for name in _ROUNDED_FORMATS:
        write(f"{name:7} {rounding_speed(cpu_compiler.variant(options.variant), options.threads, name):8.0f}\n")


if __name__ == "__main__":
    main()
