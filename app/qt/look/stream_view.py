"""A read-only text view that text is appended to while it streams."""

from __future__ import annotations

import math

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import (
    QFontInfo,
    QFontMetricsF,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QTextBlock,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextOption,
)
from PySide6.QtWidgets import QFrame, QTextEdit, QWidget

from app.qt.look.theme import LINE_HEIGHT_EM, blend, colors_of, set_styled

# Within this distance of the end the view counts as being at the end.
SLACK_PX = 6
# What an answer is shown in before it is long.
FIRST_LINES = 4
BULLETS = ("- ", "* ", "• ", "– ")
# Of the accent on the page, behind a piece of text that is pointed at.
MARK_SHARE = 0.24


def utf16_position(text: str, position: int) -> int:
    """A position in a string as Qt counts it: characters beyond the first 65,536 are two there."""
    return position + sum(char > "\uffff" for char in text[:position])


class StreamView(QTextEdit):
    """Appends only, and follows the end of the text until the user scrolls up; at the end it follows again.

    Each paragraph takes its direction from its own first letters, so Arabic and English may stand in one answer.

    Signals:
        copy_all_requested: Ctrl+C was pressed while nothing is selected.
    """

    copy_all_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setReadOnly(True)
        self.setAcceptRichText(False)
        self.setUndoRedoEnabled(False)
        self.setTabChangesFocus(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        # The bar keeps its place from the start, so that the text is not wrapped anew when it grows beyond the window.
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)
        self.setCursorWidth(0)
        self.document().setDocumentMargin(0)
        option = self.document().defaultTextOption()
        option.setTextDirection(Qt.LayoutDirection.LayoutDirectionAuto)
        option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.document().setDefaultTextOption(option)
        self._is_following = True
        self._moves_itself = False
        bar = self.verticalScrollBar()
        bar.valueChanged.connect(self._on_value_changed)
        bar.rangeChanged.connect(self._on_range_changed)
        self._on_range_changed(bar.minimum(), bar.maximum())
        self.clear_text()

    def sizeHint(self) -> QSize:
        """Room for a few lines."""
        return QSize(super().sizeHint().width(), FIRST_LINES * self._line_height_px())

    def text_height(self) -> int:
        """Height of all the text, in pixels; 0 for no text."""
        return 0 if self.document().isEmpty() else math.ceil(self.document().size().height())

    def _line_height_px(self) -> int:
        return math.ceil(LINE_HEIGHT_EM * QFontInfo(self.font()).pixelSize())

    @property
    def is_following(self) -> bool:
        """Whether the view stays at the end when text is added."""
        return self._is_following

    def clear_text(self) -> None:
        """Empties the view and follows again."""
        self.clear()
        # A minimum, since fonts for Chinese are taller than those for Latin letters and stand in one text with them.
        QTextCursor(self.document()).setBlockFormat(self._block_format())
        self._is_following = True
        self.setExtraSelections([])

    def _block_format(self, indent_px: float = 0) -> QTextBlockFormat:
        """Of a paragraph whose second and further lines are indented."""
        block = QTextBlockFormat()
        block.setLineHeight(self._line_height_px(), QTextBlockFormat.LineHeightTypes.MinimumHeight.value)
        if indent_px:
            block.setLeftMargin(indent_px)
            block.setTextIndent(-indent_px)
        return block

    def set_text(self, text: str) -> None:
        """Shows a text from its beginning."""
        self.clear_text()
        self._is_following = False
        self.append_text(text)
        self._to_start()

    def _to_start(self) -> None:
        """The cursor of an empty text moves with what is written behind it, and a resize scrolls to the cursor."""
        self.setTextCursor(QTextCursor(self.document()))
        self.verticalScrollBar().setValue(0)

    def mark(self, start: int, end: int) -> None:
        """Points at a piece of the text and scrolls to it.

        Args:
            start, end: in characters of the text, as Python counts them.
        """
        text = self.toPlainText()
        cursor = QTextCursor(self.document())
        cursor.setPosition(utf16_position(text, start))
        self.setTextCursor(cursor)
        cursor.setPosition(utf16_position(text, end), QTextCursor.MoveMode.KeepAnchor)
        colors = colors_of(QGuiApplication.palette())
        marked = QTextEdit.ExtraSelection()
        marked.cursor, marked.format = cursor, QTextCharFormat()
        marked.format.setBackground(blend(colors.accent, colors.page, MARK_SHARE))
        self.setExtraSelections([marked])
        self._is_following = False
        self._show_around(cursor)

    def _show_around(self, cursor: QTextCursor) -> None:
        """Scrolls so that a piece of text stands in the upper third, if it is not to be seen."""
        place, bar = self.cursorRect(cursor), self.verticalScrollBar()
        if not self.viewport().rect().contains(place):
            bar.setValue(bar.value() + place.top() - self.viewport().height() // 3)

    def append_text(self, text: str) -> None:
        """Adds text at the end; the user's selection stays as it is."""
        selection = self.textCursor()
        anchor, position = selection.anchor(), selection.position()
        end = QTextCursor(self.document())
        end.movePosition(QTextCursor.MoveOperation.End)
        at_end = selection.hasSelection() and end.position() in (anchor, position)
        first = end.block()
        end.insertText(text)
        self._hang_items(first)
        if at_end:
            selection.setPosition(anchor)
            selection.setPosition(position, QTextCursor.MoveMode.KeepAnchor)
            bar = self.verticalScrollBar()
            value = bar.value()
            self._moves_itself = True
            self.setTextCursor(selection)  # scrolls to the cursor
            bar.setValue(value)
            self._moves_itself = False
        self._follow()

    def _hang_items(self, block: QTextBlock) -> None:
        """Sets the lines of list items below their first letter; from a block to the end."""
        while block.isValid():
            text = block.text()
            bullet = next((bullet for bullet in BULLETS if text.startswith(bullet)), "")
            if bullet and not block.blockFormat().textIndent():
                width = QFontMetricsF(self.font()).horizontalAdvance(bullet)
                QTextCursor(block).setBlockFormat(self._block_format(width))
            elif not bullet and block.blockFormat().textIndent():
                QTextCursor(block).setBlockFormat(self._block_format())
            block = block.next()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Copies the selection, or asks for the whole answer where there is none."""
        if event.matches(QKeySequence.StandardKey.Copy) and not self.textCursor().hasSelection():
            self.copy_all_requested.emit()
            event.accept()
        else:
            super().keyPressEvent(event)

    def _on_value_changed(self, value: int) -> None:
        if not self._moves_itself:
            self._is_following = value >= self.verticalScrollBar().maximum() - SLACK_PX

    def _on_range_changed(self, low: int, high: int) -> None:
        set_styled(self.verticalScrollBar(), "idle", "true" if low == high else "false")
        self._follow()

    def _follow(self) -> None:
        if not self._is_following:
            return
        self._moves_itself = True
        self.verticalScrollBar().setValue(self.verticalScrollBar().maximum())
        self._moves_itself = False
