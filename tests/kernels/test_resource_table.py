"""resource_table.py: what ships is compiled here, without a GPU, and needs what the committed table says."""

from __future__ import annotations

import pytest

from kernels import compiler, resource_table
from kernels.resource_table import ARCHS, Needs
from kernels.variants import VARIANTS, combinations

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
    built = resource_table.build_all(resource_table.jobs())
    version, committed = resource_table.read_table(resource_table.TABLE)
    assert resource_table.spills(built) == []
    problems = resource_table.differences(built, committed, version == resource_table.compiler_version())
    assert problems == [], "after a change of a kernel: python -m kernels.resource_table --write"
    assert all(set(entries) == set(ARCHS) for entries in built.values())


def test_every_source_has_variants_that_ship():
    assert set(VARIANTS) == {path.name for path in compiler.SOURCE_DIR.glob("*.cu")}
    for source, variants in VARIANTS.items():
        assert variants, source
        assert len({tuple(sorted(v.items())) for v in variants}) == len(variants), f"{source} lists one twice"


def test_combinations():
    assert combinations(A=(1, 2), B=(3,)) == ({"A": 1, "B": 3}, {"A": 2, "B": 3})
    assert combinations() == ({},)


@pytest.fixture
def small(tmp_path, monkeypatch):
    """One small source that ships in two variants, and a table of its own."""
    (tmp_path / "a.cu").write_text(SOURCE)
    monkeypatch.setattr(compiler, "SOURCE_DIR", tmp_path)
    monkeypatch.setattr(compiler, "cache_dir", lambda: tmp_path / "cache")
    monkeypatch.setattr(resource_table, "TABLE", tmp_path / "resources.toml")
    monkeypatch.setattr(resource_table, "VARIANTS", {"a.cu": ({"SIZE": 64}, {"SIZE": 128})})
    # Other processes would not know of these.
    monkeypatch.setattr("os.cpu_count", lambda: 1)
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
