"""Builds the stub of NVIDIA's library and puts it into the place of the real one, for a test."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

NAME = "libnvidia-ml.so.1"
SOURCE = Path(__file__).with_name("nvml_stub.c")
GPU_IS_LOST, DRIVER_NOT_LOADED, NOT_SUPPORTED, LIBRARY_MISMATCH = 15, 9, 3, 18


def build(folder: Path) -> Path:
    """Compiles the stub into a folder, which LD_LIBRARY_PATH may name, with the compiler of our kernels."""
    library = folder / NAME
    command = [sys.executable, "-m", "ziglang", "cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", str(SOURCE)]
    done = subprocess.run([*command, "-o", str(library)], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    return library


class NvmlStub:
    """One GPU without a driver.

    Args:
        library: see `build`.
    """

    def __init__(self, library: Path) -> None:
        self.library: Any = ctypes.CDLL(str(library))
        self.set_memory(4 << 30, 1 << 30)
        self.set_process(0, 0)
        self.fail("", 0)
        self.library.stub_reset()

    def set_memory(self, total_bytes: int, used_bytes: int) -> None:
        """What the GPU has."""
        self.library.stub_set_memory(ctypes.c_uint64(total_bytes), ctypes.c_uint64(used_bytes))

    def set_process(self, pid: int, num_bytes: int | None) -> None:
        """A process on the GPU, 0 for none; None bytes as under WDDM."""
        self.library.stub_set_process(pid, ctypes.c_uint64(2**64 - 1 if num_bytes is None else num_bytes))

    def set_own_process(self, num_bytes: int | None) -> None:
        """This process lies on the GPU."""
        self.set_process(os.getpid(), num_bytes)

    def fail(self, name: str, code: int) -> None:
        """Makes a call fail from now on, "" for none."""
        self.library.stub_fail(name.encode(), code)

    @property
    def calls(self) -> int:
        """All calls so far, of whatever kind."""
        return int(self.library.stub_calls())

    @property
    def sessions(self) -> int:
        """How often NVML is open now."""
        return int(self.library.stub_sessions())
