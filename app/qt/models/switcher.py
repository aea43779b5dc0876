"""The window of models: what is in memory, every model there is, and what can be done with each.

It shows and asks; app/qt/models/owner.py decides.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFont, QGuiApplication, QHideEvent, QKeySequence, QShortcut, QShowEvent
from PySide6.QtWidgets import (
    QFileDialog,
    QHBoxLayout,
    QLabel,
    QMessageBox,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.models.model_list import ListedModel, Origin
from app.qt.look.icons import app_icon
from app.qt.look.notice import Notice, NoticePanel
from app.qt.look.scrolled import ScrolledPage
from app.qt.look.theme import SPACE_L, SPACE_M, SPACE_S, Colors, blend, colors_of, legible, scaled, style_sheet
from app.qt.models.resident import ResidentPanel
from app.qt.models.row import ModelRow, RowState
from app.qt.remote.badge import warning_colors
from app.translation import Translator
from inference.byte_size import size_text

# In heights of the font.
DEFAULT_EM = QSize(44, 52)
MINIMUM_EM = QSize(28, 24)


class ModelSwitcher(QWidget):
    """Lists all models below the panel of what is in memory.

    Signals:
        requested: model id and RowAction.
        file_added: path of a file or folder.
        remote_requested: a server is to be set up.
        folder_requested: the folder of models is to be shown.
        looked_at: whether the window is on the screen.
    """

    requested = Signal(str, object)
    file_added = Signal(str)
    remote_requested = Signal()
    folder_requested = Signal()
    looked_at = Signal(bool)

    def __init__(self, translator: Translator, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("page")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAttribute(Qt.WidgetAttribute.WA_QuitOnClose, False)
        self._translator = translator
        self.setWindowTitle(translator.tr("Models"))
        self.setWindowIcon(app_icon())
        self.rows: dict[str, ModelRow] = {}
        self.resident = ResidentPanel(translator)
        self.notice = NoticePanel()
        self.notice.hide()
        self._headings: list[QLabel] = []
        self._build()
        em = self.fontMetrics().height()
        room = QGuiApplication.primaryScreen().availableSize() * 0.9
        self.setMinimumSize((MINIMUM_EM * em).boundedTo(room))
        self.resize((DEFAULT_EM * em).boundedTo(room))
        self._apply_theme()

    def _build(self) -> None:
        tr = self._translator.tr
        self.file_button = QPushButton(tr("Add a file…"))
        self.folder_button = QPushButton(tr("Add a folder…"))
        self.remote_button = QPushButton(tr("Use a server…"))
        self.reveal_button = QPushButton(tr("Open the folder of models"))
        self.reveal_button.setProperty("role", "link")
        self.file_button.clicked.connect(self._ask_for_file)
        self.folder_button.clicked.connect(self._ask_for_folder)
        self.remote_button.clicked.connect(self.remote_requested)
        self.reveal_button.clicked.connect(self.folder_requested)
        footer = QHBoxLayout()
        footer.setSpacing(SPACE_S)
        for button in (self.file_button, self.folder_button, self.remote_button):
            footer.addWidget(button)
        footer.addStretch()
        footer.addWidget(self.reveal_button)
        inner = QWidget()
        inner.setObjectName("page")
        self._list = QVBoxLayout()
        self._list.setSpacing(SPACE_S)
        column = QVBoxLayout(inner)
        column.setContentsMargins(0, 0, SPACE_S, 0)
        column.addLayout(self._list)
        column.addStretch()
        self.list_area = ScrolledPage(inner)
        self.list_area.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.list_area.setAccessibleName(tr("Models"))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_L, SPACE_L, SPACE_L, SPACE_M)
        layout.setSpacing(SPACE_M)
        layout.addWidget(self.resident)
        layout.addWidget(self.notice)
        layout.addWidget(self.list_area, 1)
        layout.addLayout(footer)
        QShortcut(QKeySequence(Qt.Key.Key_Escape), self).activated.connect(self.close)

    # --- what the owner calls -----------------------------------------------------------------------------------

    def set_models(self, models: Sequence[ListedModel]) -> None:
        """Makes one row for each model, those that are here first; rows that stay keep their focus."""
        tr = self._translator.tr
        groups = (
            (tr("On this machine"), [m for m in models if m.is_here and m.origin is not Origin.REMOTE]),
            (tr("On a server"), [m for m in models if m.origin is Origin.REMOTE]),
            (tr("Can be downloaded"), [m for m in models if not m.is_here]),
        )
        gone = set(self.rows) - {model.id for model in models}
        for model_id in gone:
            _drop(self.rows.pop(model_id))
        # Not by takeAt: an item that Python still holds keeps the new one from hearing of changes in its widget.
        for widget in [*self.rows.values(), *self._headings]:
            self._list.removeWidget(widget)
        for heading in self._headings:
            _drop(heading)
        self._headings = []
        before: QWidget = self.resident.largest_button
        for title, members in groups:
            if members:
                self._list.addWidget(self._heading(title))
            for model in members:
                row = self._row(model)
                self._list.addWidget(row)
                for control in (row.secondary, row.primary, row.more):
                    QWidget.setTabOrder(before, control)
                    before = control
        for control in (self.file_button, self.folder_button, self.remote_button, self.reveal_button):
            QWidget.setTabOrder(before, control)
            before = control

    def show_row(self, state: RowState) -> None:
        """Shows a model's state in its row."""
        row = self.rows.get(state.model.id)
        if row is not None:
            row.show_state(state)

    def show_notice(self, notice: Notice | None) -> None:
        """Says why something was refused, until the next thing is done."""
        if notice is not None:
            self.notice.show_notice(notice)
        self.notice.setVisible(notice is not None)

    def confirm_deletion(self, model: ListedModel) -> bool:
        """Whether the user really wants a model gone."""
        tr = self._translator.tr
        box = QMessageBox(self)
        box.setIcon(QMessageBox.Icon.Warning)
        box.setWindowTitle(tr("Delete a model"))
        box.setText(tr("Delete {model} from the disk?", model=model.title))
        frees = tr("This frees {size}.", size=size_text(model.num_bytes or model.partial_bytes))
        again = (
            tr("It can be downloaded again.") if model.origin is Origin.CATALOG else tr("It cannot be brought back.")
        )
        box.setInformativeText(f"{frees} {again}")
        delete = box.addButton(tr("Delete"), QMessageBox.ButtonRole.DestructiveRole)
        keep = box.addButton(tr("Keep it"), QMessageBox.ButtonRole.RejectRole)
        box.setDefaultButton(keep)
        box.setEscapeButton(keep)
        box.exec()
        return box.clickedButton() is delete

    def bring_to_front(self) -> None:
        """Shows the window, from the taskbar too, and gives it the keyboard."""
        self.setWindowState(self.windowState() & ~Qt.WindowState.WindowMinimized)
        self.show()
        self.raise_()
        self.activateWindow()

    # --- inside -------------------------------------------------------------------------------------------------

    def _row(self, model: ListedModel) -> ModelRow:
        row = self.rows.get(model.id)
        if row is None:
            row = self.rows[model.id] = ModelRow(self._translator)
            row.requested.connect(lambda action, model_id=model.id: self.requested.emit(model_id, action))
            row.show_state(RowState(model))
        return row

    def _heading(self, text: str) -> QLabel:
        heading = QLabel(text)
        heading.setFont(scaled(self.font(), 1.0, QFont.Weight.DemiBold))
        heading.setContentsMargins(0, SPACE_S if self._headings else 0, 0, 0)
        self._headings.append(heading)
        return heading

    def _ask_for_file(self) -> None:
        tr = self._translator.tr
        path, _ = QFileDialog.getOpenFileName(self, tr("Add a model file"), "", tr("Models (*.gguf)"))
        if path:
            self.file_added.emit(path)

    def _ask_for_folder(self) -> None:
        path = QFileDialog.getExistingDirectory(
            self, self._translator.tr("Add a model's folder, or a folder of models")
        )
        if path:
            self.file_added.emit(path)

    def event(self, event: QEvent) -> bool:
        """Follows the desktop between light and dark."""
        if event.type() is QEvent.Type.ApplicationPaletteChange:
            self._apply_theme()
        return super().event(event)

    def showEvent(self, event: QShowEvent) -> None:
        """Somebody looks."""
        super().showEvent(event)
        self.looked_at.emit(True)

    def hideEvent(self, event: QHideEvent) -> None:
        """Nobody looks."""
        super().hideEvent(event)
        self.looked_at.emit(False)

    def _apply_theme(self) -> None:
        colors = colors_of(QGuiApplication.palette())
        self.setStyleSheet(style_sheet(colors) + _own_style(colors))


def _drop(widget: QWidget) -> None:
    """Takes a widget off the window at once."""
    widget.hide()
    widget.deleteLater()


def _own_style(colors: Colors) -> str:
    """Cards, chips and the colours of what fits and what does not."""
    good = legible(QColor("#1f8a4c"), colors.page).name()
    warning, _ = warning_colors(colors)
    tinted = blend(colors.accent, colors.page, 0.10).name()
    return f"""
    QFrame[role="card"] {{
        background: {colors.page.name()}; border: 1px solid {colors.hairline.name()}; border-radius: 8px;
    }}
    QFrame[role="panel"] {{ background: {tinted}; border: none; border-radius: 8px; }}
    QLabel[role="chip"] {{
        color: {colors.on_accent.name()}; background: {colors.accent.name()}; border-radius: 5px; padding: 2px 8px;
    }}
    QLabel[role="good"] {{ color: {good}; }}
    QLabel[role="warning"] {{ color: {warning}; }}
    """
