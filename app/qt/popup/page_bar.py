"""The row above an answer: which page of it is shown, and what is done with its changes."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QKeySequence, QShortcut, QShowEvent
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QToolButton, QWidget

from app.qt.look.elided_label import ElidedLabel
from app.qt.look.icons import svg_icon
from app.qt.look.theme import SPACE_S, SPACE_XS, Colors
from app.translation import Translator

ICON_PX = 16


class Page(enum.Enum):
    """What of an answer is shown."""

    CHANGES = "changes"
    TODOS = "todos"
    RESULT = "result"
    SOURCE = "source"


_KEYS = {Page.CHANGES: "Ctrl+1", Page.TODOS: "Ctrl+1", Page.RESULT: "Ctrl+2", Page.SOURCE: "Ctrl+3"}


class PageBar(QWidget):
    """Tabs on the left; on the right a short text and the buttons that go from change to change.

    Signals:
        page_chosen: a tab was pressed.
        step_requested: 1 for the next change, -1 for the previous one.
        toggle_requested: take or leave the current change.
        all_requested: take all changes, or leave all.
    """

    page_chosen = Signal(Page)
    step_requested = Signal(int)
    toggle_requested = Signal()
    all_requested = Signal()

    def __init__(self, translator: Translator, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        tr = translator.tr
        names = {
            Page.CHANGES: tr("Changes"),
            Page.TODOS: tr("To-dos"),
            Page.RESULT: tr("Result"),
            Page.SOURCE: tr("Source"),
        }
        self.tabs: dict[Page, QToolButton] = {}
        self._group = QButtonGroup(self)
        layout = self._layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_XS // 2)
        for page, name in names.items():
            tab = QToolButton()
            tab.setText(name)
            tab.setAccessibleName(name)
            tab.setProperty("role", "tab")
            tab.setCheckable(True)
            tab.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            tab.clicked.connect(lambda _checked=False, page=page: self.page_chosen.emit(page))
            self._group.addButton(tab)
            self.tabs[page] = tab
            layout.addWidget(tab)
        self.count_label = ElidedLabel()
        self.count_label.setProperty("role", "muted")
        self.count_label.setAlignment(Qt.AlignmentFlag.AlignTrailing | Qt.AlignmentFlag.AlignVCenter)
        layout.addWidget(self.count_label, 1)
        self.previous_button = self._button(tr("Previous change"), "Shift+F8", lambda: self.step_requested.emit(-1))
        self.next_button = self._button(tr("Next change"), "F8", lambda: self.step_requested.emit(1))
        self.toggle_button = self._button(tr("Use this change, or not"), "F9", self.toggle_requested.emit)
        self.all_button = self._button(tr("Use all changes, or none"), "Shift+F9", self.all_requested.emit)
        for button in self.change_buttons:
            layout.addWidget(button)
        self.export_button = QToolButton()
        self.export_button.setText(tr("Copy as") + " ▾")
        self.export_button.setAccessibleName(tr("Copy as"))
        self.export_button.setToolTip(tr("Copy or save what is not ticked ({keys})", keys="Ctrl+E"))
        self.export_button.setProperty("role", "tab")
        self.export_button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.export_button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.export_button.hide()
        QShortcut(QKeySequence("Ctrl+E"), self.export_button).activated.connect(self.export_button.click)
        layout.addWidget(self.export_button)
        for page, keys in _KEYS.items():
            tab = self.tabs[page]
            tab.setToolTip(f"{tab.text()} ({keys})")
            QShortcut(QKeySequence(keys), tab).activated.connect(tab.click)

    @property
    def change_buttons(self) -> Sequence[QToolButton]:
        """The buttons that act on changes, in their order."""
        return self.previous_button, self.next_button, self.toggle_button, self.all_button

    def _button(self, name: str, keys: str, act: object) -> QToolButton:
        button = QToolButton()
        button.setAccessibleName(name)
        button.setToolTip(f"{name} ({keys})")
        button.setIconSize(QSize(ICON_PX, ICON_PX))
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.clicked.connect(act)
        # A shortcut of a button that is hidden does nothing.
        QShortcut(QKeySequence(keys), button).activated.connect(button.click)
        return button

    def showEvent(self, event: QShowEvent) -> None:
        """Takes the height of its highest button from the start, so that nothing moves when that is shown."""
        super().showEvent(event)
        widgets = (*self.tabs.values(), *self.change_buttons, self.export_button)
        for widget in widgets:
            widget.ensurePolished()
        self.setFixedHeight(max(widget.sizeHint().height() for widget in widgets))

    def set_pages(self, pages: Sequence[Page]) -> None:
        """Which pages there are."""
        for page, tab in self.tabs.items():
            tab.setVisible(page in pages)
        for button in (*self.change_buttons, self.export_button):
            button.hide()

    def set_enabled(self, page: Page, is_enabled: bool) -> None:
        """Whether a page has something to show yet."""
        self.tabs[page].setEnabled(is_enabled)

    def set_current(self, page: Page) -> None:
        """Which page is shown."""
        self.tabs[page].setChecked(True)

    def set_changes(self, text: str, can_step: bool, can_toggle: bool) -> None:
        """Says how many changes are used, and which of their buttons act; without changes there are none."""
        self.count_label.set_full_text(text)
        for button in self.change_buttons:
            button.setVisible(can_step)
        # Icons have some room of their own at their right; words end where the text below does.
        self._layout.setContentsMargins(0, 0, 0 if can_step else SPACE_S, 0)
        self.toggle_button.setEnabled(can_toggle)

    def set_todos(self, text: str, can_export: bool) -> None:
        """Says how many to-dos are open, and offers them in other forms where there are any."""
        self.count_label.set_full_text(text)
        self.export_button.setVisible(can_export)

    def apply_colors(self, colors: Colors) -> None:
        """Draws the icons in the colours of the window."""
        for button, name in zip(self.change_buttons, ("previous", "next", "check", "check-all"), strict=True):
            button.setIcon(svg_icon(name, colors.text))
