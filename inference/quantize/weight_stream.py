"""Weights of a source in float32, a few rows at a time, with an adapter merged and every value checked."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from inference.errors import ModelFormatError
from inference.formats.huggingface.lora import LoraAdapter
from inference.formats.mapped_file import drop_file_pages
from inference.formats.model_source import ModelSource, WeightTensor
from kernels.weights.quant_format import TILE_ROWS
from kernels.weights.reference import dequantize
from kernels.weights.rounding import LARGEST

SLICE_WEIGHTS = 4 * 2**20
"""Weights that are float32 at a time: 16 MiB, some of which are copied once or twice more."""

Floats = NDArray[np.float32]


class WeightStream:
    """Reads a source tensor by tensor; holds no more than a slice of one."""

    def __init__(self, source: ModelSource, adapter: LoraAdapter | None = None) -> None:
        self._source = source
        self._adapter = adapter

    def vector(self, name: str) -> Floats:
        """A norm or a bias, (N,).

        Raises:
            ModelFormatError: missing, or a value that is not finite.
        """
        tensor = self._source.tensor(name)
        values = dequantize(tensor.kind, tensor.data, tensor.shape)
        if self._adapter is not None:
            values = self._adapter.merged(name, values)
        return self._checked(name, values, 0)

    def slices(self, name: str, *, every: int = 1) -> Iterator[Floats]:
        """A matrix in slices of whole rows of tiles, (n, K); the last slice may have fewer.

        Args:
            every: of so many tile rows only the first one is read.

        Raises:
            ModelFormatError: missing, or a value that is not finite or too large for float16.
        """
        tensor = self._source.tensor(name)
        rows, columns = tensor.shape
        step = TILE_ROWS if every > 1 else max(1, SLICE_WEIGHTS // columns // TILE_ROWS) * TILE_ROWS
        for start in range(0, rows, step * every):
            yield self._slice(tensor, start, min(start + step, rows))
        drop_file_pages(tensor.data)

    def _slice(self, tensor: WeightTensor, start: int, end: int) -> Floats:
        data = tensor.data[start:end]
        weights = dequantize(tensor.kind, data, (end - start, tensor.shape[1]))
        drop_file_pages(data)
        if self._adapter is not None:
            weights = self._adapter.merged(tensor.name, weights, start)
        return self._checked(tensor.name, weights, start)

    def _checked(self, name: str, values: Floats, first_row: int) -> Floats:
        # Also false where there is NaN.
        if -LARGEST <= values.min() and values.max() <= LARGEST:
            return values
        wrong = np.argwhere(~(np.abs(values) <= LARGEST))
        place = ", ".join(str(int(index)) for index in wrong[0] + np.array([first_row] + [0] * (values.ndim - 1)))
        named, cure = self._source.path.name, "The weights are damaged: fetch the model again."
        if self._adapter is not None and name in self._adapter.changed:
            named += f" with {self._adapter.name}"
            cure = "The adapter or the weights are damaged: fetch them again."
        raise ModelFormatError(
            f"{named} has {len(wrong)} or more values in {name!r} that are not finite or above"
            f" {LARGEST:.0f}, the first at ({place}). {cure}"
        )
