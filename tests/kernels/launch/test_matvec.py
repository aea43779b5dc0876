"""How the matrix-vector kernel's work is cut; no GPU is needed."""

from __future__ import annotations

import itertools

import pytest

from kernels.compile.contracts import contract_of
from kernels.errors import ContractError
from kernels.launch import matvec
from kernels.weights.quant_format import BITS, GROUP_SIZES, QuantFormat

FORMATS = [QuantFormat(bits, group, symmetric) for bits in BITS for group in GROUP_SIZES for symmetric in (True, False)]
SHARED_BYTES = {75: 64 << 10, 80: 163 << 10, 86: 99 << 10, 90: 227 << 10}
ROWS, COLUMNS, SM_COUNTS = (16, 48, 2560, 5008, 22016), (128, 576, 2048, 11008, 18944, 32768), (1, 16, 132)


@pytest.mark.parametrize("of_format", FORMATS, ids=lambda of_format: of_format.name)
@pytest.mark.parametrize("arch", SHARED_BYTES)
@pytest.mark.parametrize("tokens", matvec.TOKENS)
@pytest.mark.parametrize("epilogue", matvec.EPILOGUES)
def test_every_plan_fits_and_keeps_the_contract(of_format: QuantFormat, arch: int, tokens: int, epilogue: str) -> None:
    limit = SHARED_BYTES[arch]
    build = matvec.Build.of(of_format, limit)
    contract = contract_of("matvec.cu", "matvec")
    norm = epilogue != "add"
    for rows, columns, sms in itertools.product(ROWS, COLUMNS, SM_COUNTS):
        rows = rows // 32 * 32 or 32 if epilogue == "gated" else rows
        plan = matvec.plan(of_format, rows, columns, tokens, epilogue, norm, build, limit, sms)
        assert plan.shared_bytes <= limit
        assert plan.units <= plan.grid * plan.block_units + plan.more_blocks
        assert plan.more_blocks < plan.grid or plan.block_units == 0
        assert plan.grid <= max(sms, 1) or plan.grid == plan.units
        # A block without work repeats one that has some.
        assert plan.block_units or plan.grid - plan.more_blocks <= plan.units
        defines = matvec.defines(of_format, tokens, build, epilogue, norm, plan.windows > 1)
        arguments = matvec.MatvecArguments(
            16, 16, 0, 16 * norm, 16, 16, 1e-6, rows, columns, tokens, plan.tiles, plan.units, plan.slices,
            plan.slice_tiles, plan.windows, plan.window_slices, plan.batch_units, plan.units_at_once,
            plan.block_units, plan.more_blocks, 1.0 / columns,
        )  # fmt: skip
        contract.check(arguments, defines)


@pytest.mark.parametrize("columns", COLUMNS)
def test_sums_have_one_order_for_all_tokens_rows_and_sms(columns: int) -> None:
    of_format, limit = QuantFormat(4, 128), SHARED_BYTES[90]
    build = matvec.Build.of(of_format, limit)
    slices = {
        (plan.slices, plan.slice_tiles)
        for tokens, rows, sms, norm in itertools.product(matvec.TOKENS, ROWS, SM_COUNTS, (True, False))
        for plan in (matvec.plan(of_format, rows, columns, tokens, "store", norm, build, limit, sms),)
    }
    assert len(slices) == 1


def test_a_block_for_every_sm_unless_most_would_idle() -> None:
    of_format, limit = QuantFormat(4, 128), SHARED_BYTES[90]
    build = matvec.Build.of(of_format, limit)
    grids = [matvec.plan(of_format, rows, 2048, 1, "add", False, build, limit, 132).grid for rows in (256, 2048, 22016)]
    assert grids == [16, 132, 132]


def test_what_does_not_fit_is_refused() -> None:
    of_format = QuantFormat(8, 32)
    build = matvec.Build.of(of_format, SHARED_BYTES[90])
    with pytest.raises(ContractError, match="even in slices"):
        matvec.plan(of_format, 48, 32768, 8, "store", True, build, 16 << 10, 132)


def test_structure_is_the_kernels() -> None:
    contract_of("matvec.cu", "matvec").check_structure(matvec.MatvecArguments)
