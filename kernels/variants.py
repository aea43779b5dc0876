"""The variants of each CUDA source that ship: what is compiled ahead, and held to resources.toml."""

from __future__ import annotations

import itertools

Defines = dict[str, int]


def combinations(**choices: tuple[int, ...]) -> tuple[Defines, ...]:
    """All combinations of the values of macros."""
    return tuple(dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values()))


_HEAD_DIMS = combinations(HEAD_DIM=(64, 80, 96, 128, 256))

VARIANTS: dict[str, tuple[Defines, ...]] = {
    "attention_decode.cu": _HEAD_DIMS,
    "attention_prefill.cu": _HEAD_DIMS,
    "embed.cu": combinations(BITS=(3, 4, 8), GROUP=(32, 64, 128), MINIMA=(0, 1)),
    "read_rate.cu": ({},),
    "repack.cu": ({},),
    "sampling.cu": ({},),
    "rope_append.cu": _HEAD_DIMS,
    "take_rows.cu": ({},),
}
