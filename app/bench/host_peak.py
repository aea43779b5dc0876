"""How much main memory the process held at most."""

from __future__ import annotations

import sys
import threading

import psutil

_SAMPLE_S = 0.02


class PeakMemory:
    """Most memory that this process holds while the context is open: the system's own count where it has one.

    Attributes:
        peak_bytes: set when the context ends.
    """

    def __init__(self) -> None:
        self.peak_bytes = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="peak-memory", daemon=True)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self.peak_bytes = max(self.peak_bytes, _system_peak_bytes())

    def _watch(self) -> None:
        process = psutil.Process()
        while not self._ended.wait(_SAMPLE_S):
            self.peak_bytes = max(self.peak_bytes, process.memory_info().rss)


def _system_peak_bytes() -> int:
    """What the system saw as the largest resident size of this process; 0 where it does not say."""
    if sys.platform == "win32":
        return int(psutil.Process().memory_info().peak_wset)
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
