"""The conversations behind the chat window: events of the engine and wishes of the user make new states, and the
history keeps them.

A question is on the disk before it is sent, and an answer at least once a second while it is written. An answer goes on
while another conversation is shown. UI thread only.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import QObject, Signal

from app.conversation import (
    Configured,
    Continued,
    ConversationState,
    Counted,
    Regenerated,
    Resent,
    Sent,
    Stored,
    title_of,
)
from app.engine_client import EngineClient
from app.history.entry import ActionResult
from app.history.file import HistoryError
from app.history.history import History
from app.qt.answer_text import load_progress, prefill_progress
from app.qt.bridge import Bridge
from app.translation import Translator, UserText
from inference.errors import InferenceError
from inference.request import (
    DoneEvent,
    FailedEvent,
    ModelEvent,
    ModelState,
    PrefillEvent,
    RequestEvent,
    SamplingParams,
    TokenCounts,
    TokenEvent,
    Usage,
)

SAVE_EVERY_S = 0.9
# Greedy answers of small models go round in circles.
CHAT_SAMPLING = SamplingParams(temperature=0.7, top_p=0.9)
# Of the conversation that is not in the history yet, because nothing has been said.
NEW = 0


class ChatSession(QObject):
    """The conversation that is shown, and those that are being answered.

    Attributes:
        shown: id of the conversation that is shown, NEW before its first message.
        answer: the action's answer that is shown as the beginning of a conversation, until something is said to it.

    Signals:
        changed: the state that is shown is another one.
        listed: a conversation came, went or got another name.
        progress: what the answer waits for, in words.
        problem: the history could not be read or written; words for the user.
        busy_changed: whether any answer is being written.
    """

    changed = Signal()
    listed = Signal()
    progress = Signal(str)
    problem = Signal(str)
    busy_changed = Signal(bool)

    def __init__(
        self,
        client: EngineClient,
        bridge: Bridge,
        history: History,
        translator: Translator,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._client, self._bridge, self._history, self._translator = client, bridge, history, translator
        self.shown = NEW
        self.answer: ActionResult | None = None
        self._states: dict[int, ConversationState] = {NEW: _new_state()}
        # The conversation of each request that runs.
        self._running: dict[str, int] = {}
        self._saved_s: dict[int, float] = {}
        self._model = ModelEvent(ModelState.EMPTY)
        bridge.request_event.connect(self._on_request_event)
        bridge.model_event.connect(self._on_model_event)

    @property
    def state(self) -> ConversationState:
        """What is shown."""
        return self._states[self.shown]

    @property
    def model(self) -> str:
        """The model that is there, or on its way."""
        return self._model.model

    # --- which conversation -------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Shows an empty conversation; it gets into the history with its first message."""
        self._show(NEW, _new_state())

    def open(self, conversation_id: int) -> None:
        """Shows a conversation of the history."""
        if conversation_id in self._states:
            self._show(conversation_id, self._states[conversation_id])
            return
        try:
            conversation = self._history.conversation(conversation_id)
            if conversation is not None:
                messages = self._history.messages(conversation_id)
                self._show(conversation_id, ConversationState.restored(conversation, messages))
                self._count()
        except HistoryError as error:
            self._tell(error.text)

    def open_answer(self, result_id: int) -> None:
        """Shows what an action made of a text. Only what is said to it makes a conversation of it in the history."""
        try:
            result = self._history.result(result_id)
        except HistoryError as error:
            self._tell(error.text)
            return
        if result is not None:
            said = Continued(result.source_text, result.answer)
            self._show(NEW, _new_state().apply(said), result)
            self._count()

    def _show(self, conversation_id: int, state: ConversationState, answer: ActionResult | None = None) -> None:
        running = set(self._running.values())
        self._states = {id_: each for id_, each in self._states.items() if id_ in running}
        self._states[conversation_id] = state
        self.shown, self.answer = conversation_id, answer
        self.changed.emit()

    def forget_missing(self) -> None:
        """Leaves a conversation or an answer that has gone out of the history, as when it was cleared."""
        if self.answer is not None and self._history.result(self.answer.id) != self.answer:
            self.begin()
        gone = [id_ for id_ in self._states if id_ != NEW and self._history.conversation(id_) is None]
        for conversation_id in gone:
            self._cancel(conversation_id, keeps=False)
            if conversation_id != self.shown:
                self._states.pop(conversation_id, None)
        if self.shown in gone:
            self.begin()

    def delete(self, conversation_id: int) -> None:
        """Removes a conversation for good; what is being written for it is stopped."""
        self._cancel(conversation_id, keeps=False)
        try:
            self._history.delete(conversation_id)
        except HistoryError as error:
            self._tell(error.text)
            return
        if conversation_id == self.shown:
            self.begin()
        else:
            self._states.pop(conversation_id, None)
        self.listed.emit()

    # --- what the user wants --------------------------------------------------------------------------------------

    def send(self, text: str) -> None:
        """Says something and asks for the answer. Raises HistoryError before anything else where it cannot be kept."""
        self._keep_question(self.state.apply(Sent(text)))

    def resend(self, index: int, text: str) -> None:
        """Replaces a message of the user; what followed it goes. Raises HistoryError as `send` does."""
        old = self.state.messages[index]
        state = self.state.apply(Resent(index, text))
        self._keep_question(state, replaces=old.message_id)

    def regenerate(self) -> None:
        """Asks for another answer in the place of the last one, or for one where there is none."""
        last = self.state.messages[-1]
        state = self.state.apply(Regenerated())
        if self.shown == NEW:  # nothing of it is in the history yet
            self._try(lambda: self._keep_question(state))
            return
        if last.role == "assistant" and last.message_id is not None:
            try:
                self._history.truncate_from(last.message_id)
            except HistoryError as error:
                self._tell(error.text)
                return
        self._states[self.shown] = state
        self._ask(self.shown)

    def stop(self) -> None:
        """Ends the answer that is shown; what has arrived stays."""
        self._cancel(self.shown)

    def configure(self, system: str, sampling: SamplingParams) -> None:
        """System prompt and sampling of the next answers."""
        self._states[self.shown] = self.state.apply(Configured(system, sampling, self.state.model))
        if self.shown != NEW:
            self._try(lambda: self._history.configure(self.shown, system, sampling, self.state.model))
        self._count()

    def continue_answer(self, title: str, source_text: str, answer: str) -> None:
        """Begins a conversation with an answer that was given elsewhere; one that cannot be kept is shown as well."""
        self.begin()
        state = self.state.apply(Continued(source_text, answer))
        self._show(NEW, state)
        try:
            self._show(*self._kept(NEW, state, title))
        except HistoryError as error:
            self._tell(error.text)
        self._count()
        self.listed.emit()

    def close(self) -> None:
        """Keeps what has arrived and ends everything that runs."""
        for conversation_id in set(self._running.values()):
            self._save(conversation_id)
            self._cancel(conversation_id)
        self._running.clear()

    # --- questions ----------------------------------------------------------------------------------------------

    def _keep_question(self, state: ConversationState, replaces: int | None = None) -> None:
        """Puts the last question of a state into the history, then shows the state and asks.

        Args:
            replaces: id of the question that it replaces, which goes with all that followed it.
        """
        conversation_id, state = self._kept(self.shown, state, title_of(state.messages[-2].text), replaces)
        self._states.pop(NEW, None)
        self._states[conversation_id] = state
        self.shown, self.answer = conversation_id, None
        self.listed.emit()
        self._ask(conversation_id)

    def _kept(
        self, conversation_id: int, state: ConversationState, title: str, replaces: int | None = None
    ) -> tuple[int, ConversationState]:
        """Puts what the history does not have yet into it, all or nothing: what could not be kept earlier as well."""
        new = [each for each in enumerate(state.messages) if each[1].message_id is None and each[1].text]
        with self._history.together():
            if conversation_id == NEW:
                conversation_id = self._history.new_conversation(title, state.system, state.model, state.sampling)
            if replaces is not None:
                self._history.truncate_from(replaces)
            for index, message in new:
                message_id = self._history.append(conversation_id, message.role, message.text, **message.details)
                state = state.apply(Stored(index, message_id))
        return conversation_id, state

    def _ask(self, conversation_id: int) -> None:
        """Has the engine count what is new, then answer: only then it is known what the context holds."""
        state = self._states[conversation_id]
        self._running[state.request_id] = conversation_id
        self.busy_changed.emit(True)
        self._saved_s[conversation_id] = time.monotonic()
        self.changed.emit()
        self.progress.emit(load_progress(self._model, self._translator)[0])
        self._count_then(conversation_id, lambda: self._submit(conversation_id, state.request_id))

    def _submit(self, conversation_id: int, request_id: str) -> None:
        if self._running.get(request_id) != conversation_id:
            return
        try:
            self._client.submit(self._states[conversation_id].request(), self._bridge.post_event)
        except InferenceError as error:
            self._on_request_event(FailedEvent(request_id, error))

    def _count(self) -> None:
        """Counts what is shown, unless that would bring a model in that nobody asked for."""
        if self._client.reading().state is ModelState.READY:
            self._count_then(self.shown, lambda: None)

    def _count_then(self, conversation_id: int, act: Callable[[], None]) -> None:
        texts = self._states[conversation_id].uncounted()
        if not texts:
            act()
            return

        def on_counts(counts: TokenCounts | InferenceError) -> None:
            self._bridge.post_call(lambda: self._on_counts(conversation_id, texts, counts, act))

        try:
            self._client.count_tokens(texts, on_counts)
        except InferenceError:
            act()

    def _on_counts(
        self,
        conversation_id: int,
        texts: tuple[str, ...],
        counts: TokenCounts | InferenceError,
        act: Callable[[], None],
    ) -> None:
        state = self._states.get(conversation_id)
        if state is None:
            return
        if isinstance(counts, TokenCounts):
            self._states[conversation_id] = state.apply(Counted(texts, counts.counts, counts.context_tokens))
        act()  # without counts too: the engine says best what is wrong
        if conversation_id == self.shown:
            self.changed.emit()

    # --- answers ------------------------------------------------------------------------------------------------

    def _on_request_event(self, event: RequestEvent, keeps: bool = True) -> None:
        conversation_id = self._running.get(event.request_id)
        if conversation_id is None or conversation_id not in self._states:
            return
        state = self._states[conversation_id] = self._states[conversation_id].apply(event)
        if not state.is_answering:
            del self._running[event.request_id]
            if keeps:
                self._save(conversation_id)
            self.busy_changed.emit(bool(self._running))
        elif isinstance(event, TokenEvent) and time.monotonic() - self._saved_s[conversation_id] >= SAVE_EVERY_S:
            self._save(conversation_id)
        if conversation_id != self.shown:
            if not state.is_answering:
                del self._states[conversation_id]
            return
        if isinstance(event, PrefillEvent):
            self.progress.emit(prefill_progress(event, self._translator)[0])
        else:
            self.changed.emit()

    def _save(self, conversation_id: int) -> None:
        """Puts the last answer, as far as it goes, into the history."""
        state = self._states[conversation_id]
        index = len(state.messages) - 1
        answer = state.messages[index]
        self._saved_s[conversation_id] = time.monotonic()
        if answer.role != "assistant" or not answer.text:
            return
        # What is on the disk when the program dies was stopped.
        details = {**answer.details, "finish_reason": answer.ending or "cancelled", "model": self.model}
        try:
            if answer.message_id is None:
                message_id = self._history.append(conversation_id, "assistant", answer.text, **details)
                self._states[conversation_id] = state.apply(Stored(index, message_id))
            else:
                self._history.rewrite(answer.message_id, answer.text, **details)
        except HistoryError as error:
            self._tell(error.text)

    def _cancel(self, conversation_id: int, keeps: bool = True) -> None:
        """Ends an answer; `keeps`: what has arrived of it goes into the history."""
        state = self._states.get(conversation_id)
        if state is None or not state.is_answering:
            return
        try:
            self._client.cancel(state.request_id)
        except InferenceError:
            pass
        # The words that are still on their way are not wanted any more, and the engine may be busy loading.
        self._on_request_event(DoneEvent(state.request_id, "cancelled", Usage()), keeps)

    def _on_model_event(self, event: ModelEvent) -> None:
        self._model = event
        if self.state.is_answering and not self.state.messages[-1].text:
            self.progress.emit(load_progress(event, self._translator)[0])

    # --- the history --------------------------------------------------------------------------------------------

    def _try(self, act: Callable[[], object]) -> None:
        try:
            act()
        except HistoryError as error:
            self._tell(error.text)

    def _tell(self, text: UserText) -> None:
        self.problem.emit(self._translator.tr(text))


def _new_state() -> ConversationState:
    return ConversationState(sampling=CHAT_SAMPLING)
