"""Takes readings at an interval on a thread of its own, and only while somebody wants them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

Reading = TypeVar("Reading", covariant=True)


class Source(Protocol[Reading]):
    """What is read."""

    def read(self) -> Reading:
        """Takes one reading; may wait for a driver."""
        ...

    def close(self) -> None:
        """Lets go of what it holds; the next reading takes it again."""
        ...


class Sampler(Generic[Reading]):
    """Calls `deliver` with each reading, on its thread. Without an interval it holds nothing and never wakes up.

    Args:
        source: read and closed on the sampler's thread alone.
    """

    def __init__(self, source: Source[Reading], deliver: Callable[[Reading], None]) -> None:
        self._source, self._deliver = source, deliver
        self._changed = threading.Condition()
        self._interval_s: float | None = None
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def set_interval(self, interval_s: float | None) -> None:
        """Reads at once and then again and again; None stops it and closes the source."""
        with self._changed:
            if self._is_closed or interval_s == self._interval_s:
                return
            self._interval_s = interval_s
            self._changed.notify()
            if self._thread is None and interval_s is not None:
                self._thread = threading.Thread(target=self._run, name="memory-sampler", daemon=True)
                self._thread.start()

    def close(self, timeout_s: float = 1.0) -> None:
        """Ends the thread; a driver that hangs is not waited for."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _run(self) -> None:
        while (interval_s := self._next_interval()) is not None:
            self._deliver(self._source.read())
            with self._changed:
                if not self._is_closed and self._interval_s == interval_s:
                    self._changed.wait(interval_s)
        self._source.close()

    def _next_interval(self) -> float | None:
        """Waits until a reading is wanted; None at the end."""
        while True:
            with self._changed:
                if self._is_closed:
                    return None
                if self._interval_s is not None:
                    return self._interval_s
            self._source.close()
            with self._changed:
                if not self._is_closed and self._interval_s is None:
                    self._changed.wait()
