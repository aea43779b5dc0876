"""How products with many tokens are planned; no GPU is needed."""

from __future__ import annotations

import pytest

from kernels.errors import ContractError
from kernels.launch.matmul import BLOCK_SHAPES, Activations, block_shapes
from kernels.weights.quant_format import BITS, GROUP_SIZES, QuantFormat

FORMATS = [QuantFormat(bits, group, symmetric) for bits in BITS for group in GROUP_SIZES for symmetric in (True, False)]
SHARED_BYTES = {75: 64 << 10, 80: 163 << 10, 86: 99 << 10, 90: 227 << 10}


@pytest.mark.parametrize("of_format", FORMATS, ids=lambda of_format: of_format.name)
@pytest.mark.parametrize("arch", SHARED_BYTES)
@pytest.mark.parametrize("gated", [False, True])
def test_every_gpu_has_shapes_for_every_format(of_format: QuantFormat, arch: int, gated: bool) -> None:
    shapes = block_shapes(of_format, gated, 2, SHARED_BYTES[arch])
    assert len(shapes) >= 3
    for shape in shapes:
        stages = shape.stages(of_format, 2, SHARED_BYTES[arch])
        assert stages >= 2
        assert stages * shape.stage_bytes(of_format, 2) <= SHARED_BYTES[arch]
        # A thread of the copies takes the same part of several tiles.
        assert shape.threads % {3: 32, 4: 64, 8: 128}[of_format.bits] == 0
        assert shape.row_tiles == 2 or not gated


def chosen(rows: int, tokens: int, sm_count: int) -> tuple[int, int]:
    shape = min(BLOCK_SHAPES, key=lambda each: each.cost(rows, tokens, sm_count))
    return shape.rows, shape.tokens


def test_few_tokens_take_small_blocks_and_many_large_ones() -> None:
    assert chosen(2048, 16, 132) == (64, 16)
    assert chosen(22016, 58, 132) == (64, 64)
    assert chosen(22016, 2048, 132) == (128, 64)
    assert chosen(22016, 2048, 16) == (128, 64)


def test_the_cost_grows_with_the_work() -> None:
    for shape in BLOCK_SHAPES:
        costs = [shape.cost(22016, tokens, 132) for tokens in range(1, 2049)]
        assert costs == sorted(costs)
        assert costs[-1] > 8 * costs[0] > 0


def test_activations_hold_what_they_were_made_for() -> None:
    activations = Activations(0, Activations.nbytes_for(200, 896))
    layout = activations.layout(200, 896)
    assert layout.token_stride == 256
    assert layout.low == 256 * 896
    assert layout.scales == 2 * layout.low
    assert layout.nbytes == activations.nbytes == layout.sums + 256 * 4 * 4 * 7
    assert activations.layout(256, 896) == layout
    with pytest.raises(ContractError, match="257 tokens, 896 columns"):
        activations.layout(257, 896)
