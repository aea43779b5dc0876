"""From a command to an answer in the popup, and from there back into the program that the text came from.

Command -> capture (app/capture) -> TextTask (app/actions) -> EngineClient.submit -> popup -> PasteBack (app/capture).
One answer at a time: a new command cancels the request that runs and takes the popup over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from PySide6.QtCore import QObject, QTimer, Signal

from app.actions.action import Action
from app.actions.answer_review import Subject
from app.actions.commands import Source
from app.actions.registry import ActionRegistry
from app.actions.text_task import Coverage, PartEvent, TaskEvent, TextTask
from app.capture.capture import (
    CaptureResult,
    ClipboardEmpty,
    NothingSelected,
    Selected,
    SelectionCapture,
    capture_clipboard,
)
from app.capture.focus_capture import FocusCapture
from app.capture.paste_back import PasteBack, PasteResult
from app.desktop.protocols import Desktop
from app.engine_client import EngineClient
from app.language import Languages
from app.qt.answer_text import details, language_pair, load_progress, part_progress, prefill_progress, small_print
from app.qt.bridge import Bridge
from app.qt.clipboard import QtClipboard
from app.qt.error_text import error_notice
from app.qt.look.notice import Notice
from app.qt.popup.capture_text import capture_notice, clipboard_empty_notice, paste_notice, replaceable
from app.qt.popup.popup import Popup, PopupState
from app.terminal.answer_printer import as_text
from app.translation import Translator
from inference.errors import InferenceError, ModelNotFoundError
from inference.request import (
    DoneEvent,
    FailedEvent,
    ModelEvent,
    ModelState,
    PrefillEvent,
    TokenEvent,
)

POLL_MS = 5
# Presses that follow one another as closely as this are one: an impatient user, or a key that repeats.
REPEAT_S = 0.5


@dataclass(frozen=True, slots=True)
class Job:
    """What an answer is about, kept for "Try again" and "Replace"."""

    action: Action
    selected: Selected


class AnswerController(QObject):
    """Runs actions and shows their answers. UI thread only.

    Signals:
        busy_changed: whether a request runs.
        answered: an answer is complete: action id, source text, answer, model.
        chat_wanted: the answer is to go on as a chat: title, source text, answer.
        models_wanted: the model is not on this machine, and the user wants to get one.
    """

    busy_changed = Signal(bool)
    answered = Signal(str, str, str, str)
    chat_wanted = Signal(str, str, str)
    models_wanted = Signal()

    def __init__(
        self,
        *,
        client: EngineClient,
        actions: ActionRegistry,
        languages: Callable[[], Languages],
        desktop: Desktop,
        clipboard: QtClipboard,
        popup: Popup,
        bridge: Bridge,
        translator: Translator,
        show_popup: Callable[[], None],
        focus_capture: FocusCapture | None = None,
    ) -> None:
        """Connects itself with popup and bridge.

        Args:
            focus_capture: reads the text where no program may look at another's windows, None elsewhere.
        """
        super().__init__()
        self._client, self._actions, self._languages = client, actions, languages
        self._desktop, self._clipboard = desktop, clipboard
        self._popup, self._bridge, self._translator = popup, bridge, translator
        self._show_popup = show_popup
        self._capture: SelectionCapture | FocusCapture = focus_capture or SelectionCapture(desktop, clipboard)
        self._paste_back = PasteBack(desktop, clipboard)
        self._action: Action | None = None
        self._job: Job | None = None
        self._offer: Selected | None = None
        self._lacks_model = False
        self._last_press: tuple[str, Source, float] | None = None
        self._task: TextTask | None = None
        self._is_running = False
        self._answer: list[str] = []
        self._model_event = ModelEvent(ModelState.EMPTY)
        self._poll_timer = QTimer(self, interval=POLL_MS)
        self._poll_timer.timeout.connect(self._on_poll)
        bridge.request_event.connect(self._on_request_event)
        bridge.model_event.connect(self._on_model_event)
        popup.stop_requested.connect(self.stop)
        popup.retry_requested.connect(self.retry)
        popup.copy_requested.connect(self.copy)
        popup.replace_requested.connect(self.replace)
        popup.copy_text_requested.connect(self.copy_text)
        popup.notice_accepted.connect(self._on_notice_accepted)
        popup.continue_requested.connect(self.continue_as_chat)
        popup.closed.connect(self._on_closed)

    # --- what starts an answer ----------------------------------------------------------------------------------

    def run(self, action_id: str, source: Source) -> None:
        """Runs an action on the selection or on the clipboard's text. Raises UnknownActionError.

        The popup opens at once and says what is waited for; a press that only repeats the last one is ignored.
        """
        action = self._actions.get(action_id)
        if self._is_repeat(action_id, source) or self._capture.is_busy:
            return
        if isinstance(self._capture, FocusCapture) and not self._is_about_popup(source):
            self._begin(action)
            self._capture.start(time.monotonic(), source)
            self._poll_timer.start()
            self._show_popup()
            self._popup.take_focus()
        elif source == "clipboard":
            self._begin(action)
            self._on_clipboard_text(capture_clipboard(self._desktop, self._clipboard))
        elif self._is_about_popup(source) and self._job is not None:
            self._run_on_popup(action, self._job)
        else:
            self._begin(action)
            self._capture.start(time.monotonic())
            self._poll_timer.start()
            self._show_popup()

    def _is_about_popup(self, source: Source) -> bool:
        """Whether the popup has the keyboard, so that its own text is meant."""
        return source == "selection" and self._popup.isActiveWindow() and self._job is not None

    def _is_repeat(self, action_id: str, source: Source) -> bool:
        """Whether the same press came a moment ago. Notes the press."""
        now, last = time.monotonic(), self._last_press
        self._last_press = (action_id, source, now)
        return last is not None and last[:2] == (action_id, source) and now - last[2] < REPEAT_S

    def run_text(self, action_id: str, text: str) -> None:
        """Runs an action on a text that the user has put into our own window. Raises UnknownActionError."""
        action = self._actions.get(action_id)
        self._capture.cancel()
        self._begin(action)
        self._start(Job(action, Selected(text, None)))

    def _run_on_popup(self, action: Action, job: Job) -> None:
        """The popup has the keyboard: what is selected in it is meant, else the text that it is about."""
        text = self._popup.selected_text()
        self._begin(action)
        self._start(Job(action, Selected(text or job.selected.text, job.selected.window)))

    def _begin(self, action: Action) -> None:
        self._cancel_request()
        self._action, self._job, self._offer, self._answer, self._task = action, None, None, [], None
        self._popup.begin(action.title(self._translator.language), subject=Subject(replaces=action.replaces))
        self._popup.show_progress(self._translator.tr("Reading the selection…"), None)
        self._popup.set_retryable(False)
        self._popup.set_replaceable(False, "")

    def _start(self, job: Job, unfinished: TextTask | None = None) -> None:
        tr, languages = self._translator, self._languages()
        self._job, self._offer, self._answer = job, None, []
        pair = language_pair(job.action, job.selected.text, languages, tr)
        self._popup.begin(job.action.title(tr.language), pair, Subject.of(job.action, job.selected.text, languages))
        self._popup.set_retryable(True)
        self._popup.set_replaceable(*self._replaceable(job.selected))
        self._popup.show_progress(*load_progress(self._model_event, tr))
        self._show_popup()
        try:
            text = job.selected.text
            self._run_task(unfinished or TextTask(self._client, job.action, text, languages, tr.language))
        except InferenceError as error:
            self._show_error(error)

    def _run_task(self, task: TextTask) -> None:
        """Starts a task, or goes on with one."""
        self._task = task
        self._set_running(True)
        try:
            task.run(self._bridge.post_event)
        except InferenceError as error:
            self._set_running(False)
            self._show_error(error)

    # --- what the user does in the popup ------------------------------------------------------------------------

    def stop(self) -> None:
        """Ends the answer that is being written; what has arrived stays. Before there is one, the popup closes."""
        if self._is_running and self._task is not None:
            self._task.cancel()
        elif self._capture.is_busy:
            self._popup.close()

    def retry(self) -> None:
        """The same action on the same text again; of a long text what is finished is kept."""
        if self._job is None:
            return
        self._cancel_request()
        unfinished = self._task if self._task is not None and self._task.can_go_on else None
        self._start(self._job, unfinished)

    def copy(self) -> None:
        """Puts the answer on the clipboard, as the user's own copy."""
        self.copy_text(self._popup.result_text())

    def copy_text(self, text: str) -> None:
        """Puts a form of the answer on the clipboard, as the user's own copy."""
        if text:
            self._clipboard.put(text)
            self._popup.show_copied()

    def continue_as_chat(self) -> None:
        """Hands text and answer to the chat; the popup has done its work."""
        text = self._popup.result_text()
        if self._job is not None and text.strip():
            self.chat_wanted.emit(self._job.action.title(self._translator.language), self._job.selected.text, text)
            self._popup.close()

    def replace(self) -> None:
        """Pastes the answer into the window that the text came from."""
        if self._job is None or self._job.selected.window is None or not self._answer:
            return
        window = self._job.selected.window
        if self._paste_back.start(window, self._popup.result_text(), time.monotonic(), activate=True):
            self._poll_timer.start()

    def use_offer(self) -> None:
        """The user has seen the text that is offered and wants it used."""
        if self._action is not None and self._offer is not None:
            self._start(Job(self._action, self._offer))

    def _on_notice_accepted(self) -> None:
        if self._lacks_model:
            self.models_wanted.emit()
        else:
            self.use_offer()

    def close(self) -> None:
        """Ends everything that runs; the clipboard comes back."""
        self._poll_timer.stop()
        self._capture.close()
        self._paste_back.cancel()
        self._cancel_request()

    def _on_closed(self) -> None:
        self._last_press = None
        self._capture.cancel()
        self._cancel_request()

    # --- capture and paste-back ---------------------------------------------------------------------------------

    @property
    def job(self) -> Job | None:
        """What the answer in the popup is about, None before there is one."""
        return self._job

    def can_replace(self, selected: Selected) -> bool:
        """Whether an answer may be pasted into the place of a text."""
        return self._replaceable(selected)[0]

    def set_left_alone(self, programs: Sequence[str]) -> None:
        """Programs that nothing is read from and no key is sent to."""
        self._capture.left_alone = frozenset(programs)

    def set_restores(self, restores: bool) -> None:
        """Whether the clipboard gets back what lay on it."""
        self._capture.restores = self._paste_back.restores = restores

    def _on_poll(self) -> None:
        now = time.monotonic()
        captured = self._capture.poll(now) if self._capture.needs_poll else None
        pasted = self._paste_back.poll(now) if self._paste_back.is_busy else None
        if not self._capture.needs_poll and not self._paste_back.is_busy:
            self._poll_timer.stop()
        if captured is not None:
            self._on_clipboard_text(captured)
        if pasted is not None:
            self._on_pasted(pasted)

    def _on_captured(self, result: CaptureResult) -> None:
        assert self._action is not None
        if isinstance(result, Selected):
            self._start(Job(self._action, result))
            return
        self._offer = result.offer if isinstance(result, NothingSelected) else None
        self._show(capture_notice(result, self._clipboard.is_secret(), self._translator))

    def _on_clipboard_text(self, result: CaptureResult | ClipboardEmpty) -> None:
        if isinstance(result, ClipboardEmpty):
            self._show(clipboard_empty_notice(self._translator))
        else:
            self._on_captured(result)

    def _show_error(self, error: InferenceError, coverage: Coverage | None = None) -> None:
        notice = error_notice(error, self._translator, coverage)
        self._lacks_model = isinstance(error, ModelNotFoundError)
        if self._lacks_model:
            notice = replace(notice, button=self._translator.tr("Get a model…"))
        self._popup.show_notice(notice)

    def _show(self, notice: Notice) -> None:
        self._lacks_model = False
        self._last_press = None  # the user may have done what it says at once
        self._popup.show_notice(notice)
        self._show_popup()

    def _replaceable(self, selected: Selected) -> tuple[bool, str]:
        is_left_alone = selected.window is not None and self._capture.leaves_alone(selected.window)
        return replaceable(selected, is_left_alone, self._translator)

    def _on_pasted(self, result: PasteResult) -> None:
        if result is PasteResult.REPLACED:
            self._popup.close()
        else:
            self._show(paste_notice(result, self._translator))

    # --- the engine ---------------------------------------------------------------------------------------------

    def _on_request_event(self, event: TaskEvent) -> None:
        task = self._task
        if task is None or not self._is_running or event.request_id != task.request_id:
            return
        if isinstance(event, PartEvent):
            self._on_part(event)
        elif isinstance(event, PrefillEvent):
            self._popup.show_progress(*prefill_progress(event, self._translator))
        elif isinstance(event, TokenEvent):
            self._answer.append(event.text)
            self._popup.append(event.text)
        elif isinstance(event, DoneEvent):
            self._set_running(False)
            self._on_done(event, task.coverage)
        elif isinstance(event, FailedEvent):
            self._set_running(False)
            self._show_error(event.error, task.coverage)

    def _on_part(self, event: PartEvent) -> None:
        if not event.joins:
            self._popup.show_part(event.number, event.of)
        self._popup.show_progress(*part_progress(event, self._translator))

    def _on_done(self, event: DoneEvent, coverage: Coverage | None) -> None:
        tr, model = self._translator, self._model_event.model
        is_complete = event.finish_reason == "stop"
        self._popup.finish(small_print(event, model, tr, coverage), details(event, tr), is_complete)
        if self._job is not None and self._answer and event.finish_reason != "cancelled":
            action, text, answer = self._job.action, self._job.selected.text, "".join(self._answer)
            readable = as_text(action, text, answer)
            if readable:
                self.answered.emit(action.id, text, readable, model)

    def _on_model_event(self, event: ModelEvent) -> None:
        self._model_event = event
        if self._is_running and self._popup.state is PopupState.WAITING:
            self._popup.show_progress(*load_progress(event, self._translator))

    def _cancel_request(self) -> None:
        if self._is_running and self._task is not None:
            self._task.cancel()
        self._set_running(False)

    def _set_running(self, is_running: bool) -> None:
        if is_running is not self._is_running:
            self._is_running = is_running
            self.busy_changed.emit(is_running)
