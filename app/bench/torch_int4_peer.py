"""PyTorch's own 4-bit linear layers as a peer: a program that times them and prints JSON lines (see app.bench.peers).

    python -m app.bench.torch_int4_peer 2560x2048x36 2048x2048x36 22016x2048x36 2048x11008x36 151936x2048x1

Each argument is ROWSxCOLUMNSxNUMBER. One pass over all of them is captured in a CUDA graph, every matrix with weights
of its own, so that no cache holds any; groups of 128, bfloat16.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import sys
from typing import Any

GROUP_SIZE = 128
TOKENS = (1, 4, 8, 58)
_INNER_K_TILES = 8
_ROWS_MULTIPLE = 8
_WARM_UPS = 3


def say(**entry: object) -> None:
    """One JSON line."""
    sys.stdout.write(json.dumps(entry) + "\n")
    sys.stdout.flush()


def graph_ms(torch: Any, run: Any, repeats: int) -> float:
    """Milliseconds of one replay of `run`, the median."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(_WARM_UPS):
            run()
    side.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    times: list[float] = []
    for number in range(_WARM_UPS + repeats):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        if number >= _WARM_UPS:
            times.append(start.elapsed_time(end))
    return statistics.median(times)


def measure(torch: Any, shapes: list[tuple[int, int, int]], repeats: int) -> None:
    """Prints a line for each number of tokens."""
    layers = []
    for rows, columns, number in shapes:
        padded = -(-rows // _ROWS_MULTIPLE) * _ROWS_MULTIPLE
        for _ in range(number):
            codes = torch.randint(0, 256, (padded, columns // 2), dtype=torch.uint8, device="cuda")
            packed = torch._convert_weight_to_int4pack(codes, _INNER_K_TILES)
            scales = 0.01 * torch.rand(columns // GROUP_SIZE, padded, 2, dtype=torch.bfloat16, device="cuda")
            layers.append((columns, packed, scales))
    for tokens in TOKENS:
        inputs = {c: torch.randn(tokens, c, dtype=torch.bfloat16, device="cuda") for c in {s[1] for s in shapes}}

        def run(inputs: dict[int, Any] = inputs) -> None:
            for columns, packed, scales in layers:
                torch._weight_int4pack_mm(inputs[columns], packed, GROUP_SIZE, scales)

        say(linears=tokens, ms=graph_ms(torch, run, repeats))


def main(arguments: list[str] | None = None) -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(prog="python -m app.bench.torch_int4_peer")
    parser.add_argument("shapes", nargs="+")
    parser.add_argument("--repeat", type=int, default=3)
    # What every module peer is given; linear layers have no use for it.
    for name in ("--prompt", "--depth", "--decode"):
        parser.add_argument(name)
    parser.add_argument("--chat", action="store_true")
    options = parser.parse_args(arguments)
    try:
        # By name: nothing of ours depends on it, as the import contracts demand.
        torch: Any = importlib.import_module("torch")
    except ImportError as error:
        say(skip=f"torch cannot be imported ({error})")
        return
    if not torch.cuda.is_available():
        say(skip="torch sees no GPU")
        return
    shapes = []
    for shape in options.shapes:
        rows, columns, number = map(int, shape.split("x"))
        if columns % GROUP_SIZE:
            say(skip=f"the op takes columns in groups of {GROUP_SIZE}, and a matrix has {columns}")
            return
        shapes.append((rows, columns, number))
    say(note=f"torch {torch.__version__}, groups of {GROUP_SIZE}")
    measure(torch, shapes, 10 * options.repeat)


if __name__ == "__main__":
    main()
