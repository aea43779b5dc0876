"""How long the linear layers of a model take for many tokens, with random weights and no model around them.

python -m kernels.measure.matmul_rate [--digits 1]
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable

import numpy as np

from kernels.device.driver import Device
from kernels.errors import KernelError
from kernels.launch.linear import DeviceMatrix
from kernels.launch.matmul import Activations, Matmul
from kernels.weights.quant_format import QuantFormat

TOKENS = (16, 58, 128, 256, 512, 2048)
Products = tuple[tuple[str, int, int, str], ...]
"""((format, rows, columns, epilogue), ...) of a layer."""
MODELS: dict[str, tuple[int, Products]] = {
    "3B": (
        36,
        (
            ("w4g128", 2560, 2048, "store"),
            ("w4g128", 2048, 2048, "add"),
            ("w4g128", 22016, 2048, "gated"),
            ("w4g128", 2048, 11008, "add"),
        ),
    ),
    "7B": (
        28,
        (
            ("w4g128", 4608, 3584, "store"),
            ("w4g128", 3584, 3584, "add"),
            ("w3g64", 37888, 3584, "gated"),
            ("w3g64", 3584, 18944, "add"),
        ),
    ),
}
_DISTINCT_LAYERS = 4
"""Their weights are more than any cache holds."""
_REPEATS = 7


class LayerRates:
    """The layers of one model on the device, and what they read and write."""

    def __init__(self, device: Device, products: Products, digits: int) -> None:
        self._device, self._products, self._matmul = device, products, Matmul(device, digits)
        rng = np.random.default_rng(0)
        widest = max(max(rows, columns) for _, rows, columns, _ in products)
        self._x = device.allocate(max(TOKENS) * widest * 4)
        self._x.upload(rng.standard_normal((max(TOKENS), widest), dtype=np.float32))
        self._out = device.allocate(max(TOKENS) * widest * 4)
        self._out.fill(0)
        nbytes = Activations.nbytes_for(max(TOKENS), widest)
        self._activations = Activations(device.allocate(nbytes).pointer, nbytes)
        self._layers = [[self._matrix(rng, *product[:3]) for product in products] for _ in range(_DISTINCT_LAYERS)]

    def _matrix(self, rng: np.random.Generator, name: str, rows: int, columns: int) -> DeviceMatrix:
        of_format = QuantFormat.parse(name)
        count = of_format.nbytes(rows, columns) // of_format.tile_bytes
        tiles = rng.integers(0, 256, (count, of_format.tile_bytes), dtype=np.uint8)
        numbers = (of_format.tile_bytes - of_format.code_bytes) // 2
        tiles[:, of_format.code_bytes :] = rng.uniform(1e-3, 4e-3, (count, numbers)).astype(np.float16).view(np.uint8)
        memory = self._device.allocate(tiles.nbytes)
        memory.upload(tiles)
        return DeviceMatrix(memory.pointer, rows, columns, of_format)

    def milliseconds(self, layers: int, tokens: int) -> float:
        """Of all layers, rows split anew for each product, in one graph; the median of a few."""

        def queue() -> None:
            for layer in range(layers):
                for matrix, (_, _, columns, epilogue) in zip(
                    self._layers[layer % _DISTINCT_LAYERS], self._products, strict=True
                ):
                    self._matmul.quantize_rows(self._x.pointer, tokens, columns, self._activations)
                    residual = self._out.pointer if epilogue == "add" else 0
                    self._matmul.matmul(
                        self._activations, tokens, matrix, self._out.pointer, epilogue=epilogue, residual=residual
                    )

        return self._median(queue)

    def _median(self, queue: Callable[[], None]) -> float:
        stream = self._device.stream
        queue()
        stream.synchronize()
        with stream.capture() as graph:
            queue()
        graph.launch()
        times = []
        for _ in range(_REPEATS):
            start = stream.record(timing=True)
            graph.launch()
            end = stream.record(timing=True)
            end.synchronize()
            times.append(end.elapsed_ms(start))
        graph.close()
        return statistics.median(times)


def main(arguments: list[str]) -> int:
    """Returns the exit status: 1 where there is no GPU or not enough memory."""
    parser = argparse.ArgumentParser(prog="python -m kernels.measure.matmul_rate", description=__doc__)
    parser.add_argument("--digits", type=int, choices=(1, 2), default=2, help="int8 digits of an activation")
    options = parser.parse_args(arguments)
    try:
        device = Device()
        sys.stdout.write(f"{device.name}, milliseconds for {', '.join(map(str, TOKENS))} tokens\n")
        for name, (layers, products) in MODELS.items():
            rates = LayerRates(device, products, options.digits)
            times = (f"{rates.milliseconds(layers, tokens):.2f}" for tokens in TOKENS)
            sys.stdout.write(f"{name}  {'  '.join(times)}\n")
        device.close()
    except KernelError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
