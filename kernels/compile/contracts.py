"""What the header of a CUDA source promises, executed: its arguments, and what they must satisfy.

A source opens with eight `//` lines, each continued by lines that begin with `//   `:

    // Computes: ...
    // Arguments: the fields of the struct, in order, comma separated
    // Requires: expressions over the fields and the defines, semicolon separated; "nothing" where anything goes
    // Launch: ...   // Numerics: ...   // Oracle: ...   // Measured: ...   // Source: ...

Where a source has kernels with different structs, each list begins with the kernel's name: `a: x, out; b: x, count`. An
expression of "Requires" then holds for the kernels whose structs have all its fields.
"""

from __future__ import annotations

import ast
import ctypes
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

from kernels.compile.compiler import SOURCE_DIR
from kernels.compile.struct_types import Layout, layout_of, read_structs
from kernels.errors import ContractError

HEADER = ("Computes", "Arguments", "Requires", "Launch", "Numerics", "Oracle", "Measured", "Source")
NOTHING = "nothing"

_ALLOWED = (
    ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.BinOp, ast.Add, ast.Sub, ast.Mult,
    ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.LShift, ast.RShift, ast.BitAnd, ast.BitOr, ast.Compare, ast.Eq,
    ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn, ast.Tuple, ast.Constant, ast.Name, ast.Load,
    ast.IfExp,
)  # fmt: skip
_ENTRY = re.compile(
    r'extern\s+"C"\s+__global__\s+(?:void\s+|__launch_bounds__\s*\((?:[^()]|\([^()]*\))*\)\s*)+(\w+)\s*\(\s*([^)]*?)\s*\)'
)
_NO_NAMES: dict[str, Any] = {"__builtins__": {}}
_DEFAULT = re.compile(r"^[ \t]*#define[ \t]+([A-Z]\w*)[ \t]+(\d+)[ \t]*(?://.*)?$", re.MULTILINE)
_PARAMETER = re.compile(r"const\s+__grid_constant__\s+(\w+)\s+\w+")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One expression of a header."""

    text: str
    names: frozenset[str]
    code: CodeType


@dataclass(frozen=True, slots=True, eq=False)
class Contract:
    """What one kernel takes.

    Attributes:
        source: file name.
        kernel: name of the `extern "C"` function.
        structure: name of its parameter's struct.
        layout: the struct's fields.
        requirements: what their values must satisfy.
        constants: {macro: number} that the source and its headers define, where the variant does not.
        all_hold: all requirements as one expression, which is quicker than one after the other.
    """

    source: str
    kernel: str
    structure: str
    layout: Layout
    requirements: tuple[Requirement, ...]
    constants: Mapping[str, int]
    all_hold: CodeType

    def check_structure(self, structure: type[ctypes.Structure]) -> None:
        """Raises ContractError where the fields of a ctypes struct differ from the kernel's in name, order or type."""
        ours = layout_of(structure)
        for mine, theirs in zip(ours, self.layout, strict=False):
            as_number = (theirs[0], "u64") if theirs[1] == "pointer" else theirs
            if mine not in (theirs, as_number):
                raise ContractError(
                    f"{structure.__name__} has the field {mine[0]} ({mine[1]}) where {self.structure} of {self.source}"
                    f" has {theirs[0]} ({theirs[1]})."
                )
        if len(ours) != len(self.layout):
            raise ContractError(
                f"{structure.__name__} has {len(ours)} fields and {self.structure} of {self.source} {len(self.layout)}."
            )

    def check(self, arguments: ctypes.Structure, defines: Mapping[str, int]) -> None:
        """Raises ContractError, with the values, where a requirement does not hold."""
        values: dict[str, Any] = {**self.constants, **defines}
        for name, _ in self.layout:
            values[name] = getattr(arguments, name) or 0  # ctypes reads a null pointer as None
        if _holds(self.all_hold, values):
            return
        for requirement in self.requirements:
            if not _holds(requirement.code, values):
                given = ", ".join(f"{name} = {values.get(name, '?')}" for name in sorted(requirement.names))
                raise ContractError(f"{self.kernel} ({self.source}) requires {requirement.text}; given: {given}.")


def _holds(code: CodeType, values: dict[str, Any]) -> bool:
    try:
        return bool(eval(code, _NO_NAMES, values))
    except (ArithmeticError, TypeError):  # a division by zero, a sequence among numbers
        return False
    except NameError as error:
        raise ContractError(f"A requirement needs a define that was not given: {error}.") from error


@cache
def contracts_of(source: str | Path) -> dict[str, Contract]:
    """{kernel: contract} of a source in kernels/cuda, or of a path.

    Raises:
        ContractError: the header is not complete, its arguments are not the struct's, or an expression is not allowed.
    """
    path = SOURCE_DIR / source
    text = path.read_text(encoding="utf-8")
    header = read_header(text, path.name)
    whole = _with_headers(text, path.parent)
    structs = read_structs(whole)
    constants = {name: int(value) for name, value in reversed(_DEFAULT.findall(whole))}  # the first one holds
    listed = _named_lists(header["Arguments"])
    requirements = _requirements(header["Requires"], path.name)
    found = {}
    for kernel, structure in _entries(text, path.name).items():
        if structure not in structs:
            raise ContractError(f"{path.name} has no struct {structure} for its kernel {kernel}.")
        layout = structs[structure]
        fields = tuple(name for name, _ in layout)
        wanted = listed.get(kernel, listed.get(""))
        if wanted != fields:
            raise ContractError(f'"Arguments" of {path.name} lists {wanted} for {kernel}; {structure} has {fields}.')
        own = tuple(r for r in requirements if _field_names(r) <= set(fields))
        found[kernel] = Contract(path.name, kernel, structure, layout, own, constants, _conjunction(own))
    if not found:
        raise ContractError(f'{path.name} has no extern "C" __global__ function.')
    unused = [r.text for r in requirements if not any(r in contract.requirements for contract in found.values())]
    if unused:
        raise ContractError(f'"Requires" of {path.name} names what is no field of a struct: {"; ".join(unused)}.')
    return found


def contract_of(source: str | Path, kernel: str) -> Contract:
    """The contract of one kernel. Raises ContractError as `contracts_of` does, and where there is no such kernel."""
    found = contracts_of(source)
    if kernel not in found:
        raise ContractError(f"{source} defines {', '.join(found)}, not {kernel}, as a function that can be launched.")
    return found[kernel]


def read_header(text: str, name: str) -> dict[str, str]:
    """{"Computes": ..., ...} of the first lines of a source. Raises ContractError where it is not complete."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        if line.startswith("//   ") and found:
            found[list(found)[-1]] += " " + line[2:].strip()
            continue
        key, colon, content = line[2:].strip().partition(":")
        if not colon or key not in HEADER or key in found:
            break
        found[key] = content.strip()
    if tuple(found) != HEADER or not all(found.values()):
        raise ContractError(
            f"The header of {name} has {', '.join(found) or 'nothing'}; it must be {', '.join(HEADER)}."
        )
    return found


def _named_lists(text: str) -> dict[str, tuple[str, ...]]:
    """{"": names} of "x, out", {"a": names, "b": names} of "a: x, out; b: x"."""
    found = {}
    for part in text.split(";"):
        kernel, colon, names = part.rpartition(":")
        found[kernel.strip() if colon else ""] = tuple(name.strip() for name in names.rstrip(". ").split(","))
    return found


def _requirements(text: str, source: str) -> tuple[Requirement, ...]:
    if text.rstrip(".") == NOTHING:
        return ()
    parts = (part.strip() for part in text.rstrip(".").split(";"))
    return tuple(_requirement(part, source) for part in parts if part)


def _requirement(text: str, source: str) -> Requirement:
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError as error:
        raise ContractError(f'"Requires" of {source} holds {text!r}, which is no expression.') from error
    for node in ast.walk(tree):
        if not isinstance(node, _ALLOWED) or (
            isinstance(node, ast.Constant) and not isinstance(node.value, int | float)
        ):
            raise ContractError(f'"Requires" of {source} holds {text!r}: {type(node).__name__} is not allowed there.')
    names = frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    return Requirement(text, names, compile(tree, f"<{source}>", "eval"))


def _conjunction(requirements: tuple[Requirement, ...]) -> CodeType:
    return compile(" and ".join(f"({requirement.text})" for requirement in requirements) or "True", "<all>", "eval")


def _field_names(requirement: Requirement) -> set[str]:
    """Names in capitals are defines."""
    return {name for name in requirement.names if not name.isupper()}


def _entries(text: str, source: str) -> dict[str, str]:
    """{kernel: struct}."""
    found = {}
    for kernel, parameters in _ENTRY.findall(text):
        parameter = _PARAMETER.fullmatch(parameters)
        if parameter is None:
            raise ContractError(
                f"{kernel} of {source} takes ({parameters}); it must take one __grid_constant__ struct."
            )
        found[kernel] = parameter.group(1)
    return found


def _with_headers(text: str, folder: Path) -> str:
    """The text behind the headers that it includes, and that they include: structs may be defined there."""
    found: dict[Path, str] = {}

    def add(of_text: str) -> None:
        for name in re.findall(r'^#include "(\w+\.cuh)"', of_text, flags=re.MULTILINE):
            for path in (folder / name, SOURCE_DIR / name):
                if path not in found and path.exists():
                    found[path] = path.read_text(encoding="utf-8")
                    add(found[path])

    add(text)
    return "\n".join([*reversed(found.values()), text])
