"""contracts.py and struct_types.py: what headers promise holds for the sources and for the launchers."""

from __future__ import annotations

import ctypes
import importlib
import pkgutil

import pytest

import kernels
from kernels.compile.compiler import SOURCE_DIR
from kernels.compile.contracts import HEADER, contract_of, contracts_of, read_header
from kernels.compile.struct_types import layout_of, read_structs
from kernels.errors import ContractError

HEAD = """\
// Computes: a thing, at length:
//   over two lines
// Arguments: {arguments}
// Requires: {requires}
// Launch: one block
// Numerics: exact
// Oracle: none
// Measured: nothing
// Source: written for this test
"""
CODE = """\
#define WARPS 8  // of a block
#include "part.cuh"
struct OneArguments {
  const float* x;   // (count,), not; this
  u8 *__restrict__ bytes;
  /* int old; */
  int count, rows;
  u64 stride;
  float eps;
  i32 sizes[4];
};
extern "C" __global__ void __launch_bounds__(WARPS * 32, (2)) one(const __grid_constant__ OneArguments a) {}
"""
FIELDS = "x, bytes, count, rows, stride, eps, sizes"


class One(ctypes.Structure):
    _fields_ = (
        ("x", ctypes.c_void_p),
        ("bytes", ctypes.c_uint64),
        ("count", ctypes.c_int),
        ("rows", ctypes.c_int32),
        ("stride", ctypes.c_ulonglong),
        ("eps", ctypes.c_float),
        ("sizes", ctypes.c_int * 4),
    )


@pytest.fixture
def source(tmp_path):
    def write(arguments=FIELDS, requires="count >= 1", code=CODE):
        path = tmp_path / f"one{len(list(tmp_path.iterdir()))}.cu"
        path.write_text(HEAD.format(arguments=arguments, requires=requires) + code)
        return path

    return write


def test_a_struct_may_lie_in_a_header_of_a_header(source, tmp_path):
    struct, entry = CODE.split("struct", 1)[1].rsplit("};", 1)
    (tmp_path / "part.cuh").write_text('#pragma once\n#include "inner.cuh"\n')
    (tmp_path / "inner.cuh").write_text('#include "part.cuh"\nstruct' + struct + "};\n")
    contract = contract_of(source(code='#define WARPS 8\n#include "part.cuh"\n' + entry), "one")
    assert contract.structure == "OneArguments"


# -- the sources and launchers that ship ------------------------------------------------------------------------------

SOURCES = sorted(path.name for path in SOURCE_DIR.glob("*.cu"))


def structures():
    """{name: ctypes struct} of all launchers."""
    found = {}
    for module in pkgutil.walk_packages(kernels.__path__, "kernels."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, type) and issubclass(value, ctypes.Structure) and value.__module__ == module.name:
                found.setdefault(value.__name__, value)
    return found


@pytest.mark.parametrize("name", SOURCES)
def test_a_shipped_source_keeps_its_contract(name):
    contracts = contracts_of(name)
    text = (SOURCE_DIR / name).read_text(encoding="utf-8")
    assert set(contracts) <= set(text.replace("(", " ").split())
    for contract in contracts.values():
        assert contract.structure in structures(), f"no launcher has a ctypes struct {contract.structure}"
        contract.check_structure(structures()[contract.structure])


def test_there_are_shipped_sources():
    assert len(SOURCES) >= 1


# -- headers ----------------------------------------------------------------------------------------------------------


def test_a_header_is_read_over_several_lines(source):
    header = read_header(source().read_text(), "one.cu")
    assert tuple(header) == HEADER
    assert header["Computes"] == "a thing, at length: over two lines"


@pytest.mark.parametrize("line", range(9))
def test_a_header_that_lacks_a_line_is_refused(line):
    lines = HEAD.splitlines()
    if line == 1:
        lines[0] = "// Computes:"
    del lines[line]
    with pytest.raises(ContractError, match="it must be Computes, Arguments"):
        read_header("\n".join(lines), "one.cu")


def test_two_kernels_with_structs_of_their_own(source):
    code = CODE + (
        "struct TwoArguments { float* out; int rows; };\n"
        'extern "C" __global__ void two(const __grid_constant__ TwoArguments a) {}\n'
    )
    path = source(f"one: {FIELDS}; two: out, rows", "rows % 16 == 0; count >= 1; WARPS == 8", code)
    one, two = contract_of(path, "one"), contract_of(path, "two")
    assert [r.text for r in one.requirements] == ["rows % 16 == 0", "count >= 1", "WARPS == 8"]
    assert [r.text for r in two.requirements] == ["rows % 16 == 0", "WARPS == 8"]
    with pytest.raises(ContractError, match="one, two, not three"):
        contract_of(path, "three")


@pytest.mark.parametrize(
    ("arguments", "requires", "code", "message"),
    [
        ("x, bytes, rows, count, stride, eps, sizes", "nothing", CODE, "OneArguments has"),
        (FIELDS, "rowz >= 1", CODE, 'names what is no field of a struct: "?rowz >= 1'),
        (FIELDS, "rows >=", CODE, "which is no expression"),
        (FIELDS, "__import__('os').system('true')", CODE, "Call is not allowed"),
        (FIELDS, "rows.real", CODE, "Attribute is not allowed"),
        (FIELDS, "rows == 'a'", CODE, "Constant is not allowed"),
        (FIELDS, "nothing", CODE.replace("OneArguments {", "Another {"), "has no struct OneArguments"),
        (FIELDS, "nothing", CODE.replace("const __grid_constant__ ", ""), "must take one __grid_constant__ struct"),
        (FIELDS, "nothing", CODE.replace('extern "C"', ""), "has no extern"),
    ],
)
def test_a_header_that_is_not_true_is_refused(source, arguments, requires, code, message):
    with pytest.raises(ContractError, match=message):
        contracts_of(source(arguments, requires, code))


# -- structs ----------------------------------------------------------------------------------------------------------


def test_structs_are_read_as_c_and_as_ctypes(source):
    contract = contract_of(source(), "one")
    assert contract.layout == (
        ("x", "pointer"), ("bytes", "pointer"), ("count", "i32"), ("rows", "i32"), ("stride", "u64"), ("eps", "f32"),
        ("sizes", "i32[4]"),
    )  # fmt: skip
    contract.check_structure(One)


@pytest.mark.parametrize(
    ("index", "field", "message"),
    [
        (2, ("count", ctypes.c_uint), r"field count \(u32\) where OneArguments of one\d.cu has count \(i32\)"),
        (2, ("number", ctypes.c_int), "field number"),
        (4, ("stride", ctypes.c_int64), "i64"),
        (5, ("eps", ctypes.c_double), "f64"),
        (0, ("x", ctypes.c_uint32), "u32"),
        (6, ("sizes", ctypes.c_int * 3), r"i32\[3\]"),
        (6, None, "has 6 fields and OneArguments of one0.cu 7"),
    ],
)
def test_another_field_is_refused(source, index, field, message):
    fields = [*One._fields_[:index], *([field] if field else []), *One._fields_[index + 1 :]]
    with pytest.raises(ContractError, match=message):
        contract_of(source(), "one").check_structure(type("Other", (ctypes.Structure,), {"_fields_": fields}))


def test_a_packed_struct_is_refused():
    fields = [("a", ctypes.c_int)]
    packed = type("Packed", (ctypes.Structure,), {"_pack_": 1, "_layout_": "ms", "_fields_": fields})
    with pytest.raises(ContractError, match="is packed"):
        layout_of(packed)


@pytest.mark.parametrize("field", ["float* a, b", "Other x", "float** a", "int a : 3", "int f(int)"])
def test_a_struct_with_other_members_is_not_guessed_at(field):
    assert read_structs(f"struct A {{ int before; {field}; }};") == {}


# -- values -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("requires", "values", "holds"),
    [
        ("1 <= count <= 8", {"count": 8}, True),
        ("1 <= count <= 8", {"count": 9}, False),
        ("rows % GROUP == 0", {"rows": 128}, True),
        ("rows % GROUP == 0", {"rows": 100}, False),
        ("rows * WARPS < 100", {"rows": 12}, True),
        ("rows * WARPS < 100", {"rows": 13}, False),
        ("x != 0 or count == 0", {}, True),
        ("x != 0 or count == 0", {"count": 1}, False),
        ("count in (2, 4); rows >= 1", {"count": 4, "rows": 1}, True),
        ("count in (2, 4); rows >= 1", {"count": 4}, False),
        ("stride // rows > 3", {"stride": 5}, False),
        ("eps > 0", {"eps": 1e-6}, True),
        ("x % 16 == 0", {"x": 24}, False),
        ("nothing", {}, True),
    ],
)
def test_requirements_are_evaluated(source, requires, values, holds):
    contract = contract_of(source(requires=requires), "one")
    arguments = One(**values)
    if holds:
        contract.check(arguments, {"GROUP": 64})
        return
    with pytest.raises(ContractError, match="given: ") as caught:
        contract.check(arguments, {"GROUP": 64})
    for name, value in values.items():
        if name in str(caught.value):
            assert f"{name} = {value}" in str(caught.value)


def test_a_define_of_the_variant_goes_before_the_sources_own(source):
    contract = contract_of(source(requires="count <= WARPS"), "one")
    contract.check(One(count=8), {})
    with pytest.raises(ContractError, match="WARPS = 4, count = 8"):
        contract.check(One(count=8), {"WARPS": 4})


def test_a_define_that_nobody_gives_is_named(source):
    with pytest.raises(ContractError, match="GROUP"):
        contract_of(source(requires="rows % GROUP == 0"), "one").check(One(), {})
