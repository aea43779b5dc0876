"""The settings dialog, made out of the registry: pages at the left, rows at the right, a search over all of them.

What is changed holds at once and is saved at once; every change can be taken back. It decides nothing about the app:
what it cannot do by setting a value, it asks for by a signal (app/qt/settings/owner.py answers).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QCloseEvent, QGuiApplication, QKeySequence, QShortcut, QShowEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.qt.look.elided_label import ElidedLabel
from app.qt.look.icons import app_icon, svg_icon
from app.qt.look.scrolled import ScrolledPage
from app.qt.look.theme import SPACE_L, SPACE_M, SPACE_S, SPACE_XS, colors_of, style_sheet
from app.qt.settings.banner import Banner
from app.qt.settings.controls import ModelChoice
from app.qt.settings.page import SettingsPage, hairline
from app.qt.settings.row import SettingRow, text_label
from app.qt.settings.values import value_text
from app.settings.pages import pages_of
from app.settings.settings import SettingError, Settings, SettingsFileError, Value
from app.translation import Translator

DEFAULT_SIZE = QSize(840, 620)
MINIMUM_SIZE = QSize(560, 330)
SCREEN_SHARE = 0.92
SIDE_EM = 11
PAGE_ICON_PX = 18


@dataclass(frozen=True, slots=True)
class _Change:
    """What a step back has to put back."""

    key: str
    before: Value


class SettingsDialog(QWidget):
    """A window that shows every setting.

    Signals:
        file_requested: the user wants to see the settings file.
        closed: the window was closed.
        page_changed: id of the page in front, "" while results of a search are shown.
        changed: a setting was changed here, with its key.
    """

    file_requested = Signal()
    closed = Signal()
    page_changed = Signal(str)
    changed = Signal(str)

    def __init__(
        self,
        settings: Settings,
        translator: Translator,
        models: Sequence[ModelChoice] = (),
        extras: Mapping[str, Sequence[QWidget]] | None = None,
        parent: QWidget | None = None,
    ) -> None:
        """Shows the settings as they are.

        Args:
            models: that can be chosen.
            extras: rows that are no settings, by the id of their group (app/settings/pages.py).
        """
        super().__init__(parent, Qt.WindowType.Window)
        self._settings, self._translator = settings, translator
        self._models, self._extras = models, dict(extras or {})
        self._changes: list[_Change] = []
        self._pages: list[SettingsPage] = []
        self.setObjectName("page")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAttribute(Qt.WidgetAttribute.WA_QuitOnClose, False)
        self.setWindowTitle(translator.tr("Settings"))
        self.setWindowIcon(app_icon())
        self._build()
        self._make_pages()
        self._stop_listening = settings.listen("", self._on_value)
        self._color()
        self.setMinimumSize(MINIMUM_SIZE)
        self.resize(DEFAULT_SIZE.boundedTo(self.screen().availableGeometry().size() * SCREEN_SHARE))

    # --- construction -------------------------------------------------------------------------------------------

    def _build(self) -> None:
        tr = self._translator.tr
        self.search = QLineEdit()
        self.search.setPlaceholderText(tr("Search"))
        self.search.setAccessibleName(tr("Search the settings"))
        self.search.setToolTip(tr("Search the settings ({keys})", keys="Ctrl+F"))
        self.search.setClearButtonEnabled(True)
        self.search.textChanged.connect(self._on_search)
        self.list = QListWidget()
        self.list.setProperty("role", "pages")
        self.list.setAccessibleName(tr("Pages"))
        self.list.setIconSize(QSize(PAGE_ICON_PX, PAGE_ICON_PX))
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.currentRowChanged.connect(self._on_page)
        self.file_button = QPushButton(tr("Open the file"))
        self.file_button.setProperty("role", "link")
        self.file_button.setToolTip(str(self._settings.path))
        self.file_button.clicked.connect(self.file_requested)
        self.problems = Banner("danger")
        self.banners = QVBoxLayout()
        self.banners.setSpacing(SPACE_S)
        self.nothing = text_label(tr("No setting has this in its name or its explanation."), "muted")
        self.nothing.hide()
        self.said = ElidedLabel()
        self.said.setProperty("role", "muted")
        self.undo_button = QPushButton(tr("Undo"))
        self.undo_button.setToolTip(tr("Take the last change back ({keys})", keys="Ctrl+Z"))
        self.undo_button.clicked.connect(self.undo)
        self.undo_button.setEnabled(False)
        self.close_button = QPushButton(tr("Close"))
        self.close_button.clicked.connect(self.close)
        self._lay_out()
        for keys, act in (
            (QKeySequence(QKeySequence.StandardKey.Find), self._focus_search),
            (QKeySequence(QKeySequence.StandardKey.Undo), self.undo),
            (QKeySequence(Qt.Key.Key_Escape), self._on_escape),
        ):
            QShortcut(keys, self).activated.connect(act)

    def _lay_out(self) -> None:
        side = QWidget()
        side.setProperty("role", "side")
        side.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        side.setFixedWidth(SIDE_EM * self.fontMetrics().height())
        side_layout = QVBoxLayout(side)
        side_layout.setContentsMargins(SPACE_M, SPACE_M, SPACE_M, SPACE_M)
        side_layout.setSpacing(SPACE_M)
        for widget in (self.search, self.list, self.file_button):
            side_layout.addWidget(widget)
        self._body = QWidget()
        self._body.setObjectName("page")
        self._body_layout = QVBoxLayout(self._body)
        self._body_layout.setContentsMargins(SPACE_L + SPACE_XS, SPACE_XS, SPACE_L, SPACE_S)
        self._body_layout.setSpacing(SPACE_S)
        self.area = ScrolledPage(self._body)
        head = QVBoxLayout()
        head.setContentsMargins(SPACE_L + SPACE_XS, SPACE_M, SPACE_L, 0)
        head.setSpacing(SPACE_S)
        head.addWidget(self.problems)
        head.addLayout(self.banners)
        foot = QHBoxLayout()
        foot.setContentsMargins(SPACE_L + SPACE_XS, SPACE_S, SPACE_L, SPACE_M)
        foot.setSpacing(SPACE_S)
        foot.addWidget(self.said, 1)
        foot.addWidget(self.undo_button)
        foot.addWidget(self.close_button)
        right = QVBoxLayout()
        right.setSpacing(0)
        right.addLayout(head)
        right.addWidget(self.area, 1)
        right.addWidget(hairline())
        right.addLayout(foot)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(side)
        layout.addLayout(right, 1)

    def _make_pages(self) -> None:
        for page in pages_of(self._settings.registry.values(), tuple(self._extras)):
            made = SettingsPage(page, self._translator, self._models, self._extras)
            self._pages.append(made)
            self._body_layout.addWidget(made)
            self.list.addItem(QListWidgetItem(self._translator.tr(page.title)))
            for row in made.rows:
                if isinstance(row, SettingRow):
                    row.show_value(self._settings.get(row.key))
                    row.edited.connect(self.change)
        self._body_layout.addWidget(self.nothing)
        self._body_layout.addStretch()
        for button in self.findChildren(QPushButton):
            button.setAutoDefault(True)  # Enter presses it, outside of dialogs too
        self.show_problems()
        self.list.setCurrentRow(0)

    # --- what the owner calls -----------------------------------------------------------------------------------

    @property
    def page_id(self) -> str:
        """The page in front, "" while results of a search are shown."""
        return "" if self.search.text().strip() else self._pages[max(0, self.list.currentRow())].page.id

    def page(self, page_id: str) -> SettingsPage:
        """The page of an id."""
        return next(page for page in self._pages if page.page.id == page_id)

    def show_page(self, page_id: str) -> None:
        """Brings a page to the front; one that is not there is ignored."""
        self.search.clear()
        for place, page in enumerate(self._pages):
            if page.page.id == page_id:
                self.list.setCurrentRow(place)

    def row(self, key: str) -> SettingRow:
        """The row of a setting. Raises KeyError."""
        return self.rows()[key]

    def rows(self) -> dict[str, SettingRow]:
        """The rows of all settings, by key."""
        return {row.key: row for page in self._pages for row in page.rows if isinstance(row, SettingRow)}

    def show_problems(self) -> None:
        """Names what is wrong with the file."""
        self.problems.show_text("\n".join(self._translator.tr(problem) for problem in self._settings.problems))

    def change(self, key: str, value: Value) -> None:
        """Sets a value for the user and saves it; one that does not fit is refused at its row."""
        before = self._settings.get(key)
        try:
            self._settings.set(key, value)
        except SettingError as error:
            self.row(key).refuse(self._translator.tr(error.text))
            return
        self.row(key).show_value(self._settings.get(key))
        if self._settings.get(key) != before:
            self._changes.append(_Change(key, before))
            self._say(key, before)
            self._save()
            self.changed.emit(key)

    def undo(self) -> None:
        """Takes the last change back."""
        while self._changes:
            change = self._changes.pop()
            if change.key not in self._settings.registry or self._settings.get(change.key) == change.before:
                continue
            before = self._settings.get(change.key)
            self._settings.set(change.key, change.before)
            self._say(change.key, before)
            self._save()
            self.changed.emit(change.key)
            break
        self.undo_button.setEnabled(bool(self._changes))

    def release(self) -> None:
        """Listens no more; the window is about to be deleted."""
        self._stop_listening()

    # --- how it works -------------------------------------------------------------------------------------------

    def _save(self) -> None:
        try:
            self._settings.save()
        except SettingsFileError as error:
            self.problems.show_text(self._translator.tr(error.text))
            return
        self.show_problems()

    def _say(self, key: str, before: Value) -> None:
        setting, tr = self._settings.registry[key], self._translator
        text = tr.tr(
            "{title}: {before} → {after}",
            title=tr.pick(setting.title),
            before=value_text(setting, before, tr),
            after=value_text(setting, self._settings.get(key), tr),
        )
        self.said.set_full_text(text)
        self.undo_button.setEnabled(bool(self._changes))

    def _on_value(self, key: str, value: Value) -> None:
        """A setting has changed: here, in the file, or elsewhere in the app."""
        row = self.rows().get(key)
        if row is not None:
            row.show_value(value)
        self.show_problems()

    def _on_page(self, place: int) -> None:
        if place >= 0 and not self.search.text().strip():
            for index, page in enumerate(self._pages):
                page.setVisible(index == place)
            self.area.verticalScrollBar().setValue(0)
            self.page_changed.emit(self.page_id)

    def _on_search(self, text: str) -> None:
        words = text.lower().split()
        shown = 0
        for page in self._pages:
            shown += page.show_matching(words)
        self.nothing.setVisible(bool(words) and not shown)
        self.list.setEnabled(not words)
        if not words:
            self._on_page(self.list.currentRow())
        else:
            self.area.verticalScrollBar().setValue(0)
            self.page_changed.emit("")

    def _focus_search(self) -> None:
        self.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.search.selectAll()

    def _on_escape(self) -> None:
        if self.search.text():
            self.search.clear()
        else:
            self.close()

    def _color(self) -> None:
        colors = colors_of(QGuiApplication.palette())
        self.setStyleSheet(style_sheet(colors))
        for place, page in enumerate(self._pages):
            self.list.item(place).setIcon(svg_icon(page.page.icon, colors.text))
        for row in self.rows().values():
            row.color()

    def event(self, event: QEvent) -> bool:
        """Follows the choice between light and dark."""
        if event.type() is QEvent.Type.ApplicationPaletteChange:
            self._color()
        return super().event(event)

    def showEvent(self, event: QShowEvent) -> None:
        """The list has the keyboard first, so that arrows go through the pages."""
        super().showEvent(event)
        self.list.setFocus()
        self.page_changed.emit(self.page_id)

    def closeEvent(self, event: QCloseEvent) -> None:
        """Tells the owner."""
        super().closeEvent(event)
        self.closed.emit()
