"""The pages of an answer: its text, its changes, its to-dos, and the source beside them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

from PySide6.QtCore import Signal
from PySide6.QtGui import QFont, QGuiApplication
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout, QWidget

from app.actions.answer_review import Review, Subject, is_new_text, review
from app.qt.look.stream_view import StreamView
from app.qt.look.theme import SPACE_S, colors_of
from app.qt.popup.diff_view import DiffView
from app.qt.popup.page_bar import Page, PageBar
from app.qt.popup.todo_view import TodoView
from app.text.checks import Loss
from app.translation import Translator

# Longer texts are looked through on a thread of their own; shorter ones take a few milliseconds.
THREAD_CHARS = 12_000
_PAGES = {
    "text": (Page.RESULT, Page.SOURCE),
    "changes": (Page.CHANGES, Page.RESULT, Page.SOURCE),
    "todos": (Page.TODOS, Page.SOURCE),
}


class AnswerPages(QWidget):
    """Streams an answer into its result page and, once it has ended, shows what became of the source.

    Signals:
        reviewed: a Review of the answer that has ended.
        page_changed: another page is shown.
        copy_all_requested: Ctrl+C was pressed while nothing is selected.
        result_changed: what Copy and Replace would use is another text now.
    """

    reviewed = Signal(object)
    result_changed = Signal()
    page_changed = Signal()
    copy_all_requested = Signal()
    _review_done = Signal(int, object)

    def __init__(self, translator: Translator, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._tr = translator.tr
        self._subject = Subject()
        self._answer: list[str] = []
        self._review: Review | None = None
        self._shows_all = False
        self._is_stale = False  # the result page shows another text than is used
        self._serial = 0
        self.bar = PageBar(translator)
        self.result_view, self.source_view = StreamView(), StreamView()
        self.diff_view, self.todo_view = DiffView(translator), TodoView(translator)
        self._views: dict[Page, QWidget] = {
            Page.RESULT: self.result_view,
            Page.CHANGES: self.diff_view,
            Page.TODOS: self.todo_view,
            Page.SOURCE: self.source_view,
        }
        self._stack = QStackedWidget()
        for view in self._views.values():
            self._stack.addWidget(view)
        tr = self._tr
        self.result_view.setAccessibleName(tr("Answer"))
        self.diff_view.setAccessibleName(tr("Changes"))
        self.source_view.setAccessibleName(tr("Source"))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_S)
        layout.addWidget(self.bar)
        layout.addWidget(self._stack, 1)
        self._connect()
        self.begin(Subject())

    def _connect(self) -> None:
        self._review_done.connect(self._on_review)
        for view in self.text_views:
            view.copy_all_requested.connect(self.copy_all_requested)
        self.todo_view.copy_all_requested.connect(self.copy_all_requested)
        self.bar.export_button.setMenu(self.todo_view.menu)
        self.todo_view.ticks_changed.connect(self._show_todo_count)
        self.todo_view.room_wanted.connect(self.page_changed)
        self.bar.page_chosen.connect(self.show_page)
        self.bar.step_requested.connect(self._step)
        self.bar.toggle_requested.connect(self.diff_view.toggle_current)
        self.bar.all_requested.connect(self._toggle_all)
        self.diff_view.choice_changed.connect(self._on_choice)

    # --- an answer comes ----------------------------------------------------------------------------------------

    def begin(self, subject: Subject) -> None:
        """Empties the pages for a new answer."""
        self._serial += 1
        self._subject, self._answer, self._review = subject, [], None
        self._shows_all = self._is_stale = False
        self.result_view.clear_text()
        self.diff_view.show_changes("", ())
        self.source_view.set_text(subject.source)
        self.todo_view.begin(subject.source)
        self.bar.set_pages(_PAGES[subject.output])
        self.bar.set_enabled(Page.CHANGES, False)
        self.bar.set_changes("", False, False)
        self.bar.setVisible(subject.output != "text")
        self.show_page(_PAGES[subject.output][0] if subject.output == "todos" else Page.RESULT)

    def show_waiting(self, text: str) -> None:
        """Says in the place of the answer what it waits for."""
        self.result_view.setPlaceholderText(text)
        self.result_view.setAccessibleDescription(text)
        self.todo_view.show_words(text)

    def append(self, text: str) -> None:
        """Adds text of the answer."""
        is_first = not self._answer
        self._answer.append(text)
        if self._subject.output != "todos":
            self.result_view.append_text(text)
            return
        if is_first and not text.lstrip().startswith(("[", "{")):
            # An action or an engine that knows nothing of the form of to-dos: its answer is shown as it is.
            self._subject = replace(self._subject, output="text")
            self.show_page(Page.RESULT)
            self.result_view.append_text(text)
            return
        self.todo_view.append(text)
        self._show_todo_count()

    def finish(self, is_complete: bool) -> None:
        """The answer has ended: looks it through and, soon, reports `reviewed`; one that was cut off is left alone."""
        answer, subject, serial = "".join(self._answer), self._subject, self._serial
        if subject.output == "todos":
            self.todo_view.show_words("" if self.todo_view.todos else self._tr("No to-dos found"))
            self._show_todo_count()
        if not answer.strip() or not is_complete:
            return
        if len(answer) + len(subject.source) <= THREAD_CHARS:
            self._on_review(serial, review(subject, answer))
            return

        def look_through() -> None:
            result = review(subject, answer)
            try:
                self._review_done.emit(serial, result)
            except RuntimeError:  # the window is gone
                return

        threading.Thread(target=look_through, name="answer-review", daemon=True).start()

    def _on_review(self, serial: int, found: Review) -> None:
        if serial != self._serial:
            return
        self._review = found
        self._show_result()
        if found.diff is not None:
            self.diff_view.show_changes(self._subject.source, found.diff.changes)
            has_changes = bool(found.diff.changes)
            self.bar.set_enabled(Page.CHANGES, has_changes)
            if has_changes and not is_new_text(self._subject.source, found.diff) and not self.source_is_read:
                self.show_page(Page.CHANGES)
        if found.losses and self._subject.source:
            self.bar.show()
        self.reviewed.emit(found)

    # --- what it is used for ------------------------------------------------------------------------------------

    @property
    def source_is_read(self) -> bool:
        """Whether the user has turned to the source."""
        return self._stack.currentWidget() is self.source_view

    def result(self) -> str:
        """The text that Copy and Replace use: with the changes that are accepted, without what was left out."""
        if self._subject.output == "todos":
            return self.todo_view.markdown()
        if self._review is None or self._shows_all:
            return "".join(self._answer)
        return self.diff_view.result() if self.diff_view.changes else self._review.text

    def show_all(self) -> None:
        """Shows and uses everything that the model wrote."""
        self._shows_all = True
        self._show_result()
        self.bar.set_enabled(Page.CHANGES, False)
        self.show_page(Page.RESULT)

    def show_loss(self, loss: Loss) -> None:
        """Goes to the place of a loss."""
        if self.diff_view.changes and not self._shows_all and self.diff_view.go_to_loss(loss):
            self.show_page(Page.CHANGES)
        elif loss.answer_span is not None and not self._shows_all:
            self.show_page(Page.RESULT)
            self.result_view.mark(*loss.answer_span)
        elif loss.source_span is not None:
            self.show_source(*loss.source_span)
        else:
            self.show_page(Page.SOURCE)

    def show_source(self, start: int, end: int) -> None:
        """Shows the source with a piece of it marked; positions in characters."""
        self.bar.show()
        self.show_page(Page.SOURCE)
        self.source_view.mark(start, end)

    def show_page(self, page: Page) -> None:
        """Turns to a page."""
        if page is Page.RESULT and self._is_stale:
            self._is_stale = False
            self.result_view.set_text(self.result())
        self.bar.set_current(page)
        self._stack.setCurrentWidget(self._views[page])
        self.page_changed.emit()

    @property
    def current_view(self) -> QWidget:
        """The view of the page that is shown."""
        return next(view for view in self._views.values() if view is self._stack.currentWidget())

    @property
    def views(self) -> Sequence[QWidget]:
        """The views of all pages."""
        return tuple(self._views.values())

    @property
    def has_text(self) -> bool:
        """Whether anything of the answer has arrived."""
        return bool(self._answer)

    def selected_text(self) -> str:
        """What the user has selected in the page that is shown."""
        view = self.current_view
        return view.textCursor().selection().toPlainText() if isinstance(view, StreamView) else ""

    @property
    def text_views(self) -> Sequence[StreamView]:
        """All views that show text of an answer."""
        return self.result_view, self.diff_view, self.source_view

    def first_height(self) -> int:
        """Height of a page before there is much on it, in pixels."""
        return self._stack.sizeHint().height()

    def least_height(self) -> int:
        """With less, nothing can be read: two lines, in pixels."""
        return min(self.first_height(), 3 * self.result_view.fontMetrics().lineSpacing())

    def text_height(self) -> int:
        """Height of the text that is shown, in pixels."""
        view = self.current_view
        return view.text_height() if isinstance(view, StreamView) else self.todo_view.content_height()

    def set_text_font(self, font: QFont) -> None:
        """The font of all texts."""
        for view in self.text_views:
            view.setFont(font)
        self.todo_view.set_text_font(font)

    def apply_theme(self) -> None:
        """Follows the desktop between light and dark."""
        self.bar.apply_colors(colors_of(QGuiApplication.palette()))

    # --- changes ------------------------------------------------------------------------------------------------

    def _show_result(self) -> None:
        """Brings the result page up to date, if it is shown; else when it will be."""
        self._is_stale = self.result() != self.result_view.toPlainText()
        if self._is_stale and self.current_view is self.result_view:
            self.show_page(Page.RESULT)
        self.result_changed.emit()

    def _step(self, step: int) -> None:
        self.show_page(Page.CHANGES)
        self.diff_view.go(step)

    def _toggle_all(self) -> None:
        self.diff_view.accept_all(len(self.diff_view.accepted) < len(self.diff_view.changes))

    def _show_todo_count(self) -> None:
        count, left = len(self.todo_view.todos), len(self.todo_view.open_todos())
        text = self._tr("{left} of {count} open", left=left, count=count) if count else ""
        self.bar.set_todos(text, bool(count))

    def _on_choice(self) -> None:
        tr, view = self._tr, self.diff_view
        count, used = len(view.changes), len(view.accepted)
        if self._review is None:
            text = ""
        elif not count:
            text = tr("Nothing was changed") if self._subject.output == "changes" else ""
        elif self._review.diff is not None and self._review.diff.is_coarse:
            text = tr("{used} of {count} used; compared in large parts", used=used, count=count)
        else:
            text = tr("{used} of {count} used", used=used, count=count)
        self.bar.set_changes(text, bool(count), view.current >= 0)
        if self._review is not None and count:
            self._show_result()
