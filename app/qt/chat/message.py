"""One message of a chat: a question in a bubble at the side, or an answer over the whole width with its buttons."""

from __future__ import annotations

import math

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QFontMetricsF, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from app.conversation import ChatMessage
from app.qt.answer_text import details, small_print
from app.qt.chat.file import split_files
from app.qt.error_text import error_notice
from app.qt.look.icon_button import IconButton
from app.qt.look.notice import Notice, NoticePanel
from app.qt.look.theme import SPACE_M, SPACE_S, SPACE_XS, scaled
from app.qt.markdown.view import COPIED_SHOWN_MS, MarkdownView
from app.translation import Translator
from inference.errors import InferenceError
from inference.request import DoneEvent

TEXT_SCALE = 1.06
BUBBLE_SHARE = 0.82
# More of a question than this is folded away until it is asked for.
FOLDED_LINES, FOLDED_CHARS = 14, 1400


class CopyButton(IconButton):
    """Shows for a moment that it has copied."""

    def __init__(self, name: str, copied: str) -> None:
        super().__init__("copy", name)
        self._name, self._copied = name, copied
        self.clicked.connect(self._confirm)

    def _confirm(self) -> None:
        self.set_icon("check")
        self.set_name(self._copied)
        QTimer.singleShot(COPIED_SHOWN_MS, self, self._come_back)

    def _come_back(self) -> None:
        self.set_icon("copy")
        self.set_name(self._name)


class MessageView(QWidget):
    """What both kinds of message have.

    Attributes:
        message: what is shown.
        view: shows its text.

    Signals:
        copy_requested: text for the clipboard.
        edit_requested: the user wants to change this question.
        retry_requested: the user wants another answer.
    """

    copy_requested = Signal(str)
    edit_requested = Signal()
    retry_requested = Signal()

    def __init__(self, message: ChatMessage, translator: Translator, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.message = message
        self._translator = translator
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self.view = MarkdownView(translator)
        self.view.setFont(scaled(self.font(), TEXT_SCALE))
        self.view.copy_requested.connect(self.copy_requested)
        tr = translator.tr
        self.copy_button = CopyButton(tr("Copy"), tr("Copied"))
        self.copy_button.clicked.connect(lambda: self.copy_requested.emit(self.message.text))


class QuestionView(MessageView):
    """What the user said, as it was typed. Files that went along are named, and long texts folded."""

    def __init__(self, message: ChatMessage, translator: Translator, parent: QWidget | None = None) -> None:
        super().__init__(message, translator, parent)
        tr = translator.tr
        self.view.setAccessibleName(tr("Your message"))
        text, files = split_files(message.text)
        self._full_text = text
        self._is_folded = self._can_fold = len(text) > FOLDED_CHARS or text.count("\n") >= FOLDED_LINES
        self._bubble = QFrame()
        self._bubble.setProperty("role", "bubble")
        inner = QVBoxLayout(self._bubble)
        inner.setContentsMargins(SPACE_M, SPACE_XS + 1, SPACE_M, SPACE_S)
        inner.setSpacing(SPACE_XS)
        inner.addWidget(self.view)
        self.view.setVisible(bool(text))
        self._files = [QLabel(f"{file.name} · {file.size}") for file in files]
        for label in self._files:
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setProperty("role", "file")
            inner.addWidget(label, 0, Qt.AlignmentFlag.AlignLeft)
        self.fold_button = IconButton("chevron-down", tr("Show all of it"))
        self.fold_button.clicked.connect(self._on_fold)
        self.edit_button = IconButton("edit", tr("Edit and send again"))
        self.edit_button.clicked.connect(self.edit_requested)
        self._lay_out()
        self._show_text()

    def _lay_out(self) -> None:
        buttons = QHBoxLayout()
        buttons.setSpacing(0)
        buttons.addStretch()
        for button in (self.fold_button, self.copy_button, self.edit_button):
            buttons.addWidget(button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, SPACE_S, 0, 0)
        layout.setSpacing(2)
        layout.addWidget(self._bubble, 0, Qt.AlignmentFlag.AlignRight)
        layout.addLayout(buttons)

    def _show_text(self) -> None:
        text = self._full_text
        if self._is_folded:
            text = "\n".join(text[:FOLDED_CHARS].split("\n")[:FOLDED_LINES]).rstrip() + " …"
        self.fold_button.setVisible(self._can_fold)
        self.view.set_plain_text(text)
        self.view.markdown = self.message.text
        self._fit()

    def _on_fold(self) -> None:
        self._is_folded = not self._is_folded
        tr = self._translator.tr
        self.fold_button.set_icon("chevron-down" if self._is_folded else "chevron-up")
        self.fold_button.set_name(tr("Show all of it") if self._is_folded else tr("Show less"))
        self._show_text()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The bubble is as wide as its text, up to a share of the window."""
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        limit = BUBBLE_SHARE * self.width() - 2 * SPACE_M
        metrics = QFontMetricsF(self.view.font())
        widest = 0.0
        for line in self.view.toPlainText().split("\n"):
            widest = max(widest, limit if len(line) > 400 else metrics.horizontalAdvance(line))
            if widest >= limit:
                break
        widest = max([widest + 4, *(label.sizeHint().width() for label in self._files)])
        self._bubble.setFixedWidth(math.ceil(min(limit, widest)) + 2 * SPACE_M)


class AnswerView(MessageView):
    """What the model answers, while it is being written and when it has ended; an error stands below it."""

    def __init__(self, message: ChatMessage, translator: Translator, parent: QWidget | None = None) -> None:
        super().__init__(message, translator, parent)
        tr = translator.tr
        self.waiting = QLabel()
        self.waiting.setProperty("role", "muted")
        self.waiting.setWordWrap(True)
        self.notice = NoticePanel()
        self.notice.accepted.connect(self.retry_requested)
        self.retry_button = IconButton("retry", tr("Answer again"))
        self.retry_button.clicked.connect(self.retry_requested)
        self.small_print = QLabel()
        self.small_print.setProperty("role", "muted")
        self.small_print.setFont(scaled(self.font(), 0.84))
        self._footer = QWidget()
        footer = QHBoxLayout(self._footer)
        footer.setContentsMargins(0, 0, 0, 0)
        footer.setSpacing(0)
        footer.addWidget(self.copy_button)
        footer.addWidget(self.retry_button)
        footer.addSpacing(SPACE_S)
        footer.addWidget(self.small_print, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, SPACE_S, 0, SPACE_S)
        layout.setSpacing(SPACE_XS)
        for widget in (self.view, self.waiting, self.notice, self._footer):
            layout.addWidget(widget)
        self.view.hide()
        self.notice.hide()

    def set_progress(self, text: str) -> None:
        """What is waited for, until the first word is there."""
        self.waiting.setText(text)

    def set_message(self, message: ChatMessage, model: str, is_last: bool, error: InferenceError | None) -> None:
        """Shows a later state of the message.

        Args:
            model: that answered, for the small print.
            is_last: whether another answer can be asked for.
            error: why the answer failed.
        """
        shown = self.view.markdown
        if message.text.startswith(shown):
            if len(message.text) > len(shown):
                self.view.append_markdown(message.text[len(shown) :])
        else:
            self.view.set_markdown(message.text)
        if message.ending:
            self.view.finish()
        self.message = message
        has_text = bool(message.text)
        self.view.setVisible(has_text)
        self.setVisible(has_text or is_last)
        self.waiting.setVisible(not has_text and not message.ending)
        self._footer.setVisible(bool(message.ending) and (has_text or (is_last and error is None)))
        self.copy_button.setVisible(has_text)
        self.retry_button.setVisible(is_last and bool(message.ending) and error is None)
        self._show_small_print(message, model)
        self._show_error(error)

    def _show_small_print(self, message: ChatMessage, model: str) -> None:
        tr = self._translator.tr
        text = tip = ""
        if message.usage is not None and message.ending and message.ending != "failed":
            event = DoneEvent("", message.ending, message.usage)
            text = small_print(event, model if message.usage.new_tokens else "", self._translator).replace("\n", " · ")
            tip = details(event, self._translator) if message.usage.new_tokens else ""
        elif message.ending == "cancelled":
            text = tr("Stopped")
        elif message.ending == "length":
            text = tr("Ended at the length limit")
        self.small_print.setText(text)
        self.small_print.setToolTip(tip)

    def _show_error(self, error: InferenceError | None) -> None:
        self.notice.setVisible(error is not None)
        if error is not None:
            shown = error_notice(error, self._translator)
            button = self._translator.tr("Try again")
            self.notice.show_notice(Notice(shown.heading, shown.text, shown.quote, button, is_error=True))
