"""Cost of decode attention among the kernels of a token: `python -m kernels.measure.attention_benchmark [--tokens M]`.

Attention overlaps its neighbours, so it is timed in their company: the layers of Qwen2.5-3B and 7B as one graph, each
with weights, norms, biases and a cache of its own, once without attention and then with it at several lengths of the
context. Each figure is a median over replays.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from kernels.device.driver import Device
from kernels.device.memory import DeviceBuffer
from kernels.launch.attention import PAGE_SIZE, Attention, AttentionShape
from kernels.launch.linear import DeviceMatrix
from kernels.measure.gpu_benchmark import MODELS, Bench, Model

CONTEXTS = (64, 128, 512, 2048, 8192, 32768)
HEADS = {"3B w4": (16, 2), "7B mixed": (28, 4)}
"""Query and KV heads, of 128 dimensions."""

_HEAD_DIM = 128
_ROPE_THETA = 1e6
_EPS = 1e-6


class Chain:
    """The layers of one token of a model on a device, without embedding, head and sampling."""

    def __init__(self, bench: Bench, of_model: Model, heads: tuple[int, int], most_context: int) -> None:
        device, rows = bench.device, bench.tokens
        self._bench, self._rows, self.layers = bench, rows, of_model.layers
        self._buffers: list[DeviceBuffer] = []
        rng = np.random.default_rng(0)
        pages = -(-most_context // PAGE_SIZE)
        shape = AttentionShape(*heads, _HEAD_DIM, pages, of_model.layers)
        inv_freq = _ROPE_THETA ** (-np.arange(0, _HEAD_DIM, 2) / _HEAD_DIM)
        self._attention = Attention(device, shape, inv_freq, rows)
        qkv, _, gate_up, _ = of_model.products
        self._hidden = self._array(rng.standard_normal((rows, qkv.columns)))
        self._qkv = self._array(np.zeros((rows, qkv.rows)))
        self._attended = self._array(rng.standard_normal((rows, heads[0] * _HEAD_DIM)))
        self._gated = self._array(np.zeros((rows, gate_up.rows // 2)))
        self._matrices: list[list[DeviceMatrix]] = []
        self._norms: list[tuple[int, int]] = []
        self._caches: list[tuple[int, int]] = []
        cache = rng.standard_normal(pages * shape.page_bytes // 2).astype(np.float16)
        for _ in range(of_model.layers):
            made = [bench.matrix(product) for product in of_model.products]
            self._buffers += [buffer for buffer, _ in made]
            bias = self._array(np.zeros(qkv.rows))
            matrices = [matrix for _, matrix in made]
            self._matrices.append([replace(matrices[0], bias_pointer=bias), *matrices[1:]])
            self._norms.append((self._array(np.ones(qkv.columns)), self._array(np.ones(qkv.columns))))
            self._caches.append((self._bytes(cache), self._bytes(cache)))
        self._positions, self._lengths = self._bytes(np.zeros(rows, np.int32)), self._bytes(np.zeros(rows, np.int32))
        # Pages lie as they do after some use: in no order.
        self._tables = self._bytes(np.tile(rng.permutation(pages).astype(np.int32), (rows, 1)))

    def _bytes(self, array: np.ndarray) -> int:
        buffer = self._bench.device.allocate(array.nbytes)
        buffer.upload(array)
        self._buffers.append(buffer)
        return buffer.pointer

    def _array(self, array: np.ndarray) -> int:
        return self._bytes(array.astype(np.float32))

    def set_context(self, tokens: int) -> None:
        """All rows have so many tokens, the one that is computed among them."""
        stream = self._bench.device.stream
        for pointer, value in ((self._positions, tokens - 1), (self._lengths, tokens)):
            stream.copy_to_device(pointer, np.full(self._rows, value, np.int32), 4 * self._rows)
        stream.synchronize()

    def queue(self, attention: bool) -> None:
        """Queues the layers."""
        linear, rows = self._bench.linear, self._rows
        for (qkv, out, gate_up, down), (first, second), (keys, values) in zip(
            self._matrices, self._norms, self._caches, strict=True
        ):
            linear.matvec(self._hidden, rows, qkv, self._qkv, norm=first, eps=_EPS)
            if attention:
                self._attention.decode(
                    self._qkv, rows, keys, values, self._positions, self._lengths, self._tables, self._attended,
                    early=True,
                )  # fmt: skip
            linear.matvec(self._attended, rows, out, self._hidden, epilogue="add", residual=self._hidden)
            linear.matvec(self._hidden, rows, gate_up, self._gated, norm=second, eps=_EPS, epilogue="gated")
            linear.matvec(self._gated, rows, down, self._hidden, epilogue="add", residual=self._hidden)

    def close(self) -> None:
        """Frees everything."""
        for buffer in self._buffers:
            buffer.free()
        self._attention.close()


def report(bench: Bench, write: Callable[[str], Any], models: tuple[Model, ...] = MODELS) -> None:
    """Writes the table: microseconds a layer."""
    write(f"{bench.device.name}, {bench.tokens} tokens; us a layer\n")
    write(f"{'model':9} {'products':>9} " + " ".join(f"{f'at {context}':>9}" for context in CONTEXTS) + "\n")
    for of_model in models:
        chain = Chain(bench, of_model, HEADS[of_model.name], max(CONTEXTS))
        try:
            alone = bench.milliseconds(lambda chain=chain: chain.queue(False)) * 1000 / chain.layers  # type: ignore[misc]
            cells = [f"{alone:9.2f}"]
            for context in CONTEXTS:
                chain.set_context(context)
                both = bench.milliseconds(lambda chain=chain: chain.queue(True)) * 1000 / chain.layers  # type: ignore[misc]
                cells.append(f"{both - alone:+9.2f}")
            write(f"{of_model.name:9} " + " ".join(cells) + "\n")
        finally:
            chain.close()


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="python -m kernels.measure.attention_benchmark")
    parser.add_argument("--tokens", type=int, default=1, help="rows that decode together")
    device = Device()
    try:
        report(Bench(device, parser.parse_args().tokens), sys.stdout.write)
    finally:
        device.close()


if __name__ == "__main__":
    main()
