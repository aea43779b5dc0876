"""A page that is scrolled up and down where it is higher than its window."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget


class _Body(QWidget):
    """Is as high as its words are at the width that they have."""

    def __init__(self, page: QWidget) -> None:
        super().__init__()
        self.setObjectName("page")
        layout = self._layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(page)

    def minimumSizeHint(self) -> QSize:
        """The height is left to that for the width, which the area asks for as well.

        Qt's own is that of words wrapped where they are narrow, and the area would scroll to nothing below them.
        """
        hint = super().minimumSizeHint()
        return QSize(hint.width(), 0) if self._layout.hasHeightForWidth() else hint

    def heightForWidth(self, width: int) -> int:
        """What Qt says, and no less than what may be: a field may want little and yet have a smallest height."""
        return max(self._layout.totalHeightForWidth(width), self._layout.totalMinimumHeightForWidth(width))


class ScrolledPage(QScrollArea):
    """Shows a page at its own width; Tab goes to what is on the page, not to the area."""

    def __init__(self, page: QWidget) -> None:
        super().__init__()
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setWidget(_Body(page))
