"""Rounding with searched scales: the C kernel against NumPy, and both against what they promise."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from kernels.cpu import compiler as cpu_compiler
from kernels.errors import ContractError
from kernels.weights.quant_format import BITS, GROUP_SIZES, QuantFormat, QuantizedMatrix, pack
from kernels.weights.rounding import GroupRounder, candidates, round_in_numpy

FORMATS = [QuantFormat(bits, size, symmetric) for bits in BITS for size in GROUP_SIZES for symmetric in (True, False)]
VARIANTS = [variant for variant in cpu_compiler.VARIANTS if variant.level <= cpu_compiler.cpu_level()]


@pytest.fixture(params=VARIANTS, ids=lambda variant: variant.name)
def rounder(request: pytest.FixtureRequest) -> Iterator[GroupRounder]:
    made = GroupRounder(2, request.param)
    yield made
    made.close()


def weights_of(rows: int, columns: int, seed: int = 0) -> np.ndarray:
    """Rows of every kind: plain ones, outliers, tiny, zeros, one sign only, large."""
    weights = np.random.default_rng(seed).standard_normal((rows, columns)).astype(np.float32) * np.float32(0.03)
    weights[0] = 0
    weights[1, ::7] *= 30
    weights[2] *= np.float32(1e-6)
    weights[3] = np.abs(weights[3])
    weights[4] = -np.abs(weights[4])
    weights[5] *= np.float32(60_000 / np.abs(weights[5]).max())
    weights[6, : columns // 2] = 0
    return weights


def error_of(matrix: QuantizedMatrix, weights: np.ndarray, importance: np.ndarray | None = None) -> np.ndarray:
    wrong = (matrix.dequantize().astype(np.float64) - weights) ** 2
    return (wrong if importance is None else wrong * importance).sum(axis=1)


def same(first: QuantizedMatrix, second: QuantizedMatrix) -> bool:
    def equal(one: np.ndarray | None, other: np.ndarray | None) -> bool:
        # As bits: NaN is a fault, and -0 is another number than 0.
        return (one is None and other is None) or (one.tobytes() == other.tobytes() and one.shape == other.shape)

    pairs = ((first.codes, second.codes), (first.scales, second.scales), (first.minima, second.minima))
    return all(equal(one, other) for one, other in pairs)


@pytest.mark.parametrize("of_format", FORMATS, ids=lambda f: f.name)
@pytest.mark.parametrize("columns", [320, 70])
def test_every_variant_gives_the_bits_of_numpy(rounder: GroupRounder, of_format: QuantFormat, columns: int) -> None:
    weights = weights_of(35, columns)
    importance = np.random.default_rng(1).random(columns).astype(np.float32)
    assert same(rounder.round(weights, of_format), round_in_numpy(weights, of_format))
    assert same(rounder.round(weights, of_format, importance), round_in_numpy(weights, of_format, importance))


@pytest.mark.parametrize("of_format", FORMATS, ids=lambda f: f.name)
def test_no_candidate_is_better(rounder: GroupRounder, of_format: QuantFormat) -> None:
    """Every scale that a plain rounding would take is judged here once more, in float64."""
    weights = weights_of(20, of_format.group_size)
    found = rounder.round(weights, of_format)
    pack(found)
    low, high = of_format.limits
    errors = error_of(found, weights)
    for tried in candidates(of_format):
        for row, values in enumerate(weights.astype(np.float64)):
            if of_format.symmetric:
                scale, minimum = float(np.float16(values[np.abs(values).argmax()] / tried)), 0.0
            else:
                span = float(values.max() - values.min())
                scale = float(np.float16(span * tried / (high - low)))
                minimum = float(np.float16((values.max() + values.min()) / 2 + scale / 2))
            if scale == 0 or not np.isfinite([scale, minimum]).all():
                continue
            codes = np.clip(np.rint((values - minimum) / scale), low, high)
            error = ((scale * codes + minimum - values) ** 2).sum()
            assert errors[row] <= error * (1 + 1e-4) + 1e-30, (row, tried)


@pytest.mark.parametrize("bits", BITS)
def test_weights_that_the_format_holds_come_back(rounder: GroupRounder, bits: int) -> None:
    of_format = QuantFormat(bits, 64)
    low, high = of_format.limits
    codes = np.random.default_rng(2).integers(low, high + 1, (16, 128), dtype=np.int8)
    codes[:, ::64] = low  # every group uses the code that only one side has
    for scale in (0.25, -0.25):
        matrix = QuantizedMatrix(of_format, codes, np.full((16, 2), scale, np.float16))
        assert np.array_equal(rounder.round(matrix.dequantize(), of_format).dequantize(), matrix.dequantize())


def test_what_is_important_is_kept_better(rounder: GroupRounder) -> None:
    weights = weights_of(32, 128)
    importance = np.ones(128, np.float32)
    importance[:8] = 1000
    plain = rounder.round(weights, QuantFormat(3, 128))
    weighted = rounder.round(weights, QuantFormat(3, 128), importance)
    assert error_of(weighted, weights, importance).sum() < 0.9 * error_of(plain, weights, importance).sum()


def test_the_number_of_threads_changes_nothing() -> None:
    weights, of_format = weights_of(100, 300), QuantFormat(4, 32)
    results = []
    for threads in (1, 2, 3):
        rounder = GroupRounder(threads)
        results.append(rounder.round(weights, of_format))
        rounder.close()
    assert same(results[0], results[1])
    assert same(results[0], results[2])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 70_000])
def test_weights_that_no_scale_holds_are_refused(value: float) -> None:
    weights = np.ones((2, 64), np.float32)
    weights[1, 3] = value
    with pytest.raises(ContractError, match="65504"):
        round_in_numpy(weights, QuantFormat(4, 64))


def test_other_shapes_are_refused() -> None:
    with pytest.raises(ContractError, match="float32 matrix"):
        round_in_numpy(np.ones((2, 64)), QuantFormat(4, 64))  # type: ignore[arg-type]
    with pytest.raises(ContractError, match="importance"):
        round_in_numpy(np.ones((2, 64), np.float32), QuantFormat(4, 64), np.ones(3, np.float32))


def test_a_closed_rounder_says_so() -> None:
    rounder = GroupRounder(1)
    rounder.close()
    with pytest.raises(ContractError, match="closed"):
        rounder.round(np.ones((1, 32), np.float32), QuantFormat(4, 32))
