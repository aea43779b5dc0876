"""Where a popup goes: near the cursor, inside the work area of the cursor's monitor. Pure functions on rectangles."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPoint, QRect, QSize

GAP_PX = 14


def work_area_at(point: QPoint, areas: Sequence[QRect]) -> QRect:
    """The area that holds a point, or the nearest one where panels or gaps between monitors hold it.

    Args:
        areas: work areas (monitors without panels), at least one.
    """
    return min(areas, key=lambda area: (_distance(point, area), areas.index(area)))


def _distance(point: QPoint, area: QRect) -> int:
    dx = max(area.left() - point.x(), 0, point.x() - area.right())
    dy = max(area.top() - point.y(), 0, point.y() - area.bottom())
    return dx * dx + dy * dy


def popup_rect(cursor: QPoint, size: QSize, areas: Sequence[QRect], gap: int = GAP_PX) -> QRect:
    """Below and right of the cursor; above or left of it where there is no room; never outside the work area.

    A window that is larger than the area is made as small as the area. The cursor is never covered unless the window
    fits on neither side of it, so that a window manager whose focus follows the mouse leaves the focus where it is.
    """
    area = work_area_at(cursor, areas)
    width, height = min(size.width(), area.width()), min(size.height(), area.height())
    x = _beside(cursor.x(), width, area.left(), area.right() + 1, gap)
    y = _beside(cursor.y(), height, area.top(), area.bottom() + 1, gap)
    return QRect(x, y, width, height)


def _beside(at: int, length: int, low: int, high: int, gap: int) -> int:
    after, before = at + gap, at - gap - length
    if after + length <= high:
        return max(after, low)
    if before >= low:
        return min(before, high - length)
    return max(low, high - length)
