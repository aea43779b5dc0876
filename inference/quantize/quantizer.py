"""The seam of rounding methods, and the first of them: to the nearest, with a searched scale."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from inference.quantize.curvature import Curvature
from kernels.errors import CompileError
from kernels.weights.quant_format import QuantFormat, QuantizedMatrix
from kernels.weights.rounding import GroupRounder, round_in_numpy

Floats = NDArray[np.float32]


class Quantizer(Protocol):
    """One way to find codes.

    Attributes:
        name: of the method and its version; checkpoints state it, and of equal inputs the bytes must be equal.
    """

    name: str

    def quantize(
        self, weights: Floats, of_format: QuantFormat, importance: Floats | Curvature | None = None
    ) -> QuantizedMatrix:
        """Rounds whole rows of a matrix. Rows are independent: a matrix may come in slices.

        Args:
            weights: float32 (N, K), finite, at most 65 504 in size.
            importance: what a squared error in a column of the input counts, (K,), or together with those in others;
                None is 1 for all.
        """
        ...

    def close(self) -> None:
        """Frees what it holds."""
        ...


class NearestQuantizer:
    """To the nearest code, with the best of many scales for each group (kernels/weights/rounding.py).

    Args:
        threads: None is one for each physical core.
    """

    name = "nearest, searched scale, 1"

    def __init__(self, threads: int | None = None) -> None:
        try:
            self._rounder: GroupRounder | None = GroupRounder(threads)
        except CompileError:
            # The same bits, only slower.
            self._rounder = None

    def quantize(
        self, weights: Floats, of_format: QuantFormat, importance: Floats | Curvature | None = None
    ) -> QuantizedMatrix:
        """See Quantizer."""
        if isinstance(importance, Curvature):
            importance = importance.diagonal()
        if self._rounder is None:
            return round_in_numpy(weights, of_format, importance)
        return self._rounder.round(weights, of_format, importance)

    def close(self) -> None:
        """See Quantizer."""
        if self._rounder is not None:
            self._rounder.close()
