"""The history between settings and windows: kept or not as the setting says, answers added, cleared once confirmed."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMessageBox, QWidget

from app.history.file import HistoryError
from app.history.history import History
from app.paths import history_file
from app.qt.look.theme import colors_of, style_sheet
from app.settings.settings import Settings
from app.translation import Translator, UserText

KEEP_SETTING = "history.keep"


class HistoryBinding(QObject):
    """Owns the history. UI thread only.

    Signals:
        changed: conversations or results were added, changed or removed.
    """

    changed = Signal()

    def __init__(self, settings: Settings, translator: Translator, show_error: Callable[[str, str], None]) -> None:
        """Opens the history.

        Args:
            show_error: shows a title and a text to the user.
        """
        super().__init__()
        self._translator, self._show_error = translator, show_error
        self.history = History(history_file(), settings.flag(KEEP_SETTING))
        self.history.listen(self.changed.emit)
        self._stop_listening = settings.listen(KEEP_SETTING, lambda _key, value: self._set_keeps(bool(value)))
        self._box: QMessageBox | None = None
        # One step each time that the windows have nothing else to do.
        self._tidy_timer = QTimer(self, interval=0)
        self._tidy_timer.timeout.connect(self._tidy)
        self.changed.connect(self._tidy_timer.start)

    def tell_problem(self) -> None:
        """Shows why the file is not in use, or what was set aside, if there is such a thing."""
        if self.history.problem is not None:
            self._tell(self.history.problem)

    def add_answer(self, action_id: str, source_text: str, answer: str, model: str) -> None:
        """Keeps what an action made of a text."""
        self._try(lambda: self.history.add_result(action_id, source_text, answer, model))

    def ask_to_clear(self, parent: QWidget | None = None) -> None:
        """Asks whether everything is to go, and removes it; a question that is open comes to the front."""
        if self._box is not None:
            self._box.raise_()
            self._box.activateWindow()
            return
        tr = self._translator.tr
        box = QMessageBox(parent)
        box.setObjectName("page")
        box.setStyleSheet(style_sheet(colors_of(QGuiApplication.palette())))
        box.setIcon(QMessageBox.Icon.Warning)
        box.setWindowTitle("DeskInfer")
        box.setText(tr("Remove all conversations and answers?"))
        box.setInformativeText(tr("They cannot be brought back. Export what you want to keep first."))
        clear = box.addButton(tr("Clear the history"), QMessageBox.ButtonRole.DestructiveRole)
        keep = box.addButton(tr("Keep it"), QMessageBox.ButtonRole.RejectRole)
        box.setDefaultButton(keep)
        box.setEscapeButton(keep)
        clear.clicked.connect(lambda: self._try(self.history.clear))
        box.finished.connect(self._end_question)
        self._box = box
        box.open()

    def _end_question(self) -> None:
        if self._box is not None:
            self._box.deleteLater()
        self._box = None

    def close(self) -> None:
        """Closes the file."""
        self._stop_listening()
        self._tidy_timer.stop()
        self.history.close()

    def _tidy(self) -> None:
        more = False

        def step() -> None:
            nonlocal more
            more = self.history.tidy()

        self._try(step)
        if not more:
            self._tidy_timer.stop()

    def _set_keeps(self, keeps: bool) -> None:
        self.history.set_keeps(keeps)
        self.tell_problem()

    def _try(self, act: Callable[[], object]) -> None:
        try:
            act()
        except HistoryError as error:
            self._tell(error.text)

    def _tell(self, text: UserText) -> None:
        self._show_error(self._translator.tr("The history needs your attention"), self._translator.tr(text))
