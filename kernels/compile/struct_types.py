"""Fields of structs, as CUDA sources and ctypes write them, in one form that can be compared."""

from __future__ import annotations

import ctypes
import re
from typing import Any

from kernels.errors import ContractError

Layout = tuple[tuple[str, str], ...]
"""((field, type), ...); a type is "pointer", "f32", "i32", "u64", ..., or "i32[4]" for an array."""

_C_TYPES = {
    "float": "f32", "double": "f64", "bool": "u8", "char": "i8", "i8": "i8", "signed char": "i8", "u8": "u8",
    "unsigned char": "u8", "short": "i16", "i16": "i16", "u16": "u16", "unsigned short": "u16", "int": "i32",
    "i32": "i32", "u32": "u32", "unsigned": "u32", "unsigned int": "u32", "i64": "i64", "long long": "i64",
    "u64": "u64", "unsigned long long": "u64",
}  # fmt: skip
_SIGNED, _UNSIGNED, _FLOATS = "bhilq", "?BHILQ", "fd"
_STRUCT = re.compile(r"\bstruct\s+(\w+)\s*\{([^{}]*)\}\s*;")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_QUALIFIER = re.compile(r"\b(?:const|volatile|__restrict__)\b")
_POINTER = re.compile(r"[\w ]+\*\s*(\w+)")
_NUMBERS = re.compile(r"([\w ]+?)\s+(\w+\s*(?:\[\s*\d+\s*\])?(?:\s*,\s*\w+\s*(?:\[\s*\d+\s*\])?)*)")
_DECLARATOR = re.compile(r"(\w+)\s*(?:\[\s*(\d+)\s*\])?")


def read_structs(text: str) -> dict[str, Layout]:
    """{struct: fields} of the plain structs in C text. Those with members of other types are left out."""
    found = {}
    for name, body in _STRUCT.findall(_COMMENT.sub(" ", text)):
        try:
            found[name] = tuple(field for part in body.split(";") if part.strip() for field in _fields(part.strip()))
        except ValueError:
            continue
    return found


def _fields(declaration: str) -> list[tuple[str, str]]:
    """The fields of "const float* x", "u32 a, b", "int sizes[4]". Raises ValueError where it is none of these."""
    text = " ".join(_QUALIFIER.sub(" ", declaration).split())
    if pointer := _POINTER.fullmatch(text):
        return [(pointer.group(1), "pointer")]
    numbers = _NUMBERS.fullmatch(text)
    kind = _C_TYPES.get(numbers.group(1)) if numbers else None
    if numbers is None or kind is None:
        raise ValueError(declaration)
    found = _DECLARATOR.findall(numbers.group(2))
    return [(name, f"{kind}[{count}]" if count else kind) for name, count in found]


def layout_of(structure: type[ctypes.Structure]) -> Layout:
    """The fields of a ctypes struct. Raises ContractError for a packed one, whose offsets C would not have."""
    if getattr(structure, "_pack_", 0):
        raise ContractError(f"{structure.__name__} is packed; the kernels' structs are not.")
    return tuple((field[0], _ctypes_name(field[1])) for field in structure._fields_)


def _ctypes_name(kind: Any) -> str:
    if isinstance(kind, type) and issubclass(kind, ctypes.Array):
        return f"{_ctypes_name(kind._type_)}[{kind._length_}]"
    code = getattr(kind, "_type_", None)
    bits = ctypes.sizeof(kind) * 8
    if code == "P":
        return "pointer"
    for letter, codes in (("i", _SIGNED), ("u", _UNSIGNED), ("f", _FLOATS)):
        if isinstance(code, str) and code in codes:
            return f"{letter}{bits}"
    raise ContractError(f"{kind} has no counterpart in the kernels' structs.")
