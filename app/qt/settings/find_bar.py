"""Finds words in a text that is shown: every place is marked, one of them is gone to."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence, QShortcut, QTextCursor
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QSizePolicy, QTextBrowser, QTextEdit, QWidget

from app.qt.look.icon_button import IconButton
from app.qt.look.theme import SPACE_XS, blend, colors_of
from app.translation import Translator

FIELD_EM = 14
MARKED_SHARE = 0.25


class _Field(QLineEdit):
    """Enter leads on, with Shift back."""

    def __init__(self, bar: FindBar) -> None:
        super().__init__()
        self._bar = bar

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """See the class."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._bar.go(-1 if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 1)
        else:
            super().keyPressEvent(event)


class FindBar(QWidget):
    """A field, the way to the next and the previous place, and which of how many is gone to.

    Attributes:
        places: where the words are, from the top.
        current: which of them is gone to, from 0.
    """

    def __init__(self, text: QTextBrowser, translator: Translator) -> None:
        super().__init__()
        tr = self._tr = translator.tr
        self._text = text
        self.places: list[QTextCursor] = []
        self.current = 0
        self.field = _Field(self)
        self.field.setPlaceholderText(tr("Find"))
        self.field.setAccessibleName(tr("Find in the user guide"))
        keys = QKeySequence(QKeySequence.StandardKey.Find).toString()
        self.field.setToolTip(tr("Find in the user guide ({keys})", keys=keys))
        self.field.setClearButtonEnabled(True)
        self.field.setFixedWidth(FIELD_EM * self.fontMetrics().height())
        self.field.textChanged.connect(self._on_words)
        self.count = QLabel()
        self.count.setProperty("role", "muted")
        self.count.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.previous_button = IconButton("chevron-up", tr("Previous place"), "Shift+F3")
        self.next_button = IconButton("chevron-down", tr("Next place"), "F3")
        self.previous_button.clicked.connect(lambda: self.go(-1))
        self.next_button.clicked.connect(lambda: self.go(1))
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_XS)
        layout.addWidget(self.count, 1)
        self.count.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        for widget in (self.field, self.previous_button, self.next_button):
            layout.addWidget(widget)
        for key, step in (("F3", 1), ("Shift+F3", -1)):
            QShortcut(QKeySequence(key), text.window()).activated.connect(lambda step=step: self.go(step))
        self._show()

    def begin(self) -> None:
        """Takes the keyboard; words that are there can be typed over."""
        self.field.setFocus()
        self.field.selectAll()

    def end(self) -> bool:
        """Lets go of the words; whether there were any."""
        had_words = bool(self.field.text())
        self.field.clear()
        return had_words

    def go(self, steps: int) -> None:
        """Goes to a place that many steps on; after the last one comes the first."""
        if self.places:
            self.current = (self.current + steps) % len(self.places)
            self._show()
            self._reveal()

    def refresh(self) -> None:
        """Looks through the text anew: it is another, or has other colours. Nothing is scrolled."""
        self._find()
        self.current = min(self.current, max(0, len(self.places) - 1))
        self._show()

    def _on_words(self) -> None:
        """The first place from where the reader is, so that typing on does not lead away."""
        top = self._text.cursorForPosition(self._text.viewport().rect().topLeft()).position()
        self._find()
        after = (number for number, place in enumerate(self.places) if place.selectionStart() >= top)
        self.current = next(after, 0)
        self._show()
        self._reveal()

    def _find(self) -> None:
        self.places = []
        words, document = self.field.text(), self._text.document()
        place = document.find(words) if words.strip() else QTextCursor()
        while not place.isNull():
            self.places.append(place)
            place = document.find(words, place)

    def _show(self) -> None:
        colors = colors_of(QGuiApplication.palette())
        marks = []
        for number, place in enumerate(self.places):
            mark = QTextEdit.ExtraSelection()
            mark.cursor = place
            is_current = number == self.current
            mark.format.setBackground(colors.accent if is_current else blend(colors.accent, colors.page, MARKED_SHARE))
            mark.format.setForeground(colors.on_accent if is_current else colors.text)
            marks.append(mark)
        self._text.setExtraSelections(marks)
        found = self._tr("{number} of {count}", number=self.current + 1, count=len(self.places))
        self.count.setText(found if self.places else self._tr("not found") if self.field.text().strip() else "")
        for button in (self.previous_button, self.next_button):
            button.setEnabled(bool(self.places))

    def _reveal(self) -> None:
        """Scrolls only where the place is not on the screen; then it comes to the middle."""
        if not self.places:
            return
        view = self._text.viewport()
        place = QTextCursor(self.places[self.current])
        place.setPosition(place.selectionStart())
        spot = self._text.cursorRect(place)
        if not view.rect().contains(spot):
            bar = self._text.verticalScrollBar()
            bar.setValue(bar.value() + spot.center().y() - view.height() // 2)
