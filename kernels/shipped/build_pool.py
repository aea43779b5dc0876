"""Builds many variants of CUDA kernels at once, in processes of their own: within one, NVRTC compiles one at a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from typing import NamedTuple

from kernels.compile import compiler
from kernels.errors import CompileError

_MOST_WORKERS = 16


class Job(NamedTuple):
    """One compilation: a source, the macros that choose the variant, and the architecture."""

    source: str
    defines: dict[str, int]
    arch: str


class BuildPool:
    """Builds in the background what the cache lacks; `compiler.build` finds it there afterwards."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        """Starts at once.

        Raises:
            CompileError: the compiler is missing, or no process can be started.
        """
        missing = [job for job in jobs if compiler.find(job.source, job.arch, job.defines) is None]
        count = min(_MOST_WORKERS, os.cpu_count() or 1, len(missing))
        self._workers: list[subprocess.Popen[bytes]] = []
        try:
            for first in range(count):
                self._workers.append(_start(missing[first::count]))
        except OSError as error:
            self.cancel()
            raise CompileError(f"The compiler of the CUDA kernels cannot be started: {error}.") from error

    def wait(self) -> None:
        """Waits for all. Raises CompileError where one could not be built."""
        try:
            while self._workers:
                worker = self._workers.pop()
                _, log = worker.communicate()
                if worker.returncode:
                    message = log.decode("utf-8", "replace").strip()
                    raise CompileError(message or f"A compiler ended with status {worker.returncode}.")
        finally:
            self.cancel()

    def cancel(self) -> None:
        """Stops what is not done yet."""
        for worker in self._workers:
            worker.kill()
        while self._workers:
            self._workers.pop().communicate()


def _start(jobs: list[Job]) -> subprocess.Popen[bytes]:
    paths = [str(compiler.SOURCE_DIR.parent.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    worker = subprocess.Popen(
        [sys.executable, "-P", "-m", "kernels.shipped.build_pool"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )
    assert worker.stdin is not None
    worker.stdin.write(json.dumps(jobs).encode())
    worker.stdin.close()
    worker.stdin = None
    return worker


def main() -> int:
    """Builds the jobs that come through the standard input; what fails goes to the standard error."""
    try:
        for source, defines, arch in json.load(sys.stdin):
            compiler.build(source, arch, defines)
    except CompileError as error:
        sys.stderr.write(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
