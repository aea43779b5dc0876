"""A list at the side of the chat: its keys, its height, and rows of two lines."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QItemSelectionModel, QModelIndex, QPersistentModelIndex, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QGuiApplication, QKeyEvent, QKeySequence, QPainter, QTextOption
from PySide6.QtWidgets import (
    QAbstractItemView,
    QListWidget,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
)

from app.qt.look.theme import SPACE_S, colors_of

ID_ROLE = Qt.ItemDataRole.UserRole
EDITING = QAbstractItemView.State.EditingState


class TitleList(QListWidget):
    """Delete asks for deletion, Enter for opening."""

    delete_wanted = Signal()
    open_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("role", "pages")
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Takes the two keys, unless a title is being written."""
        if event.matches(QKeySequence.StandardKey.Delete):
            self.delete_wanted.emit()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.state() is not EDITING:
            self.open_wanted.emit()
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """The keyboard begins at the first row, without choosing it, where none is chosen."""
        super().focusInEvent(event)
        if not self.currentIndex().isValid():
            first = self.model().index(0, 0)
            self.selectionModel().setCurrentIndex(first, QItemSelectionModel.SelectionFlag.NoUpdate)

    def mark(self, row_id: int | None) -> None:
        """Makes the row with this id the current one; none where there is no such row."""
        for row in range(self.count()):
            if self.item(row).data(ID_ROLE) == row_id:
                self.setCurrentRow(row)
                return
        self.setCurrentIndex(QModelIndex())

    def fit(self) -> None:
        """Takes no more room than its rows do, so that what stands below it moves up."""
        self.setMaximumHeight(self._height_of(_MOST_MEASURED))
        self.updateGeometry()

    def sizeHint(self) -> QSize:
        """A few rows; how many there is room for is up to the layout, and the others are scrolled to."""
        return QSize(super().sizeHint().width(), self._height_of(_FEWEST_SEEN))

    def minimumSizeHint(self) -> QSize:
        """The same."""
        return self.sizeHint()

    def _height_of(self, rows: int) -> int:
        return sum(self.sizeHintForRow(row) for row in range(min(self.count(), rows))) + 2 * self.frameWidth()

    def event(self, event: QEvent) -> bool:
        """The style and the font of the window decide how tall a row is."""
        is_done = super().event(event)
        if event.type() in (QEvent.Type.StyleChange, QEvent.Type.FontChange, QEvent.Type.Polish):
            self.fit()
        return is_done


# So many rows fill every screen.
_MOST_MEASURED = 100
_FEWEST_SEEN = 2


class TwoLines(QStyledItemDelegate):
    """Draws a row whose text has two lines, the second one muted; each ends in an ellipsis where it is too long."""

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        """Two lines, whatever letters they are of, and what the style sheet puts around them."""
        style = QStyleOptionViewItem(option)
        self.initStyleOption(style, index)
        style.text = "x"
        around = style.widget.style().sizeFromContents(_ROW, style, QSize(), style.widget)
        return QSize(around.width(), around.height() + _line_height(style))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        """The style draws the row, and this its letters."""
        style = QStyleOptionViewItem(option)
        self.initStyleOption(style, index)
        lines = str(index.data()).split("\n")
        style.text = ""
        style.widget.style().drawControl(QStyle.ControlElement.CE_ItemViewItem, style, painter, style.widget)
        margin = SPACE_S + 2 + style.widget.style().pixelMetric(QStyle.PixelMetric.PM_FocusFrameHMargin)
        place = QRectF(style.rect).adjusted(margin, 0, -margin, 0)
        height = _line_height(style)
        place.setTop(place.center().y() - height)
        place.setHeight(height)
        colors = colors_of(QGuiApplication.palette())
        direction = QTextOption(Qt.AlignmentFlag.AlignLeading | Qt.AlignmentFlag.AlignVCenter)
        direction.setTextDirection(Qt.LayoutDirection.LayoutDirectionAuto)
        direction.setWrapMode(QTextOption.WrapMode.NoWrap)
        painter.save()
        painter.setFont(style.font)
        for line, color in zip(lines, (colors.text, colors.muted), strict=False):
            painter.setPen(color)
            cut = style.fontMetrics.elidedText(line, Qt.TextElideMode.ElideRight, int(place.width()))
            painter.drawText(place, cut, direction)
            place.translate(0, height)
        painter.restore()


_Index = QModelIndex | QPersistentModelIndex
_ROW = QStyle.ContentsType.CT_ItemViewItem


def _line_height(style: QStyleOptionViewItem) -> int:
    """Letters of another font than the window's may be taller."""
    return round(1.15 * style.fontMetrics.height())
