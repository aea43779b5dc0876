"""layouts.py: the arithmetic of sizes."""

from __future__ import annotations

import pytest

from kernels.cpu import layouts
from kernels.weights.reference import BLOCK_LAYOUTS


@pytest.mark.parametrize("kind", layouts.KINDS)
def test_a_packed_matrix_takes_the_bits_of_the_file(kind):
    k = 512
    assert layouts.packed_bytes(kind, 32, k) == 32 * layouts.row_bytes(kind, k)
    assert layouts.packed_bytes(kind, 33, k) == 48 * layouts.row_bytes(kind, k)
    block = layouts.KINDS[kind]
    assert (block.block, block.file_bytes) == (BLOCK_LAYOUTS[kind].values, BLOCK_LAYOUTS[kind].bytes)


@pytest.mark.parametrize("kind", layouts.SPLIT_KINDS)
def test_a_split_matrix_takes_no_more(kind):
    assert sum(layouts.packed_split_bytes(kind, 160, 512)) == layouts.packed_bytes(kind, 160, 512)


def test_workspace_grows_with_what_it_is_for():
    small, tokens, wide = (layouts.workspace_sizes(*size) for size in ((8, 64), (16, 64), (8, 8192)))
    assert tokens.act_q == 2 * small.act_q
    assert wide.scratch > small.scratch
    assert small.total(3) - small.total(2) == small.scratch
