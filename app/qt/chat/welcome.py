"""What stands in the chat while nothing has been said: what can be done here."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFont, QFontInfo
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app.qt.look.theme import SPACE_L, SPACE_M, SPACE_S, scaled
from app.translation import Translator

COLUMN_EM = 38


class Welcome(QWidget):
    """Offers beginnings.

    Signals:
        chosen: the beginning of a message.
    """

    chosen = Signal(str)

    def __init__(self, translator: Translator, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        tr = translator.tr
        heading = QLabel(tr("What is it about?"))
        heading.setFont(scaled(self.font(), 1.7, QFont.Weight.DemiBold))
        self._translator, promise = translator, QLabel()
        promise.setProperty("role", "muted")
        promise.setWordWrap(True)
        self.promise = promise
        self.set_host("")
        grid = self._make_buttons()
        hint = QLabel(
            tr("Enter sends, Shift+Enter starts a new line. A text file can be dropped here and asked about.")
        )
        hint.setProperty("role", "muted")
        hint.setWordWrap(True)
        hint.setFont(scaled(self.font(), 0.9))
        for label in (heading, promise, hint):
            label.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        column = QWidget()
        column.setMaximumWidth(COLUMN_EM * QFontInfo(self.font()).pixelSize())
        inner = QVBoxLayout(column)
        inner.setContentsMargins(0, 0, 0, 0)
        inner.setSpacing(SPACE_M)
        inner.addWidget(heading)
        inner.addWidget(promise)
        inner.addSpacing(SPACE_S)
        inner.addLayout(grid)
        inner.addSpacing(SPACE_S)
        inner.addWidget(hint)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_L, SPACE_L, SPACE_L, SPACE_L)
        layout.addStretch(2)
        middle = QHBoxLayout()
        middle.addStretch(1)
        middle.addWidget(column, 100)
        middle.addStretch(1)
        layout.addLayout(middle)
        layout.addStretch(3)

    def _make_buttons(self) -> QGridLayout:
        """Beginnings of messages."""
        tr = self._translator.tr
        self.buttons = []
        grid = QGridLayout()
        grid.setSpacing(SPACE_S)
        beginnings = (
            (tr("Explain something"), tr("Explain in simple words: ")),
            (tr("Draft an e-mail"), tr("Write a short, friendly e-mail. It is about: ")),
            (tr("Write some code"), tr("Write a Python function that ")),
            (tr("Compare two things"), tr("Compare these two in a table: ")),
        )
        for number, (title, beginning) in enumerate(beginnings):
            button = QPushButton(title)
            button.setProperty("role", "card")
            button.clicked.connect(lambda _checked=False, text=beginning: self.chosen.emit(text))
            self.buttons.append(button)
            grid.addWidget(button, number // 2, number % 2)
        return grid

    def set_host(self, host: str) -> None:
        """Says where what is written goes: to a server, or "" for nowhere."""
        tr = self._translator.tr
        stays = tr("The model runs on this computer. What you write here does not leave it.")
        self.promise.setText(tr("What you write here is sent to {host}.", host=host) if host else stays)
