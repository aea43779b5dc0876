"""The user guide in a window of its own: files of docs/, since not every system has a program that shows them."""

from __future__ import annotations

import re
from pathlib import Path

from PySide6.QtCore import QEvent, QSize, Qt, QUrl
from PySide6.QtGui import (
    QDesktopServices,
    QGuiApplication,
    QKeySequence,
    QShortcut,
    QTextBlockFormat,
    QTextCursor,
    QTextLength,
)
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QTextBrowser, QVBoxLayout, QWidget

from app.qt.look.icons import app_icon
from app.qt.look.placement import first_size
from app.qt.look.theme import SPACE_L, SPACE_S, colors_of, scaled, style_sheet
from app.qt.settings.find_bar import FindBar
from app.translation import Translator

DEFAULT_SIZE = QSize(860, 720)
MINIMUM_SIZE = QSize(420, 330)
TEXT_SCALE = 1.05
LINE_HEIGHT_PERCENT = 125.0


class GuideWindow(QWidget):
    """Shows a Markdown file with its pictures. Links to its sections and to files beside it are followed here.

    Attributes:
        page: the file that is shown.
    """

    def __init__(self, page: Path, translator: Translator) -> None:
        """Shows a file that is there."""
        super().__init__(None, Qt.WindowType.Window)
        tr = translator.tr
        self.page, self._earlier = page, list[tuple[Path, int]]()
        self.setObjectName("page")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAttribute(Qt.WidgetAttribute.WA_QuitOnClose, False)
        self.setWindowTitle(tr("User guide"))
        self.setWindowIcon(app_icon())
        self.text = QTextBrowser()
        self.text.setOpenLinks(False)
        self.text.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.text.document().setDocumentMargin(SPACE_L)
        self.text.setAccessibleName(tr("User guide"))
        self.text.setFont(scaled(self.font(), TEXT_SCALE))
        self.text.anchorClicked.connect(self.follow)
        self.back_button = QPushButton(tr("Go back"))
        self.back_button.clicked.connect(self.go_back)
        head = QHBoxLayout()
        head.setContentsMargins(SPACE_L, SPACE_S, SPACE_L, SPACE_S)
        head.addWidget(self.back_button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(head)
        layout.addWidget(self.text, 1)
        self.find_bar = FindBar(self.text, translator)
        head.addWidget(self.find_bar, 1)
        QShortcut(QKeySequence(QKeySequence.StandardKey.Find), self).activated.connect(self.find_bar.begin)
        QShortcut(QKeySequence(Qt.Key.Key_Escape), self).activated.connect(self._on_escape)
        QShortcut(QKeySequence(QKeySequence.StandardKey.Back), self).activated.connect(self.go_back)
        self.setMinimumSize(MINIMUM_SIZE)
        self.resize(first_size(DEFAULT_SIZE, self.screen().availableSize()))
        self._color()
        self.text.setFocus()

    def follow(self, link: QUrl) -> None:
        """Opens what a link leads to: a section, a file beside this one, or a page on the web."""
        if link.scheme():
            QDesktopServices.openUrl(link)
            return
        path = (self.page.parent / link.path()).resolve() if link.path() else self.page
        if path != self.page and path.suffix == ".md" and path.is_file():
            self._earlier.append((self.page, self.text.verticalScrollBar().value()))
            self._show(path)
        if path == self.page and link.hasFragment():
            self._go_to(link.fragment())

    def go_back(self) -> None:
        """Goes to the file before this one, where it was left."""
        if self._earlier:
            self._show(*self._earlier.pop())

    def _show(self, path: Path, place: int = 0) -> None:
        """Shows a file.

        Args:
            place: of the scroll bar.
        """
        self.page = path
        self.text.setSearchPaths([str(path.parent)])
        self.text.setMarkdown(path.read_text(encoding="utf-8"))
        self._lay_out()
        self.text.verticalScrollBar().setValue(place)
        self.back_button.setVisible(bool(self._earlier))
        self.find_bar.refresh()

    def _on_escape(self) -> None:
        """What was looked for goes first."""
        if self.find_bar.end():
            self.text.setFocus()
        else:
            self.close()

    def _lay_out(self) -> None:
        """Pictures keep to the width of the window, lines have room between them, links have our colour."""
        accent = colors_of(QGuiApplication.palette()).accent
        block = self.text.document().begin()
        while block.isValid():
            cursor = QTextCursor(block)
            spans = block.textFormats()
            if not any(span.format.isImageFormat() for span in spans):
                lines = block.blockFormat()
                lines.setLineHeight(LINE_HEIGHT_PERCENT, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
                cursor.setBlockFormat(lines)
            for span in spans:
                look = span.format
                cursor.setPosition(block.position() + span.start)
                cursor.setPosition(block.position() + span.start + span.length, QTextCursor.MoveMode.KeepAnchor)
                if look.isImageFormat():
                    look = look.toImageFormat()
                    look.setMaximumWidth(QTextLength(QTextLength.Type.PercentageLength, 100))
                    cursor.setCharFormat(look)
                elif look.isAnchor():
                    look.setForeground(accent)
                    cursor.setCharFormat(look)
            block = block.next()

    def _go_to(self, section: str) -> None:
        block = self.text.document().begin()
        while block.isValid():
            if block.blockFormat().headingLevel() and _anchor(block.text()) == section:
                top = self.text.document().documentLayout().blockBoundingRect(block).top()
                self.text.verticalScrollBar().setValue(round(top))
                return
            block = block.next()

    def _color(self) -> None:
        self.setStyleSheet(style_sheet(colors_of(QGuiApplication.palette())))
        self._show(self.page, self.text.verticalScrollBar().value())

    def event(self, event: QEvent) -> bool:
        """Follows the choice between light and dark."""
        if event.type() is QEvent.Type.ApplicationPaletteChange:
            self._color()
        return super().event(event)


def _anchor(heading: str) -> str:
    """The name of a section in links, as Markdown on the web makes it out of the heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
