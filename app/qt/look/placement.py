"""How large windows open, where a popup goes and how it grows: inside the work area, beside the cursor.

Pure functions on rectangles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPoint, QRect, QSize

GAP_PX = 14
# What the desktop draws around a window, and a bit of the desktop beside it.
FRAME_SIZE = QSize(32, 64)


@dataclass(frozen=True, slots=True)
class Placement:
    """A place for a popup.

    Attributes:
        rect: where it opens.
        limit: where it may grow without covering the cursor's line, and with it most selections.
        is_above: it lies above the cursor, so it grows upwards.
    """

    rect: QRect
    limit: QRect
    is_above: bool


def first_size(wanted: QSize, work_area: QSize) -> QSize:
    """The size that a window opens with: as it likes, but whole on the screen with its title bar."""
    return wanted.boundedTo(work_area - FRAME_SIZE)


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


def place_popup(
    cursor: QPoint, size: QSize, comfort_height: int, areas: Sequence[QRect], gap: int = GAP_PX
) -> Placement:
    """Below and right of the cursor; above or left of it where there is no room; never outside the work area.

    A window that is larger than the area is made as small as the area. The cursor is never covered unless the window
    fits on neither side of it, so that a window manager whose focus follows the mouse leaves the focus where it is.

    Args:
        size: that it opens with.
        comfort_height: to which it should be able to grow; with less room below it opens above, if there is more.
    """
    area = work_area_at(cursor, areas)
    width, height = min(size.width(), area.width()), min(size.height(), area.height())
    below, above = area.bottom() + 1 - cursor.y() - gap, cursor.y() - gap - area.top()
    is_above = below < max(height, comfort_height) and above > below
    limit = QRect(area)
    if is_above and above >= height:
        limit.setBottom(min(area.bottom(), cursor.y() - gap - 1))
    elif not is_above and below >= height:
        limit.setTop(max(area.top(), cursor.y() + gap))
    y = limit.bottom() + 1 - height if is_above else limit.top()
    if limit == area:  # it fits on neither side
        y = max(area.top(), min(cursor.y() + gap, area.bottom() + 1 - height))
    x = _beside(cursor.x(), width, area.left(), area.right() + 1, gap)
    return Placement(QRect(x, y, width, height), limit, is_above)


def with_height(rect: QRect, height: int, limit: QRect, is_above: bool) -> QRect:
    """The rectangle with another height: the edge at the cursor stays, unless the other one would leave the limit."""
    result = QRect(rect.left(), rect.top(), rect.width(), min(height, limit.height()))
    if is_above:
        result.moveBottom(rect.bottom())
    result.moveTop(max(limit.top(), min(result.top(), limit.bottom() + 1 - result.height())))
    return result


def _beside(at: int, length: int, low: int, high: int, gap: int) -> int:
    after, before = at + gap, at - gap - length
    if after + length <= high:
        return max(after, low)
    if before >= low:
        return min(before, high - length)
    return max(low, high - length)
