"""The safetensors container: a table of tensors and where they lie, checked against the file's size before it is used.

Source: the format's description in the safetensors project.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from inference.errors import ModelFormatError, UnsupportedModelError
from inference.formats.json_file import MIB, parse_object
from inference.formats.mapped_file import map_file

MAX_HEADER_BYTES = 16 * MIB
"""Of a file's table of tensors; real ones stay below 1 MiB."""

_KINDS = {"F32": ("f32", 4), "F16": ("f16", 2), "BF16": ("bf16", 2)}
# Other types that the format has: sound, but not run here.
_OTHER_TYPES = ("F64", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8", "BOOL", "F8_E4M3", "F8_E5M2", "C64")


@dataclass(frozen=True, slots=True)
class SafetensorsTensor:
    """Where a tensor lies; `offset` counts from the start of the file."""

    shape: tuple[int, ...]
    kind: str
    offset: int
    num_bytes: int


class SafetensorsFile:
    """An open safetensors file.

    Attributes:
        tensors: by name, in the order of the table.
    """

    def __init__(self, path: Path, takes_bytes: bool = False) -> None:
        """Maps the file and checks its table; `takes_bytes`: tensors of type U8 too, which become "u8".

        Raises:
            ModelFormatError: truncated, hostile or no safetensors file.
            UnsupportedModelError: a tensor is of a type other than F32, F16 and BF16.
            ModelNotFoundError: no such file.
        """
        self.path = path
        self._kinds = {**_KINDS, "U8": ("u8", 1)} if takes_bytes else _KINDS
        self._bytes: NDArray[np.uint8] | None = map_file(path)
        size = self._bytes.size
        if size < 8:
            self._fail(f"it has {size} bytes, but its header alone takes 8")
        header_bytes = int(self._bytes[:8].view("<u8")[0])
        if header_bytes > min(size - 8, MAX_HEADER_BYTES):
            self._fail(
                f"its table claims {header_bytes} bytes, but the file has {size} and a table at most {MAX_HEADER_BYTES}"
            )
        self._data_start = 8 + header_bytes
        self._data_bytes = size - self._data_start
        table = parse_object(self._bytes[8 : self._data_start].tobytes(), f"The table of tensors of {path.name}")
        table.pop("__metadata__", None)
        self.tensors: Mapping[str, SafetensorsTensor] = {
            name: self._entry(name, entry) for name, entry in table.items()
        }
        self._check_overlaps()

    def close(self) -> None:
        """Lets go of the file. Views handed out keep the mapping alive until they are gone too."""
        self._bytes = None

    def tensor_bytes(self, tensor: SafetensorsTensor) -> NDArray[np.uint8]:
        """A tensor's bytes: a read-only view (num_bytes,) of the mapped file."""
        if self._bytes is None:
            raise ValueError(f"{self.path} has been closed.")
        return self._bytes[tensor.offset : tensor.offset + tensor.num_bytes]

    def _fail(self, what: str) -> NoReturn:
        raise ModelFormatError(f"{self.path.name} is damaged or no safetensors file: {what}. Fetch the file again.")

    def _entry(self, name: str, entry: Any) -> SafetensorsTensor:
        if not isinstance(entry, dict):
            self._fail(f"the tensor {name!r} has no description")
        shape, offsets, dtype = _sizes(entry.get("shape")), _sizes(entry.get("data_offsets")), entry.get("dtype")
        if shape is None or offsets is None or len(offsets) != 2 or len(shape) > 8:
            self._fail(f"the tensor {name!r} has no sound shape and offsets")
        if dtype not in self._kinds:
            if dtype in _OTHER_TYPES:
                raise UnsupportedModelError(
                    f"{self.path.name} stores {name!r} as {dtype}, but this engine takes {', '.join(self._kinds)}."
                    " Take the model's original weights, not a quantized copy."
                )
            self._fail(f"the tensor {name!r} has the unknown type {str(dtype)[:40]!r}")
        kind, value_bytes = self._kinds[dtype]
        begin, end = offsets
        num_bytes = math.prod(shape) * value_bytes
        if end - begin != num_bytes:
            self._fail(f"the tensor {name!r} {tuple(shape)} takes {num_bytes} bytes, but is given {end - begin}")
        if end > self._data_bytes:
            self._fail(f"the tensor {name!r} ends at byte {end} of the data, which ends at {self._data_bytes}")
        return SafetensorsTensor(tuple(shape), kind, self._data_start + begin, num_bytes)

    def _check_overlaps(self) -> None:
        by_offset = sorted(self.tensors.items(), key=lambda item: item[1].offset)
        for (first_name, first), (second_name, second) in itertools.pairwise(by_offset):
            if first.offset + first.num_bytes > second.offset:
                self._fail(f"the tensors {first_name!r} and {second_name!r} overlap")


def _sizes(values: Any) -> list[int] | None:
    """The list as it is where it holds whole numbers of 63 bits only, else None."""
    if isinstance(values, list) and all(type(value) is int and 0 <= value < 1 << 63 for value in values):
        return values
    return None
