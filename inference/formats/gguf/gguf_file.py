"""The GGUF container, versions 2 and 3: metadata and tensor table, nothing of models.

The file is not trusted. Every count, length, offset and size is checked against the file's size, and against the limits
below, before anything is read or allocated by it; what does not fit raises ModelFormatError with the place, the value
and the limit. Strings and arrays are walked over when the file is opened, and decoded only when they are asked for.

Source: the GGUF specification of the ggml project.
"""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from inference.errors import ModelFormatError, UnsupportedModelError
from inference.formats.mapped_file import map_file
from kernels.weights.reference import BLOCK_LAYOUTS

# Far above any real file, and low enough that the largest hostile one is refused in well under a second.
MAX_TENSORS = 65_536
MAX_METADATA = 16_384
MAX_STRINGS = 2_097_152
MAX_NAME_BYTES = 1_024
MAX_TEXT_BYTES = 1 << 26
"""Of one text or of all texts of an array; the largest vocabularies take a few MiB."""

MAX_DIMENSIONS = 4
MAX_ALIGNMENT = 65_536

DEFAULT_ALIGNMENT = 32

_SCALARS: dict[int, struct.Struct] = {
    0: struct.Struct("<B"),
    1: struct.Struct("<b"),
    2: struct.Struct("<H"),
    3: struct.Struct("<h"),
    4: struct.Struct("<I"),
    5: struct.Struct("<i"),
    6: struct.Struct("<f"),
    7: struct.Struct("<B"),
    10: struct.Struct("<Q"),
    11: struct.Struct("<q"),
    12: struct.Struct("<d"),
}
_BOOL, _STRING, _ARRAY = 7, 8, 9
_INTEGERS = (0, 1, 2, 3, 4, 5, 10, 11)
_U32 = _SCALARS[4]
_U64 = _SCALARS[10]

# ggml's type numbers; those without a layout are named so that the refusal can name them.
_KINDS: dict[int, str] = {
    0: "f32", 1: "f16", 2: "q4_0", 3: "q4_1", 6: "q5_0", 7: "q5_1", 8: "q8_0", 9: "q8_1", 10: "q2_k", 11: "q3_k",
    12: "q4_k", 13: "q5_k", 14: "q6_k", 15: "q8_k", 16: "iq2_xxs", 17: "iq2_xs", 18: "iq3_xxs", 19: "iq1_s",
    20: "iq4_nl", 21: "iq3_s", 22: "iq2_s", 23: "iq4_xs", 24: "i8", 25: "i16", 26: "i32", 27: "i64", 28: "f64",
    29: "iq1_m", 30: "bf16", 34: "tq1_0", 35: "tq2_0", 39: "mxfp4", 40: "nvfp4",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class GgufString:
    """A string that has not been decoded: `num_bytes` of UTF-8 at `offset` of the file."""

    offset: int
    num_bytes: int


@dataclass(frozen=True, slots=True)
class GgufArray:
    """An array that has not been decoded: `count` elements of GGUF type `element_type` from `offset` of the file on."""

    element_type: int
    count: int
    offset: int


GgufValue = int | float | bool | GgufString | GgufArray


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """Where a tensor lies.

    Attributes:
        shape: slowest dimension first, as NumPy has it (the file states them the other way round).
        kind: a key of kernels.weights.reference.BLOCK_LAYOUTS.
        offset: of its first byte, from the start of the file.
    """

    name: str
    shape: tuple[int, ...]
    kind: str
    offset: int
    num_bytes: int


class GgufFile:
    """An open GGUF file.

    Attributes:
        version: 2 or 3.
        metadata: by key, in file order.
        tensors: by name, in file order.
    """

    def __init__(self, path: Path) -> None:
        """Maps the file and checks it as a whole.

        Raises:
            ModelFormatError: truncated, hostile or no GGUF file.
            UnsupportedModelError: sound, but big endian, version 1, or with weights of a kind that this engine lacks.
            ModelNotFoundError: no such file.
        """
        self.path = path
        self._bytes: NDArray[np.uint8] | None = map_file(path)
        self._buffer = self._bytes.data
        self._size = len(self._buffer)
        self._position = 0
        self._strings_left = MAX_STRINGS
        self.version, num_tensors, num_metadata = self._read_header()
        self.metadata: Mapping[str, GgufValue] = MappingProxyType(self._read_metadata(num_metadata))
        self.tensors: Mapping[str, GgufTensor] = MappingProxyType(self._read_tensor_table(num_tensors))

    def close(self) -> None:
        """Lets go of the file. Views handed out keep the mapping alive until they are gone too."""
        self._buffer.release()
        self._bytes = None

    def tensor_bytes(self, tensor: GgufTensor) -> NDArray[np.uint8]:
        """A tensor's bytes: a read-only view (num_bytes,) of the mapped file."""
        if self._bytes is None:
            raise ValueError(f"{self.path} has been closed.")
        return self._bytes[tensor.offset : tensor.offset + tensor.num_bytes]

    def string(self, key: str) -> str | None:
        """A string of the metadata, None where the key is missing."""
        value = self.metadata.get(key)
        if value is None:
            return None
        if not isinstance(value, GgufString):
            self._fail(f"the metadata {key!r} is no string")
        if value.num_bytes > MAX_TEXT_BYTES:
            self._fail(f"the metadata {key!r} has {value.num_bytes} bytes, but at most {MAX_TEXT_BYTES} are allowed")
        return self._decode(value.offset, value.num_bytes, f"the metadata {key!r}")

    def strings(self, key: str) -> tuple[str, ...]:
        """An array of strings of the metadata, () where the key is missing."""
        array = self._array(key, (_STRING,), "strings")
        if array is None:
            return ()
        buffer, position, unpack = self._buffer, array.offset, _U64.unpack_from
        values = []
        try:
            for _ in range(array.count):
                (length,) = unpack(buffer, position)
                position += 8 + length
                values.append(str(buffer[position - length : position], "utf-8"))
        except UnicodeDecodeError:
            self._fail(f"string {len(values)} of {key!r} is not UTF-8")
        return tuple(values)

    def integers(self, key: str) -> tuple[int, ...]:
        """An array of integers of the metadata, () where the key is missing."""
        array = self._array(key, _INTEGERS, "integers")
        if array is None:
            return ()
        element = np.dtype(_SCALARS[array.element_type].format)
        return tuple(np.frombuffer(self._buffer, element, array.count, array.offset).tolist())

    def _array(self, key: str, element_types: tuple[int, ...], noun: str) -> GgufArray | None:
        value = self.metadata.get(key)
        if value is None:
            return None
        if not isinstance(value, GgufArray) or value.element_type not in element_types:
            self._fail(f"the metadata {key!r} is no array of {noun}")
        return value

    def _fail(self, what: str) -> NoReturn:
        raise ModelFormatError(f"{self.path.name} is damaged or not a model: {what}. Fetch the file again.")

    def _take(self, num_bytes: int, what: str) -> int:
        """Steps over `num_bytes`, which must still be in the file; returns where they start."""
        start = self._position
        if num_bytes > self._size - start:
            self._fail(f"{what} takes {num_bytes} bytes at byte {start}, but the file ends at byte {self._size}")
        self._position = start + num_bytes
        return start

    def _u32(self, what: str) -> int:
        value: int = _U32.unpack_from(self._buffer, self._take(4, what))[0]
        return value

    def _u64(self, what: str) -> int:
        value: int = _U64.unpack_from(self._buffer, self._take(8, what))[0]
        return value

    def _count(self, what: str, limit: int) -> int:
        value = self._u64(what)
        if value > limit:
            self._fail(f"{what} is {value}, but at most {limit} are allowed")
        return value

    def _decode(self, offset: int, num_bytes: int, what: str) -> str:
        try:
            return str(self._buffer[offset : offset + num_bytes], "utf-8")
        except UnicodeDecodeError:
            self._fail(f"{what} is not UTF-8")

    def _name(self, what: str) -> str:
        length = self._count(f"the length of {what}", MAX_NAME_BYTES)
        return self._decode(self._take(length, what), length, what)

    def _read_header(self) -> tuple[int, int, int]:
        magic = bytes(self._buffer[:4])
        if magic != b"GGUF":
            self._fail(f"it begins with {magic!r} instead of b'GGUF'")
        self._position = 4
        version = self._u32("the version")
        if version in (2, 3):
            num_tensors = self._count("the number of tensors", MAX_TENSORS)
            return version, num_tensors, self._count("the number of metadata entries", MAX_METADATA)
        if version == 1 or version in (1 << 24, 2 << 24, 3 << 24):
            which = "version 1" if version == 1 else "big endian"
            raise UnsupportedModelError(
                f"{self.path.name} is a GGUF file in {which}, but this engine reads versions 2 and 3 in little endian."
                " Convert the model again with a current converter."
            )
        self._fail(f"its GGUF version is {version}, but it must be 2 or 3")

    def _read_metadata(self, count: int) -> dict[str, GgufValue]:
        metadata: dict[str, GgufValue] = {}
        for index in range(count):
            key = self._name(f"the key of metadata entry {index}")
            if key in metadata:
                self._fail(f"the metadata {key!r} occurs twice")
            metadata[key] = self._read_value(self._u32(f"the type of {key!r}"), key)
        return metadata

    def _read_value(self, value_type: int, key: str) -> GgufValue:
        scalar = _SCALARS.get(value_type)
        if scalar is not None:
            (value,) = scalar.unpack_from(self._buffer, self._take(scalar.size, f"the metadata {key!r}"))
            if value_type == _BOOL:
                if value > 1:
                    self._fail(f"the metadata {key!r} is a truth value of {value}")
                return bool(value)
            number: int | float = value
            return number
        if value_type == _STRING:
            length = self._u64(f"the length of {key!r}")
            return GgufString(self._take(length, f"the metadata {key!r}"), length)
        if value_type == _ARRAY:
            return self._read_array(key)
        self._fail(f"the metadata {key!r} has the unknown type {value_type}")

    def _read_array(self, key: str) -> GgufArray:
        what = f"the array {key!r}"
        element_type = self._u32(f"the element type of {key!r}")
        count = self._u64(f"the length of {key!r}")
        scalar = _SCALARS.get(element_type)
        if scalar is not None:
            return GgufArray(element_type, count, self._take(count * scalar.size, what))
        if element_type != _STRING:
            noun = "arrays" if element_type == _ARRAY else f"the unknown type {element_type}"
            self._fail(f"{what} holds {noun}")
        if count > self._strings_left or count * 8 > self._size - self._position:
            self._fail(f"{what} claims {count} strings, more than the file can hold or than {MAX_STRINGS} in all")
        self._strings_left -= count
        start = self._position
        self._skip_strings(count, what)
        if self._position - start > MAX_TEXT_BYTES:
            self._fail(f"{what} has {self._position - start} bytes, but at most {MAX_TEXT_BYTES} are allowed")
        return GgufArray(element_type, count, start)

    def _skip_strings(self, count: int, what: str) -> None:
        # The hot loop of opening a file: some 300 000 strings of a vocabulary and its merges.
        buffer, position, unpack, last = self._buffer, self._position, _U64.unpack_from, self._size - 8
        for index in range(count):
            if position > last:
                self._fail(f"{what} runs over the file's end at byte {self._size}, at string {index} of {count}")
            position += 8 + unpack(buffer, position)[0]
        if position > self._size:
            self._fail(f"{what} ends at byte {position}, but the file ends at byte {self._size}")
        self._position = position

    def _read_tensor_table(self, count: int) -> dict[str, GgufTensor]:
        entries = [self._read_tensor_entry(index) for index in range(count)]
        alignment = self.metadata.get("general.alignment", DEFAULT_ALIGNMENT)
        if type(alignment) is not int or not 1 <= alignment <= MAX_ALIGNMENT or alignment & (alignment - 1):
            self._fail(f"its alignment is {alignment}, but it must be a power of two up to {MAX_ALIGNMENT}")
        data_start = -(-self._position // alignment) * alignment
        tensors: dict[str, GgufTensor] = {}
        for name, shape, kind, offset in entries:
            if name in tensors:
                self._fail(f"the tensor {name!r} occurs twice")
            tensors[name] = self._place(name, shape, kind, offset, data_start, alignment)
        self._check_overlaps(tensors)
        return tensors

    def _read_tensor_entry(self, index: int) -> tuple[str, tuple[int, ...], str, int]:
        name = self._name(f"the name of tensor {index}")
        num_dimensions = self._u32(f"the number of dimensions of {name!r}")
        if not 1 <= num_dimensions <= MAX_DIMENSIONS:
            self._fail(f"the tensor {name!r} has {num_dimensions} dimensions, but 1 to {MAX_DIMENSIONS} are allowed")
        shape = tuple(self._u64(f"the shape of {name!r}") for _ in range(num_dimensions))[::-1]
        type_number = self._u32(f"the type of {name!r}")
        kind = _KINDS.get(type_number)
        if kind is None:
            self._fail(f"the tensor {name!r} has the unknown type {type_number}")
        if kind not in BLOCK_LAYOUTS:
            raise UnsupportedModelError(
                f"{self.path.name} stores {name!r} as {kind}, but this engine runs {', '.join(BLOCK_LAYOUTS)}."
                " Take the same model in one of these, Q4_K_M for example."
            )
        return name, shape, kind, self._u64(f"the offset of {name!r}")

    def _place(
        self, name: str, shape: tuple[int, ...], kind: str, offset: int, data_start: int, alignment: int
    ) -> GgufTensor:
        layout = BLOCK_LAYOUTS[kind]
        if min(shape) == 0 or shape[-1] % layout.values:
            self._fail(
                f"the tensor {name!r} of kind {kind} has the shape {shape},"
                f" but rows must be multiples of {layout.values}"
            )
        num_bytes = math.prod(shape) // layout.values * layout.bytes
        if offset % alignment:
            self._fail(f"the tensor {name!r} starts at {offset}, which is no multiple of the alignment {alignment}")
        end = data_start + offset + num_bytes
        if end > self._size:
            self._fail(f"the tensor {name!r} {shape} ends at byte {end}, but the file ends at byte {self._size}")
        return GgufTensor(name, shape, kind, data_start + offset, num_bytes)

    def _check_overlaps(self, tensors: Mapping[str, GgufTensor]) -> None:
        by_offset = sorted(tensors.values(), key=lambda tensor: tensor.offset)
        for first, second in itertools.pairwise(by_offset):
            if first.offset + first.num_bytes > second.offset:
                self._fail(f"the tensors {first.name!r} and {second.name!r} overlap")
