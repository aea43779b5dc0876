"""build_pool.py: many variants at once, in processes of their own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kernels.compile import compiler
from kernels.errors import CompileError
from kernels.shipped import build_pool
from kernels.shipped.build_pool import BuildPool, Job

SOURCE = 'extern "C" __global__ void a(float* out) { out[0] = VALUE; }\n'


@pytest.fixture
def source(tmp_path, monkeypatch):
    """A small source, and an empty cache for this process and the others."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    path = tmp_path / "small.cu"
    path.write_text(SOURCE)
    return str(path)


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the cache is moved by an XDG variable")


def test_all_are_built_and_found(source):
    jobs = [Job(source, {"VALUE": value}, arch) for value in (1, 2, 3) for arch in ("sm_75", "sm_86")]
    pool = BuildPool(jobs)
    pool.wait()
    assert all(compiler.find(job.source, job.arch, job.defines) for job in jobs)
    pool.cancel()


def test_what_is_there_starts_no_process(source, monkeypatch):
    compiler.build(source, "sm_86", {"VALUE": 1})
    monkeypatch.setattr(build_pool, "_start", lambda jobs: pytest.fail("a process was started"))
    BuildPool([Job(source, {"VALUE": 1}, "sm_86")]).wait()


def test_a_refused_source_is_an_error_with_the_log(source):
    pool = BuildPool([Job(source, {"VALUE": 1}, "sm_86"), Job(source, {}, "sm_86")])
    with pytest.raises(CompileError, match='identifier "VALUE" is undefined'):
        pool.wait()


def test_a_process_that_dies_is_an_error(source, monkeypatch):
    real = subprocess.Popen
    monkeypatch.setattr(
        subprocess, "Popen", lambda argv, **options: real([sys.executable, "-c", "import os; os._exit(9)"], **options)
    )
    with pytest.raises(CompileError, match=r"status 9|cannot be started"):
        BuildPool([Job(source, {"VALUE": 1}, "sm_86")]).wait()


def test_a_process_that_cannot_start_is_an_error(source, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(CompileError, match="cannot be started"):
        BuildPool([Job(source, {"VALUE": 1}, "sm_86")])


def test_cancelled_work_leaves_no_process(source):
    pool = BuildPool([Job(source, {"VALUE": value}, "sm_86") for value in range(20)])
    workers = list(pool._workers)
    pool.cancel()
    assert len(workers) == 2
    assert all(worker.poll() is not None for worker in workers)
