"""To-dos as a checklist; each of them leads to the sentence that it comes from."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QIODevice, QSaveFile, QSize, Qt, Signal
from PySide6.QtGui import QFont, QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QFileDialog, QFrame, QLabel, QMenu, QVBoxLayout, QWidget

from app.qt.look.stream_view import StreamView
from app.qt.look.theme import SPACE_XS
from app.qt.popup.todo_list import DETAILS_ROLE, TodoList
from app.todos.todo import Todo, TodoStream, to_ics, to_json, to_markdown
from app.translation import Translator

ICS_NAME = "to-dos.ics"


class TodoView(QWidget):
    """A list that can be ticked, and below it the source once the place of an item is asked for.

    What is ticked is done: it is left out of what is copied or saved.

    Attributes:
        menu: copies and saves the list in its other forms.

    Signals:
        ticks_changed: another item is ticked, or there are other items.
        room_wanted: the source is shown from now on.
        copy_all_requested: Ctrl+C was pressed in the list, or in the source while nothing is selected.
        copy_text_requested: the list in another form is to be copied.
        save_failed: a file could not be written, and why.
    """

    ticks_changed = Signal()
    room_wanted = Signal()
    copy_all_requested = Signal()
    copy_text_requested = Signal(str)
    save_failed = Signal(str)

    def __init__(self, translator: Translator, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        tr = self._tr = translator.tr
        self._source = ""
        self._stream = TodoStream()
        self._todos: list[Todo] = []
        self._model = QStandardItemModel(self)
        self.list, self.source_view, self._line = TodoList(), StreamView(), QFrame()
        self.list.setModel(self._model)
        self.list.setAccessibleName(tr("To-dos"))
        self.source_view.setAccessibleName(tr("Source"))
        self._line.setProperty("role", "hairline")
        self.empty_label = QLabel()
        self.empty_label.setProperty("role", "muted")
        self.empty_label.setAlignment(Qt.AlignmentFlag.AlignTop)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_XS)
        layout.addWidget(self.empty_label)
        layout.addWidget(self.list, 1)
        layout.addWidget(self._line)
        layout.addWidget(self.source_view)
        self.setFocusProxy(self.list)
        self.menu = QMenu(self)
        for name, write in (
            (tr("Copy as Markdown"), self.markdown),
            (tr("Copy as JSON"), lambda: to_json(self.open_todos())),
            (tr("Copy as calendar entries (.ics)"), lambda: to_ics(self.open_todos())),
        ):
            self.menu.addAction(name).triggered.connect(self._copier(write))
        self.menu.addAction(tr("Save as a calendar file (.ics)…")).triggered.connect(self._ask_and_save)
        self._model.itemChanged.connect(lambda _item: self.ticks_changed.emit())
        self.list.chosen.connect(self._on_chosen)
        self.list.copy_requested.connect(self.copy_all_requested)
        self.source_view.copy_all_requested.connect(self.copy_all_requested)

    def _copier(self, write: Callable[[], str]) -> Callable[[], None]:
        return lambda: self.copy_text_requested.emit(write())

    def begin(self, source: str) -> None:
        """Empties the list for a new answer about a text."""
        self._model.clear()
        self._source, self._todos, self._stream = source, [], TodoStream(source)
        self.source_view.set_text(source)
        self.source_view.hide()
        self._line.hide()
        self.show_words("")

    def append(self, text: str) -> None:
        """Adds the to-dos that more of the answer completes."""
        for todo in self._stream.push(text):
            self._todos.append(todo)
            self._model.appendRow(_row(todo))
        if self._todos:
            self.show_words("")

    def show_words(self, text: str) -> None:
        """Shows a text in the place of the list; "" for the list."""
        self.empty_label.setText(text)
        self.empty_label.setVisible(bool(text))

    @property
    def todos(self) -> Sequence[Todo]:
        """All that are shown."""
        return self._todos

    def open_todos(self) -> list[Todo]:
        """Those that are not ticked."""
        is_open = [self._model.item(row).checkState() is Qt.CheckState.Unchecked for row in range(len(self._todos))]
        return [todo for todo, is_left in zip(self._todos, is_open, strict=True) if is_left]

    def markdown(self) -> str:
        """Those that are not ticked, as a checklist."""
        todos = self.open_todos()
        is_chinese = any("\u3400" <= char <= "\u9fff" for todo in todos for char in todo.task)
        return to_markdown(todos, chinese=is_chinese)

    def sizeHint(self) -> QSize:
        """Room for a few lines, like that of a text."""
        return QSize(super().sizeHint().width(), self.source_view.sizeHint().height())

    def content_height(self) -> int:
        """Height of all that is shown, in pixels."""
        height = self.list.content_height()
        return height if self.source_view.isHidden() else height + self.source_view.sizeHint().height() + 2 * SPACE_XS

    def set_text_font(self, font: QFont) -> None:
        """The font of tasks and source."""
        self.list.setFont(font)
        self.source_view.setFont(font)

    def save(self, path: str) -> None:
        """Writes the calendar file, whole or not at all."""
        file = QSaveFile(path)
        data = to_ics(self.open_todos()).encode("utf-8")
        is_written = file.open(QIODevice.OpenModeFlag.WriteOnly) and file.write(data) == len(data) and file.commit()
        if not is_written:
            self.save_failed.emit(self._tr("{path} cannot be written: {reason}", path=path, reason=file.errorString()))

    def _ask_and_save(self) -> None:
        path, _ = QFileDialog.getSaveFileName(self, self._tr("Save the to-dos"), ICS_NAME, "iCalendar (*.ics)")
        if path:
            self.save(path if path.lower().endswith(".ics") else f"{path}.ics")

    def _on_chosen(self, row: int) -> None:
        sentence = self._todos[row].source
        start = self._source.find(sentence)
        if not sentence or start < 0:
            return
        if self.source_view.isHidden():
            self.source_view.show()
            self._line.show()
            self.room_wanted.emit()
        self.source_view.mark(start, start + len(sentence))


def _row(todo: Todo) -> QStandardItem:
    item = QStandardItem(todo.task)
    details = " · ".join(part for part in (todo.owner, todo.due) if part)
    item.setCheckable(True)
    item.setEditable(False)
    item.setData(details, DETAILS_ROLE)
    item.setData(f"{todo.task}, {details}" if details else todo.task, Qt.ItemDataRole.AccessibleTextRole)
    item.setToolTip(todo.source)
    return item
