"""Which variants of the kernels a model needs, so that they are built all at once while its weights load.

Each takes a second or two to build, once for a GPU and a version of the program; the cache has them from then on. What
is needed is found by asking the launchers: they launch on a device that only takes note.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import numpy as np

from inference.backends.cuda_plan import MAX_ROWS, WIDTHS, max_pages
from inference.models.model_spec import ModelSpec
from kernels.compile import compiler
from kernels.device.driver import Device
from kernels.launch.attention import Attention, AttentionShape
from kernels.launch.elementwise import Elementwise
from kernels.launch.linear import DeviceMatrix, Linear
from kernels.launch.matmul import Activations, Matmul
from kernels.shipped.build_pool import Job
from kernels.weights.quant_format import QuantFormat

Variant = tuple[str, str, tuple[tuple[str, int], ...]]
"""Source, kernel, macros."""
_TOKENS = (1, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
"""Lengths of prompts that between them take every shape of blocks that occurs often."""
_ADDRESS = 1 << 20
"""Stands for any pointer."""


class _NotedKernel:
    """Does nothing."""

    registers = local_bytes = shared_bytes = 0

    def launch(self, *_: Any, **__: Any) -> None:
        pass

    def max_blocks_per_sm(self, *_: Any) -> int:
        return 1

    def max_cluster(self, *_: Any) -> int:
        return 1


class _NotedMemory:
    """Is not there."""

    pointer = _ADDRESS

    def fill(self, *_: Any) -> None:
        pass

    def upload(self, *_: Any) -> None:
        pass


class NotingDevice:
    """A device for launchers that notes which kernels they ask for; all else it knows from the real one."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self.variants: dict[Variant, None] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)

    def kernel(self, source: str, name: str, **defines: int) -> _NotedKernel:
        """Takes note."""
        self.variants[source, name, tuple(sorted(defines.items()))] = None
        return _NotedKernel()

    def allocate(self, nbytes: int) -> _NotedMemory:
        """Nothing is taken."""
        del nbytes
        return _NotedMemory()


def needed_variants(
    device: Device, spec: ModelSpec, formats: Iterable[QuantFormat], table: QuantFormat
) -> list[Variant]:
    """All kernels, in the order in which the launchers ask for them.

    Args:
        formats: of all matrices.
        table: of the embedding.
    """
    noting = NotingDevice(device)
    as_device = cast(Device, noting)
    for of_format in sorted(set(formats), key=lambda each: each.name):
        _note_products(as_device, spec, of_format)
    elementwise = Elementwise(as_device)
    elementwise.embed(DeviceMatrix(_ADDRESS, spec.vocab_size, spec.hidden_size, table), _ADDRESS, 1, _ADDRESS)
    elementwise.take_rows(_ADDRESS, _ADDRESS, 1, spec.hidden_size, _ADDRESS)
    _note_attention(as_device, spec)
    noting.kernel("sampling.cu", "sample")
    return list(noting.variants)


def _note_products(device: Device, spec: ModelSpec, of_format: QuantFormat) -> None:
    """Of every matrix of a layer and of the head, whichever of them has this format."""
    linear, matmul = Linear(device), Matmul(device)
    activations = Activations(_ADDRESS, 1 << 40)
    hidden, intermediate = spec.hidden_size, spec.intermediate_size
    products = (
        (spec.q_size + 2 * spec.kv_size, hidden, "store", _ADDRESS),
        (hidden, spec.q_size, "add", 0),
        (2 * intermediate, hidden, "gated", _ADDRESS),
        (hidden, intermediate, "add", 0),
        (spec.vocab_size, hidden, "store", _ADDRESS),
    )
    for rows, columns, epilogue, norm in products:
        matrix, residual = DeviceMatrix(_ADDRESS, rows, columns, of_format), _ADDRESS if epilogue == "add" else 0
        for tokens in WIDTHS:
            linear.matvec(_ADDRESS, tokens, matrix, _ADDRESS, norm=norm, eps=1e-6, epilogue=epilogue, residual=residual)
        for tokens in _TOKENS if rows != spec.vocab_size else ():
            matmul.quantize_rows(_ADDRESS, tokens, columns, activations, norm=norm, eps=1e-6)
            matmul.matmul(activations, tokens, matrix, _ADDRESS, epilogue=epilogue, residual=residual)


def _note_attention(device: Device, spec: ModelSpec) -> None:
    at, heads = _ADDRESS, (spec.num_q_heads, spec.num_kv_heads, spec.head_dim)
    # The length of the page tables may decide how a context is shared out.
    for pages in (1, max_pages(spec)):
        shape = AttentionShape(*heads, pages, spec.num_layers)
        attention = Attention(device, shape, np.zeros(spec.head_dim // 2), MAX_ROWS)
        for rows in WIDTHS:
            attention.decode(at, rows, at, at, at, at, at, at)
    attention.rope_append(at, 1, 1, at, at, at, at, at)
    attention.prefill(at, 1, 1, at, at, at, at, at, at)


def jobs_of(device: Device, variants: Iterable[Variant]) -> list[Job]:
    """What a BuildPool builds of them for this GPU."""
    arch = compiler.arch_for(device.capability)
    sources = dict.fromkeys((source, defines) for source, _, defines in variants)
    return [Job(source, dict(defines), arch) for source, defines in sources]


def load_variants(device: Device, variants: Iterable[Variant]) -> None:
    """Loads what has been built, so that no request is the first to need a kernel."""
    for source, name, defines in variants:
        device.kernel(source, name, **dict(defines))
