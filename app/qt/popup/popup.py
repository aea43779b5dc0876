"""The popup beside the cursor that an answer streams into.

It shows and asks; it decides nothing (app/qt/popup/controller.py does). There is one popup: a new action takes it over,
after the running request has been cancelled, and it stays where the user has put it while it is open, unless the user
works on another monitor by then.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QCloseEvent,
    QFont,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QShortcut,
)
from PySide6.QtWidgets import QAbstractButton, QProgressBar, QPushButton, QVBoxLayout, QWidget

from app.actions.answer_review import Review, Subject
from app.qt.look.growing_window import GrowingWindow
from app.qt.look.notice import Notice, NoticePanel
from app.qt.look.theme import SPACE_L, SPACE_M, SPACE_S, colors_of, scaled, style_sheet
from app.qt.popup.check_bar import CheckBar
from app.qt.popup.frame import PopupFooter, PopupHeader
from app.qt.popup.pages import AnswerPages
from app.translation import Translator

DEFAULT_WIDTH = 480
MINIMUM_SIZE = QSize(360, 160)
# A long answer grows the popup to this share of the work area's height; what is longer scrolls.
LARGEST_SHARE = 0.6
TEXT_SCALE = 1.04


class PopupState(enum.Enum):
    """What the popup is doing."""

    WAITING = "waiting"
    STREAMING = "streaming"
    FINISHED = "finished"
    NOTICE = "notice"


class Popup(GrowingWindow):
    """Streams an answer, shows what it changed and lost; offers Stop, Retry, Copy, Replace, Close and "as chat".

    Signals:
        stop_requested, retry_requested, copy_requested, replace_requested: the buttons and their shortcuts.
        notice_accepted: the button of the notice.
        copy_text_requested: another form of the answer is to be copied.
        continue_requested: the answer is to go on as a chat.
        closed: Esc, the close button or the window manager; what runs should stop.
    """

    stop_requested = Signal()
    retry_requested = Signal()
    copy_requested = Signal()
    replace_requested = Signal()
    copy_text_requested = Signal(str)
    continue_requested = Signal()
    notice_accepted = Signal()
    closed = Signal()

    def __init__(self, translator: Translator, parent: QWidget | None = None) -> None:
        super().__init__(parent, Qt.WindowType.Tool | Qt.WindowType.WindowStaysOnTopHint)
        self.setAttribute(Qt.WidgetAttribute.WA_ShowWithoutActivating)
        self.setAttribute(Qt.WidgetAttribute.WA_QuitOnClose, False)
        self._translator, self._tr = translator, translator.tr
        self._state = PopupState.WAITING
        self._replaces = self._can_replace = self._can_retry = False
        self._parts = 0
        self._build()
        self._connect()
        self._apply_theme()
        self.setMinimumSize(MINIMUM_SIZE)
        self._enter(PopupState.WAITING)
        self.resize(DEFAULT_WIDTH, self._first_height())

    # --- construction -------------------------------------------------------------------------------------------

    def _build(self) -> None:
        tr = self._tr
        self.header, self.footer = PopupHeader(self._translator), PopupFooter(self._translator)
        self.title, self.subtitle = self.header.title, self.header.subtitle
        self.close_button, self.chat_button = self.header.close_button, self.header.chat_button
        self.small_print = self.footer.small_print
        self.stop_button, self.retry_button = self.footer.stop_button, self.footer.retry_button
        self.copy_button, self.replace_button = self.footer.copy_button, self.footer.replace_button
        self.progress = QProgressBar()
        self.progress.setTextVisible(False)
        self.progress.setAccessibleName(tr("Progress"))
        policy = self.progress.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self.progress.setSizePolicy(policy)
        self.pages = AnswerPages(self._translator)
        self.pages.set_text_font(scaled(self.font(), TEXT_SCALE))
        self.view = self.pages.result_view
        self.notice = NoticePanel()
        self.check_bar = CheckBar(self._translator)
        self._lay_out()

    def _lay_out(self) -> None:
        body = QVBoxLayout()
        body.setContentsMargins(SPACE_L, SPACE_S, SPACE_S, SPACE_S)
        body.setSpacing(SPACE_M)
        body.addWidget(self.pages, 1)
        body.addWidget(self.notice)
        checks = QVBoxLayout()
        checks.setContentsMargins(SPACE_L, 0, SPACE_L, 0)
        checks.addWidget(self.check_bar)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(1, 1, 1, 1)
        layout.setSpacing(0)
        layout.addWidget(self.header)
        layout.addWidget(self.progress)
        layout.addLayout(body, 1)
        layout.addLayout(checks)
        layout.addWidget(self.footer)
        for before, after in zip(self._tab_order(), self._tab_order()[1:], strict=False):
            self.setTabOrder(before, after)

    def _tab_order(self) -> Sequence[QWidget]:
        bar = self.pages.bar
        return (
            *self.pages.views,
            *bar.tabs.values(),
            *bar.change_buttons,
            bar.export_button,
            self.notice.button,
            self.check_bar,
            *self.footer.buttons,
            self.chat_button,
            self.close_button,
        )

    def _connect(self) -> None:
        self.stop_button.clicked.connect(self.stop_requested)
        self.retry_button.clicked.connect(self.retry_requested)
        self.copy_button.clicked.connect(self.copy_requested)
        self.pages.copy_all_requested.connect(self.copy_button.click)
        self.replace_button.clicked.connect(self.replace_requested)
        self.chat_button.clicked.connect(self.continue_requested)
        self.close_button.clicked.connect(self.close)
        self.notice.accepted.connect(self.notice_accepted)
        self.pages.reviewed.connect(self._on_reviewed)
        self.pages.page_changed.connect(self._make_room_for_text)
        self.pages.todo_view.copy_text_requested.connect(self.copy_text_requested)
        self.pages.todo_view.save_failed.connect(self._show_save_failure)
        self.check_bar.loss_chosen.connect(self.pages.show_loss)
        self.check_bar.grown.connect(self._make_room_for_text)
        self.check_bar.show_all_requested.connect(self._show_all)
        for keys, target in (
            (QKeySequence(Qt.Key.Key_Escape), self.close),
            (QKeySequence("Ctrl+."), self.stop_button.click),
            (QKeySequence(QKeySequence.StandardKey.Refresh), self.retry_button.click),
            (QKeySequence("Ctrl+Return"), self.replace_button.click),
            (QKeySequence("Ctrl+T"), self.chat_button.click),
        ):
            QShortcut(keys, self).activated.connect(target)

    # --- what the controller calls ------------------------------------------------------------------------------

    @property
    def state(self) -> PopupState:
        """What the popup is doing."""
        return self._state

    @property
    def primary_button(self) -> QPushButton | None:
        """What Enter presses: Replace where the answer is meant for its source's place and can go there, else Copy."""
        is_running = self._state in (PopupState.WAITING, PopupState.STREAMING)
        if is_running or not self.pages.has_text or not self.result_text().strip():
            return None
        return self.replace_button if self._replaces and self._can_replace else self.copy_button

    def begin(self, title: str, subtitle: str = "", subject: Subject | None = None) -> None:
        """Empties the popup for a new answer.

        Args:
            subject: what it will be about; None where that is not known yet.
        """
        self.title.setText(title)
        self.subtitle.set_full_text(subtitle)
        self.setWindowTitle(title)
        self._parts = 0
        subject = subject or Subject()
        self._replaces = subject.replaces
        self.footer.place_last(self.replace_button if self._replaces else self.copy_button)
        self.pages.begin(subject)
        self.check_bar.show_losses(())
        self.show_small_print("")
        self._enter(PopupState.WAITING)
        self.show_progress("", None)
        if not self.is_resized:
            self.set_height(self._first_height())

    def show_progress(self, text: str, share: float | None) -> None:
        """Says what is being waited for.

        Args:
            share: how much of it is done, 0 to 1; None where that is unknown.
        """
        if self._state is not PopupState.WAITING:
            return
        self.pages.show_waiting(text)
        self.progress.setRange(0, 0 if share is None else 1000)
        if share is not None:
            self.progress.setValue(round(1000 * share))

    def append(self, text: str) -> None:
        """Adds text of the answer."""
        if self._state is PopupState.WAITING:
            self._enter(PopupState.STREAMING)
        self.pages.append(text)
        self._make_room_for_text()

    def show_part(self, part: int, parts: int) -> None:
        """Says which part of a long text is being done, while its answer is written as well.

        Args:
            part: from 1.
        """
        self._parts = parts
        if parts > 1:
            self.show_small_print(self._tr("Part {part} of {parts}", part=part, parts=parts))
            self.progress.setRange(0, parts)
            self.progress.setValue(part - 1)
        self._enter(self._state)

    def finish(self, small_print: str, details: str = "", is_complete: bool = True) -> None:
        """Shows that the answer has ended.

        Args:
            is_complete: it came to its own end; what was cut off is not compared with its source.
        """
        self.view.setPlaceholderText("")
        self.show_small_print(small_print, details)
        self._enter(PopupState.FINISHED)
        self.pages.finish(is_complete)
        self._make_room_for_text()
        if QAccessible.isActive():
            event = QAccessibleAnnouncementEvent(self.pages.current_view, self.pages.result())
            QAccessible.updateAccessibility(event)

    def result_text(self) -> str:
        """What Copy and Replace use: the answer with the changes that are accepted."""
        return self.pages.result()

    def show_small_print(self, text: str, details: str = "") -> None:
        """Speed, times and model, in one or two short lines; `details` is the tool tip."""
        self.footer.show_small_print(text, details)

    def show_notice(self, notice: Notice) -> None:
        """Shows a message; text that has already arrived stays above it."""
        self.notice.show_notice(notice)
        self._enter(PopupState.NOTICE)
        self._make_room_for_notice()

    def set_replaceable(self, can_replace: bool, tool_tip: str) -> None:
        """Enables Replace, or says in its tool tip why it is not possible."""
        self._can_replace = can_replace
        self.replace_button.setToolTip(tool_tip)
        self._enter(self._state)

    def set_retryable(self, can_retry: bool) -> None:
        """Shows "Try again" once the answer has ended; without a text there is nothing to try again."""
        self._can_retry = can_retry
        self._enter(self._state)

    def set_text_font(self, font: QFont) -> None:
        """The font of the answer."""
        self.pages.set_text_font(scaled(font, TEXT_SCALE))

    def selected_text(self) -> str:
        """What the user has selected in the page that is shown."""
        return self.pages.selected_text()

    def show_copied(self) -> None:
        """Confirms that the answer is on the clipboard."""
        self.footer.show_copied()

    def take_focus(self) -> None:
        """Gives the keyboard to the popup, on the user's demand."""
        self.raise_()
        self.activateWindow()
        self.pages.current_view.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _on_reviewed(self, review: Review) -> None:
        left_out = f"{review.payload.before} {review.payload.after}"
        self.check_bar.show_losses(review.losses, "" if review.payload.is_whole else left_out)
        self._make_room_for_text()

    def _show_save_failure(self, reason: str) -> None:
        self.show_notice(Notice(self._tr("The file was not saved"), reason, is_error=True))

    def _show_all(self) -> None:
        self.pages.show_all()
        self.check_bar.show_losses(self.check_bar.losses)

    # --- how it looks -------------------------------------------------------------------------------------------

    def _enter(self, state: PopupState) -> None:
        self._state = state
        has_text = self.pages.has_text
        # An answer of nothing but white space, or without a to-do, is nothing to go on with.
        has_result = has_text and bool(self.result_text().strip())
        is_running = state in (PopupState.WAITING, PopupState.STREAMING)
        is_notice = state is PopupState.NOTICE
        self.pages.setVisible(not is_notice or has_text)
        self.notice.setVisible(is_notice)
        self.progress.setVisible(state is PopupState.WAITING or (is_running and self._parts > 1))
        had_focus = self.stop_button.hasFocus() or self.retry_button.hasFocus()
        self.stop_button.setVisible(is_running)
        self.retry_button.setVisible(not is_running and self._can_retry)
        if had_focus:
            (self.stop_button if is_running else self.retry_button).setFocus()
        self.copy_button.setVisible(has_result or is_running)
        self.replace_button.setVisible(has_result or is_running)
        self.copy_button.setEnabled(has_result or state is PopupState.STREAMING)
        self.chat_button.setVisible(not is_running and has_result)
        self.footer.setVisible(has_text or not is_notice or self._can_retry)
        self.replace_button.setEnabled(self._can_replace and not is_running and has_result)
        self.footer.highlight(self.primary_button)

    # --- its height ---------------------------------------------------------------------------------------------

    def _first_height(self) -> int:
        """With room for a few lines of text."""
        return max(MINIMUM_SIZE.height(), self._height_around_text() + self.pages.first_height())

    def _height_around_text(self) -> int:
        """Of all that stands above and below the text; while no message is shown."""
        layout = self.layout()
        assert layout is not None
        layout.activate()  # nothing to do, unless something was shown or hidden
        height = (
            layout.totalHeightForWidth(self.width()) if layout.hasHeightForWidth() else layout.totalSizeHint().height()
        )
        return height - self.pages.first_height()

    def _make_room_for_text(self) -> None:
        """Grows with the text; never shrinks, and keeps a size that the user has chosen if text can be read in it."""
        if self.is_resized:
            if self.height() < (needed := self._height_around_text() + self.pages.least_height()):
                self.set_height(needed)
            return
        largest = round(LARGEST_SHARE * self.screen().availableGeometry().height())
        needed = min(self._height_around_text() + self.pages.text_height(), largest, self.growth_limit().height())
        if needed > self.height():
            self.set_height(needed)

    def _make_room_for_notice(self) -> None:
        """Grows where a message needs more room; text above it keeps its own."""
        layout = self.layout()
        assert layout is not None
        first = self.pages.sizeHint().height()
        text_height = max(0, self.pages.height() - first) if self.pages.isVisibleTo(self) else 0
        layout.activate()
        needed = layout.totalHeightForWidth(self.width()) + text_height
        if needed > self.height():
            self.set_height(needed)

    def _apply_theme(self) -> None:
        colors = colors_of(QGuiApplication.palette())
        self.setStyleSheet(style_sheet(colors))
        self.header.apply_colors(colors)
        self.pages.apply_theme()

    def event(self, event: QEvent) -> bool:
        """Follows the desktop between light and dark."""
        if event.type() is QEvent.Type.ApplicationPaletteChange and hasattr(self, "close_button"):
            self._apply_theme()
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter presses the button that has the keyboard, else the one that is meant."""
        if event.key() not in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            super().keyPressEvent(event)
            return
        focused = self.focusWidget()
        button = focused if isinstance(focused, QAbstractButton) else self.primary_button
        if button is not None:
            button.click()

    def closeEvent(self, event: QCloseEvent) -> None:
        """Hides the popup and reports it."""
        super().closeEvent(event)
        self.closed.emit()
