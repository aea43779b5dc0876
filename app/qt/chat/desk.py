"""The chat between the application and its window, which is made when it is first wanted."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from app.actions.registry import ActionRegistry, UnknownActionError
from app.engine_client import EngineClient
from app.qt.bridge import Bridge
from app.qt.clipboard import QtClipboard
from app.qt.history_binding import HistoryBinding
from app.translation import Translator

if TYPE_CHECKING:
    from app.qt.chat.window import ChatWindow


def pass_over_what_is_there() -> None:
    """Has later garbage collections leave out the objects that there are now, most of them of imported modules.

    A full collection holds the interpreter for some 50 ms to look at them all, and while an answer streams that shows.
    """
    gc.collect()
    gc.freeze()


class ChatDesk(QObject):
    """Opens the chat. UI thread only.

    Signals:
        busy_changed: whether an answer is being written there, and "chat".
    """

    busy_changed = Signal(bool, str)

    def __init__(
        self,
        client: EngineClient,
        bridge: Bridge,
        history: HistoryBinding,
        clipboard: QtClipboard,
        translator: Translator,
        actions: ActionRegistry,
        activate: Callable[[QWidget], None],
    ) -> None:
        """Notes what the window will need.

        Args:
            actions: name the answers that the history keeps.
            activate: asks the window manager to give a window the keyboard.
        """
        super().__init__()
        self._client, self._bridge, self._history = client, bridge, history.history
        self._clipboard, self._translator, self._actions, self._activate = clipboard, translator, actions, activate
        self._window: ChatWindow | None = None

    @property
    def window(self) -> ChatWindow:
        """The window, made now if there is none."""
        if self._window is None:
            # The parsers of Markdown and of code take a tenth of a second to import: not at the start of the app.
            from app.qt.chat.window import ChatWindow

            self._window = ChatWindow(
                client=self._client,
                bridge=self._bridge,
                history=self._history,
                clipboard=self._clipboard,
                translator=self._translator,
                title_of=self._title_of,
            )
            self._window.session.busy_changed.connect(lambda is_busy: self.busy_changed.emit(is_busy, "chat"))
            pass_over_what_is_there()
        return self._window

    def open(self) -> None:
        """Shows the window, or brings it to the front."""
        self.window.bring_to_front()
        self._activate(self.window)

    def continue_answer(self, title: str, source_text: str, answer: str) -> None:
        """Goes on with an action's answer as a new conversation."""
        self.window.continue_answer(title, source_text, answer)
        self._activate(self.window)

    def _title_of(self, action_id: str) -> str:
        """The name of an action; the id of one that is no longer there."""
        try:
            return self._actions.get(action_id).title(self._translator.language)
        except UnknownActionError:
            return action_id

    def close(self) -> None:
        """Keeps what has arrived and hides the window."""
        if self._window is not None:
            self._window.shut_down()
