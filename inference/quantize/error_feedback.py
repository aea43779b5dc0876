"""Rounding with error feedback: each column makes good what the columns rounded before it have done to the outputs.

Column by column from the last position of a curvature's order to the first: a weight is moved by what the errors so far
weigh in its place, and is then rounded to the nearest. The scales of a tile's groups are searched when its turn comes,
for the moved weights.

Source: Frantar et al., GPTQ (2022), in the form of Babai's nearest plane, which needs no inverse.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inference.quantize.curvature import Curvature, CurvatureBlock
from inference.quantize.quantizer import NearestQuantizer
from kernels.weights.quant_format import QuantFormat, QuantizedMatrix

Floats = NDArray[np.float32]


class FeedbackQuantizer:
    """See the module. Where it is given no curvature it rounds to the nearest.

    Args:
        threads: None is one for each physical core.
    """

    name = "error feedback, searched scale, 1"

    def __init__(self, threads: int | None = None) -> None:
        self._nearest = NearestQuantizer(threads)

    def quantize(
        self, weights: Floats, of_format: QuantFormat, importance: Floats | Curvature | None = None
    ) -> QuantizedMatrix:
        """See Quantizer."""
        if not isinstance(importance, Curvature):
            return self._nearest.quantize(weights, of_format, importance)
        rows, columns = weights.shape
        shape = (rows, -(-columns // of_format.group_size))
        minima = None if of_format.symmetric else np.empty(shape, np.float16)
        matrix = QuantizedMatrix(of_format, np.empty((rows, columns), np.int8), np.empty(shape, np.float16), minima)
        for block in importance.blocks:
            self._fill(matrix, weights, block)
        return matrix

    def close(self) -> None:
        """See Quantizer."""
        self._nearest.close()

    def _fill(self, matrix: QuantizedMatrix, weights: Floats, block: CurvatureBlock) -> None:
        """Rounds the columns of a block; everything is transposed, (position, row), so that columns are contiguous."""
        factor = block.factor
        wanted = np.ascontiguousarray(weights[:, block.order].T)
        errors = np.empty_like(wanted)
        for start, end in block.runs():
            moved = wanted[start:end]
            strength = factor.diagonal()[start:end, None]
            if end < len(wanted):
                moved = moved + (factor[end:, start:end].T @ errors[end:]) / strength
            columns = block.order[start:end]
            scale, minimum = self._scales(matrix, moved, columns, strength[:, 0])
            self._round(matrix, wanted, moved, errors, factor, (start, end), columns, scale, minimum)

    def _scales(
        self, matrix: QuantizedMatrix, moved: Floats, columns: NDArray[np.intp], strength: Floats
    ) -> tuple[Floats, Floats]:
        """Searches the scales of a tile's groups; each as (position, row)."""
        natural = np.argsort(columns)
        size, first = matrix.format.group_size, int(columns.min())
        found = self._nearest.quantize(
            np.ascontiguousarray(moved[natural].T), matrix.format, np.square(strength[natural])
        )
        groups = slice(first // size, first // size + found.scales.shape[1])
        matrix.scales[:, groups] = found.scales
        of_position = (columns - first) // size
        scale = found.scales.astype(np.float32).T[of_position]
        if matrix.minima is None or found.minima is None:
            return scale, np.zeros_like(scale)
        matrix.minima[:, groups] = found.minima
        return scale, found.minima.astype(np.float32).T[of_position]

    def _round(
        self,
        matrix: QuantizedMatrix,
        wanted: Floats,
        moved: Floats,
        errors: Floats,
        factor: Floats,
        run: tuple[int, int],
        columns: NDArray[np.intp],
        scale: Floats,
        minimum: Floats,
    ) -> None:
        start, end = run
        low, high = matrix.format.limits
        codes = np.empty(scale.shape, np.int8)
        inverse = np.divide(np.float32(1), scale, out=np.zeros_like(scale), where=scale != 0)
        for position in range(end - 1, start - 1, -1):
            i = position - start
            target = moved[i]
            if position + 1 < end:
                weight = factor[position + 1 : end, position] / factor[position, position]
                target = target + weight @ errors[position + 1 : end]
            code = np.clip(np.rint((target - minimum[i]) * inverse[i]), low, high)
            errors[position] = wanted[position] - (scale[i] * code + minimum[i])
            codes[i] = code
        matrix.codes[:, columns] = codes.T
