"""Streams an answer to a terminal or a pipe: the text alone on one stream, all that is about it on another."""

from __future__ import annotations

import contextlib
import queue
import time
from collections.abc import Callable, Generator
from functools import partial
from typing import TextIO

from app.actions.action import Action
from app.actions.answer_review import Subject, review
from app.actions.text_task import Coverage, PartEvent, TaskEvent, TextTask
from app.engine_client import EngineClient
from app.language import script_of
from app.text.loss_text import grouped, quote
from app.text.payload import payload
from app.todos.todo import Todo, TodoForm, TodoStream, to_ics, to_json, to_markdown
from inference.errors import EngineStoppedError, InferenceError
from inference.request import (
    DoneEvent,
    FailedEvent,
    GenerationRequest,
    ModelEvent,
    ModelState,
    PrefillEvent,
    TokenEvent,
    Usage,
)

Events = Generator[TaskEvent | ModelEvent, None, None]
Show = Callable[[str], str]

_CANCEL_WAIT_S = 3.0
# What more an answer lost is counted.
_MOST_LOSSES = 16
# Short, so that Ctrl+C is seen on systems whose queues cannot be interrupted.
_POLL_S = 0.1
_Listener = Callable[[TaskEvent], None]


class TodoShow:
    """Makes what is printed out of to-dos, which come as data: a checklist as they come, or a file at the end.

    Attributes:
        todos: those that have come.
    """

    def __init__(self, text: str, form: TodoForm = "markdown") -> None:
        self.todos: list[Todo] = []
        self._stream, self._form, self._is_chinese = TodoStream(text), form, script_of(text) == "han"

    def __call__(self, answer: str) -> str:
        """What is printed of a piece of the answer."""
        found = self._stream.push(answer)
        self.todos += found
        return to_markdown(found, self._is_chinese) if self._form == "markdown" else ""

    def end(self) -> str:
        """What is printed when the answer has ended."""
        if self._form == "markdown":
            return ""
        return to_json(self.todos) if self._form == "json" else to_ics(self.todos)


def shown_as(action: Action, text: str, form: TodoForm = "markdown") -> TodoShow | None:
    """How the answer of an action is printed; None for as it is."""
    return TodoShow(text, form) if action.output == "todos" else None


def as_text(action: Action, text: str, answer: str) -> str:
    """A whole answer as people read it: to-dos as a checklist, "" for none."""
    show = shown_as(action, text)
    return answer if show is None or not is_data(answer) else show(answer)


def is_data(answer: str) -> bool:
    """Whether an answer of to-dos is data. An engine that knows no grammars may have written a text."""
    return payload(answer, "").text.lstrip().startswith(("[", "{"))


def engine_events(client: EngineClient, request: GenerationRequest) -> Events:
    """Submits a request and yields its events, and the model's while it waits. Closing the generator cancels it."""
    return _events(client, partial(client.submit, request), partial(client.cancel, request.request_id))


def task_events(client: EngineClient, task: TextTask) -> Events:
    """The same of a task that uses the client."""
    return _events(client, task.run, task.cancel)


def _events(client: EngineClient, start: Callable[[_Listener], None], cancel: Callable[[], None]) -> Events:
    events: queue.SimpleQueue[TaskEvent | ModelEvent] = queue.SimpleQueue()
    remove = client.listen(events.put)
    ended = False
    try:
        start(events.put)
        while not ended:
            with contextlib.suppress(queue.Empty):
                event = events.get(timeout=_POLL_S)
                ended = isinstance(event, DoneEvent | FailedEvent)
                yield event
    finally:
        remove()
        if not ended:
            _cancel(cancel, events)


def _cancel(cancel: Callable[[], None], events: queue.SimpleQueue[TaskEvent | ModelEvent]) -> None:
    """Cancels and waits a moment for the end, so that an engine that is closed next is idle."""
    with contextlib.suppress(EngineStoppedError):
        cancel()
    deadline = time.monotonic() + _CANCEL_WAIT_S
    while time.monotonic() < deadline:
        with contextlib.suppress(queue.Empty):
            if isinstance(events.get(timeout=_POLL_S), DoneEvent | FailedEvent):
                return


class AnswerPrinter:
    """Prints answers as they come. One thread, the caller's.

    Attributes:
        answer: what the model has written for the last one.
    """

    def __init__(self, out: TextIO, notes: TextIO) -> None:
        """Takes streams for the text and for all else; progress is shown where `notes` is a terminal."""
        self.answer = ""
        self._out = out
        self._notes = notes
        self._shows_progress = notes.isatty()
        self._has_progress = False

    def print_answer(self, events: Events, show: Show | None = None) -> DoneEvent:
        """Prints the answer that the events carry; it ends with a line break. Closes `events` in every case.

        Args:
            show: makes what is printed out of a piece of the answer; None prints it as it is.

        Raises:
            InferenceError: the request failed, or the events ended without a result.
            BrokenPipeError: nobody reads `out` any more.
            KeyboardInterrupt: Ctrl+C.
        """
        ends_line, self.answer = True, ""
        with contextlib.closing(events):
            try:
                for event in events:
                    if isinstance(event, TokenEvent):
                        self.answer += event.text
                        text = event.text if show is None else show(event.text)
                        if text:
                            self._clear_progress()
                            self._write(text)
                            ends_line = text.endswith("\n")
                    elif isinstance(event, DoneEvent):
                        if not ends_line:
                            self._write("\n")
                        return event
                    elif isinstance(event, FailedEvent):
                        raise event.error
                    elif ends_line:
                        self._show_progress(event)
            finally:
                self._clear_progress()
        raise InferenceError("The answer ended without a result. Try again.")

    def print_usage(self, usage: Usage) -> None:
        """One line about what an answer cost."""
        self._notes.write(
            f"[{usage.prompt_tokens} prompt tokens, {usage.cached_tokens} of them cached; "
            f"{usage.new_tokens} new tokens; "
            f"first after {usage.time_to_first_token_ms / 1000:.2f} s, then {usage.decode_tok_s:.1f} tok/s]\n"
        )
        self._notes.flush()

    def print_coverage(self, coverage: Coverage) -> None:
        """One line about what of a long text an answer is of."""
        tokens, parts = f"{'about ' if coverage.estimated else ''}{coverage.tokens:,} tokens", coverage.parts
        if coverage.is_complete:
            self._notes.write(f"deskinfer: all {tokens} in {parts} parts.\n")
        else:
            state = "done" if coverage.answer_parts == coverage.done_parts else "read, but not yet put together"
            self._notes.write(f"deskinfer: {coverage.done_parts} of {parts} parts ({tokens} in all) are {state}.\n")
        if coverage.cut_parts:
            numbers = ", ".join(map(str, coverage.cut_parts))
            self._notes.write(f"deskinfer: these parts ended at the length limit (--max-new-tokens): {numbers}.\n")
        self._notes.flush()

    def print_review(self, subject: Subject, done: DoneEvent) -> None:
        """What of the last answer is to be checked, as the popup's bar has it; of one that was cut off nothing."""
        if done.finish_reason != "stop" or not self.answer.strip():
            return
        found = review(subject, self.answer)
        groups = grouped(found.losses)
        if groups:
            self._notes.write("deskinfer: please check:\n")
        for group in groups[:_MOST_LOSSES]:
            count = len(group.losses)
            self._notes.write(f"  {group.text}{f' ({count}×)' if count > 1 else ''}\n")
        if len(groups) > _MOST_LOSSES:
            self._notes.write(f"  {len(groups) - _MOST_LOSSES} more\n")
        if not found.payload.is_whole:
            words = quote(f"{found.payload.before} {found.payload.after}")
            self._notes.write(f"deskinfer: the model says this about its text, it is no part of it: {words}\n")
        self._notes.flush()

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()

    def _show_progress(self, event: PrefillEvent | PartEvent | ModelEvent) -> None:
        if isinstance(event, PartEvent):
            what = "putting the answers together:" if event.joins else "part"
            self._progress(f"{what} {event.number} of {event.of} ({event.share:.0%} done)")
        elif isinstance(event, PrefillEvent):
            self._progress(f"reading {event.done_tokens} of {event.prompt_tokens} tokens")
        elif event.state is ModelState.LOADING:
            self._progress(f"loading {event.model} {event.progress:4.0%}")

    def _progress(self, text: str) -> None:
        if self._shows_progress:
            self._notes.write(f"\r\x1b[K{text}")
            self._notes.flush()
            self._has_progress = True

    def _clear_progress(self) -> None:
        if self._has_progress:
            self._notes.write("\r\x1b[K")
            self._notes.flush()
            self._has_progress = False
