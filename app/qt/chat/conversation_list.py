"""The side of the chat: conversations, searched, chosen, renamed, exported, deleted; below them answers of actions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from PySide6.QtCore import QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QListWidgetItem,
    QMenu,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.history.entry import Conversation
from app.history.file import HistoryError
from app.history.history import History
from app.qt.chat.answers import AnswerList
from app.qt.chat.titles import EDITING, ID_ROLE, TitleList
from app.qt.look.icon_button import IconButton
from app.qt.look.theme import SPACE_M, SPACE_S
from app.translation import Translator

PAGE = 60
SEARCH_AFTER_MS = 180


class ConversationList(QWidget):
    """Lists conversations, last changed first, and answers of actions.

    Attributes:
        answers: the answers, found by the same search.

    Signals:
        new_requested: an empty conversation is wanted.
        chosen: id of the conversation to be shown.
        export_requested: id and "markdown" or "json".
        delete_requested: id of a conversation; nothing is deleted yet.
        problem: the history could not be read or written; words for the user.
    """

    new_requested = Signal()
    chosen = Signal(int)
    export_requested = Signal(int, str)
    delete_requested = Signal(int)
    problem = Signal(str)

    def __init__(
        self,
        history: History,
        translator: Translator,
        title_of: Callable[[str], str],
        parent: QWidget | None = None,
    ) -> None:
        """Lists what there is; `title_of` names an action in the user's language."""
        super().__init__(parent)
        self.answers = AnswerList(history, translator, title_of)
        self._history, self._translator = history, translator
        self._shown = 0
        self.setProperty("role", "side")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._build()
        self._timer = QTimer(self, interval=SEARCH_AFTER_MS, singleShot=True)
        self._timer.timeout.connect(self.refresh)
        self.search.textChanged.connect(lambda: self._timer.start())
        self.refresh()

    def _build(self) -> None:
        tr = self._translator.tr
        self.new_button = QPushButton(tr("New chat"))
        self.new_button.setToolTip("Ctrl+N")
        self.new_button.clicked.connect(self.new_requested)
        self.hide_button = IconButton("sidebar", tr("Show or hide the conversations"), "Ctrl+B")
        self.search = QLineEdit()
        self.search.setPlaceholderText(tr("Search"))
        self.search.setToolTip(tr("Search conversations and answers"))
        self.search.setAccessibleName(tr("Search conversations and answers"))
        self.search.setClearButtonEnabled(True)
        self.titles = TitleList()
        self.titles.setAccessibleName(tr("Conversations"))
        self.titles.setEditTriggers(QAbstractItemView.EditTrigger.EditKeyPressed)
        self.titles.customContextMenuRequested.connect(self._on_menu)
        self.titles.itemClicked.connect(self._on_chosen)
        self.titles.open_wanted.connect(lambda: self._on_chosen(self.titles.currentItem()))
        self.titles.delete_wanted.connect(self._on_delete)
        self.titles.itemChanged.connect(self._on_renamed)
        self.titles.verticalScrollBar().valueChanged.connect(self._on_scrolled)
        self.empty = QLabel()
        self.empty.setProperty("role", "muted")
        self.empty.setWordWrap(True)
        self.empty.setAlignment(Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_M, SPACE_M, SPACE_S, SPACE_S)
        layout.setSpacing(SPACE_S)
        row = QHBoxLayout()
        row.addWidget(self.new_button, 1)
        row.addWidget(self.hide_button)
        layout.addLayout(row)
        layout.addWidget(self.search)
        layout.addWidget(self.empty)
        # Few conversations leave their room to the answers.
        layout.addWidget(self.titles, 3)
        layout.addWidget(self.answers, 2)
        layout.addStretch()

    # --- what is listed -----------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Reads the history again; the chosen conversation stays chosen."""
        if self.titles.state() is EDITING:
            self._timer.start()
            return
        self.answers.refresh(self.search.text())
        self._fill(max(PAGE, self.titles.count()), 0)

    def _fill(self, limit: int, offset: int) -> None:
        try:
            found = self._history.conversations(self.search.text(), limit, offset)
        except HistoryError as error:
            self.problem.emit(self._translator.tr(error.text))
            return
        self.titles.blockSignals(True)
        if offset == 0:
            self.titles.clear()
        for conversation in found:
            self.titles.addItem(self._item(conversation))
        self.titles.blockSignals(False)
        self.titles.fit()
        self.select(self._shown, self.answers.shown)
        tr = self._translator.tr
        is_search = bool(self.search.text().strip())
        self.empty.setText(tr("Nothing was found.") if is_search else tr("Your conversations will be listed here."))
        self.empty.setVisible(self.titles.count() == 0 and self.answers.is_empty)
        self.titles.setVisible(self.titles.count() > 0)

    def _item(self, conversation: Conversation) -> QListWidgetItem:
        item = QListWidgetItem(conversation.title or self._translator.tr("Untitled"))
        item.setData(ID_ROLE, conversation.id)
        item.setFlags(item.flags() | Qt.ItemFlag.ItemIsEditable)
        when = datetime.fromtimestamp(conversation.updated_s).strftime("%Y-%m-%d %H:%M")
        item.setToolTip(f"{conversation.title}\n{when}")
        return item

    def _on_scrolled(self, value: int) -> None:
        if value >= self.titles.verticalScrollBar().maximum() > 0 and self.titles.count() >= PAGE:
            self._fill(PAGE, self.titles.count())

    def select(self, conversation_id: int, result_id: int | None = None) -> None:
        """Marks the conversation, or the answer, that is shown."""
        self._shown = conversation_id
        self.answers.select(result_id)
        self.titles.mark(conversation_id)

    # --- what the user does ---------------------------------------------------------------------------------------

    def rename(self, conversation_id: int) -> None:
        """Lets the user write another title."""
        self.select(conversation_id)
        if (item := self.titles.currentItem()) is not None:
            self.titles.editItem(item)

    def _on_chosen(self, item: QListWidgetItem | None) -> None:
        if item is not None:
            self.chosen.emit(item.data(ID_ROLE))

    def _on_delete(self) -> None:
        if (item := self.titles.currentItem()) is not None:
            self.delete_requested.emit(item.data(ID_ROLE))

    def _on_renamed(self, item: QListWidgetItem) -> None:
        title = item.text().strip()
        try:
            if title:
                self._history.rename(item.data(ID_ROLE), title)
        except HistoryError as error:
            self.problem.emit(self._translator.tr(error.text))
        self._timer.start()

    def _on_menu(self, place: QPoint) -> None:
        item = self.titles.itemAt(place)
        if item is not None:
            self.menu(item.data(ID_ROLE)).popup(self.titles.viewport().mapToGlobal(place))

    def menu(self, conversation_id: int) -> QMenu:
        """What can be done with a conversation."""
        tr = self._translator.tr
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(tr("Rename"), lambda: self.rename(conversation_id)).setShortcut(QKeySequence("F2"))
        menu.addAction(tr("Export as Markdown…"), lambda: self.export_requested.emit(conversation_id, "markdown"))
        menu.addAction(tr("Export as JSON…"), lambda: self.export_requested.emit(conversation_id, "json"))
        menu.addSeparator()
        menu.addAction(tr("Delete…"), lambda: self.delete_requested.emit(conversation_id))
        return menu
