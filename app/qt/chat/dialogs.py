"""What the side list's menus ask for before they act: where to export, whether to delete."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QFileDialog, QMessageBox, QWidget

from app.history.file import HistoryError
from app.history.history import History
from app.translation import Translator
from inference.request import Role

_KINDS = {"markdown": ("md", "Markdown"), "json": ("json", "JSON")}


class ConversationDialogs(QObject):
    """Asks, and exports.

    Signals:
        delete_confirmed: id of the conversation that is to go.
        problem: words for the user.
    """

    delete_confirmed = Signal(int)
    problem = Signal(str)

    def __init__(self, history: History, translator: Translator, parent: QWidget) -> None:
        super().__init__(parent)
        self._history, self._tr, self._window = history, translator.tr, parent

    def ask_to_export(self, conversation_id: int, kind: str) -> None:
        """Asks for a file. `kind` is "markdown" or "json"."""
        conversation = self._history.conversation(conversation_id)
        if conversation is None:
            return
        suffix, name = _KINDS[kind]
        title = "".join(each if each.isalnum() or each in " -_" else " " for each in conversation.title)
        dialog = QFileDialog(self._window, self._tr("Export the conversation"))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setNameFilter(f"{name} (*.{suffix})")
        dialog.setDefaultSuffix(suffix)
        dialog.selectFile(f"{' '.join(title.split()) or 'chat'}.{suffix}")
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(lambda path: self.export(conversation_id, kind, Path(path)))
        dialog.open()

    def export(self, conversation_id: int, kind: str, path: Path) -> None:
        """Writes a conversation into a file, as "markdown" or "json"."""
        tr = self._tr
        names: dict[Role, str] = {
            "system": tr("Instructions"),
            "user": tr("You"),
            "assistant": tr("Assistant"),
        }
        try:
            if kind == "json":
                text = self._history.export_json(conversation_id)
            else:
                text = self._history.export_markdown(conversation_id, names)
            path.write_text(text, encoding="utf-8")
        except HistoryError as error:
            self.problem.emit(tr(error.text))
        except OSError as error:
            reason = error.strerror or str(error)
            self.problem.emit(tr("{file} cannot be written: {reason}.", file=str(path), reason=reason))

    def ask_to_delete(self, conversation_id: int) -> None:
        """Asks whether a conversation is to go."""
        conversation = self._history.conversation(conversation_id)
        if conversation is not None:
            self._ask_to_delete(conversation.title, lambda: self.delete_confirmed.emit(conversation_id))

    def ask_to_delete_answer(self, result_id: int, title: str) -> None:
        """Asks whether an action's answer is to go, and removes it."""
        self._ask_to_delete(title, lambda: self._delete_answer(result_id))

    def _delete_answer(self, result_id: int) -> None:
        try:
            self._history.delete_result(result_id)
        except HistoryError as error:
            self.problem.emit(self._tr(error.text))

    def _ask_to_delete(self, title: str, delete_it: Callable[[], None]) -> None:
        tr = self._tr
        box = QMessageBox(self._window)
        box.setIcon(QMessageBox.Icon.Warning)
        box.setWindowTitle("DeskInfer")
        box.setText(tr("Delete “{title}”?", title=title))
        box.setInformativeText(tr("It cannot be brought back."))
        delete = box.addButton(tr("Delete"), QMessageBox.ButtonRole.DestructiveRole)
        keep = box.addButton(tr("Keep it"), QMessageBox.ButtonRole.RejectRole)
        box.setDefaultButton(keep)
        box.setEscapeButton(keep)
        delete.clicked.connect(delete_it)
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        box.open()
