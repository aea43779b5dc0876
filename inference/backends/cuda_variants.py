"""Which variants of the kernels a model needs, and building them all at once while its weights load.

Each takes a second or two to build, once for a GPU and a version of the program; the cache has them from then on.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from inference.backends.cuda_plan import WIDTHS
from kernels import compiler, matmul, matvec
from kernels.cuda_driver import Device
from kernels.quant_format import QuantFormat

Variant = tuple[str, dict[str, int]]
_MOST_BUILDERS = 16


def needed_variants(
    formats: Iterable[QuantFormat], table: QuantFormat, head_dim: int, shared_bytes_per_block: int
) -> list[Variant]:
    """Sources and their macros.

    Args:
        formats: of all matrices.
        table: of the embedding.
        shared_bytes_per_block: the GPU's limit.
    """
    found: list[Variant] = [
        ("embed.cu", {"BITS": table.bits, "GROUP": table.group_size, "MINIMA": int(not table.symmetric)}),
        *((f"{name}.cu", {"HEAD_DIM": head_dim}) for name in ("attention_decode", "attention_prefill", "rope_append")),
        *((f"{name}.cu", {}) for name in ("quantize_rows", "take_rows", "sampling")),
    ]
    for of_format in sorted(set(formats), key=lambda each: each.name):
        build = matvec.Build.of(of_format, shared_bytes_per_block)
        found += [("matvec.cu", matvec.defines(of_format, tokens, build)) for tokens in WIDTHS]
        for shape in matmul.block_shapes(of_format, False, 2, shared_bytes_per_block):
            stages = shape.stages(of_format, 2, shared_bytes_per_block)
            found.append(("matmul.cu", shape.defines(of_format, 2, stages)))
    return found


class VariantBuilder:
    """Builds in the background; `finish` waits."""

    def __init__(self, gpu: Device, variants: Iterable[Variant]) -> None:
        arch = compiler.arch_for(gpu.capability)
        workers = min(_MOST_BUILDERS, os.cpu_count() or 1)
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="kernels")
        self._builds: list[Future[Any]] = [
            self._threads.submit(compiler.build, source, arch, defines) for source, defines in variants
        ]

    def finish(self) -> None:
        """Waits for all. Raises CompileError where one could not be built."""
        try:
            for build in self._builds:
                build.result()
        finally:
            self.close()

    def close(self) -> None:
        """Gives up what was not begun."""
        self._threads.shutdown(cancel_futures=True)
