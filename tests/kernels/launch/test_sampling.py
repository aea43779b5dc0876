"""What of the sampler needs no GPU: the structs and constants that two languages share."""

from __future__ import annotations

import re
from ctypes import sizeof

from kernels.compile.compiler import SOURCE_DIR
from kernels.compile.contracts import contract_of
from kernels.compile.struct_types import layout_of, read_structs
from kernels.launch import sampling

SOURCE = "".join(
    (SOURCE_DIR / name).read_text(encoding="utf-8")
    for name in ("sampling.cuh", "sampling_threshold.cuh", "sampling.cu")
)


def macro(name: str) -> int:
    found = re.search(rf"^#define {name} (-?\d+)$", SOURCE, re.MULTILINE)
    assert found is not None, name
    return int(found[1])


def test_structs_are_the_kernels() -> None:
    contract_of("sampling.cu", "sample").check_structure(sampling.SampleArguments)
    contract_of("sampling.cu", "uniform_numbers").check_structure(sampling.UniformArguments)
    assert layout_of(sampling.SamplingRow) == read_structs(SOURCE)["SamplingRow"]
    assert sizeof(sampling.SamplingRow) == 56


def test_numbers_are_the_kernels() -> None:
    for name in ("LOGIT_IS_NAN", "LOGIT_IS_INFINITE", "ALL_MINUS_INFINITE", "ROW_IS_IDLE"):
        assert macro(name) == getattr(sampling, name)
    assert macro("LARGEST_VOCABULARY") == sampling.MAX_VOCABULARY
    blocks, bins, histograms = macro("MAX_BLOCKS"), macro("BINS"), macro("HISTOGRAMS")
    # 64 bytes; totals, kept, equal of each block; sum, least, most of each bin.
    needed = 64 + blocks * (8 + 8 + 4) + histograms * bins * (8 + 4 + 4)
    assert sampling.planned_sampler_bytes(1, 32) == -(-needed // 256) * 256 + 2 * 256


def test_the_sum_of_all_weights_fits_64_bits() -> None:
    for vocab_size in (1, 2, 49_152, 151_936, 1 << 20):
        assert 2.0 ** (63 - (vocab_size - 1).bit_length()) * vocab_size <= 2.0**63
