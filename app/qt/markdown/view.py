"""One answer: Markdown in a text view that is as tall as its text, so that the window around it scrolls.

All of it is one document, so a selection may go over paragraphs, code and tables. The boxes of code, the bars of
quotations and the rules are painted behind the letters; each block of code has a line with its language and a button.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from PySide6.QtCore import QEvent, QPoint, QRectF, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import (
    QContextMenuEvent,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QTextBlock,
    QTextCursor,
    QTextOption,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QMenu, QSizePolicy, QTextBrowser, QToolButton, QWidget

from app.qt.look.theme import colors_of, scaled
from app.qt.markdown.document import DocumentWriter
from app.qt.markdown.look import Look
from app.text.markdown import QUOTE, Block, Change, MarkdownStream, Run
from app.translation import Translator

COPIED_SHOWN_MS = 1500
CORNER_PX = 6
BAR_PX = 3
_LOOK_CHANGES = (
    QEvent.Type.ApplicationPaletteChange,
    QEvent.Type.PaletteChange,
    QEvent.Type.StyleChange,
    QEvent.Type.FontChange,
)


class CodeHeader(QWidget):
    """The line above a block of code: its language, and a button that copies it.

    Signals:
        copy_requested: the button was pressed.
    """

    copy_requested = Signal()

    def __init__(self, translator: Translator, parent: QWidget) -> None:
        super().__init__(parent)
        self._tr = translator.tr
        self.language = QLabel()
        self.language.setProperty("role", "muted")
        self.language.setTextFormat(Qt.TextFormat.PlainText)
        self.language.setFont(scaled(parent.font(), 0.84))
        self.button = QToolButton()
        self.button.setFont(scaled(parent.font(), 0.84))
        self.button.setText(self._tr("Copy"))
        self.button.setAccessibleName(self._tr("Copy the code"))
        self.button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.button.setCursor(Qt.CursorShape.PointingHandCursor)
        self.button.clicked.connect(self._on_clicked)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.language, 1)
        layout.addWidget(self.button)
        # Above the letters the pointer is no text cursor.
        self.setCursor(Qt.CursorShape.ArrowCursor)

    def set_language(self, language: str) -> None:
        """Names the language of the code, "" for none."""
        if self.language.text() != language:
            self.language.setText(language)

    def _on_clicked(self) -> None:
        self.copy_requested.emit()
        self.button.setText(self._tr("Copied"))
        QTimer.singleShot(COPIED_SHOWN_MS, self, lambda: self.button.setText(self._tr("Copy")))


class MarkdownView(QTextBrowser):
    """Shows Markdown that may still be arriving.

    Signals:
        copy_requested: text for the clipboard: a selection, a block of code, or the whole answer as it was written.
        link_clicked: the address of a link, http, https or mailto.
        dragged: the mouse selects at this place; what scrolls should keep it in sight.
    """

    copy_requested = Signal(str)
    link_clicked = Signal(QUrl)
    dragged = Signal(QPoint)

    def __init__(self, translator: Translator, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._translator = translator
        self.markdown = ""
        self._stream = MarkdownStream()
        self._headers: list[CodeHeader] = []
        self._set_up()
        self._writer = DocumentWriter(self.document(), self._look())
        self.anchorClicked.connect(self.link_clicked)
        self.document().documentLayout().documentSizeChanged.connect(self._fit)

    def _set_up(self) -> None:
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setOpenLinks(False)
        self.setUndoRedoEnabled(False)
        self.setCursorWidth(0)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(self._translator.tr("Answer"))
        for policy in (self.setHorizontalScrollBarPolicy, self.setVerticalScrollBarPolicy):
            policy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextBrowserInteraction | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.document().setDocumentMargin(0)
        option = self.document().defaultTextOption()
        option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.document().setDefaultTextOption(option)

    def _look(self) -> Look:
        return Look(self.font(), colors_of(QGuiApplication.palette()))

    # --- what is shown ------------------------------------------------------------------------------------------

    def append_markdown(self, text: str) -> None:
        """Adds text at the end; what is finished stays as it is, and so does the user's selection."""
        self.markdown += text
        selection = self.textCursor()
        is_at_end = selection.hasSelection() and self.document().characterCount() - 1 in (
            selection.anchor(),
            selection.position(),
        )
        anchor, position = selection.anchor(), selection.position()
        self._writer.apply(self._stream.append(text))
        if is_at_end:
            selection.setPosition(anchor)
            selection.setPosition(position, QTextCursor.MoveMode.KeepAnchor)
            self.setTextCursor(selection)
        self._place_headers()

    def finish(self) -> None:
        """Nothing more comes."""
        self._writer.finish()

    def set_markdown(self, text: str) -> None:
        """Shows another text."""
        self.markdown = ""
        self._stream = MarkdownStream()
        self._writer = DocumentWriter(self.document(), self._look())
        self.clear()
        self.append_markdown(text)
        self.finish()

    def set_plain_text(self, text: str) -> None:
        """Shows a text as it is; each paragraph takes its own direction."""
        self.markdown = text
        self._writer.apply(Change(0, ()))
        blocks = tuple(Block("paragraph", (Run(part),)) for part in text.split("\n\n"))
        self._writer.apply(Change(0, blocks))

    def loadResource(self, kind: int, name: QUrl | str) -> object:
        """Nothing is ever loaded, from no file and no network."""
        return None

    # --- its size and its parts ---------------------------------------------------------------------------------

    def _fit(self) -> None:
        height = max(1, math.ceil(self.document().size().height()))
        if height != self.height():
            self.setFixedHeight(height)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keeps its parts where their text is."""
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._fit()
            self._place_headers()

    def _lines_rect(self, first: QTextBlock, last: QTextBlock) -> QRectF:
        layout = self.document().documentLayout()
        top, bottom = layout.blockBoundingRect(first), layout.blockBoundingRect(last)
        return QRectF(0, top.top(), self.viewport().width(), bottom.bottom() - top.top())

    def _code_boxes(self) -> Iterator[tuple[int, QRectF]]:
        """The number of each block of code, and its box with the line above it."""
        look = self._writer.look
        for index, block in enumerate(self._writer.blocks):
            if block.kind == "code":
                rect = self._lines_rect(*self._writer.code_lines(index))
                yield index, rect.adjusted(look.offset(block.containers), -look.code_header, 0, look.code_padding)

    def _leave_room_for_code(self) -> None:
        """Qt passes over the space above the first block and below the last, where code has its header and its edge."""
        blocks, look = self._writer.blocks, self._writer.look
        top = look.code_header if blocks and blocks[0].kind == "code" else 0.0
        bottom = look.code_padding if blocks and blocks[-1].kind == "code" else 0.0
        frame = self.document().rootFrame()
        room = frame.frameFormat()
        if (room.topMargin(), room.bottomMargin()) != (top, bottom):
            room.setTopMargin(top)
            room.setBottomMargin(bottom)
            frame.setFrameFormat(room)

    def _place_headers(self) -> None:
        self._leave_room_for_code()
        count = 0
        look = self._writer.look
        for count, (index, box) in enumerate(self._code_boxes(), 1):
            if count > len(self._headers):
                self._headers.append(self._new_header(count - 1))
            header = self._headers[count - 1]
            header.set_language(self._writer.blocks[index].language)
            padding = look.code_padding
            place = QRectF(box.left() + padding, box.top(), box.width() - 1.4 * padding, look.code_header).toRect()
            if header.geometry() != place:
                header.setGeometry(place)
        for header in self._headers[count:]:
            header.deleteLater()
        del self._headers[count:]

    def _new_header(self, number: int) -> CodeHeader:
        header = CodeHeader(self._translator, self.viewport())
        header.copy_requested.connect(lambda: self.copy_requested.emit(self._code(number)))
        header.show()
        return header

    def _code(self, number: int) -> str:
        return [block.code for block in self._writer.blocks if block.kind == "code"][number]

    # --- painting -----------------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paints boxes, bars and rules, then the letters over them."""
        painter = QPainter(self.viewport())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        colors, clip = self._writer.look.colors, QRectF(event.rect())
        for _, box in self._code_boxes():
            if box.intersects(clip):
                painter.setBrush(self._writer.look.code_ground)
                painter.drawRoundedRect(box, CORNER_PX, CORNER_PX)
        painter.setBrush(colors.border)
        for bar in self._quote_bars():
            if bar.intersects(clip):
                painter.drawRoundedRect(bar, BAR_PX / 2, BAR_PX / 2)
        painter.setBrush(colors.hairline)
        for index, block in enumerate(self._writer.blocks):
            if block.kind == "rule":
                line = self.document().findBlock(self._writer.starts[index])
                rect = self._lines_rect(line, line)
                left = self._writer.look.offset(block.containers)
                painter.drawRect(QRectF(left, round(rect.center().y()), rect.width() - left, 1))
        painter.end()
        super().paintEvent(event)

    def _quote_bars(self) -> Iterator[QRectF]:
        blocks, look = self._writer.blocks, self._writer.look
        depth = max((len(block.containers) for block in blocks), default=0)
        for level in range(depth):
            first = None
            for index in range(len(blocks) + 1):
                containers = blocks[index].containers if index < len(blocks) else ""
                inside = containers[level : level + 1] == QUOTE
                if inside and first is None:
                    first = index
                elif not inside and first is not None:
                    yield self._bar(first, index - 1, look.offset(blocks[first].containers[:level]))
                    first = None

    def _bar(self, first: int, last: int, left: float) -> QRectF:
        writer = self._writer
        begin = self.document().findBlock(writer.starts[first])
        is_end = last + 1 == len(writer.blocks)
        end = self.document().lastBlock() if is_end else self.document().findBlock(writer.starts[last + 1] - 1)
        rect = self._lines_rect(begin, end)
        if writer.blocks[first].kind == "code":
            rect.setTop(rect.top() - writer.look.code_header)
        if writer.blocks[last].kind == "code":
            rect.setBottom(rect.bottom() + writer.look.code_padding)
        x = left
        if self._is_right_to_left(begin):
            x = self.viewport().width() - left - BAR_PX
        return QRectF(x, rect.top(), BAR_PX, rect.height())

    @staticmethod
    def _is_right_to_left(block: QTextBlock) -> bool:
        return block.blockFormat().layoutDirection() is Qt.LayoutDirection.RightToLeft

    # --- events -------------------------------------------------------------------------------------------------

    def event(self, event: QEvent) -> bool:
        """Follows the desktop between light and dark, and its font."""
        handled = super().event(event)
        # A view whose window has a style sheet is not told of the application's palette, but of the sheet's change.
        if event.type() in _LOOK_CHANGES and self._headers is not None:
            look = self._look()
            if (look.font, look.colors) != (self._writer.look.font, self._writer.look.colors):
                self._writer.restyle(look)
                self._place_headers()
        return handled

    def wheelEvent(self, event: QWheelEvent) -> None:
        """The window around it scrolls."""
        event.ignore()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Tells where the mouse selects."""
        super().mouseMoveEvent(event)
        if event.buttons() & Qt.MouseButton.LeftButton:
            self.dragged.emit(event.position().toPoint())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Copies the selection, or the whole answer where there is none; scrolling is left to the window around it."""
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy_requested.emit(self.selected_text() or self.markdown)
        elif event.key() in _SCROLL_KEYS and not event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            event.ignore()
        else:
            super().keyPressEvent(event)

    def selected_text(self) -> str:
        """What the user has selected, as plain text."""
        return self.textCursor().selection().toPlainText()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """In the language of the windows."""
        tr = self._translator.tr
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        address = self.anchorAt(event.pos())
        if address:
            menu.addAction(tr("Copy the link"), lambda: self.copy_requested.emit(address))
        selected = self.selected_text()
        if selected:
            menu.addAction(tr("Copy"), lambda: self.copy_requested.emit(selected))
        menu.addAction(tr("Copy the answer"), lambda: self.copy_requested.emit(self.markdown))
        menu.addAction(tr("Select all"), self.selectAll)
        menu.popup(event.globalPos())


_SCROLL_KEYS = {
    Qt.Key.Key_Up,
    Qt.Key.Key_Down,
    Qt.Key.Key_PageUp,
    Qt.Key.Key_PageDown,
    Qt.Key.Key_Home,
    Qt.Key.Key_End,
}
