"""How the matrix-vector kernel's work is cut; no GPU is needed."""

from __future__ import annotations

import itertools

import pytest

from kernels.compile.contracts import contract_of
from kernels.errors import ContractError
from kernels.launch import matvec
from kernels.weights.quant_format import BITS, GROUP_SIZES, QuantFormat

FORMATS = [QuantFormat(bits, group, symmetric) for bits in BITS for group in GROUP_SIZES for symmetric in (True, False)]
W4 = QuantFormat(4, 128)
SHARED_BYTES = {75: 64 << 10, 80: 163 << 10, 86: 99 << 10, 90: 227 << 10}
ROWS, COLUMNS, SM_COUNTS = (16, 48, 2560, 5008, 22016), (128, 576, 2048, 11008, 18944, 32768), (1, 16, 132)


@pytest.mark.parametrize("of_format", FORMATS, ids=lambda of_format: of_format.name)
@pytest.mark.parametrize("arch", SHARED_BYTES)
@pytest.mark.parametrize("tokens", matvec.TOKENS)
@pytest.mark.parametrize("epilogue", matvec.EPILOGUES)
def test_every_plan_fits_and_keeps_the_contract(of_format: QuantFormat, arch: int, tokens: int, epilogue: str) -> None:
    limit = SHARED_BYTES[arch]
    contract = contract_of("matvec.cu", "matvec")
    norm = epilogue != "add"
    for rows, columns, sms in itertools.product(ROWS, COLUMNS, SM_COUNTS):
        rows = rows // 32 * 32 or 32 if epilogue == "gated" else rows
        product = matvec.Product(of_format, rows, columns, epilogue, norm)
        launches = matvec.plan(product, tokens, limit, sms)
        assert sum(count for count, _ in launches) == tokens
        for count, plan in launches:
            assert plan.shared_bytes <= limit
            assert plan.units <= plan.grid * plan.block_units + plan.more_blocks
            assert plan.more_blocks < plan.grid or plan.block_units == 0
            assert plan.grid <= max(sms, 1) or plan.grid == plan.units
            # A block without work repeats one that has some.
            assert plan.block_units or plan.grid - plan.more_blocks <= plan.units
            arguments = matvec.MatvecArguments(
                16, 16, 0, 16 * norm, 16, 16, 1e-6, rows, columns, count, plan.tiles, plan.units, plan.slices,
                plan.slice_tiles, plan.windows, plan.window_slices, plan.batch_units, plan.units_at_once,
                plan.block_units, plan.more_blocks, 1.0 / columns,
            )  # fmt: skip
            contract.check(arguments, matvec.defines(product, plan))


@pytest.mark.parametrize("arch", SHARED_BYTES)
@pytest.mark.parametrize("columns", COLUMNS)
def test_sums_have_one_order_for_all_tokens_rows_and_sms(columns: int, arch: int) -> None:
    orders = {
        (plan.slices, plan.slice_tiles, plan.build.warps)
        for tokens, rows, sms, norm in itertools.product(range(1, 17), ROWS, SM_COUNTS, (True, False))
        for product in (matvec.Product(W4, rows, columns, "store", norm),)
        for _, plan in matvec.plan(product, tokens, SHARED_BYTES[arch], sms)
    }
    assert len(orders) == 1


def test_a_block_for_every_sm_unless_most_would_idle() -> None:
    products = [matvec.Product(W4, rows, 2048, "add", False) for rows in ROWS]
    plans = [matvec.plan(product, 1, SHARED_BYTES[90], 132) for product in products]
    assert [plan.grid for ((_, plan),) in plans] == [1, 3, 132, 132, 132]


def launches(columns: int, tokens: int, arch: int) -> list[tuple[int, int, int]]:
    """Tokens, slots of the rings and rounds of the input of each launch of a gate and up projection."""
    plans = matvec.plan(matvec.Product(W4, 22016, columns, "gated", True), tokens, SHARED_BYTES[arch], 16)
    return [(count, plan.build.stages, plan.input_rounds) for count, plan in plans]


def test_rings_make_room_for_the_input() -> None:
    assert launches(2048, 4, 86) == [(4, 2, 1)]
    assert launches(2048, 8, 86) == [(8, 1, 1)]
    assert launches(2048, 8, 90) == [(8, 2, 1)]


def test_sixteen_tokens_are_two_launches_where_shared_memory_is_small() -> None:
    assert launches(2048, 16, 86) == [(8, 1, 1), (8, 1, 1)]
    assert launches(2048, 13, 86) == [(8, 1, 1), (5, 1, 1)]
    assert launches(2048, 13, 90) == [(13, 2, 1)]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ContractError, match="even in slices"):
        matvec.plan(matvec.Product(QuantFormat(8, 32), 48, 32768, "store", True), 8, 16 << 10, 132)


def test_structure_is_the_kernels() -> None:
    contract_of("matvec.cu", "matvec").check_structure(matvec.MatvecArguments)
