"""Who hears of an engine's events."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

_Event = TypeVar("_Event")


class Listeners(Generic[_Event]):
    """Any thread may add, remove and go through them: those are met that were there when it began."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: list[Callable[[_Event], None]] = []

    def add(self, listener: Callable[[_Event], None]) -> Callable[[], None]:
        """The result removes it; more than once does no harm."""
        with self._lock:
            self._listeners.append(listener)

        def remove() -> None:
            with self._lock:
                if listener in self._listeners:
                    self._listeners.remove(listener)

        return remove

    def __iter__(self) -> Iterator[Callable[[_Event], None]]:
        with self._lock:
            return iter(list(self._listeners))
