"""What of the repacking needs no GPU."""

from __future__ import annotations

import re

from kernels.block_tiles import tile_format
from kernels.compiler import SOURCE_DIR
from kernels.contracts import contract_of
from kernels.reference import BLOCK_LAYOUTS
from kernels.repack import KINDS, RepackArguments

SOURCE = (SOURCE_DIR / "repack.cu").read_text(encoding="utf-8")


def test_the_struct_is_the_kernels() -> None:
    contract_of("repack.cu", "repack").check_structure(RepackArguments)


def test_kinds_have_the_kernels_numbers() -> None:
    names = re.search(r"enum Kind \{([^}]*)\}", SOURCE)
    assert names is not None
    assert tuple(name.strip().lower() for name in names[1].split(",")) == KINDS
    assert sorted(KINDS) == sorted(BLOCK_LAYOUTS)


def test_the_kernel_knows_the_formats() -> None:
    """What repack.cu says in words of four bits and minima is what `tile_format` says."""
    found = dict(re.findall(r"const bool (four_bits|minima) = ([^;]*);", SOURCE))
    four_bits, minima = ({kind.lower() for kind in re.findall(r"[QFB]\w+", found[name])} for name in found)
    assert four_bits == {kind for kind in KINDS if tile_format(kind).bits == 4}
    assert minima == {kind for kind in KINDS if not tile_format(kind).symmetric}
