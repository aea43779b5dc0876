"""The messages of one conversation, one below the other, in a column that follows the end while text arrives.

Only the last messages get a view at once; earlier ones get theirs when the user scrolls up to them.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPoint, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import QFont, QFontInfo, QKeyEvent, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QApplication, QFrame, QScrollArea, QVBoxLayout, QWidget

from app.conversation import ChatMessage
from app.qt.chat.message import AnswerView, MessageView, QuestionView
from app.qt.look.icon_button import IconButton
from app.qt.look.theme import SPACE_L, SPACE_M, set_styled
from app.translation import Translator
from inference.errors import InferenceError

# Within this distance of the end the view counts as being at the end.
SLACK_PX = 24
# How many get a view at once when a conversation is opened, and then in each turn of the event loop.
FIRST_MESSAGES, PAGE_MESSAGES = 4, 2
# Out of sight, whatever the size of the screen.
FAR_PX = 100_000
# Lines longer than this are hard to read.
COLUMN_EM = 56


def side_margin(width: int, font: QFont) -> int:
    """Left and right of the column in a window of a width: a line stays as long as one that can be read."""
    return max(SPACE_L, (width - round(COLUMN_EM * QFontInfo(font).pixelSize())) // 2)


class Transcript(QScrollArea):
    """Shows messages, and follows the end until the user scrolls up; at the end it follows again.

    Attributes:
        views: of the messages from `first_shown` on.
        first_shown: index of the first message that has a view.

    Signals:
        copy_requested: text for the clipboard.
        edit_requested: the index of the question that the user wants to change.
        retry_requested: another answer is wanted.
        link_clicked: an address to be opened.
    """

    copy_requested = Signal(str)
    edit_requested = Signal(int)
    retry_requested = Signal()
    link_clicked = Signal(QUrl)

    def __init__(self, translator: Translator, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._translator = translator
        self._messages: tuple[ChatMessage, ...] = ()
        self.views: list[MessageView] = []
        self.first_shown = 0
        self._is_following, self._moves_itself = True, False
        self._page = QWidget()
        self._page.setObjectName("page")
        self._column = QVBoxLayout(self._page)
        self._column.setSpacing(SPACE_M)
        self._column.addStretch()
        self.setWidget(self._page)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)
        self.setAccessibleName(translator.tr("Conversation"))
        self.end_button = IconButton("down", translator.tr("Go to the end"), role="floating", parent=self)
        self.end_button.clicked.connect(self.go_to_end)
        self.end_button.hide()
        bar = self.verticalScrollBar()
        bar.valueChanged.connect(self._on_value_changed)
        bar.rangeChanged.connect(self._on_range_changed)
        self._on_range_changed(bar.minimum(), bar.maximum())

    @property
    def is_following(self) -> bool:
        """Whether the view stays at the end when text is added."""
        return self._is_following

    # --- what is shown ------------------------------------------------------------------------------------------

    def show_messages(
        self, messages: Sequence[ChatMessage], model: str, error: InferenceError | None, is_other: bool
    ) -> None:
        """Shows messages; views of those that did not change stay.

        Args:
            model: that answers.
            error: why the last answer failed.
            is_other: whether this is another conversation than before.
        """
        new = tuple(messages)
        kept = 0 if is_other else self._kept(new)
        while self.views and self.first_shown + len(self.views) > kept:
            self._drop_last()
        if is_other:
            self.first_shown, self._is_following = max(0, len(new) - FIRST_MESSAGES), True
            QTimer.singleShot(0, self, self._show_earlier_if_near)
        for message in new[self.first_shown + len(self.views) :]:
            self._add(message)
        self._messages = new
        self._update_answers(model, error)
        self._update_end_button()

    def _kept(self, new: tuple[ChatMessage, ...]) -> int:
        """How many messages are the same, the last one perhaps grown."""
        kept = 0
        for old, now in zip(self._messages, new, strict=False):
            grows = old.role == now.role == "assistant" and not old.ending and now.text.startswith(old.text)
            if old is not now and (old.role, old.text) != (now.role, now.text) and not grows:
                break
            kept += 1
        return kept

    def _add(self, message: ChatMessage) -> None:
        self.views.append(self._new_view(message))
        self._column.insertWidget(self._column.count() - 1, self.views[-1])

    def _new_view(self, message: ChatMessage) -> MessageView:
        kind = QuestionView if message.role == "user" else AnswerView
        view = kind(message, self._translator)
        view.copy_requested.connect(self.copy_requested)
        view.retry_requested.connect(self.retry_requested)
        view.edit_requested.connect(lambda: self.edit_requested.emit(self.first_shown + self.views.index(view)))
        view.view.link_clicked.connect(self.link_clicked)
        view.view.dragged.connect(lambda place: self._keep_in_sight(view, place))
        return view

    def _drop_last(self) -> None:
        view = self.views.pop()
        self._column.removeWidget(view)
        view.hide()
        view.deleteLater()

    def _update_answers(self, model: str, error: InferenceError | None) -> None:
        for offset, view in enumerate(self.views):
            index = self.first_shown + offset
            message, is_last = self._messages[index], index == len(self._messages) - 1
            if isinstance(view, AnswerView):
                view.set_message(message, model, is_last, error if is_last else None)
            else:
                view.message = message

    def set_progress(self, text: str) -> None:
        """What the last answer waits for."""
        if self.views and isinstance(self.views[-1], AnswerView):
            self.views[-1].set_progress(text)

    def show_earlier(self) -> None:
        """Gives some more of the earlier messages a view; what is in sight stays where it is."""
        first = max(0, self.first_shown - PAGE_MESSAGES)
        bar = self.verticalScrollBar()
        from_end = bar.maximum() - bar.value()
        for message in reversed(self._messages[first : self.first_shown]):
            view = self._new_view(message)
            if isinstance(view, AnswerView):
                view.set_message(message, "", False, None)
            self._measure(view)
            self.views.insert(0, view)
            self._column.insertWidget(0, view)
        self.first_shown = first
        self._column.activate()
        QApplication.sendEvent(self, QEvent(QEvent.Type.LayoutRequest))  # the range of the bar follows at once
        self._move(bar.maximum() - from_end)

    def _measure(self, view: MessageView) -> None:
        """Has a view learn its height, for which its text must know its width, before it stands among the others."""
        view.setParent(self._page)
        view.setGeometry(0, -FAR_PX, self._column.contentsRect().width(), view.sizeHint().height())
        view.show()
        if (layout := view.layout()) is not None:
            layout.activate()

    # --- scrolling ----------------------------------------------------------------------------------------------

    def go_to_end(self) -> None:
        """Follows the end again."""
        self._is_following = True
        self._move(self.verticalScrollBar().maximum())
        self._update_end_button()

    def _move(self, value: int) -> None:
        self._moves_itself = True
        self.verticalScrollBar().setValue(value)
        self._moves_itself = False

    def _on_value_changed(self, value: int) -> None:
        bar = self.verticalScrollBar()
        if not self._moves_itself:
            self._is_following = value >= bar.maximum() - SLACK_PX
        if self.first_shown and value < self.viewport().height():
            QTimer.singleShot(0, self, self._show_earlier_if_near)
        self._update_end_button()

    def _show_earlier_if_near(self) -> None:
        if self.first_shown and self.verticalScrollBar().value() < self.viewport().height():
            self.show_earlier()
            QTimer.singleShot(0, self, self._show_earlier_if_near)

    def _on_range_changed(self, low: int, high: int) -> None:
        set_styled(self.verticalScrollBar(), "idle", "true" if low == high else "false")
        if self._is_following:
            self._move(high)
        self._update_end_button()

    def _update_end_button(self) -> None:
        self.end_button.setVisible(not self._is_following and self.verticalScrollBar().maximum() > 0)

    def _keep_in_sight(self, view: MessageView, place: QPoint) -> None:
        spot = view.view.viewport().mapTo(self._page, place)
        self.ensureVisible(spot.x(), spot.y(), 0, SPACE_L)

    # --- events -------------------------------------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keeps the column at a width that can be read, in the middle."""
        super().resizeEvent(event)
        width = self.viewport().width()
        side = side_margin(width, self.font())
        self._column.setContentsMargins(side, SPACE_L, side, SPACE_L)
        button = self.end_button.sizeHint()
        self.end_button.setGeometry(
            (width - button.width()) // 2, self.height() - button.height() - SPACE_M, button.width(), button.height()
        )

    def wheelEvent(self, event: QWheelEvent) -> None:
        """A turn up leaves the end, also while text arrives so fast that the bar is moved at once."""
        super().wheelEvent(event)
        if event.angleDelta().y() > 0 and self.verticalScrollBar().value() < self.verticalScrollBar().maximum():
            self._is_following = False
            self._update_end_button()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Home and End as well as the keys that every scroll area has."""
        if event.key() == Qt.Key.Key_End:
            self.go_to_end()
        elif event.key() == Qt.Key.Key_Home:
            self.verticalScrollBar().setValue(0)
        else:
            super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        """Raises the button above the page when the window is shown."""
        handled = super().event(event)
        if event.type() is QEvent.Type.Show:
            self.end_button.raise_()
        return handled
