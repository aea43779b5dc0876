"""What stands above and below an answer in the popup: title and window buttons; small print and actions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from PySide6.QtCore import QSize, Qt, QTimer
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QToolButton, QWidget

from app.qt.look.elided_label import ElidedLabel
from app.qt.look.icons import svg_icon
from app.qt.look.theme import SPACE_L, SPACE_M, SPACE_S, Colors, scaled, set_styled
from app.qt.remote.badge import RemoteBadge
from app.translation import Translator

COPIED_SHOWN_MS = 1500


class PopupHeader(QWidget):
    """Title, subtitle, "Continue as chat" and "Close"."""

    def __init__(self, translator: Translator, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setMouseTracking(True)
        tr = translator.tr
        self.title, self.subtitle = QLabel(), ElidedLabel()
        self.title.setFont(scaled(self.font(), 1.08, QFont.Weight.DemiBold))
        self.subtitle.setProperty("role", "muted")
        self.chat_button = _tool_button(tr("Continue as chat"), "Ctrl+T")
        self.close_button = _tool_button(tr("Close"), "Esc")
        layout = QHBoxLayout(self)
        layout.setContentsMargins(SPACE_L, SPACE_M, SPACE_S, SPACE_S)
        layout.setSpacing(SPACE_S)
        layout.addWidget(self.title)
        layout.addWidget(self.subtitle, 1)
        self.remote_badge = RemoteBadge(translator)
        layout.addWidget(self.remote_badge)
        layout.addWidget(self.chat_button)
        layout.addWidget(self.close_button)
        policy = self.chat_button.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self.chat_button.setSizePolicy(policy)

    def apply_colors(self, colors: Colors) -> None:
        """Draws the icons in the colours of the window."""
        self.chat_button.setIcon(svg_icon("chat", colors.muted))
        self.close_button.setIcon(svg_icon("close", colors.muted))


def _tool_button(name: str, keys: str) -> QToolButton:
    button = QToolButton()
    button.setAccessibleName(name)
    button.setToolTip(f"{name} ({keys})")
    button.setIconSize(QSize(16, 16))
    button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    return button


class PopupFooter(QWidget):
    """Small print on the left, Stop or Try again, Copy and Replace on the right: the one that is meant stands last."""

    def __init__(self, translator: Translator, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setMouseTracking(True)
        tr = self._tr = translator.tr
        self.small_print = ElidedLabel()
        self.small_print.setProperty("role", "muted")
        self.small_print.setFont(scaled(self.font(), 0.84))
        # Room for its two lines from the start, so that the text does not move when they come.
        self.small_print.setText("\n")
        self.small_print.setMinimumHeight(self.small_print.sizeHint().height())
        self.stop_button = QPushButton(tr("Stop"))
        self.retry_button = QPushButton(tr("Try again"))
        self.copy_button = QPushButton(tr("Copy"))
        self.replace_button = QPushButton(tr("Replace"))
        self.stop_button.setToolTip(tr("Stop writing ({keys})", keys="Ctrl+."))
        self.retry_button.setToolTip(tr("Run the action again on the same text ({keys})", keys="F5"))
        self.copy_button.setToolTip(tr("Copy the answer ({keys})", keys="Ctrl+C"))
        self._last = self.replace_button
        layout = self._layout = QHBoxLayout(self)
        layout.setContentsMargins(SPACE_L, SPACE_S, SPACE_L, SPACE_M)
        layout.setSpacing(SPACE_S)
        layout.addWidget(self.small_print, 1)
        for button in self.buttons:
            layout.addWidget(button)
        self._copied_timer = QTimer(self, singleShot=True, interval=COPIED_SHOWN_MS)
        self._copied_timer.timeout.connect(lambda: self.copy_button.setText(tr("Copy")))

    @property
    def buttons(self) -> Sequence[QPushButton]:
        """All buttons, in their order."""
        before_last = self.copy_button if self._last is self.replace_button else self.replace_button
        return self.stop_button, self.retry_button, before_last, self._last

    def place_last(self, button: QPushButton) -> None:
        """Puts Copy or Replace where the eye ends, and the other one before it; the Tab key goes the same way."""
        if button is not self._last:
            self._last = button
            self._layout.addWidget(button)
            for before, after in pairwise(self.buttons):
                self.setTabOrder(before, after)

    def highlight(self, primary: QPushButton | None) -> None:
        """Colours the button that Enter presses, None for none."""
        for button in (self.copy_button, self.replace_button):
            set_styled(button, "role", "primary" if button is primary else "")

    def show_small_print(self, text: str, details: str = "") -> None:
        """One or two short lines; `details` is the tool tip."""
        self.small_print.set_full_text(text)
        self.small_print.setToolTip(details or text)

    def show_copied(self) -> None:
        """Says for a moment that the text was copied."""
        self.copy_button.setText(self._tr("Copied"))
        self._copied_timer.start()
