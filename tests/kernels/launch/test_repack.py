"""What of the repacking needs no GPU."""

from __future__ import annotations

import re

from kernels.compile.compiler import SOURCE_DIR
from kernels.compile.contracts import contract_of
from kernels.errors import ContractError
from kernels.launch.repack import KINDS, RepackArguments
from kernels.weights.block_tiles import target_format
from kernels.weights.quant_format import QuantFormat
from kernels.weights.reference import BLOCK_LAYOUTS

SOURCE = (SOURCE_DIR / "repack.cu").read_text(encoding="utf-8")


def test_the_struct_is_the_kernels() -> None:
    contract_of("repack.cu", "repack").check_structure(RepackArguments)


def test_kinds_have_the_kernels_numbers() -> None:
    names = re.search(r"enum Kind \{([^}]*)\}", SOURCE)
    assert names is not None
    assert tuple(name.strip().lower() for name in names[1].split(",")) == KINDS
    assert sorted(KINDS) == sorted(BLOCK_LAYOUTS)


def test_the_kernel_knows_the_formats() -> None:
    """What the contract lets through is what `target_format` does."""
    contract = contract_of("repack.cu", "repack")
    for number, kind in enumerate(KINDS):
        for of_format in (QuantFormat(bits, 32, symmetric) for bits in (4, 8) for symmetric in (True, False)):
            arguments = RepackArguments(
                source=16, destination=16, row_bytes=1, kind=number, rows=16, columns=256, bits=of_format.bits
            )
            arguments.minima = not of_format.symmetric
            try:
                contract.check(arguments, {})
                accepted = True
            except ContractError:
                accepted = False
            try:
                possible = target_format(kind, of_format) == of_format
            except ValueError:
                possible = False
            assert accepted == possible, (kind, of_format.name)
