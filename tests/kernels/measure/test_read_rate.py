"""The launcher of the kernel that only reads mirrors its source; its speed is a GPU's affair."""

from __future__ import annotations

import pytest

from kernels.compile.contracts import contract_of
from kernels.errors import ContractError
from kernels.measure.read_rate import ReadRateArguments


def test_arguments_mirror_the_source() -> None:
    contract = contract_of("read_rate.cu", "read_rate")
    contract.check_structure(ReadRateArguments)
    contract.check(ReadRateArguments(1, 1, 1), {})
    with pytest.raises(ContractError, match="count"):
        contract.check(ReadRateArguments(1, 0, 1), {})
