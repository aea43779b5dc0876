"""resource_table.py: what ships is compiled here, without a GPU, and needs what the committed table says."""

from __future__ import annotations

import pytest

from kernels.compile import compiler
from kernels.shipped import resource_table
from kernels.shipped.resource_table import Needs
from kernels.shipped.variants import (
    SHARED_BYTES,
    SMALLEST,
    VARIANTS,
    combinations,
    common_target,
    table_target,
    variants,
)
from kernels.weights.block_tiles import tile_format

GGUF = {tile_format(kind) for kind in ("q4_0", "q4_1", "q4_k", "q5_0", "q5_1", "q5_k", "q6_k", "q8_0", "f16")}

SOURCE = """\
extern "C" __global__ void a(float* out) {
  __shared__ float staged[SIZE];
  staged[threadIdx.x] = out[threadIdx.x];
  __syncthreads();
  out[0] = staged[1];
}
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_shipped_kernels_need_what_the_table_says():
    built = resource_table.build_all(resource_table.table_jobs())
    version, committed = resource_table.read_table(resource_table.TABLE)
    assert resource_table.spills(built) == []
    problems = resource_table.differences(built, committed, version == resource_table.compiler_version())
    assert problems == [], "after a change of a kernel: python -m kernels.shipped.resource_table --write"


def test_every_source_is_held_on_every_architecture():
    assert set(VARIANTS) == {path.name for path in compiler.SOURCE_DIR.glob("*.cu")}
    for arch in SHARED_BYTES:
        jobs = resource_table.jobs([table_target(arch)])
        assert {job.source for job in jobs} == set(VARIANTS)
        names = [(job.source, *sorted(job.defines.items())) for job in jobs]
        assert len(set(names)) == len(names)


def test_the_smallest_gpu_is_held_to_every_format():
    for source in ("matvec.cu", "matmul.cu", "embed.cu"):
        found = {
            (defines["BITS"], defines["GROUP"], defines["MINIMA"])
            for defines in variants(source, table_target(SMALLEST))
        }
        assert found >= {(bits, group, 0) for bits in (3, 4) for group in (32, 64, 128)}
        assert found >= {(of_format.bits, of_format.group_size, int(not of_format.symmetric)) for of_format in GGUF}


def test_common_variants_are_those_of_the_gpu_at_hand():
    large, small = (
        resource_table.jobs([common_target("compute_121", shared_bytes)]) for shared_bytes in (227 << 10, 64 << 10)
    )
    assert {job.arch for job in large} == {"compute_121"}
    assert {job.source for job in large} == {job.source for job in small} == set(VARIANTS)
    assert large != small


def test_combinations():
    assert combinations(A=(1, 2), B=(3,)) == ({"A": 1, "B": 3}, {"A": 2, "B": 3})
    assert combinations() == ({},)


class BuildHere:
    """Leaves it to the one who asks."""

    def __init__(self, jobs):
        pass

    def wait(self):
        pass


@pytest.fixture
def small(tmp_path, monkeypatch):
    """One small source that ships in two variants, and a table of its own."""
    (tmp_path / "a.cu").write_text(SOURCE)
    monkeypatch.setattr(compiler, "SOURCE_DIR", tmp_path)
    monkeypatch.setattr(compiler, "cache_dir", lambda: tmp_path / "cache")
    monkeypatch.setattr(resource_table, "TABLE", tmp_path / "resources.toml")
    own = {"a.cu": lambda target: ({"SIZE": 64}, {"SIZE": 128}, {"SIZE": 64})}
    monkeypatch.setattr(resource_table, "VARIANTS", own)
    monkeypatch.setattr("kernels.shipped.variants.VARIANTS", own)
    monkeypatch.setattr(resource_table, "BuildPool", BuildHere)  # other processes would not know of these
    return tmp_path


def test_a_table_is_written_and_compared(small, capsys):
    table = small / "resources.toml"
    assert resource_table.main([]) == 1
    assert "a.cu SIZE=64: a is not in the table" in capsys.readouterr().out
    assert resource_table.main(["--write"]) == 0
    version, committed = resource_table.read_table(resource_table.TABLE)
    assert version == resource_table.compiler_version()
    assert set(committed) == {"a.cu SIZE=64: a", "a.cu SIZE=128: a"}
    assert committed["a.cu SIZE=128: a"]["sm_86"].shared_bytes == 512
    assert resource_table.main([]) == 0
    table.write_text(table.read_text().replace("512", "511", 1))
    assert resource_table.main([]) == 1
    assert "511" in capsys.readouterr().out


def test_differences_and_spills():
    built = {"a": {"sm_86": Needs(40, 0, 0), "sm_90": Needs(40, 0, 8)}, "b": {"sm_86": Needs(255, 0, 16)}}
    assert resource_table.differences(built, built, same_compiler=True) == []
    assert resource_table.spills(built) == ["b"]
    other = {"a": {"sm_86": Needs(41, 0, 0)}, "c": {"sm_86": Needs(1, 0, 0)}}
    found = resource_table.differences(built, other, same_compiler=True)
    assert found[:2] == ["b is not in the table", "c is in the table but does not ship"]
    assert len(found) == 4
    assert resource_table.differences(built, other, same_compiler=False) == found[:2]


def test_a_source_that_cannot_be_built_is_told(small, capsys):
    (small / "a.cu").write_text("nonsense")
    assert resource_table.main([]) == 1
    assert "NVRTC refused a.cu" in capsys.readouterr().out
