"""A calm bar that says what an answer lost or changed; each entry leads to its place."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QApplication, QFrame, QLabel, QSizePolicy, QToolButton, QWidget

from app.qt.look.flow_layout import FlowLayout
from app.qt.look.theme import SPACE_S, SPACE_XS
from app.text.checks import Loss
from app.text.loss_text import LossGroup, grouped, left_out_text, loss_text
from app.translation import Translator

# With more entries than this, the rest waits behind one that says how many.
FIRST_ENTRIES, MOST_ENTRIES = 4, 16


class CheckBar(QFrame):
    """Hidden while there is nothing to say.

    Signals:
        loss_chosen: a Loss was clicked.
        grown: the bar shows more than before.
        show_all_requested: the user wants to see what of the answer was left out.
    """

    loss_chosen = Signal(object)
    show_all_requested = Signal()
    grown = Signal()

    def __init__(self, translator: Translator, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._tr = translator.tr
        self.setProperty("role", "quote")
        self._losses: tuple[Loss, ...] = ()
        self._left_out = ""
        self._layout = FlowLayout(self, SPACE_XS)
        self._layout.setContentsMargins(SPACE_S, SPACE_XS, SPACE_S, SPACE_XS)
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.hide()

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What is flagged."""
        return self._losses

    def show_losses(self, losses: Sequence[Loss], left_out: str = "") -> None:
        """Shows entries, or hides the bar where there are none.

        Args:
            left_out: what of the answer is not part of the text.
        """
        self._losses, self._left_out = tuple(losses), left_out.strip()
        self._fill(FIRST_ENTRIES)
        self.setVisible(bool(self._losses or self._left_out))

    def _fill(self, limit: int) -> None:
        while (item := self._layout.takeAt(0)) is not None:
            widget = item.widget()
            assert widget is not None
            widget.hide()
            widget.deleteLater()
        tr = self._tr
        if self._losses:
            label = QLabel(tr("Please check:"))
            label.setProperty("role", "muted")
            self._layout.addWidget(label)
        groups = grouped(self._losses)
        shown = groups if len(groups) <= limit + 1 else groups[:limit]
        for group in shown:
            self._layout.addWidget(self._loss_entry(group))
        if len(shown) < len(groups):
            more = self._entry(tr("{count} more", count=len(groups) - len(shown)))
            more.setEnabled(limit < MOST_ENTRIES)
            more.clicked.connect(self._show_more)
            self._layout.addWidget(more)
        if self._left_out:
            entry = self._entry(tr(left_out_text(self._left_out)))
            entry.setToolTip(tr("Show all that the model wrote"))
            entry.clicked.connect(self.show_all_requested)
            self._layout.addWidget(entry)
        self._make_even()
        for item in self._layout.items:
            if (widget := item.widget()) is not None:
                widget.show()  # Qt would do so only later, and the bar be too low for them until then
        self.setAccessibleName(tr("Please check:"))
        self.setAccessibleDescription("; ".join(tr(loss_text(loss)) for loss in self._losses))
        self.updateGeometry()

    def _loss_entry(self, group: LossGroup) -> QToolButton:
        """One entry for all losses that read the same; each click leads to the next of them."""
        text, count = self._tr(group.text), len(group.losses)
        entry = self._entry(text if count == 1 else f"{text} ({count}×)")
        entry.setToolTip(self._tr("Show the place"))
        places = cycle(group.losses)
        entry.clicked.connect(lambda: self.loss_chosen.emit(next(places)))
        return entry

    def _show_more(self) -> None:
        focused = QApplication.focusWidget()
        had_focus = focused is not None and self.isAncestorOf(focused)
        self._fill(MOST_ENTRIES)
        first_new = self._layout.items[FIRST_ENTRIES + 1].widget()
        if had_focus and first_new is not None:
            first_new.setFocus(Qt.FocusReason.TabFocusReason)
        self.grown.emit()

    def _make_even(self) -> None:
        """Gives all entries one height: fonts for Chinese are taller than those for Latin letters."""
        widgets = [item.widget() for item in self._layout.items]
        height = max((widget.sizeHint().height() for widget in widgets if widget), default=0)
        for widget in widgets:
            if widget:
                widget.setFixedHeight(height)

    def _entry(self, text: str) -> QToolButton:
        entry = QToolButton(self)
        entry.setProperty("role", "entry")
        entry.setText(text)
        entry.setAccessibleName(text)
        entry.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        entry.setCursor(Qt.CursorShape.PointingHandCursor)
        return entry
