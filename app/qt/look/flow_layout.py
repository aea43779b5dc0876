"""A layout that puts widgets beside one another and goes on in the next line where there is no more room."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import QLayout, QLayoutItem, QWidget


class FlowLayout(QLayout):
    """Lines of widgets, each as wide as it wants to be but never wider than a line.

    Attributes:
        items: what is laid out, in its order.
    """

    def __init__(self, parent: QWidget | None = None, spacing: int = 0) -> None:
        super().__init__(parent)
        self.items: list[QLayoutItem] = []
        self.setContentsMargins(0, 0, 0, 0)
        self.setSpacing(spacing)

    def addItem(self, item: QLayoutItem) -> None:
        """Adds an item at the end."""
        self.items.append(item)

    def count(self) -> int:
        """How many items there are."""
        return len(self.items)

    def itemAt(self, index: int) -> QLayoutItem | None:
        """An item, None beyond the end."""
        return self.items[index] if 0 <= index < len(self.items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        """Removes an item, None beyond the end."""
        return self.items.pop(index) if 0 <= index < len(self.items) else None

    def expandingDirections(self) -> Qt.Orientation:
        """It takes no room that it does not need."""
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:
        """The narrower, the more lines."""
        return True

    def heightForWidth(self, width: int) -> int:
        """Height of all lines."""
        margins = self.contentsMargins()
        inside = QRect(0, 0, width - margins.left() - margins.right(), 0)
        return self._place(inside, is_trial=True) + margins.top() + margins.bottom()

    def sizeHint(self) -> QSize:
        """As small as it gets: the window decides about the width."""
        return self.minimumSize()

    def minimumSize(self) -> QSize:
        """One line."""
        margins = self.contentsMargins()
        height = max((item.sizeHint().height() for item in self.items), default=0)
        return QSize(1, height + margins.top() + margins.bottom())

    def setGeometry(self, rect: QRect) -> None:
        """Places the items."""
        super().setGeometry(rect)
        self._place(rect.marginsRemoved(self.contentsMargins()), is_trial=False)

    def _place(self, rect: QRect, is_trial: bool) -> int:
        x, y, line_height = 0, 0, 0
        parent = self.parentWidget()
        is_mirrored = parent is not None and parent.isRightToLeft()
        for item in self.items:
            widget = item.widget()
            if widget is not None and widget.isHidden():
                continue
            hint = item.sizeHint()
            width = min(hint.width(), rect.width())
            if x and x + width > rect.width():
                x, y, line_height = 0, y + line_height + self.spacing(), 0
            if not is_trial:
                left = rect.right() + 1 - x - width if is_mirrored else rect.x() + x
                item.setGeometry(QRect(QPoint(left, rect.y() + y), QSize(width, hint.height())))
            x += width + self.spacing()
            line_height = max(line_height, hint.height())
        return y + line_height
