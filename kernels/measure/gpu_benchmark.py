"""Speed of the matrix-vector kernel alone: `python -m kernels.measure.gpu_benchmark --tokens N`, or with `--help`.

Shapes of Qwen2.5-3B at 4 bits and of 7B at 4 and 3 bits. Each figure is the median over replays of a graph that reads
copies of a matrix in turns, more than any cache holds; "a token" is all layers and the head in one graph, attention
left out. With `--sms` everything runs on a partition of the GPU (a green context), as a small card would have; with
`--shared-kib` a block takes no more shared memory than there.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.device.driver import Device
from kernels.device.memory import DeviceBuffer
from kernels.device.stream import Graph, Stream
from kernels.launch.linear import DeviceMatrix, Linear
from kernels.weights.quant_format import QuantFormat

_SEED_BYTES = 8 << 20
_ROTATED_BYTES = 256 << 20
_EPS = 1e-6


@dataclass(frozen=True, slots=True)
class Product:
    """One matrix of a model and how its result is used."""

    name: str
    rows: int
    columns: int
    format: str
    epilogue: str = "store"
    norm: bool = False

    @property
    def nbytes(self) -> int:
        return QuantFormat.parse(self.format).nbytes(self.rows, self.columns)


@dataclass(frozen=True, slots=True)
class Model:
    """The products of a model: those of a layer, how many layers, the head."""

    name: str
    layers: int
    products: tuple[Product, ...]
    head: Product

    @property
    def nbytes(self) -> int:
        return self.layers * sum(product.nbytes for product in self.products) + self.head.nbytes


def model(
    name: str, layers: int, hidden: int, inner: int, qkv: int, vocabulary: int, attention: str, mlp: str
) -> Model:
    """A model of that shape; `attention` and `mlp` are formats, the head has that of the MLP."""
    return Model(
        name,
        layers,
        (
            Product("qkv", qkv, hidden, attention, norm=True),
            Product("o", hidden, hidden, attention, "add"),
            Product("gate/up", 2 * inner, hidden, mlp, "gated", True),
            Product("down", hidden, inner, mlp, "add"),
        ),
        Product("head", vocabulary, hidden, mlp, norm=True),
    )


MODELS = (
    model("3B w4", 36, 2048, 11008, 2560, 151936, "w4g128", "w4g128"),
    model("7B mixed", 28, 3584, 18944, 4608, 152064, "w4g128", "w3g128"),
)


class Partition(Stream):
    """A stream that uses a part of the SMs only."""

    def __init__(self, device: Device, sms: int) -> None:
        """Splits off at least `sms` SMs. Raises DeviceError where the driver cannot (before CUDA 12.4)."""
        driver = device.driver
        whole = device.call("cuDeviceGetDevResource", 0, driver.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM)
        groups, _, _ = device.call("cuDevSmResourceSplitByCount", 1, whole, 0, sms)
        described = device.call("cuDevResourceGenerateDesc", [groups[0]], 1)
        flags = driver.CUgreenCtxCreate_flags.CU_GREEN_CTX_DEFAULT_STREAM
        context = device.call("cuGreenCtxCreate", described, 0, flags)
        self._device = device
        self.sm_count = int(groups[0].sm.smCount)
        self.handle = device.call("cuGreenCtxStreamCreate", context, driver.CUstream_flags.CU_STREAM_NON_BLOCKING, 0)


class Bench:
    """Buffers for the largest product, and the stream on which everything is timed."""

    def __init__(self, device: Device, tokens: int, sms: int = 0) -> None:
        self.device, self.tokens = device, tokens
        self.stream: Stream = device.stream
        self.sm_count = device.sm_count
        if sms:
            self.stream = partition = Partition(device, sms)
            self.sm_count = partition.sm_count
        self.linear = Linear(device, self.sm_count, self.stream)
        rng = np.random.default_rng(0)
        self.x, self.out = device.allocate(tokens * 32768 * 4), device.allocate(tokens * 160000 * 4)
        self.norm = device.allocate(32768 * 4)
        self.x.upload(rng.standard_normal(tokens * 32768).astype(np.float32))
        self.norm.upload(rng.uniform(0.5, 1.5, 32768).astype(np.float32))
        self.seeds: dict[str, DeviceBuffer] = {}

    def matrix(self, product: Product) -> tuple[DeviceBuffer, DeviceMatrix]:
        """Random weights with scales that are numbers."""
        of_format = QuantFormat.parse(product.format)
        if product.format not in self.seeds:
            rng = np.random.default_rng(1)
            count = _SEED_BYTES // of_format.tile_bytes
            tiles = np.frombuffer(rng.bytes(count * of_format.tile_bytes), np.uint8).reshape(count, -1).copy()
            scales = rng.uniform(0.001, 0.01, (count, (of_format.tile_bytes - of_format.code_bytes) // 2))
            tiles[:, of_format.code_bytes :] = scales.astype(np.float16).view(np.uint8)
            self.seeds[product.format] = self.device.allocate(tiles.nbytes)
            self.seeds[product.format].upload(tiles)
        seed, buffer = self.seeds[product.format], self.device.allocate(product.nbytes)
        for start in range(0, buffer.nbytes, seed.nbytes):
            self.device.stream.copy(buffer.pointer + start, seed.pointer, min(seed.nbytes, buffer.nbytes - start))
        return buffer, DeviceMatrix(buffer.pointer, product.rows, product.columns, of_format)

    def run(self, product: Product, matrix: DeviceMatrix) -> None:
        """Queues one product."""
        self.linear.matvec(
            self.x.pointer,
            self.tokens,
            matrix,
            self.out.pointer,
            norm=self.norm.pointer if product.norm else 0,
            eps=_EPS,
            epilogue=product.epilogue,
            residual=self.out.pointer if product.epilogue == "add" else 0,
        )

    def milliseconds(self, queue: Callable[[], None], repeats: int = 30) -> float:
        """The median time of what `queue` queues, as one graph."""
        queue()
        self.device.stream.synchronize()
        self.stream.synchronize()
        with captured(self.stream, queue) as graph:
            graph.launch()
            times = []
            for _ in range(repeats):
                start = self.stream.record(timing=True)
                graph.launch()
                end = self.stream.record(timing=True)
                end.synchronize()
                times.append(end.elapsed_ms(start))
        return sorted(times)[len(times) // 2]

    def product_us(self, product: Product) -> float:
        """Microseconds of one product among its like."""
        copies = max(2, -(-_ROTATED_BYTES // product.nbytes))
        made = [self.matrix(product) for _ in range(copies)]
        self.device.stream.synchronize()

        def queue() -> None:
            for _, matrix in made:
                self.run(product, matrix)

        try:
            return self.milliseconds(queue) * 1000 / copies
        finally:
            for buffer, _ in made:
                buffer.free()

    def token_ms(self, of_model: Model) -> float:
        """Milliseconds of all products of one token."""
        products = [*of_model.products * of_model.layers, of_model.head]
        made = [(product, *self.matrix(product)) for product in products]
        self.device.stream.synchronize()

        def queue() -> None:
            for product, _, matrix in made:
                self.run(product, matrix)

        try:
            return self.milliseconds(queue)
        finally:
            for _, buffer, _ in made:
                buffer.free()


@contextmanager
def captured(stream: Stream, queue: Callable[[], None]) -> Iterator[Graph]:
    """A graph of what `queue` queues."""
    with stream.capture() as graph:
        queue()
    try:
        yield graph
    finally:
        graph.close()


def report(bench: Bench, write: Callable[[str], Any]) -> None:
    """Writes the table."""
    write(f"{bench.device.name}, {bench.sm_count} SMs, {bench.tokens} tokens\n")
    write(f"{'model':9} {'matrix':8} {'rows':>7} {'columns':>7} {'format':7} {'us':>8} {'GB/s':>6} {'per SM':>7}\n")
    for of_model in MODELS:
        for product in (*of_model.products, of_model.head):
            us = bench.product_us(product)
            rate = product.nbytes / us / 1e3
            write(
                f"{of_model.name:9} {product.name:8} {product.rows:7} {product.columns:7} {product.format:7}"
                f" {us:8.2f} {rate:6.0f} {rate / bench.sm_count:7.1f}\n"
            )
        ms = bench.token_ms(of_model)
        rate = of_model.nbytes / ms / 1e6
        write(
            f"{of_model.name:9} a token: {ms:.3f} ms, {1000 / ms:.0f} tokens/s, {rate:.0f} GB/s,"
            f" {rate / bench.sm_count:.1f} per SM\n"
        )


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="python -m kernels.measure.gpu_benchmark")
    parser.add_argument("--sms", type=int, default=0, help="run on a partition of so many SMs")
    parser.add_argument("--shared-kib", type=int, default=0, help="of a block, where that is not all it may have")
    parser.add_argument("--tokens", type=int, default=1)
    options = parser.parse_args()
    device = Device()
    if options.shared_kib:
        device.shared_bytes_per_block = min(device.shared_bytes_per_block, options.shared_kib << 10)
    try:
        report(Bench(device, options.tokens, options.sms), sys.stdout.write)
    finally:
        device.close()


if __name__ == "__main__":
    main()
