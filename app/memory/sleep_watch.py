"""Whether the machine has slept, and whether a model on the GPU has outlived that.

On Windows the display driver keeps the GPU's memory over a sleep. On Linux NVIDIA's keeps all of it only where the
machine was set up for that; otherwise a model may come back damaged, and nothing would tell but wrong answers.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

_DRIVER_PARAMETERS = Path("/proc/driver/nvidia/params")
# The two clocks are read one after the other, and are adjusted apart from each other.
_SHORTEST_SLEEP_S = 1.0


def asleep_s(platform: str = sys.platform) -> float:
    """Seconds that the machine has slept since it was started; 0 where the system does not tell."""
    if platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)
    return 0.0


class SleepWatch:
    """Notices sleeps between two looks."""

    def __init__(self, clock: Callable[[], float] = asleep_s, parameters: Path = _DRIVER_PARAMETERS) -> None:
        self._clock, self._parameters = clock, parameters
        self._before_s = clock()

    def has_slept(self) -> bool:
        """Whether the machine slept since the last look."""
        now_s = self._clock()
        slept = now_s - self._before_s > _SHORTEST_SLEEP_S
        self._before_s = now_s
        return slept

    def gpu_keeps_memory(self) -> bool:
        """Whether NVIDIA's driver says that it saves all of the GPU's memory before a sleep."""
        try:
            lines = self._parameters.read_text(encoding="ascii", errors="replace").splitlines()
        except OSError:
            return False
        return any(line.replace(" ", "") == "PreserveVideoMemoryAllocations:1" for line in lines)
