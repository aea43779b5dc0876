"""Readings of the memory for the meters of all windows, taken only while one of them is on the screen."""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt, Signal

from app.memory.reading import MemoryHistory, MemoryReading
from app.memory.sampler import Sampler, Source

VISIBLE_INTERVAL_S = 1.0
# Of a meter that shows the present moment alone.
COMPACT_INTERVAL_S = 2.0


class MemoryFeed(QObject):
    """Shared by all meters. UI thread only.

    Attributes:
        history: the readings of the last minutes.

    Signals:
        changed: there is a new reading.
    """

    changed = Signal()
    _read = Signal(object)

    def __init__(self, source: Source[MemoryReading], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.history = MemoryHistory()
        self._viewers: dict[int, float] = {}
        self._read.connect(self._on_read, Qt.ConnectionType.QueuedConnection)
        self._sampler = Sampler(source, self._read.emit)

    def watch(self, viewer: QObject, is_compact: bool = False) -> None:
        """Somebody looks now."""
        self._viewers[id(viewer)] = COMPACT_INTERVAL_S if is_compact else VISIBLE_INTERVAL_S
        self._follow_viewers()

    def unwatch(self, viewer: QObject) -> None:
        """Somebody has gone; with the last one the readings end, and the driver is let go."""
        self._viewers.pop(id(viewer), None)
        self._follow_viewers()

    def _follow_viewers(self) -> None:
        self._sampler.set_interval(min(self._viewers.values(), default=None))

    def close(self) -> None:
        """Ends the readings for good."""
        self._sampler.close()

    def _on_read(self, reading: MemoryReading) -> None:
        self.history.add(reading)
        self.changed.emit()
