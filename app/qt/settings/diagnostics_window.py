"""Shows what a diagnostics bundle holds, every file of it, before it is saved anywhere."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QFontDatabase, QGuiApplication, QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QFileDialog,
    QHBoxLayout,
    QListWidget,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.diagnostics.bundle import DiagnosticFile, bundle_name, save_bundle
from app.qt.look.icons import app_icon
from app.qt.look.placement import first_size
from app.qt.look.theme import SPACE_L, SPACE_M, SPACE_S, colors_of, style_sheet
from app.qt.settings.row import text_label
from app.translation import Translator

DEFAULT_SIZE = QSize(760, 560)
MINIMUM_SIZE = QSize(480, 320)
LIST_EM = 9


class DiagnosticsWindow(QWidget):
    """Collects on a thread, shows, and saves where the user says."""

    _collected = Signal(object)

    def __init__(self, translator: Translator, collect: Callable[[], Sequence[DiagnosticFile]]) -> None:
        """Begins to collect.

        Args:
            collect: makes the files; called on another thread.
        """
        super().__init__(None, Qt.WindowType.Window)
        tr = self._tr = translator.tr
        self._files: Sequence[DiagnosticFile] = ()
        self.setObjectName("page")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAttribute(Qt.WidgetAttribute.WA_QuitOnClose, False)
        self.setWindowTitle(tr("Diagnostics"))
        self.setWindowIcon(app_icon())
        self._build()
        self.setStyleSheet(style_sheet(colors_of(QGuiApplication.palette())))
        self.setMinimumSize(MINIMUM_SIZE)
        self.resize(first_size(DEFAULT_SIZE, self.screen().availableSize()))
        self._collected.connect(self._show_files)
        self._collect = collect
        threading.Thread(target=self._work, name="diagnostics", daemon=True).start()

    def _build(self) -> None:
        tr = self._tr
        explanation = text_label(
            tr(
                "This is all that the bundle holds: no text of yours, no names of files, no keys. It stays on this "
                "computer until you pass it on yourself."
            ),
            "muted",
        )
        self.list = QListWidget()
        self.list.setProperty("role", "pages")
        self.list.setAccessibleName(tr("Files of the bundle"))
        self.list.setFixedWidth(LIST_EM * self.fontMetrics().height())
        self.list.currentRowChanged.connect(self._show_file)
        self.text = QPlainTextEdit()
        self.text.setReadOnly(True)
        self.text.setProperty("role", "field")
        self.text.setTabChangesFocus(True)
        self.text.setAccessibleName(tr("Content of the file"))
        self.text.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.text.setPlaceholderText(tr("Collecting…"))
        self.message = text_label(role="muted")
        self.save_button = QPushButton(tr("Save…"))
        self.save_button.setProperty("role", "primary")
        self.save_button.setEnabled(False)
        self.save_button.clicked.connect(self._save)
        self.close_button = QPushButton(tr("Close"))
        self.close_button.clicked.connect(self.close)
        middle = QHBoxLayout()
        middle.setSpacing(SPACE_M)
        middle.addWidget(self.list)
        middle.addWidget(self.text, 1)
        foot = QHBoxLayout()
        foot.setSpacing(SPACE_S)
        foot.addWidget(self.message, 1)
        foot.addWidget(self.save_button)
        foot.addWidget(self.close_button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_L, SPACE_L, SPACE_L, SPACE_M)
        layout.setSpacing(SPACE_M)
        layout.addWidget(explanation)
        layout.addLayout(middle, 1)
        layout.addLayout(foot)
        QShortcut(QKeySequence(Qt.Key.Key_Escape), self).activated.connect(self.close)

    def _work(self) -> None:
        files = self._collect()
        try:
            self._collected.emit(files)
        except RuntimeError:  # the window is gone
            return

    def _show_files(self, files: Sequence[DiagnosticFile]) -> None:
        self._files = files
        for file in files:
            self.list.addItem(file.name)
        self.list.setCurrentRow(0)
        self.save_button.setEnabled(True)

    def _show_file(self, place: int) -> None:
        if 0 <= place < len(self._files):
            self.text.setPlainText(self._files[place].text)

    def _save(self) -> None:
        path = ask_where_to_save(self, self._tr("Save the bundle"), str(Path.home() / bundle_name()))
        if not path:
            return
        try:
            save_bundle(Path(path), self._files)
        except OSError as error:
            reason = error.strerror or str(error)
            self.message.setText(self._tr("It cannot be saved there: {reason}. Choose another folder.", reason=reason))
            return
        self.message.setText(self._tr("Saved: {file}", file=path))

    def event(self, event: QEvent) -> bool:
        """Follows the choice between light and dark."""
        if event.type() is QEvent.Type.ApplicationPaletteChange:
            self.setStyleSheet(style_sheet(colors_of(QGuiApplication.palette())))
        return super().event(event)


def ask_where_to_save(parent: QWidget, title: str, path: str) -> str:
    """The path that the user chooses, "" where there is none."""
    return QFileDialog.getSaveFileName(parent, title, path, "Zip (*.zip)")[0]
