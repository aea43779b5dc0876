"""Rounds weights to the formats of quant_format.py with the best of many scales for each group.

For each group every candidate scale is tried, and the one whose rounded weights have the least squared error is kept;
then, twice, the scale (and minimum) that fits those codes best by least squares is tried. Scales are rounded to float16
before they are judged, so that the error is that of what is stored. The C kernel (cpu/round_groups.c) and
`round_in_numpy` give the same bits.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels.cpu import library as lib
from kernels.cpu.compiler import CpuVariant
from kernels.errors import ContractError
from kernels.weights.quant_format import QuantFormat, QuantizedMatrix

Floats = NDArray[np.float32]

LARGEST = 65_504.0
"""Of float16, and so of weights."""

_LANES = 16
_PASSES = 2
_MAGIC = np.float32(12_582_912.0)
_CANDIDATES = 16
# Of a symmetric group the largest weight falls on this share of 2^(bits - 1): below 1 the outermost codes are not used,
# above it the largest weights are cut, which pays where the others are many and small.
_SHARES = {3: (0.7, 1.75), 4: (0.8, 1.5), 8: (0.97, 1.02)}
# Of a group with minima so much of its range is covered.
_COVERED = {3: (0.6, 1.0), 4: (0.7, 1.0), 8: (0.98, 1.0)}


def candidates(of_format: QuantFormat) -> Floats:
    """What the largest weight of a group is divided by to get a scale; or, with minima, the shares of its range."""
    if not of_format.symmetric:
        return np.linspace(*_COVERED[of_format.bits], _CANDIDATES, dtype=np.float32)
    positive = np.linspace(*_SHARES[of_format.bits], _CANDIDATES, dtype=np.float32) * np.float32(-of_format.limits[0])
    return np.concatenate([-positive, positive]).astype(np.float32)


class GroupRounder:
    """The C kernel on a pool of threads of its own. Close it.

    Args:
        threads: the caller counted; None is one for each physical core.
        variant: instruction set; None is the best one.

    Raises:
        CompileError: the kernel cannot be built here; `round_in_numpy` needs none.
    """

    def __init__(self, threads: int | None = None, variant: CpuVariant | None = None) -> None:
        self._library = lib.load_library(variant)
        self._pool: int | None = self._library.pool_create(threads or lib.physical_cores())

    def round(self, weights: Floats, of_format: QuantFormat, importance: Floats | None = None) -> QuantizedMatrix:
        """The nearest matrix of a format.

        Args:
            weights: (N, K), finite, at most 65 504 in size.
            importance: (K,), what a squared error in that column counts; None is 1 for all.

        Raises:
            ContractError: arrays of other shapes, or weights out of that range.
        """
        if self._pool is None:
            raise ContractError("The rounder has been closed.")
        weights, importance = _checked(weights, importance)
        rows, columns = weights.shape
        matrix = _empty_matrix(of_format, rows, columns)
        tried = candidates(of_format)
        job = lib.RoundingStruct(
            weights=weights.ctypes.data,
            importance=None if importance is None else importance.ctypes.data,
            candidates=tried.ctypes.data,
            codes=matrix.codes.ctypes.data,
            scales=matrix.scales.ctypes.data,
            minima=None if matrix.minima is None else matrix.minima.ctypes.data,
            n=rows,
            k=columns,
            bits=of_format.bits,
            group=of_format.group_size,
            num_candidates=len(tried),
        )
        self._library.round_groups(self._pool, ctypes.byref(job))
        return matrix

    def close(self) -> None:
        """Ends the threads."""
        if self._pool is not None:
            self._library.pool_destroy(self._pool)
            self._pool = None


def round_in_numpy(weights: Floats, of_format: QuantFormat, importance: Floats | None = None) -> QuantizedMatrix:
    """As `GroupRounder.round`, without a compiler, some fifty times slower."""
    weights, importance = _checked(weights, importance)
    matrix = _empty_matrix(of_format, *weights.shape)
    size, columns = of_format.group_size, weights.shape[1]
    whole = columns // size
    weight_of = np.ones(columns, np.float32) if importance is None else importance
    for start, count, width in ((0, whole, size), (whole * size, 1, columns - whole * size)):
        if count and width:
            used = slice(start, start + count * width)
            groups = weights[:, used].reshape(-1, width)
            factors = np.tile(weight_of[used].reshape(count, width), (len(weights), 1))
            found = _Groups(groups, factors, of_format)
            found.search()
            into = slice(start // size, start // size + count)
            matrix.codes[:, used] = found.codes[:, :width].reshape(len(weights), -1)
            matrix.scales[:, into] = found.scales.reshape(len(weights), count)
            if matrix.minima is not None:
                matrix.minima[:, into] = found.minima.reshape(len(weights), count)
    return matrix


def _checked(weights: Floats, importance: Floats | None) -> tuple[Floats, Floats | None]:
    if weights.ndim != 2 or weights.dtype != np.float32 or 0 in weights.shape:
        raise ContractError(f"Weights to round are a float32 matrix, not {weights.dtype} {weights.shape}.")
    # Also false where there is NaN.
    if not (-LARGEST <= weights.min() and weights.max() <= LARGEST):
        raise ContractError(f"A weight is not finite or above {LARGEST:.0f}, the largest float16.")
    if importance is not None:
        if importance.shape != (weights.shape[1],) or not importance.min() >= 0:
            raise ContractError(f"The importance must be {weights.shape[1]} numbers of 0 or more.")
        importance = np.ascontiguousarray(importance, np.float32)
    return np.ascontiguousarray(weights), importance


def _empty_matrix(of_format: QuantFormat, rows: int, columns: int) -> QuantizedMatrix:
    shape = (rows, -(-columns // of_format.group_size))
    minima = None if of_format.symmetric else np.empty(shape, np.float16)
    return QuantizedMatrix(of_format, np.empty((rows, columns), np.int8), np.empty(shape, np.float16), minima)


def _half(values: NDArray[Any]) -> Floats:
    halves: NDArray[np.float16] = np.clip(values, -LARGEST, LARGEST).astype(np.float16)
    return halves.astype(np.float32)


def _add(terms: Floats) -> Floats:
    """Sums of rows in the kernel's order: 16 lanes, then halves."""
    lanes = np.zeros((len(terms), _LANES), np.float32)
    for start in range(0, terms.shape[1], _LANES):
        lanes += terms[:, start : start + _LANES]
    width = _LANES // 2
    while width:
        lanes = lanes[:, :width] + lanes[:, width:]
        width //= 2
    return lanes[:, 0]


class _Groups:
    """Groups of one width and the best that was found for each."""

    def __init__(self, weights: Floats, importance: Floats, of_format: QuantFormat) -> None:
        padding = ((0, 0), (0, -weights.shape[1] % _LANES))
        self._format = of_format
        self._real = weights
        self._w, self._h = np.pad(weights, padding), np.pad(importance, padding)
        self._low, self._high = (np.float32(limit) for limit in of_format.limits)
        self._error = np.full(len(weights), np.inf, np.float32)
        self.codes = np.zeros_like(self._w)
        self.scales = np.zeros(len(weights), np.float32)
        self.minima = np.zeros(len(weights), np.float32)

    def search(self) -> None:
        least, most = self._real.min(axis=1), self._real.max(axis=1)
        zero = np.zeros_like(least)
        every = np.ones(len(least), bool)
        if self._format.symmetric:
            top = np.where(most >= -least, most, least)
            self._consider(zero, zero, every)
            for divisor in candidates(self._format):
                self._consider(_half(top / divisor), zero, every)
        else:
            middle = (least + most) * np.float32(0.5)
            self._consider(zero, _half(middle), every)
            for share in candidates(self._format):
                scale = _half((most - least) * share / (self._high - self._low))
                self._consider(scale, _half(middle + np.float32(0.5) * scale), every)
        going = every
        for _ in range(_PASSES):
            scale, minimum, solvable = self._least_squares()
            going = self._consider(scale, minimum, going & solvable)

    def _consider(self, scale: Floats, minimum: Floats, where: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Keeps what is better; returns where it was."""
        inverse = np.divide(np.float32(1), scale, out=np.zeros_like(scale), where=scale != 0)
        codes = np.clip((self._w - minimum[:, None]) * inverse[:, None], self._low, self._high)
        codes = (codes + _MAGIC) - _MAGIC
        wrong = self._w - (scale[:, None] * codes + minimum[:, None])
        error = _add(self._h * (wrong * wrong))
        better = where & (error < self._error)
        self._error[better], self.scales[better], self.minima[better] = error[better], scale[better], minimum[better]
        self.codes[better] = codes[better]
        return better

    def _least_squares(self) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        h, q, w = self._h, self.codes, self._w
        weighted = h * q
        if self._format.symmetric:
            above, below = _add(weighted * w), _add(weighted * q)
            solvable = below > 0
            scale = np.divide(above, below, out=np.zeros_like(above), where=solvable)
            return _half(scale), np.zeros_like(scale), solvable
        s, sq, sqq, sw, sqw = _add(h), _add(weighted), _add(weighted * q), _add(h * w), _add(weighted * w)
        determinant = s * sqq - sq * sq
        solvable = determinant > np.float32(1e-6) * (s * sqq)
        safe = np.where(solvable, determinant, np.float32(1))
        return _half((s * sqw - sq * sw) / safe), _half((sqq * sw - sq * sqw) / safe), solvable
