"""Moving and resizing a window that has no frame of its window manager."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QMouseEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QWidget

EDGE_PX = 7
PULL_PX = 3


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
        self._pressed_at: QPoint | None = None

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Notes where a pull may begin."""
        if event.button() is Qt.MouseButton.LeftButton:
            self._pressed_at = event.position().toPoint()
        event.accept()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """A click is no pull."""
        self._pressed_at = None
        event.accept()

    def _pull(self, start: QPoint) -> None:
        """Hands the move or resize to the window manager, which knows about screens and snapping.

        Not before the mouse has moved: a window manager that hears of it after the button is up, as with a quick tap,
        keeps moving the window and takes the keyboard.
        """
        self._pressed_at = None
        handle = self.windowHandle()
        edges = edges_at(start, self.rect())
        if edges:
            self._is_pulled = handle.startSystemResize(edges)
        else:
            self.is_moved = handle.startSystemMove() or self.is_moved

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Notes a size that came from the window system while an edge is pulled."""
        super().resizeEvent(event)
        self.is_resized = self.is_resized or (self._is_pulled and event.spontaneous())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Begins a pull, or shows how the edge under the mouse can be pulled."""
        point = event.position().toPoint()
        if self._pressed_at is not None and event.buttons() & Qt.MouseButton.LeftButton:
            if (point - self._pressed_at).manhattanLength() >= PULL_PX:
                self._pull(self._pressed_at)
        elif not event.buttons():
            self._is_pulled, self._pressed_at = False, None
            self.setCursor(cursor_for(edges_at(point, self.rect())))
