"""The variants of each CUDA source that ship: what is compiled ahead, and held to resources.toml."""

from __future__ import annotations

import itertools

Defines = dict[str, int]


def combinations(**choices: tuple[int, ...]) -> tuple[Defines, ...]:
    """All combinations of the values of macros."""
    return tuple(dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values()))


VARIANTS: dict[str, tuple[Defines, ...]] = {
    "read_rate.cu": ({},),
    "repack.cu": ({},),
}
