"""A frameless window that opens near the cursor and grows inside its monitor, away from what the user works on."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtWidgets import QWidget

from app.qt.look.frameless import FramelessWindow
from app.qt.look.placement import place_popup, with_height, work_area_at

# With less room than this below the cursor, the side with more room is taken.
COMFORT_HEIGHT = 360


class GrowingWindow(FramelessWindow):
    """Knows where it may grow; what it needs is its subclass's matter."""

    def __init__(self, parent: QWidget | None, flags: Qt.WindowType) -> None:
        super().__init__(parent, flags)
        self._limit: QRect | None = None
        self._is_above = False

    def show_near(self, cursor: QPoint, areas: Sequence[QRect]) -> None:
        """Shows the window without taking the focus, near the cursor; if it is open on the same monitor it stays.

        Args:
            areas: work areas of the monitors.
        """
        stays = self.isVisible() and work_area_at(self.geometry().center(), areas) == work_area_at(cursor, areas)
        if not stays:
            place = place_popup(cursor, self.size(), COMFORT_HEIGHT, areas)
            self._limit, self._is_above, self.is_moved = place.limit, place.is_above, False
            self.setGeometry(place.rect)
            self.show()
        self.raise_()

    def growth_limit(self) -> QRect:
        """Where it may grow without covering the cursor's line; all of the work area once the user has moved it."""
        area = self.screen().availableGeometry()
        return area if self.is_moved or self._limit is None else self._limit

    def set_height(self, height: int) -> None:
        """Takes a height, with the edge at the cursor where it is."""
        limit = self.growth_limit()
        if height > limit.height():
            limit = self.screen().availableGeometry()
        rect = with_height(self.geometry(), height, limit, self._is_above and not self.is_moved)
        if rect != self.geometry():
            self.setGeometry(rect)
