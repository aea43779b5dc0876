"""A list whose rows are as high as their text: a box to tick, a task, and a muted line of details."""

from __future__ import annotations

import math

from PySide6.QtCore import (
    QAbstractItemModel,
    QEvent,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    QPointF,
    QRect,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import (
    QFont,
    QFontMetrics,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPen,
    QResizeEvent,
    QTextLayout,
    QTextOption,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QListView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
)

from app.qt.look.stream_view import FIRST_LINES
from app.qt.look.theme import LINE_HEIGHT_EM, SPACE_S, SPACE_XS, Colors, colors_of, scaled
from app.qt.markdown.look import is_right_to_left

DETAILS_ROLE = Qt.ItemDataRole.UserRole
# Of the height of a line.
BOX_SHARE = 0.9
_Index = QModelIndex | QPersistentModelIndex


class TodoList(QListView):
    """Rows of one or more lines, each with a box to tick.

    Signals:
        chosen: a row was clicked or gone to.
        copy_requested: Ctrl+C was pressed.
    """

    chosen = Signal(int)
    copy_requested = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setResizeMode(QListView.ResizeMode.Adjust)
        self.setUniformItemSizes(False)
        self.setTabKeyNavigation(False)
        self._rows = _RowDelegate(self)
        self.setItemDelegate(self._rows)

    def content_height(self) -> int:
        """Height of all rows, in pixels."""
        model = self.model()
        return sum(self.sizeHintForIndex(model.index(row, 0)).height() for row in range(model.rowCount()))

    def minimumSizeHint(self) -> QSize:
        """As little as a text asks for."""
        return QSize(1, self.fontMetrics().height())

    def sizeHint(self) -> QSize:
        """Room for a few lines."""
        return QSize(1, round(FIRST_LINES * LINE_HEIGHT_EM * self.fontMetrics().height()))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Wraps the rows anew."""
        super().resizeEvent(event)
        self.scheduleDelayedItemsLayout()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """A click on the box ticks the row; anywhere else it chooses it."""
        point = event.position().toPoint()
        index = self.indexAt(point)
        if index.isValid() and not self._rows.is_on_text(self.visualRect(index), point):
            self._tick(index)
            return
        super().mousePressEvent(event)
        if index.isValid():
            self.chosen.emit(index.row())

    def _tick(self, index: QModelIndex) -> None:
        is_done = Qt.CheckState(index.data(Qt.ItemDataRole.CheckStateRole)) is Qt.CheckState.Checked
        state = Qt.CheckState.Unchecked if is_done else Qt.CheckState.Checked
        self.model().setData(index, state, Qt.ItemDataRole.CheckStateRole)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """The arrows and Return choose a row, Space ticks it, Ctrl+C asks for a copy."""
        before = self.currentIndex()
        is_return = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy_requested.emit()
        elif event.key() == Qt.Key.Key_Space and before.isValid():
            self._tick(before)
        elif is_return and before.isValid():
            self.chosen.emit(before.row())
        else:
            super().keyPressEvent(event)
            current = self.currentIndex()
            if current.isValid() and current != before:
                self.chosen.emit(current.row())


class _RowDelegate(QStyledItemDelegate):
    """A box, the task in as many lines as it needs, and owner and due date in a muted line below."""

    def __init__(self, view: TodoList) -> None:
        super().__init__(view)
        self._view = view

    def _details_font(self) -> QFont:
        return scaled(self._view.font(), 0.88)

    def _box(self, rect: QRect) -> QRect:
        """The tick box of a row."""
        line = QFontMetrics(self._view.font()).height()
        size = round(BOX_SHARE * line)
        box = QRect(rect.left() + SPACE_XS, rect.top() + SPACE_XS + (line - size) // 2, size, size)
        if self._view.isRightToLeft():
            box.moveRight(rect.right() - SPACE_XS)
        return box

    def _text_rect(self, rect: QRect) -> QRect:
        room = self._box(rect).width() + SPACE_XS + SPACE_S
        if self._view.isRightToLeft():
            return rect.adjusted(SPACE_XS, SPACE_XS, -room, -SPACE_XS)
        return rect.adjusted(room, SPACE_XS, -SPACE_XS, -SPACE_XS)

    def is_on_text(self, rect: QRect, point: QPoint) -> bool:
        """Whether a point of a row is beside its box."""
        return self._text_rect(rect).adjusted(-SPACE_XS, -SPACE_XS, SPACE_XS, SPACE_XS).contains(point)

    @staticmethod
    def _laid_out(font: QFont, width: int, text: str) -> tuple[QTextLayout, int]:
        """A text in lines of a width, each paragraph in its own direction, and the height of them."""
        option = QTextOption()
        option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        if is_right_to_left(text):
            option.setTextDirection(Qt.LayoutDirection.RightToLeft)
            option.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignAbsolute)
        layout = QTextLayout(text, font)
        layout.setTextOption(option)
        layout.beginLayout()
        height = 0.0
        while (line := layout.createLine()).isValid():
            line.setLineWidth(width)
            line.setPosition(QPointF(0, height))
            height += line.height()
        layout.endLayout()
        return layout, math.ceil(height)

    def editorEvent(
        self, event: QEvent, model: QAbstractItemModel, option: QStyleOptionViewItem, index: _Index
    ) -> bool:
        """The list ticks its rows itself: the box does not stand where styles expect it."""
        return False

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        """As high as the text is at the width of the list."""
        width = self._text_rect(QRect(0, 0, self._view.viewport().width(), 100)).width()
        height = self._laid_out(self._view.font(), width, str(index.data()))[1]
        if details := str(index.data(DETAILS_ROLE) or ""):
            height += self._laid_out(self._details_font(), width, details)[1]
        return QSize(1, height + 2 * SPACE_XS)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        """Paints a row."""
        colors = colors_of(QGuiApplication.palette())
        rect = option.rect
        is_current = index.row() == self._view.currentIndex().row()
        is_done = Qt.CheckState(index.data(Qt.ItemDataRole.CheckStateRole)) is Qt.CheckState.Checked
        painter.save()
        if is_current:
            painter.fillRect(rect, colors.hover)
        self._paint_box(painter, QRectF(self._box(rect)), is_done, colors)
        place = self._text_rect(rect)
        font = QFont(self._view.font())
        font.setStrikeOut(is_done)
        layout, height = self._laid_out(font, place.width(), str(index.data()))
        painter.setPen(colors.muted if is_done else colors.text)
        layout.draw(painter, QPointF(place.topLeft()))
        if details := str(index.data(DETAILS_ROLE) or ""):
            painter.setPen(colors.muted)
            layout = self._laid_out(self._details_font(), place.width(), details)[0]
            layout.draw(painter, QPointF(place.left(), place.top() + height))
        if is_current and self._view.hasFocus():
            painter.setPen(colors.accent)
            painter.setBrush(Qt.BrushStyle.NoBrush)  # the box's is still set
            painter.drawRect(rect.adjusted(0, 0, -1, -1))
        painter.restore()

    @staticmethod
    def _paint_box(painter: QPainter, box: QRectF, is_done: bool, colors: Colors) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = box.adjusted(0.5, 0.5, -0.5, -0.5)
        painter.setPen(colors.accent if is_done else colors.border)
        painter.setBrush(colors.accent if is_done else colors.page)
        painter.drawRoundedRect(box, 3, 3)
        if is_done:
            painter.setPen(QPen(colors.on_accent, max(1.4, box.width() / 9)))
            points = ((0.24, 0.52), (0.43, 0.72), (0.78, 0.3))
            painter.drawPolyline([box.topLeft() + QPointF(x * box.width(), y * box.height()) for x, y in points])
