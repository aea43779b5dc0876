"""Where the user writes: a text that grows with its lines, files that go along, the token count, Send and Stop."""

from __future__ import annotations

import math
from pathlib import Path

from PySide6.QtCore import QMimeData, Qt, QTimer, Signal
from PySide6.QtGui import (
    QDragEnterEvent,
    QDropEvent,
    QFocusEvent,
    QInputMethodEvent,
    QKeyEvent,
    QKeySequence,
    QResizeEvent,
    QShortcut,
    QTextOption,
)
from PySide6.QtWidgets import QFileDialog, QFrame, QHBoxLayout, QLabel, QPlainTextEdit, QVBoxLayout, QWidget

from app.qt.chat.file import ChatFile, ChatFileError, read_chat_file, split_files, with_files
from app.qt.look.icon_button import IconButton
from app.qt.look.theme import SPACE_M, SPACE_S, SPACE_XS, scaled, set_styled
from app.translation import Translator

MOST_LINES = 9
# The engine counts when the user has stopped typing for this long.
COUNT_AFTER_MS = 350


def local_files(mime: QMimeData) -> list[Path]:
    """The files that are dragged or pasted."""
    return [Path(url.toLocalFile()) for url in mime.urls() if url.isLocalFile()] if mime.hasUrls() else []


class MessageEdit(QPlainTextEdit):
    """Enter sends, Shift+Enter breaks the line; while an input method composes, Enter is the input method's.

    Signals:
        sent: Enter was pressed.
        files_given: files were dropped or pasted.
        focus_changed: whether it has the keyboard.
    """

    sent = Signal()
    files_given = Signal(list)
    focus_changed = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._is_composing = False
        self.setTabChangesFocus(True)
        self.setProperty("role", "composer")
        self.document().setDocumentMargin(0)
        option = self.document().defaultTextOption()
        option.setTextDirection(Qt.LayoutDirection.LayoutDirectionAuto)
        option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.document().setDefaultTextOption(option)
        self.document().documentLayout().documentSizeChanged.connect(self._fit)
        self._fit()

    def _fit(self) -> None:
        """As tall as its lines, up to a limit."""
        lines = max(1, min(MOST_LINES, math.ceil(self.document().size().height())))
        self.setFixedHeight(lines * self.fontMetrics().lineSpacing() + 2 * SPACE_XS)
        is_full = self.document().size().height() > MOST_LINES
        needed = Qt.ScrollBarPolicy.ScrollBarAsNeeded if is_full else Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        self.setVerticalScrollBarPolicy(needed)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Another width, other lines."""
        super().resizeEvent(event)
        self._fit()

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        """Notes whether letters are being composed."""
        super().inputMethodEvent(event)
        self._is_composing = bool(event.preeditString())

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Tells that it has the keyboard."""
        super().focusInEvent(event)
        self.focus_changed.emit(True)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Composing ends when the keyboard goes elsewhere."""
        super().focusOutEvent(event)
        self._is_composing = False
        self.focus_changed.emit(False)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Sends on Enter."""
        is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        breaks = event.modifiers() & (Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.AltModifier)
        if is_enter and not self._is_composing and not breaks:
            if not event.isAutoRepeat():
                self.sent.emit()
            event.accept()
        elif is_enter and self._is_composing:
            event.accept()
        else:
            super().keyPressEvent(event)

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        """Text and files."""
        return bool(local_files(source)) or super().canInsertFromMimeData(source)

    def insertFromMimeData(self, source: QMimeData) -> None:
        """A file goes along as a file, not as its address."""
        if files := local_files(source):
            self.files_given.emit(files)
        else:
            super().insertFromMimeData(source)


class Composer(QFrame):
    """The lower edge of the chat.

    Attributes:
        edit: the text.
        files: what goes along.

    Signals:
        sent: the text with its files; it stays until `clear`.
        stop_requested: the answer is to end.
        edit_cancelled: the user does not want to change the earlier question any more.
        count_wanted: the text has been left alone for a moment; its tokens should be counted.
    """

    sent = Signal(str)
    stop_requested = Signal()
    edit_cancelled = Signal()
    count_wanted = Signal(str)

    def __init__(self, translator: Translator, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._tr = translator.tr
        self._translator = translator
        self.files: list[ChatFile] = []
        self._is_answering = False
        self.setObjectName("composer")
        self.setAcceptDrops(True)
        self._build()
        self._lay_out()
        self._count_timer = QTimer(self, interval=COUNT_AFTER_MS, singleShot=True)
        self._count_timer.timeout.connect(lambda: self.count_wanted.emit(self.text()))
        self.edit.textChanged.connect(self._on_changed)
        self.edit.sent.connect(self._on_enter)
        self.edit.focus_changed.connect(self._on_focus)
        self.edit.files_given.connect(self.add_files)
        self._on_changed()

    def _build(self) -> None:
        tr = self._tr
        self.edit = MessageEdit()
        self.edit.setFont(scaled(self.font(), 1.06))
        self.edit.setAccessibleName(tr("Message"))
        self.edit.setPlaceholderText(tr("Write a message…"))
        self.edit.setAccessibleDescription(tr("Enter sends, Shift+Enter starts a new line"))
        self.editing = QLabel(tr("You are changing an earlier message. Sending it replaces all that followed."))
        self.editing.setProperty("role", "muted")
        self.editing.setWordWrap(True)
        self.cancel_button = IconButton("close", tr("Leave the earlier message as it is"), "Esc")
        self.cancel_button.clicked.connect(self.edit_cancelled)
        self.problem = QLabel()
        self.problem.setProperty("role", "danger")
        self.problem.setWordWrap(True)
        self.problem.hide()
        self.attach_button = IconButton("attach", tr("Add a text file"))
        self.attach_button.clicked.connect(self.choose_files)
        self.tokens = QLabel()
        self.tokens.setProperty("role", "muted")
        self.tokens.setFont(scaled(self.font(), 0.84))
        self.send_button = IconButton("send", tr("Send"), "Enter", "send")
        self.send_button.clicked.connect(self._on_button)
        escape = QShortcut(QKeySequence(Qt.Key.Key_Escape), self, self.edit_cancelled.emit)
        escape.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        self._editing_row = QWidget()
        editing = QHBoxLayout(self._editing_row)
        editing.setContentsMargins(0, 0, 0, 0)
        editing.addWidget(self.editing, 1)
        editing.addWidget(self.cancel_button)
        self._editing_row.hide()

    def _lay_out(self) -> None:
        self._file_row = QVBoxLayout()
        self._file_row.setSpacing(SPACE_XS)
        bottom = QHBoxLayout()
        bottom.setSpacing(SPACE_S)
        bottom.addWidget(self.attach_button)
        bottom.addStretch()
        bottom.addWidget(self.tokens)
        bottom.addWidget(self.send_button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_M, SPACE_S, SPACE_S, SPACE_S)
        layout.setSpacing(SPACE_XS)
        layout.addWidget(self._editing_row)
        layout.addWidget(self.problem)
        layout.addLayout(self._file_row)
        layout.addWidget(self.edit)
        layout.addLayout(bottom)

    # --- what the window calls ------------------------------------------------------------------------------------

    def text(self) -> str:
        """What would be sent."""
        return with_files(self.edit.toPlainText(), self.files)

    def set_text(self, text: str) -> None:
        """Puts a text, with its files, where it can be changed."""
        text, files = split_files(text)
        self.edit.setPlainText(text)
        self.edit.moveCursor(self.edit.textCursor().MoveOperation.End)
        self._set_files(files)

    def clear(self) -> None:
        """The text was sent."""
        self.edit.clear()
        self._set_files([])
        self.show_problem("")

    def set_answering(self, is_answering: bool) -> None:
        """Whether an answer is being written: the button stops it then."""
        self._is_answering = is_answering
        tr = self._tr
        self.send_button.set_icon("stop" if is_answering else "send")
        name, keys = (tr("Stop"), "Ctrl+.") if is_answering else (tr("Send"), "Enter")
        self.send_button.set_name(name, keys)
        self._on_changed()

    def set_editing(self, is_editing: bool) -> None:
        """Whether an earlier message is being changed."""
        self._editing_row.setVisible(is_editing)

    def set_tokens(self, text: str, is_too_long: bool, tip: str = "") -> None:
        """The count beside the button."""
        self.tokens.setText(text)
        self.tokens.setToolTip(tip)
        role = "danger" if is_too_long else "muted"
        set_styled(self.tokens, "role", role)

    def show_problem(self, text: str) -> None:
        """An error, until the next one or until "" clears it."""
        self.problem.setText(f"⚠ {text}" if text else "")
        self.problem.setVisible(bool(text))

    # --- files --------------------------------------------------------------------------------------------------

    def choose_files(self) -> None:
        """Lets the user pick text files."""
        dialog = QFileDialog(self, self._tr("Add a text file"))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.filesSelected.connect(lambda names: self.add_files([Path(name) for name in names]))
        dialog.open()

    def add_files(self, paths: list[Path]) -> None:
        """Adds files; what cannot go along is said."""
        problems = []
        files = list(self.files)
        for path in paths:
            try:
                files.append(read_chat_file(path))
            except ChatFileError as error:
                problems.append(self._tr(error.text))
        self._set_files(files)
        self.show_problem("\n".join(problems))

    def _set_files(self, files: list[ChatFile]) -> None:
        self.files = files
        while (item := self._file_row.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        for file in files:
            self._file_row.addWidget(self._chip(file), 0, Qt.AlignmentFlag.AlignLeft)
        self._on_changed()

    def _chip(self, file: ChatFile) -> QWidget:
        chip = QFrame()
        chip.setProperty("role", "file")
        label = QLabel(f"{file.name} · {file.size}")
        label.setTextFormat(Qt.TextFormat.PlainText)
        remove = IconButton("close", self._tr("Remove {name}", name=file.name))
        remove.clicked.connect(lambda: self._set_files([each for each in self.files if each is not file]))
        layout = QHBoxLayout(chip)
        layout.setContentsMargins(SPACE_S, 0, 2, 0)
        layout.setSpacing(SPACE_XS)
        layout.addWidget(label)
        layout.addWidget(remove)
        return chip

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Takes files."""
        if local_files(event.mimeData()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Adds the files."""
        self.add_files(local_files(event.mimeData()))
        event.acceptProposedAction()

    # --- events -------------------------------------------------------------------------------------------------

    def _on_changed(self) -> None:
        self.send_button.setEnabled(self._is_answering or bool(self.text().strip()))
        self._count_timer.start()

    def _on_focus(self, has_focus: bool) -> None:
        set_styled(self, "focused", "true" if has_focus else "false")

    def _on_enter(self) -> None:
        if not self._is_answering and self.text().strip():
            self.sent.emit(self.text())

    def _on_button(self) -> None:
        (self.stop_requested.emit if self._is_answering else self._on_enter)()
