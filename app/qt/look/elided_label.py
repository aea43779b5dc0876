"""A label whose lines end in an ellipsis where there is no room for them, instead of being cut."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLabel, QWidget


class ElidedLabel(QLabel):
    """Plain text of one or more lines. `text` is what is shown, `full_text` what was set."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.full_text = ""

    def set_full_text(self, text: str) -> None:
        """Shows a text as far as there is room; screen readers get all of it."""
        self.full_text = text
        self.setAccessibleName(text.replace("\n", ", "))
        self._elide()

    def minimumSizeHint(self) -> QSize:
        """Never asks for width: the window decides."""
        return QSize(1, super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fits the text anew."""
        super().resizeEvent(event)
        self._elide()

    def _elide(self) -> None:
        metrics, width = self.fontMetrics(), self.contentsRect().width()
        lines = [metrics.elidedText(line, Qt.TextElideMode.ElideRight, width) for line in self.full_text.split("\n")]
        self.setText("\n".join(lines))
