"""Moving and resizing a window that has no frame of its window manager."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QMouseEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QWidget

EDGE_PX = 7


def edges_at(point: QPoint, rect: QRect, margin: int = EDGE_PX) -> Qt.Edge:
    """The edges of a rectangle that a point inside it is close to."""
    edges = Qt.Edge(0)
    if point.x() < rect.left() + margin:
        edges |= Qt.Edge.LeftEdge
    elif point.x() > rect.right() - margin:
        edges |= Qt.Edge.RightEdge
    if point.y() < rect.top() + margin:
        edges |= Qt.Edge.TopEdge
    elif point.y() > rect.bottom() - margin:
        edges |= Qt.Edge.BottomEdge
    return edges


def cursor_for(edges: Qt.Edge) -> Qt.CursorShape:
    """The mouse cursor that says how an edge can be pulled."""
    horizontal = bool(edges & (Qt.Edge.LeftEdge | Qt.Edge.RightEdge))
    vertical = bool(edges & (Qt.Edge.TopEdge | Qt.Edge.BottomEdge))
    if horizontal and vertical:
        falls = edges in (Qt.Edge.LeftEdge | Qt.Edge.TopEdge, Qt.Edge.RightEdge | Qt.Edge.BottomEdge)
        return Qt.CursorShape.SizeFDiagCursor if falls else Qt.CursorShape.SizeBDiagCursor
    if horizontal:
        return Qt.CursorShape.SizeHorCursor
    return Qt.CursorShape.SizeVerCursor if vertical else Qt.CursorShape.ArrowCursor


class FramelessWindow(QFrame):
    """Moves when it is pulled where no control is, and resizes when it is pulled at its edges.

    Attributes:
        is_moved: the user has moved it since this was last set to False.
        is_resized: the user has given it a size.
    """

    def __init__(self, parent: QWidget | None, flags: Qt.WindowType) -> None:
        super().__init__(parent, flags | Qt.WindowType.FramelessWindowHint)
        self.setMouseTracking(True)
        self.setObjectName("sheet")
        self.is_moved = self.is_resized = False
        self._is_pulled = False

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Hands the move or resize to the window manager, which knows about screens and snapping."""
        handle = self.windowHandle()
        if event.button() is not Qt.MouseButton.LeftButton or handle is None:
            super().mousePressEvent(event)
            return
        edges = edges_at(event.position().toPoint(), self.rect())
        if edges:
            self._is_pulled = handle.startSystemResize(edges)
        else:
            self.is_moved = handle.startSystemMove() or self.is_moved
        event.accept()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Notes a size that came from the window system while an edge is pulled."""
        super().resizeEvent(event)
        self.is_resized = self.is_resized or (self._is_pulled and event.spontaneous())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Shows how the edge under the mouse can be pulled."""
        if not event.buttons():
            self._is_pulled = False
            self.setCursor(cursor_for(edges_at(event.position().toPoint(), self.rect())))
        super().mouseMoveEvent(event)
