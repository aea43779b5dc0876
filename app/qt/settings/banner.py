"""A strip above the settings: what is wrong or what is still to come, with a button where something can be done."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton

from app.qt.look.theme import SPACE_M, SPACE_S
from app.qt.settings.row import text_label


class Banner(QFrame):
    """Hidden while it has nothing to say.

    Signals:
        accepted: its button was pressed.
    """

    accepted = Signal()

    def __init__(self, role: str = "", button: str = "") -> None:
        super().__init__()
        self.setProperty("role", "quote")
        self.label = text_label(role=role)
        self.button = QPushButton(button)
        self.button.setVisible(bool(button))
        self.button.clicked.connect(self.accepted)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(SPACE_M, SPACE_S, SPACE_S, SPACE_S)
        layout.setSpacing(SPACE_M)
        layout.addWidget(self.label, 1)
        layout.addWidget(self.button)
        self.hide()

    def show_text(self, text: str) -> None:
        """Says something, "" to be quiet again."""
        self.label.setText(text)
        self.setVisible(bool(text))
