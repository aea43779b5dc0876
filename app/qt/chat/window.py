"""The chat: conversations at the side, the one that is shown in the middle, what the user writes below it.

It shows the state of a ChatSession and passes on what the user wants. Closing hides it; an answer that is being written
goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import QEvent, QSize, Qt, QTimer, QUrl
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QDesktopServices,
    QDragEnterEvent,
    QDropEvent,
    QFont,
    QGuiApplication,
    QKeySequence,
    QShortcut,
)
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QStackedWidget, QVBoxLayout, QWidget

from app.engine_client import EngineClient
from app.history.entry import ActionResult
from app.history.file import HistoryError
from app.history.history import History
from app.qt.bridge import Bridge
from app.qt.chat.composer import Composer, local_files
from app.qt.chat.conversation_list import ConversationList
from app.qt.chat.dialogs import ConversationDialogs
from app.qt.chat.fit import DraftCount
from app.qt.chat.options import OptionsPanel
from app.qt.chat.panels import Panels
from app.qt.chat.session import CHAT_SAMPLING, NEW, ChatSession
from app.qt.chat.style import chat_style_sheet
from app.qt.chat.transcript import Transcript, side_margin
from app.qt.chat.welcome import Welcome
from app.qt.clipboard import QtClipboard
from app.qt.look.elided_label import ElidedLabel
from app.qt.look.icon_button import IconButton
from app.qt.look.placement import first_size
from app.qt.look.theme import SPACE_L, SPACE_M, SPACE_S, SPACE_XS, colors_of, scaled
from app.qt.remote.badge import RemoteBadge
from app.text.markdown import parse
from app.translation import Translator

FIRST_SIZE = QSize(1000, 720)
REFRESH_AFTER_MS = 120


class ChatWindow(QWidget):
    """The window of the chat.

    Attributes:
        session: what it shows.
    """

    def __init__(
        self,
        *,
        client: EngineClient,
        bridge: Bridge,
        history: History,
        clipboard: QtClipboard,
        translator: Translator,
        title_of: Callable[[str], str],
    ) -> None:
        """Shows an empty conversation; `title_of` names an action in the user's language."""
        super().__init__()
        self._client, self._bridge, self._history, self._clipboard = client, bridge, history, clipboard
        self._translator, self._tr, self._title_of = translator, translator.tr, title_of
        self.session = ChatSession(client, bridge, history, translator, self)
        self._drafts: dict[int, str] = {}
        # The question that is being changed, and what stood in the composer before.
        self._editing: int | None = None
        self._set_aside = ""
        self._last_shown: int | None = None
        self._last_answer: ActionResult | None = None
        self._was_answering = False
        self.setObjectName("chat")
        self.setAttribute(Qt.WidgetAttribute.WA_QuitOnClose, False)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAcceptDrops(True)
        self._build()
        self._lay_out()
        self._connect()
        self._add_shortcuts()
        self.setStyleSheet(chat_style_sheet(colors_of(QGuiApplication.palette())))
        self.resize(first_size(FIRST_SIZE, self.screen().availableSize()))
        parse("https://example.org")  # its patterns are compiled now, and not while the first answer streams
        self._show_state()

    # --- construction -------------------------------------------------------------------------------------------

    def _build(self) -> None:
        tr = self._tr
        self.side = ConversationList(self._history, self._translator, self._title_of)
        self.options = OptionsPanel(CHAT_SAMPLING, self._translator)
        self.transcript = Transcript(self._translator)
        self.welcome = Welcome(self._translator)
        self.composer = Composer(self._translator)
        self.title = ElidedLabel()
        self.title.setFont(scaled(self.font(), 1.05, QFont.Weight.DemiBold))
        self.remote_badge = RemoteBadge(self._translator)
        self.remote_badge.host_changed.connect(self.welcome.set_host)
        self.remote_badge.follow(self._bridge, self._client.reading().model)
        self.side_button = IconButton("sidebar", tr("Show or hide the conversations"), "Ctrl+B")
        self.options_button = IconButton("sliders", tr("Instructions and sampling of this conversation"))
        self.options_button.setCheckable(True)
        self.more_button = IconButton("more", tr("More"))
        self.dialogs = ConversationDialogs(self._history, self._translator, self)
        self.count = DraftCount(self._client, self._bridge, self.composer, self._translator, self._show_fit)
        self.left_out = QLabel()
        self.left_out.setProperty("role", "muted")
        self.left_out.setWordWrap(True)
        self.left_out.hide()
        self._refresh_timer = QTimer(self, interval=REFRESH_AFTER_MS, singleShot=True)

    def _lay_out(self) -> None:
        header = QFrame()
        header.setObjectName("header")
        row = QHBoxLayout(header)
        row.setContentsMargins(SPACE_M, SPACE_S, SPACE_M, SPACE_S)
        row.setSpacing(SPACE_XS)
        row.addWidget(self.side_button)
        row.addSpacing(SPACE_XS)
        row.addWidget(self.title, 1)
        row.addWidget(self.remote_badge)
        row.addWidget(self.options_button)
        row.addWidget(self.more_button)
        self.stack = QStackedWidget()
        self.stack.addWidget(self.welcome)
        self.stack.addWidget(self.transcript)
        self._lower = QVBoxLayout()
        self._lower.setSpacing(SPACE_XS)
        self._lower.addWidget(self.left_out)
        self._lower.addWidget(self.composer)
        self._main = QWidget()
        self._main.setObjectName("main")
        main = QVBoxLayout(self._main)
        main.setContentsMargins(0, 0, 0, 0)
        main.setSpacing(0)
        main.addWidget(header)
        main.addWidget(self.stack, 1)
        main.addLayout(self._lower)
        self.panels = Panels(self.side, self._main, self.options)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.panels)

    def _connect(self) -> None:
        self.session.changed.connect(self._show_state)
        self.session.listed.connect(self._refresh_timer.start)
        self.session.progress.connect(self.transcript.set_progress)
        self.session.problem.connect(self.composer.show_problem)
        self._forget_history = self._history.listen(lambda: self._refresh_timer.start())
        self._refresh_timer.timeout.connect(self._refresh)
        self.side.new_requested.connect(self.begin)
        self.side.chosen.connect(self.open_conversation)
        self.side.answers.chosen.connect(self.open_answer)
        self.side.answers.delete_requested.connect(self.dialogs.ask_to_delete_answer)
        self.side.export_requested.connect(self.dialogs.ask_to_export)
        self.side.delete_requested.connect(self.dialogs.ask_to_delete)
        self.dialogs.delete_confirmed.connect(self.session.delete)
        for part in (self.side, self.side.answers, self.dialogs):
            part.problem.connect(self.composer.show_problem)
        for button in (self.side.hide_button, self.side_button):
            button.clicked.connect(self.panels.toggle_side)
        self.panels.arranged.connect(self._on_arranged)
        self.options_button.clicked.connect(self._toggle_options)
        self.more_button.clicked.connect(self._on_more)
        self.options.closed.connect(self._toggle_options)
        self.options.changed.connect(self.session.configure)
        for texts in (self.transcript, self.side.answers):
            texts.copy_requested.connect(self._clipboard.put)
        self.transcript.edit_requested.connect(self._on_edit)
        self.transcript.retry_requested.connect(self._on_retry)
        self.transcript.link_clicked.connect(_open_link)
        self.welcome.chosen.connect(self._on_beginning)
        self.composer.sent.connect(self._on_sent)
        self.composer.stop_requested.connect(self.session.stop)
        self.composer.edit_cancelled.connect(self._end_editing)

    def _add_shortcuts(self) -> None:
        for keys, act in (
            ("Ctrl+N", self.begin),
            ("Ctrl+B", self.panels.toggle_side),
            ("Ctrl+F", self._search),
            ("Ctrl+.", self.session.stop),
            ("F5", self._on_retry),
        ):
            QShortcut(QKeySequence(keys), self).activated.connect(act)

    # --- what the application calls -----------------------------------------------------------------------------

    def bring_to_front(self) -> None:
        """Shows the window, from the taskbar too, and gives it the keyboard."""
        self.setWindowState(self.windowState() & ~Qt.WindowState.WindowMinimized)
        self.show()
        self.raise_()
        self.activateWindow()
        self.composer.edit.setFocus()

    def continue_answer(self, title: str, source_text: str, answer: str) -> None:
        """Opens a new conversation that begins with a text and the answer that an action gave to it."""
        self._leave_conversation()
        self.session.continue_answer(title, source_text, answer)
        self.bring_to_front()

    def shut_down(self) -> None:
        """Keeps what has arrived and stops what runs; the window must not be used any more."""
        self._refresh_timer.stop()
        self._forget_history()
        self.session.close()
        self.hide()

    # --- conversations ------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Shows an empty conversation."""
        self._turn_to(self.session.begin)

    def open_conversation(self, conversation_id: int) -> None:
        """Shows a conversation of the history."""
        self._turn_to(lambda: self.session.open(conversation_id))

    def open_answer(self, result_id: int) -> None:
        """Shows an action's answer of the history."""
        self._turn_to(lambda: self.session.open_answer(result_id))

    def _turn_to(self, show: Callable[[], None]) -> None:
        self._leave_conversation()
        show()
        self.panels.show_main()
        self.composer.edit.setFocus()

    def _leave_conversation(self) -> None:
        if self.options.is_pending:
            self.options.apply()
        if self._editing is not None:
            self._end_editing()

    def _show_state(self) -> None:
        state, shown, answer = self.session.state, self.session.shown, self.session.answer
        is_other = (shown, answer) != (self._last_shown, self._last_answer) or not state.messages
        if is_other:
            self._show_other(self._last_shown, shown)
        self.stack.setCurrentWidget(self.transcript if state.messages else self.welcome)
        self.transcript.show_messages(state.messages, self.session.model, state.error, is_other)
        self.composer.set_answering(state.is_answering)
        if self._was_answering and not state.is_answering:
            self._announce()
        self._was_answering = state.is_answering
        self._show_fit()

    def _show_other(self, before: int | None, shown: int) -> None:
        if self._editing is not None:  # of a conversation or an answer that was deleted meanwhile
            self._end_editing()
        if before is not None and before != shown:
            self._drafts[before] = self.composer.text()
            self.composer.set_text(self._drafts.pop(shown, ""))
        self._last_shown, self._last_answer = shown, self.session.answer
        self.options.show_options(self.session.state.system, self.session.state.sampling)
        self.side.select(shown, self._last_answer.id if self._last_answer else None)
        self._show_title()

    def _show_title(self) -> None:
        conversation = None
        try:
            if self.session.shown != NEW:
                conversation = self._history.conversation(self.session.shown)
        except HistoryError as error:
            self.composer.show_problem(self._tr(error.text))
        answer = self.session.answer
        new = self._title_of(answer.action_id) if answer is not None else self._tr("New chat")
        title = conversation.title if conversation is not None else new
        self.title.set_full_text(title)
        self.setWindowTitle(title)
        self.more_button.setEnabled(conversation is not None)

    def _refresh(self) -> None:
        try:
            self.session.forget_missing()
            self._show_title()
        except HistoryError as error:
            self.composer.show_problem(self._tr(error.text))
        self.side.refresh()

    # --- what the user does ---------------------------------------------------------------------------------------

    def _on_sent(self, text: str) -> None:
        if self.options.is_pending:
            self.options.apply()
        is_first = self.session.shown == NEW
        try:
            if self._editing is not None:
                self.session.resend(self._editing, text)
            else:
                self.session.send(text)
        except HistoryError as error:
            self.composer.show_problem(self._tr(error.text))
            return
        self._editing = None
        self.composer.set_editing(False)
        self.composer.clear()
        if is_first:
            self._drafts.pop(NEW, None)
            self._drafts.pop(self.session.shown, None)
        self.transcript.go_to_end()

    def _on_edit(self, index: int) -> None:
        if self.session.state.is_answering:
            self.session.stop()
        if self._editing is None:
            self._set_aside = self.composer.text()
        self._editing = index
        self.composer.set_text(self.session.state.messages[index].text)
        self.composer.set_editing(True)
        self.composer.edit.setFocus()

    def _end_editing(self) -> None:
        if self._editing is not None:
            self._editing = None
            self.composer.set_editing(False)
            self.composer.set_text(self._set_aside)

    def _on_retry(self) -> None:
        state = self.session.state
        if state.messages and not state.is_answering:
            self._leave_conversation()
            self.session.regenerate()
            self.transcript.go_to_end()

    def _on_beginning(self, text: str) -> None:
        self.composer.set_text(text)
        self.composer.edit.setFocus()

    def _search(self) -> None:
        self.panels.show_side()
        self.side.search.setFocus()
        self.side.search.selectAll()

    def _on_more(self) -> None:
        menu = self.side.menu(self.session.shown)
        menu.popup(self.more_button.mapToGlobal(self.more_button.rect().bottomLeft()))

    def _toggle_options(self) -> None:
        self.panels.toggle_options()
        (self.options.system if self.panels.shows_options else self.composer.edit).setFocus()

    def _on_arranged(self) -> None:
        """The composer is as wide as the text above it."""
        self.side_button.setVisible(not self.panels.shows_side)
        self.options_button.setChecked(self.panels.shows_options)
        bar = self.transcript.verticalScrollBar().sizeHint().width()
        side = side_margin(self.panels.main_width - bar, self.transcript.font())
        self._lower.setContentsMargins(side, 0, side + bar, SPACE_L)

    def _show_fit(self) -> None:
        state = self.session.state
        if self._editing is not None:
            state = replace(state, messages=state.messages[: self._editing])
        self.count.show_fit(state)
        words = self._tr(
            "The model no longer sees the oldest {count} messages: its context is full.", count=self.count.first
        )
        self.left_out.setText(words)
        self.left_out.setVisible(self.count.first > 0)

    def _announce(self) -> None:
        if QAccessible.isActive() and self.transcript.views:
            view = self.transcript.views[-1].view
            QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(view, view.toPlainText()))

    # --- events -------------------------------------------------------------------------------------------------

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Takes files anywhere."""
        if local_files(event.mimeData()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Adds the files to the message."""
        self.composer.add_files(local_files(event.mimeData()))
        event.acceptProposedAction()

    def event(self, event: QEvent) -> bool:
        """Follows the desktop between light and dark."""
        if event.type() is QEvent.Type.ApplicationPaletteChange:
            self.setStyleSheet(chat_style_sheet(colors_of(QGuiApplication.palette())))
        return super().event(event)


def _open_link(url: QUrl) -> None:
    """In the browser or the mail program."""
    QDesktopServices.openUrl(url)
