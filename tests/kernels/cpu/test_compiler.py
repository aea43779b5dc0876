"""compiler.py: builds once, for the right CPU, and says what went wrong."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kernels.cpu import compiler as cpu_compiler
from kernels.errors import CompileError, KernelError


@pytest.fixture
def small_sources(tmp_path, monkeypatch):
    """A folder of sources with one function, and an empty cache."""
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "one.c").write_text('__attribute__((visibility("default"))) int one(void) { return ONE; }\n')
    # The compiler's own cache is shared: filling it takes longer than the tests.
    (tmp_path / "cache").mkdir()
    compiler = cpu_compiler.cache_dir() / "compiler"
    compiler.mkdir(parents=True, exist_ok=True)
    (tmp_path / "cache" / "compiler").symlink_to(compiler, target_is_directory=True)
    monkeypatch.setattr(cpu_compiler, "SOURCE_DIR", folder)
    monkeypatch.setattr(cpu_compiler, "SOURCES", ("one.c",))
    monkeypatch.setattr(cpu_compiler, "cache_dir", lambda: tmp_path / "cache")
    monkeypatch.setattr(cpu_compiler, "_FLAGS", (*cpu_compiler._FLAGS, "-DONE=1"))
    return folder


PLAIN = cpu_compiler.variant("plain")


def test_builds_once_and_finds_it_again(small_sources):
    built = cpu_compiler.build(PLAIN)
    first = built.stat().st_mtime_ns
    assert cpu_compiler.build(PLAIN) == built
    assert built.stat().st_mtime_ns == first
    assert [path.name for path in built.parent.iterdir() if path.suffix != ".sha256" and path.is_file()] == [built.name]


@pytest.mark.parametrize("damage", [b"", b"\x7fELF", None])
def test_a_damaged_library_is_built_again(small_sources, damage):
    built = cpu_compiler.build(PLAIN)
    whole = built.read_bytes()
    built.write_bytes(whole[: len(whole) // 2] if damage is None else damage)
    assert cpu_compiler.build(PLAIN) == built
    assert ctypes.CDLL(str(built)).one() == 1


def test_a_changed_source_or_header_builds_anew(small_sources):
    first = cpu_compiler.build(PLAIN)
    (small_sources / "new.h").write_text("#define TWO 2\n")
    second = cpu_compiler.build(PLAIN)
    assert first != second
    assert first.exists()


def test_builds_at_once_do_not_disturb_each_other(small_sources):
    with ThreadPoolExecutor(3) as pool:
        built = set(pool.map(lambda _: cpu_compiler.build(PLAIN), range(3)))
    assert len(built) == 1
    assert built.pop().stat().st_size > 0


def test_an_error_carries_the_compilers_log(small_sources):
    (small_sources / "one.c").write_text("int one(void) { return missing_name; }\n")
    with pytest.raises(CompileError, match="missing_name") as caught:
        cpu_compiler.build(PLAIN)
    assert "one.c" in caught.value.log
    assert isinstance(caught.value, KernelError)
    assert not any(path.is_file() for path in cpu_compiler.cache_dir().iterdir())


def test_a_missing_compiler_is_named(small_sources, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(CompileError, match="ziglang"):
        cpu_compiler.build(PLAIN)


def test_a_cache_that_cannot_be_written_is_an_error(small_sources, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(cpu_compiler, "cache_dir", lambda: tmp_path / "file" / "cache")
    with pytest.raises(CompileError, match="could not be written"):
        cpu_compiler.build(PLAIN)


@pytest.mark.parametrize(
    ("level", "wanted", "name"),
    [
        (2, "", "avx512"),
        (2, "avx2", "avx2"),
        (2, "default", "plain"),
        (1, "", "avx2"),
        (1, "avx512", "avx2"),
        (0, "avx2", "plain"),
    ],
)
def test_chooses_by_the_cpu_and_the_environment(monkeypatch, level, wanted, name):
    monkeypatch.setattr(cpu_compiler, "cpu_level", lambda: level)
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", wanted)
    assert cpu_compiler.best_variant().name == name


def test_an_unknown_variant_is_refused():
    with pytest.raises(CompileError, match="avx9"):
        cpu_compiler.variant("avx9")


@pytest.mark.skipif(
    sys.platform != "linux" or os.uname().machine != "x86_64", reason="reads Linux's list of x86 features"
)
def test_the_level_is_what_the_system_says():
    flags = next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags")).split()
    avx2 = {"avx2", "fma", "f16c"} <= set(flags)
    avx512 = avx2 and {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni"} <= set(flags)
    assert cpu_compiler.cpu_level() == (2 if avx512 else 1 if avx2 else 0)
