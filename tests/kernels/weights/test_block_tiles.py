"""Blocks as tiles: codes and numbers against the dequantized weights."""

from __future__ import annotations

import numpy as np
import pytest

from kernels.weights.block_tiles import common_format, repack_reference, tile_format
from kernels.weights.quant_format import QuantFormat, unpack
from kernels.weights.reference import BLOCK_LAYOUTS, dequantize, row_bytes
from kernels.weights.tile_blocks import to_ggml
from tests.random_weights import FLOATS, random_weights

EXACT = ("q4_0", "q5_0", "q5_1", "q8_0")


@pytest.mark.parametrize("kind", BLOCK_LAYOUTS)
@pytest.mark.parametrize("shape", [(16, 256), (37, 768), (1100, 1024)])
def test_the_weights_survive(kind: str, shape: tuple[int, int]) -> None:
    data = random_weights(kind, *shape, np.random.default_rng(0))
    of_format = tile_format(kind)
    tiles = repack_reference(kind, data, shape)
    assert tiles.shape == (of_format.nbytes(*shape),)
    before, after = dequantize(kind, data, shape), dequantize(of_format.name, tiles, shape)
    if kind in EXACT:
        assert np.array_equal(before, after)
        return
    matrix = unpack(of_format, tiles, *shape)
    steps = np.repeat(np.abs(matrix.scales.astype(np.float32)), 32, axis=1)
    errors = np.abs(before - after)
    if of_format.symmetric:
        assert np.all(errors <= 0.5001 * steps)
    else:
        minima = np.repeat(np.abs(matrix.minima.astype(np.float32)), 32, axis=1)
        # Half a unit in the last place of both numbers; the codes lie within 8 or 16 of zero.
        reach = 8 if of_format.bits == 4 else 16
        assert np.all(errors <= (reach * steps + minima) * 2.0**-11 + 2.0**-20)
        assert np.mean(errors) < 0.004 * np.mean(steps)


@pytest.mark.parametrize(("kind", "blocks"), [("q4_0", "q4_0"), ("q8_0", "q8_0")])
def test_symmetric_blocks_come_back_to_the_bit(kind: str, blocks: str) -> None:
    data = random_weights(kind, 48, 576, np.random.default_rng(0))
    back, again = to_ggml(tile_format(kind).name, repack_reference(kind, data, (48, 576)), (48, 576))
    assert back == blocks
    assert np.array_equal(again, data)


@pytest.mark.parametrize("kind", FLOATS)
def test_widths_that_fill_no_group(kind: str) -> None:
    data = random_weights(kind, 5, 70, np.random.default_rng(0))
    before = dequantize(kind, data, (5, 70))
    after = dequantize("w8g32", repack_reference(kind, data, (5, 70)), (5, 70))
    assert np.abs(before - after).max() <= 0.5001 * np.abs(before).max() / 127


def test_pieces_of_whole_tiles_join() -> None:
    data = random_weights("q4_k", 64, 512, np.random.default_rng(0))
    pieces = [repack_reference("q4_k", data[start : start + 32], (32, 512)) for start in (0, 32)]
    assert np.array_equal(np.concatenate(pieces), repack_reference("q4_k", data, (64, 512)))


def test_numbers_at_the_edges_of_float16() -> None:
    weights = np.zeros((16, 128), dtype=np.float32)
    weights[1] = 1e-9  # even the least scale is far too large
    weights[2] = np.linspace(-2e-4, 2e-4, 128)  # the scale has few bits
    weights[3, :32] = 1e9  # the scale is beyond float16
    weights[4, 40] = np.nan
    weights[5, 3] = -np.inf
    tiles = repack_reference("f32", weights.view(np.uint8), (16, 128))
    after = dequantize("w8g32", tiles, (16, 128))
    damaged = np.zeros((16, 128), dtype=bool)
    damaged[3, :32] = damaged[4, 32:64] = damaged[5, :32] = True
    assert np.array_equal(np.isnan(after), damaged)
    assert np.abs(after[2] - weights[2]).max() < 2e-6
    assert not after[0].any()
    assert not after[1].any()


@pytest.mark.parametrize(
    "kinds", [("q4_k", "q6_k"), ("q4_0", "q8_0"), ("q4_0", "q4_1"), ("q4_k", "f16"), ("q5_0", "q5_1")]
)
def test_wider_tiles_hold_the_same_numbers(kinds: tuple[str, str]) -> None:
    wide = common_format(kinds)
    for kind in kinds:
        data, own = random_weights(kind, 20, 512, np.random.default_rng(0)), tile_format(kind)
        tiles = repack_reference(kind, data, (20, 512), wide)
        narrow = dequantize(own.name, repack_reference(kind, data, (20, 512)), (20, 512))
        assert np.array_equal(dequantize(wide.name, tiles, (20, 512)), narrow)


def test_common_formats() -> None:
    assert common_format(["q4_k", "q4_1"]).name == "w4g32m"
    assert common_format(["q4_k", "q6_k"]).name == "w8g32m"
    assert common_format(["q4_0", "q4_k"]).name == "w4g32m"
    assert common_format(["q5_0", "bf16"]).name == "w8g32"
    assert common_format(["w3g128", "w3g128"]).name == "w3g128"
    with pytest.raises(ValueError, match="No tiles"):
        common_format(["w3g128", "w4g128"])
    with pytest.raises(ValueError, match="cannot become"):
        repack_reference("q6_k", np.zeros((1, 210), np.uint8), (1, 256), QuantFormat(4, 32))


def test_formats_and_refusals() -> None:
    assert tile_format("w3g64m") == QuantFormat(3, 64, symmetric=False)
    with pytest.raises(ValueError, match="iq2_xs"):
        tile_format("iq2_xs")
    with pytest.raises(ValueError, match="takes"):
        repack_reference("q4_0", np.zeros((2, row_bytes("q4_0", 32)), np.uint8), (3, 32))
