"""compiler.py: builds once for each variant, says what went wrong, and reads what the kernels need. No GPU needed."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from kernels.compile import compiler
from kernels.compile.compiler import Resources, arch_for, build, find
from kernels.errors import CompileError

SOURCE = """\
#include "device.cuh"
struct OneArguments { float* out; };
extern "C" __global__ void one(const __grid_constant__ OneArguments a) {
  __shared__ float staged[VALUE];
  staged[threadIdx.x] = a.out[threadIdx.x];
  __syncthreads();
  a.out[threadIdx.x] = staged[VALUE - 1 - threadIdx.x];
}
extern "C" __global__ void two(const __grid_constant__ OneArguments a) { a.out[0] = VALUE; }
"""


@pytest.fixture
def source(tmp_path, monkeypatch):
    """A source of its own, and an empty cache."""
    monkeypatch.setattr(compiler, "cache_dir", lambda: tmp_path / "cache")
    path = tmp_path / "small.cu"
    path.write_text(SOURCE)
    return path


def test_builds_once_and_finds_it_again(source, monkeypatch):
    assert find(source, "sm_86", {"VALUE": 256}) is None
    built = build(source, "sm_86", {"VALUE": 256})
    assert built.image[:4] == b"\x7fELF"
    assert built.path.read_bytes() == built.image
    assert set(built.resources) == {"one", "two"}
    assert built.resources["one"].shared_bytes == 1024
    assert 0 < built.resources["one"].registers < 64
    assert (built.resources["one"].spill_bytes, built.resources["one"].stack_bytes) == (0, 0)
    monkeypatch.setattr(compiler, "_run_nvrtc", None)
    assert build(source, "sm_86", {"VALUE": 256}) == find(source, "sm_86", {"VALUE": 256}) == built
    assert sorted(path.name for path in built.path.parent.iterdir()) == [built.path.name, built.path.name + ".json"]


def test_each_variant_architecture_and_source_has_its_own(source):
    paths = {build(source, arch, {"VALUE": value}).path for arch in ("sm_75", "sm_86") for value in (32, 64)}
    source.write_text(SOURCE + "// changed\n")
    paths.add(build(source, "sm_75", {"VALUE": 32}).path)
    assert len(paths) == 5


def test_a_changed_header_builds_anew(source, tmp_path, monkeypatch):
    (tmp_path / "device.cuh").write_text("// nothing\n")
    monkeypatch.setattr(compiler, "SOURCE_DIR", tmp_path)
    first = build(source, "sm_86", {"VALUE": 32})
    (tmp_path / "device.cuh").write_text("// something\n")
    assert build(source, "sm_86", {"VALUE": 32}).path != first.path


def cut_image(path):
    path.write_bytes(path.read_bytes()[:-100])


def empty_image(path):
    path.write_bytes(b"")


def remove_sidecar(path):
    path.with_name(path.name + ".json").unlink()


def cut_sidecar(path):
    path.with_name(path.name + ".json").write_text('{"sha256":')


def strange_sidecar(path):
    path.with_name(path.name + ".json").write_text("[]")


@pytest.mark.parametrize("damage", [cut_image, empty_image, remove_sidecar, cut_sidecar, strange_sidecar])
def test_what_is_damaged_is_built_again(source, damage):
    built = build(source, "sm_86", {"VALUE": 32})
    damage(built.path)
    assert find(source, "sm_86", {"VALUE": 32}) is None
    assert build(source, "sm_86", {"VALUE": 32}) == built
    assert find(source, "sm_86", {"VALUE": 32}) == built


def test_several_at_once_build_the_same(source):
    with ThreadPoolExecutor(4) as pool:
        built = list(pool.map(lambda _: build(source, "sm_86", {"VALUE": 32}), range(4)))
    assert all(module == built[0] for module in built)
    assert len(list(built[0].path.parent.iterdir())) == 2


def test_a_refused_source_is_an_error_with_the_log(source):
    with pytest.raises(CompileError, match=r"NVRTC refused small\.cu .*sm_86") as caught:
        build(source, "sm_86")
    assert 'identifier "VALUE" is undefined' in caught.value.log
    assert 'identifier "VALUE" is undefined' in str(caught.value)
    assert list((source.parent / "cache").iterdir()) == []


def test_a_missing_source(source):
    with pytest.raises(CompileError, match="could not be read"):
        build(source.with_name("missing.cu"), "sm_86")


def test_a_cache_that_cannot_be_written(source):
    (source.parent / "cache").write_text("a file")
    with pytest.raises(CompileError, match="could not be read or written"):
        build(source, "sm_86", {"VALUE": 32})


def test_a_compiler_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    compiler._nvrtc.cache_clear()
    try:
        with pytest.raises(CompileError, match=r"missing .* pip install 'deskinfer\[cuda\]'"):
            compiler._nvrtc()
    finally:
        compiler._nvrtc.cache_clear()


def test_a_compiler_that_cannot_be_loaded(monkeypatch):
    from cuda.bindings import nvrtc

    def missing():
        raise RuntimeError("libnvrtc.so.12: cannot open shared object file")

    monkeypatch.setattr(nvrtc, "nvrtcVersion", missing)
    compiler._nvrtc.cache_clear()
    try:
        with pytest.raises(CompileError, match=r"cannot be loaded .*libnvrtc.* pip install"):
            compiler._nvrtc()
    finally:
        compiler._nvrtc.cache_clear()


@pytest.mark.parametrize(
    ("capability", "known", "expected"),
    [
        ((8, 6), (75, 80, 86, 90), "sm_86"),
        ((8, 9), (75, 80, 86, 90), "compute_86"),
        ((13, 0), (75, 80, 86, 120, 121), "compute_121"),
        ((7, 5), (50, 75), "sm_75"),
    ],
)
def test_the_architecture_for_a_gpu(monkeypatch, capability, known, expected):
    monkeypatch.setattr(compiler, "known_archs", lambda: known)
    assert arch_for(capability) == expected


def test_a_gpu_that_is_too_old_or_unknown(monkeypatch):
    with pytest.raises(CompileError, match=r"capability 7\.0; the kernels need 7\.5"):
        arch_for((7, 0))
    monkeypatch.setattr(compiler, "known_archs", lambda: (90, 100))
    with pytest.raises(CompileError, match="knows no architecture"):
        arch_for((8, 6))


def test_ptx_where_the_gpu_is_newer_than_the_compiler(source):
    built = build(source, "compute_75", {"VALUE": 32})
    assert b".target sm_75" in built.image
    assert built.path.suffix == ".ptx"
    assert built.resources == {}
    assert find(source, "compute_75", {"VALUE": 32}) == built


LOG = """\
ptxas info    : 0 bytes gmem, 16 bytes cmem[4]
ptxas info    : Compiling entry function 'matvec' for 'sm_86'
ptxas info    : Function properties for matvec
    48 bytes stack frame, 40 bytes spill stores, 44 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 48 bytes cumulative stack size, 4096 bytes smem, 392 bytes cmem[0]
ptxas info    : Compile time = 2.345 ms
ptxas info    : Function properties for called
    8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Compiling entry function 'plain' for 'sm_86'
ptxas info    : Function properties for plain
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers, used 0 barriers, 360 bytes cmem[0]
"""


def test_the_report_of_ptxas_is_read():
    assert compiler.parse_resources(LOG) == {"matvec": Resources(255, 84, 48, 4096), "plain": Resources(12, 0, 0, 0)}
    assert compiler.parse_resources("") == {}
