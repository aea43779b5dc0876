"""How much errors in a matrix's columns count, alone and together, for inputs that were seen.

For inputs X (T, K) the squared error of the outputs is e (X^T X) e^T for each row e of the weights' errors. A Cholesky
factor L of X^T X turns it into a sum of squares, in which every column, taken in order, can answer for the errors of
those before it.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernels.weights.quant_format import TILE_COLUMNS

BLOCK_COLUMNS = 8192
"""Most columns whose errors are seen together: three matrices of that width squared are in memory at once."""

_DAMPING = 0.01
_CHOLESKY_COLUMNS = 256

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class CurvatureBlock:
    """Some neighbouring columns.

    Attributes:
        order: (B,) column of each position. Whole tiles stay together, and those that count most come last.
        factor: (B, B) lower triangle, rows and columns in that order.
    """

    order: NDArray[np.intp]
    factor: Floats

    def runs(self) -> list[tuple[int, int]]:
        """Positions of each tile's columns, from the last to the first."""
        tiles = self.order // TILE_COLUMNS
        starts = [0, *(np.flatnonzero(np.diff(tiles)) + 1).tolist(), len(tiles)]
        return list(itertools.pairwise(starts))[::-1]


@dataclass(frozen=True, slots=True, eq=False)
class Curvature:
    """Of all columns of a matrix.

    Attributes:
        blocks: errors of different ones do not answer for each other.
        columns: K.
    """

    blocks: tuple[CurvatureBlock, ...]
    columns: int

    def diagonal(self) -> Floats:
        """(K,), what a squared error in each column alone counts."""
        result = np.empty(self.columns, np.float32)
        for block in self.blocks:
            result[block.order] = np.square(block.factor).sum(axis=1)
        return result


def curvature_of(inputs: Floats) -> Curvature:
    """Of the inputs (T, K) of a matrix."""
    columns = inputs.shape[1]
    count = -(-columns // BLOCK_COLUMNS)
    width = -(-columns // count // TILE_COLUMNS) * TILE_COLUMNS
    return Curvature(tuple(_block(inputs, start, width) for start in range(0, columns, width)), columns)


def cholesky(matrix: Floats) -> Floats:
    """The lower triangle L of matrix = L L^T, mostly by products of matrices: the library's own is many times slower.

    Raises:
        numpy.linalg.LinAlgError: the matrix is not positive definite.
    """
    factor = matrix.copy()
    for start in range(0, len(factor), _CHOLESKY_COLUMNS):
        end = min(start + _CHOLESKY_COLUMNS, len(factor))
        corner = np.linalg.cholesky(factor[start:end, start:end].astype(np.float64))
        factor[start:end, start:end] = corner
        factor[start:end, end:] = 0
        below = factor[end:, start:end] @ np.linalg.inv(corner).T.astype(np.float32)
        factor[end:, start:end] = below
        for first in range(0, len(below), 4 * _CHOLESKY_COLUMNS):
            last = first + 4 * _CHOLESKY_COLUMNS
            factor[end + first :, end + first : end + last] -= below[first:] @ below[first:last].T
    return factor


def _block(inputs: Floats, start: int, width: int) -> CurvatureBlock:
    used = inputs[:, start : start + width]
    products = used.T @ used
    diagonal = products.diagonal().astype(np.float64)
    tiles = np.arange(used.shape[1]) // TILE_COLUMNS
    of_tile = np.bincount(tiles, diagonal) / np.bincount(tiles)
    order = np.lexsort((diagonal, tiles, of_tile[tiles]))
    products = products[np.ix_(order, order)]
    damping = _DAMPING * float(diagonal.mean()) + 1e-20
    added = 0.0
    while True:
        # Few tokens leave directions that were never seen.
        products[np.diag_indices_from(products)] += np.float32(damping - added)
        try:
            return CurvatureBlock(order + start, cholesky(products))
        except np.linalg.LinAlgError:
            added, damping = damping, 4 * damping
