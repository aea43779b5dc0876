"""The answers of actions that the history keeps, below the conversations: found again, opened, copied, deleted."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtWidgets import QLabel, QLayout, QListWidgetItem, QMenu, QSizePolicy, QVBoxLayout, QWidget

from app.conversation import title_of as first_words
from app.history.entry import ActionResult
from app.history.file import HistoryError
from app.history.history import History
from app.qt.chat.titles import ID_ROLE, TitleList, TwoLines
from app.qt.look.theme import SPACE_M, SPACE_S, SPACE_XS
from app.translation import Translator

MOST_ANSWERS = 50


class AnswerList(QWidget):
    """Lists answers, newest first; older ones are found by searching. It hides where there is none.

    Attributes:
        shown: id of the answer that the chat shows.

    Signals:
        chosen: id of the answer to be shown.
        copy_requested: text for the clipboard.
        delete_requested: id and title of an answer; nothing is deleted yet.
        problem: the history could not be read; words for the user.
    """

    chosen = Signal(int)
    copy_requested = Signal(str)
    delete_requested = Signal(int, str)
    problem = Signal(str)

    def __init__(self, history: History, translator: Translator, title_of: Callable[[str], str]) -> None:
        """Lists nothing yet; `title_of` names an action in the user's language."""
        super().__init__()
        self._history, self._tr, self._title_of = history, translator.tr, title_of
        self.shown: int | None = None
        self.heading = QLabel(self._tr("Answers"))
        self.heading.setProperty("role", "muted")
        self.heading.setIndent(SPACE_M)
        self.titles = TitleList()
        self.titles.setItemDelegate(TwoLines(self.titles))
        self.titles.setAccessibleName(self._tr("Answers"))
        self.titles.customContextMenuRequested.connect(self._on_menu)
        self.titles.itemClicked.connect(self._on_chosen)
        self.titles.open_wanted.connect(lambda: self._on_chosen(self.titles.currentItem()))
        self.titles.delete_wanted.connect(lambda: self._on_delete(self.titles.currentItem()))
        self.more = QLabel(self._tr("Search to find older ones."))
        self.more.setProperty("role", "muted")
        self.more.setWordWrap(True)
        self.more.setIndent(SPACE_M)
        for label in (self.heading, self.more):
            label.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, SPACE_S, 0, 0)
        layout.setSpacing(SPACE_XS)
        layout.setSizeConstraint(QLayout.SizeConstraint.SetMaximumSize)
        layout.addWidget(self.heading)
        layout.addWidget(self.titles, 1)
        layout.addWidget(self.more)

    @property
    def is_empty(self) -> bool:
        """Whether there is none, or none that has the words."""
        return self.titles.count() == 0

    def refresh(self, query: str) -> None:
        """Reads the history again: the answers that have all words of a query."""
        try:
            found = self._history.results(query, MOST_ANSWERS + 1)
        except HistoryError as error:
            self.problem.emit(self._tr(error.text))
            return
        self.titles.clear()
        for result in found[:MOST_ANSWERS]:
            self.titles.addItem(self._item(result))
        self.titles.fit()
        self.more.setVisible(len(found) > MOST_ANSWERS)
        self.setVisible(not self.is_empty)

    def select(self, result_id: int | None) -> None:
        """Marks the answer that is shown."""
        self.shown = result_id
        self.titles.mark(result_id)

    def _item(self, result: ActionResult) -> QListWidgetItem:
        source, title, when = first_words(result.source_text), self._title_of(result.action_id), _when(result.created_s)
        item = QListWidgetItem(f"{source}\n{title} · {when}")
        item.setData(ID_ROLE, result.id)
        item.setData(_TITLE_ROLE, f"{title}: {source}")
        item.setToolTip(f"{source}\n{first_words(result.answer)}")
        return item

    def _on_chosen(self, item: QListWidgetItem | None) -> None:
        if item is not None:
            self.chosen.emit(item.data(ID_ROLE))

    def _on_delete(self, item: QListWidgetItem | None) -> None:
        if item is not None:
            self.delete_requested.emit(item.data(ID_ROLE), item.data(_TITLE_ROLE))

    def copy(self, result_id: int) -> None:
        """Asks for an answer to be copied."""
        try:
            result = self._history.result(result_id)
        except HistoryError as error:
            self.problem.emit(self._tr(error.text))
            return
        if result is not None:
            self.copy_requested.emit(result.answer)

    def _on_menu(self, place: QPoint) -> None:
        item = self.titles.itemAt(place)
        if item is not None:
            self.menu(item.data(ID_ROLE), item.data(_TITLE_ROLE)).popup(self.titles.viewport().mapToGlobal(place))

    def menu(self, result_id: int, title: str) -> QMenu:
        """What can be done with an answer."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(self._tr("Continue as chat"), lambda: self.chosen.emit(result_id))
        menu.addAction(self._tr("Copy the answer"), lambda: self.copy(result_id))
        menu.addSeparator()
        menu.addAction(self._tr("Delete…"), lambda: self.delete_requested.emit(result_id, title))
        return menu


_TITLE_ROLE = ID_ROLE + 1


def _when(seconds: float) -> str:
    """The time of today, the day of what is older."""
    then = datetime.fromtimestamp(seconds)
    return then.strftime("%H:%M" if then.date() == datetime.now().date() else "%Y-%m-%d")
