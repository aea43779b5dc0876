"""Streams an answer to a terminal or a pipe: the text alone on one stream, all that is about it on another."""

from __future__ import annotations

import contextlib
import queue
import time
from collections.abc import Generator
from typing import TextIO

from app.engine_client import EngineClient
from inference.errors import EngineStoppedError, InferenceError
from inference.request import (
    DoneEvent,
    FailedEvent,
    GenerationRequest,
    ModelEvent,
    ModelState,
    PrefillEvent,
    RequestEvent,
    TokenEvent,
    Usage,
)

Events = Generator[RequestEvent | ModelEvent, None, None]

_CANCEL_WAIT_S = 3.0
# Short, so that Ctrl+C is seen on systems whose queues cannot be interrupted.
_POLL_S = 0.1


def engine_events(client: EngineClient, request: GenerationRequest) -> Events:
    """Submits a request and yields its events, and the model's while it waits. Closing the generator cancels it."""
    events: queue.SimpleQueue[RequestEvent | ModelEvent] = queue.SimpleQueue()
    remove = client.listen(events.put)
    ended = False
    try:
        client.submit(request, events.put)
        while not ended:
            with contextlib.suppress(queue.Empty):
                event = events.get(timeout=_POLL_S)
                ended = isinstance(event, DoneEvent | FailedEvent)
                yield event
    finally:
        remove()
        if not ended:
            _cancel(client, request.request_id, events)


def _cancel(client: EngineClient, request_id: str, events: queue.SimpleQueue[RequestEvent | ModelEvent]) -> None:
    """Cancels and waits a moment for the end, so that an engine that is closed next is idle."""
    with contextlib.suppress(EngineStoppedError):
        client.cancel(request_id)
    deadline = time.monotonic() + _CANCEL_WAIT_S
    while time.monotonic() < deadline:
        with contextlib.suppress(queue.Empty):
            if isinstance(events.get(timeout=_POLL_S), DoneEvent | FailedEvent):
                return


class AnswerPrinter:
    """Prints answers as they come. One thread, the caller's."""

    def __init__(self, out: TextIO, notes: TextIO) -> None:
        """Takes streams for the text and for all else; progress is shown where `notes` is a terminal."""
        self._out = out
        self._notes = notes
        self._shows_progress = notes.isatty()
        self._has_progress = False

    def print_answer(self, events: Generator[RequestEvent | ModelEvent, None, None]) -> DoneEvent:
        """Prints the answer that the events carry; it ends with a line break. Closes `events` in every case.

        Raises:
            InferenceError: the request failed, or the events ended without a result.
            BrokenPipeError: nobody reads `out` any more.
            KeyboardInterrupt: Ctrl+C.
        """
        ends_line = True
        with contextlib.closing(events):
            try:
                for event in events:
                    if isinstance(event, TokenEvent):
                        self._clear_progress()
                        self._write(event.text)
                        ends_line = event.text.endswith("\n")
                    elif isinstance(event, DoneEvent):
                        if not ends_line:
                            self._write("\n")
                        return event
                    elif isinstance(event, FailedEvent):
                        raise event.error
                    else:
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

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()

    def _show_progress(self, event: PrefillEvent | ModelEvent) -> None:
        if isinstance(event, PrefillEvent):
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
