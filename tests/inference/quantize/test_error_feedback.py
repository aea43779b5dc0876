"""Error feedback: against rounding one column after the other by its definition, and better where it matters."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from inference.quantize.curvature import Curvature, cholesky, curvature_of
from inference.quantize.error_feedback import FeedbackQuantizer
from inference.quantize.quantizer import NearestQuantizer
from kernels.weights.quant_format import QuantFormat, QuantizedMatrix, pack


@pytest.fixture
def quantizer() -> Iterator[FeedbackQuantizer]:
    made = FeedbackQuantizer(1)
    yield made
    made.close()


def inputs_of(tokens: int, columns: int, seed: int = 0) -> np.ndarray:
    """Inputs whose columns go together and differ in size, as activations do."""
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal((tokens, columns // 4)) @ rng.standard_normal((columns // 4, columns))
    sizes = np.exp(rng.standard_normal(columns))
    return ((shared / 4 + rng.standard_normal((tokens, columns))) * sizes).astype(np.float32)


def weights_of(rows: int, columns: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((rows, columns)).astype(np.float32) * np.float32(0.05)


def loss(matrix: QuantizedMatrix, weights: np.ndarray, inputs: np.ndarray) -> float:
    return float(np.square(inputs.astype(np.float64) @ (matrix.dequantize() - weights).T).sum())


@pytest.mark.parametrize("name", ["w4g128", "w3g64", "w4g32m", "w3g128m", "w8g128"])
@pytest.mark.parametrize("columns", [256, 320, 96])
def test_outputs_are_nearer_than_of_the_nearest_weights(quantizer: FeedbackQuantizer, name: str, columns: int) -> None:
    of_format, inputs, weights = QuantFormat.parse(name), inputs_of(600, columns), weights_of(48, columns)
    curvature = curvature_of(inputs)
    found = quantizer.quantize(weights, of_format, curvature)
    pack(found)
    nearest = quantizer.quantize(weights, of_format)
    assert loss(found, weights, inputs) < 0.6 * loss(nearest, weights, inputs)
    sliced = np.concatenate([quantizer.quantize(weights[i : i + 16], of_format, curvature).codes for i in (0, 16, 32)])
    # Sums of fewer rows at a time may differ in their last bits, and so may a code that lies between two.
    assert (sliced != found.codes).mean() < 0.01


def test_it_is_what_its_definition_says(quantizer: FeedbackQuantizer) -> None:
    """One row at a time, one column at a time, in float64, with the scales that were found."""
    of_format, columns = QuantFormat(4, 32), 160
    inputs, weights = inputs_of(400, columns), weights_of(6, columns)
    curvature = curvature_of(inputs)
    found = quantizer.quantize(weights, of_format, curvature)
    (block,) = curvature.blocks
    factor, order = block.factor.astype(np.float64), block.order
    scales = np.repeat(found.scales.astype(np.float64), 32, axis=1)
    different = 0
    for row in range(6):
        error = np.zeros(columns)
        for position in range(columns - 1, -1, -1):
            column = order[position]
            moved = (
                weights[row, column]
                + error[position + 1 :] @ factor[position + 1 :, position] / factor[position, position]
            )
            code = np.clip(np.rint(moved / scales[row, column]), -8, 7)
            different += int(code != found.codes[row, column])
            error[position] = weights[row, column] - scales[row, column] * found.codes[row, column]
    assert different <= 2


def test_blocks_of_wide_matrices(quantizer: FeedbackQuantizer, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs, weights = inputs_of(900, 640), weights_of(16, 640)
    whole = curvature_of(inputs)
    monkeypatch.setattr("inference.quantize.curvature.BLOCK_COLUMNS", 300)
    blocks = curvature_of(inputs)
    assert [len(block.order) for block in blocks.blocks] == [256, 256, 128]
    assert sorted(np.concatenate([block.order for block in blocks.blocks]).tolist()) == list(range(640))
    wanted = np.square(inputs).sum(axis=0)
    for found in (whole, blocks):
        np.testing.assert_allclose(found.diagonal(), wanted, atol=0.03 * wanted.mean(), rtol=1e-3)
    of_format = QuantFormat(3, 128)
    losses = [loss(quantizer.quantize(weights, of_format, one), weights, inputs) for one in (whole, blocks, None)]
    assert losses == sorted(losses)


def test_tiles_stay_together_and_the_important_come_last() -> None:
    inputs = inputs_of(700, 384)
    inputs[:, 128:256] *= 50
    (block,) = curvature_of(inputs).blocks
    assert block.runs() == [(256, 384), (128, 256), (0, 128)]
    assert set(block.order[256:]) == set(range(128, 256))
    diagonal = np.square(inputs).sum(axis=0)
    for start, end in block.runs():
        assert (np.diff(diagonal[block.order[start:end]]) >= 0).all()


@pytest.mark.parametrize("size", [1, 100, 256, 700])
def test_cholesky(size: int) -> None:
    inputs = inputs_of(size + 300, max(size, 4))[:, :size]
    matrix = inputs.T @ inputs
    factor = cholesky(matrix)
    assert np.array_equal(factor, np.tril(factor))
    np.testing.assert_allclose(factor @ factor.T, matrix, atol=2e-5 * float(matrix.max()))
    with pytest.raises(np.linalg.LinAlgError):
        cholesky(-matrix)


def test_inputs_that_were_never_seen() -> None:
    """Fewer tokens than columns, columns of zeros: every weight gets a code all the same."""
    inputs = inputs_of(20, 256)
    inputs[:, 40:80] = 0
    for seen in (inputs, np.zeros_like(inputs)):
        curvature = curvature_of(seen)
        quantizer, weights = FeedbackQuantizer(1), weights_of(16, 256)
        found = quantizer.quantize(weights, QuantFormat(4, 128), curvature)
        quantizer.close()
        assert np.isfinite(found.scales).all()
        assert np.square(found.dequantize() - weights).sum() < 0.2 * np.square(weights).sum()


def test_without_a_curvature_it_rounds_to_the_nearest(quantizer: FeedbackQuantizer) -> None:
    nearest, weights = NearestQuantizer(1), weights_of(16, 128)
    importance = np.linspace(0, 1, 128, dtype=np.float32)
    for given in (None, importance):
        first = quantizer.quantize(weights, QuantFormat(4, 64), given)
        second = nearest.quantize(weights, QuantFormat(4, 64), given)
        assert np.array_equal(first.codes, second.codes)
    curvature = curvature_of(inputs_of(300, 128))
    first = nearest.quantize(weights, QuantFormat(4, 64), curvature)
    second = nearest.quantize(weights, QuantFormat(4, 64), curvature.diagonal())
    assert np.array_equal(first.codes, second.codes)
    assert isinstance(curvature, Curvature)
    nearest.close()
