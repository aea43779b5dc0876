"""A message with its cure, an optional quotation, and an optional button: errors, "nothing selected", refusals."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFont, QShowEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app.qt.look.theme import SPACE_M, SPACE_S, scaled, set_styled

PREVIEW_CHARS = 200


@dataclass(frozen=True, slots=True)
class Notice:
    """What the user is told.

    Attributes:
        heading: one line.
        text: what happened and what to do about it, "" where the heading says it all.
        quote: text of the user that is shown, and only shown.
        button: label of the button that goes on, "" for none.
        is_error: whether something failed.
    """

    heading: str
    text: str = ""
    quote: str = ""
    button: str = ""
    is_error: bool = False


def preview(text: str, limit: int = PREVIEW_CHARS) -> str:
    """The beginning of a text, its white space folded, with an ellipsis where it goes on."""
    folded = " ".join(text[: 4 * limit].split())
    return folded if len(folded) <= limit and len(text) <= 4 * limit else folded[:limit].rstrip() + "…"


def _label(role: str = "") -> QLabel:
    label = QLabel()
    label.setWordWrap(True)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    if role:
        label.setProperty("role", role)
    return label


class NoticePanel(QWidget):
    """Shows a Notice.

    Attributes:
        shown: the last one.

    Signals:
        accepted: its button was pressed.
    """

    accepted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.shown = Notice("")
        self._heading, self._text, self._quote = _label(), _label("muted"), _label()
        self._heading.setFont(scaled(self.font(), 1.0, QFont.Weight.DemiBold))
        self._quote_box = QFrame()
        self._quote_box.setProperty("role", "quote")
        quote_layout = QVBoxLayout(self._quote_box)
        quote_layout.setContentsMargins(SPACE_M, SPACE_S, SPACE_M, SPACE_S)
        quote_layout.addWidget(self._quote)
        self.button = QPushButton()
        self.button.setProperty("role", "primary")
        self.button.setAutoDefault(True)  # Return presses it
        self.button.clicked.connect(self.accepted)
        buttons = QHBoxLayout()
        buttons.addWidget(self.button)
        buttons.addStretch()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, SPACE_S, SPACE_S)
        layout.setSpacing(SPACE_S)
        for widget in (self._heading, self._text, self._quote_box):
            layout.addWidget(widget)
        layout.addLayout(buttons)
        layout.addStretch()

    def show_notice(self, notice: Notice) -> None:
        """Replaces what is shown."""
        self.shown = notice
        self._heading.setText(("⚠ " if notice.is_error else "") + notice.heading)
        set_styled(self._heading, "role", "danger" if notice.is_error else "")
        self._text.setText(notice.text)
        self._text.setVisible(bool(notice.text))
        self._quote.setText(notice.quote)
        self._quote_box.setVisible(bool(notice.quote))
        self.button.setText(notice.button)
        self.button.setVisible(bool(notice.button))
        self.setAccessibleName(notice.heading)
        self.setAccessibleDescription(notice.text)

    def showEvent(self, event: QShowEvent) -> None:
        """Where the window has the keyboard already, the button gets it."""
        super().showEvent(event)
        if self.window().isActiveWindow() and self.button.text():
            self.button.setFocus(Qt.FocusReason.OtherFocusReason)
