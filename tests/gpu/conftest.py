"""Tests that need an NVIDIA GPU; skipped where there is none."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernels.device.driver import Device, DeviceBuffer
from kernels.errors import DeviceError

GUARD_BYTES = 4096
GUARD = 0xCB
NAN = 0xFF
"""A float16, float32 or float64 of these bytes is a NaN, an integer is -1."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.gpu)


@pytest.fixture(scope="session")
def device() -> Iterator[Device]:
    """The first GPU."""
    try:
        opened = Device()
    except DeviceError as error:
        pytest.skip(f"no GPU: {error.reason}")
    opened.checks_every_launch = True
    yield opened
    opened.close()


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Fresh numbers at every run; the seed is shown where a test fails."""
    seed = secrets.randbits(32)
    request.node.add_report_section("setup", "random numbers", f"seed {seed}")
    return np.random.default_rng(seed)


class GuardedBuffer:
    """Device memory between two guards, filled so that what was never written shows."""

    def __init__(self, device: Device, nbytes: int, fill: int = NAN) -> None:
        self._memory: DeviceBuffer = device.allocate(nbytes + 2 * GUARD_BYTES)
        self._memory.fill(GUARD)
        self.pointer = self._memory.pointer + GUARD_BYTES
        self.nbytes = nbytes
        device.stream.fill(self.pointer, fill, nbytes)

    def upload(self, array: NDArray[Any]) -> None:
        assert array.nbytes <= self.nbytes
        self._memory.upload(array, GUARD_BYTES)

    def download(self, dtype: Any, shape: int | tuple[int, ...]) -> NDArray[Any]:
        """The contents, once the guards were found whole."""
        self.check()
        return self._memory.download(dtype, shape, GUARD_BYTES)

    def check(self) -> None:
        """Nothing was written before or behind the buffer."""
        whole = self._memory.download(np.uint8, self._memory.nbytes)
        before = np.flatnonzero(whole[:GUARD_BYTES] != GUARD)
        behind = np.flatnonzero(whole[GUARD_BYTES + self.nbytes :] != GUARD)
        assert before.size == 0, f"written {GUARD_BYTES - before[-1]} bytes before the buffer"
        assert behind.size == 0, f"written at byte {behind[0]} behind the buffer of {self.nbytes} bytes"

    def free(self) -> None:
        self._memory.free()


@pytest.fixture
def guarded(device: Device) -> Iterator[Callable[..., GuardedBuffer]]:
    """Makes guarded buffers: guarded(nbytes, fill=0xFF), or guarded(array) for one that holds it.

    At the end of the test all guards are checked and the memory is freed.
    """
    made: list[GuardedBuffer] = []

    def make(contents: int | NDArray[Any], fill: int = NAN) -> GuardedBuffer:
        nbytes = contents if isinstance(contents, int) else contents.nbytes
        made.append(GuardedBuffer(device, nbytes, fill))
        if not isinstance(contents, int):
            made[-1].upload(contents)
        return made[-1]

    yield make
    try:
        for buffer in made:
            buffer.check()
    finally:
        for buffer in made:
            buffer.free()
