"""The variants of each CUDA source that ship: what resources.toml holds to its numbers, and what is built ahead.

In the table, those of the main formats are held on every architecture, all others on sm_86 alone, the smallest.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from kernels.launch import matmul, matvec
from kernels.weights.quant_format import QuantFormat

Defines = dict[str, int]

SMALLEST = "sm_86"
SHARED_BYTES = {"sm_75": 64 << 10, "sm_80": 163 << 10, "sm_86": 99 << 10, "sm_89": 99 << 10, "sm_90": 227 << 10}
"""Shared memory that one block may have, of the architectures that are held to the table."""


@dataclass(frozen=True, slots=True)
class Target:
    """A kind of GPU that variants are wanted for.

    Attributes:
        arch: "sm_86", or "compute_86" for PTX.
        shared_bytes: shared memory that one block may have.
        formats: of weights.
        main_formats: those of them that are wanted for every number of tokens, not for the fewest and the most only.
        head_dims: of attention.
    """

    arch: str
    shared_bytes: int
    formats: tuple[QuantFormat, ...]
    main_formats: tuple[QuantFormat, ...]
    head_dims: tuple[int, ...]


_SM_COUNT = 16
_MAIN_FORMATS = (QuantFormat(4, 128), QuantFormat(3, 128))
"""Of our own checkpoints. What is built from GGUF files has groups of 32."""
_COMMON_FORMATS = (*_MAIN_FORMATS, QuantFormat(8, 128), QuantFormat(4, 32, symmetric=False), QuantFormat(8, 32))
_ALL_FORMATS = (
    *_COMMON_FORMATS, QuantFormat(4, 64), QuantFormat(3, 64), QuantFormat(4, 32), QuantFormat(3, 32),
    QuantFormat(8, 32, symmetric=False),
)  # fmt: skip
_MAIN_HEAD_DIMS = (64, 128)
_PRODUCTS = tuple(
    product
    for hidden, intermediate, qkv in ((2048, 11008, 2560), (3584, 18944, 4608))
    for product in (
        (qkv, hidden, "store", True),
        (hidden, hidden, "add", False),
        (2 * intermediate, hidden, "gated", True),
        (hidden, intermediate, "add", False),
    )
)
"""(rows, columns, epilogue, normalized) of a layer of Qwen2.5-3B and 7B."""


def combinations(**choices: tuple[int, ...]) -> tuple[Defines, ...]:
    """All combinations of the values of macros."""
    return tuple(dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values()))


def table_target(arch: str) -> Target:
    """What the table holds to its numbers on one of its architectures."""
    formats = _ALL_FORMATS if arch == SMALLEST else _MAIN_FORMATS
    head_dims = (64, 80, 96, 128, 256) if arch == SMALLEST else _MAIN_HEAD_DIMS
    return Target(arch, SHARED_BYTES[arch], formats, _MAIN_FORMATS, head_dims)


def common_target(arch: str, shared_bytes: int) -> Target:
    """What most models need on a GPU."""
    return Target(arch, shared_bytes, _COMMON_FORMATS, _COMMON_FORMATS, _MAIN_HEAD_DIMS)


def variants(source: str, target: Target) -> tuple[Defines, ...]:
    """The variants of a source for a target, each once."""
    found: dict[tuple[tuple[str, int], ...], Defines] = {}
    for defines in VARIANTS[source](target):
        found.setdefault(tuple(sorted(defines.items())), defines)
    return tuple(found.values())


def _one(target: Target) -> Iterable[Defines]:
    del target
    return ({},)


def _head_dims(target: Target) -> Iterable[Defines]:
    return combinations(HEAD_DIM=target.head_dims)


def _embed(target: Target) -> Iterator[Defines]:
    for of_format in target.formats:
        yield {"BITS": of_format.bits, "GROUP": of_format.group_size, "MINIMA": int(not of_format.symmetric)}


def _matvec(target: Target) -> Iterator[Defines]:
    for of_format in target.formats:
        widths = matvec.TOKENS if of_format in target.main_formats else (matvec.TOKENS[0], matvec.TOKENS[-1])
        for tokens, (rows, columns, epilogue, norm) in itertools.product(widths, _PRODUCTS):
            product = matvec.Product(of_format, rows, columns, epilogue, norm)
            for _, plan in matvec.plan(product, tokens, target.shared_bytes, _SM_COUNT):
                yield matvec.defines(product, plan)


def _matmul(target: Target) -> Iterator[Defines]:
    for of_format, gated in itertools.product(target.formats, (False, True)):
        for shape in matmul.block_shapes(of_format, gated, 2, target.shared_bytes):
            yield shape.defines(of_format, 2, shape.stages(of_format, 2, target.shared_bytes))


VARIANTS: dict[str, Callable[[Target], Iterable[Defines]]] = {
    "attention_decode.cu": _head_dims,
    "attention_prefill.cu": _head_dims,
    "embed.cu": _embed,
    "matmul.cu": _matmul,
    "matvec.cu": _matvec,
    "quantize_rows.cu": _one,
    "read_rate.cu": _one,
    "repack.cu": _one,
    "rope_append.cu": _head_dims,
    "sampling.cu": _one,
    "take_rows.cu": _one,
}
