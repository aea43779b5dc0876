"""Streams an answer to a terminal or a pipe: the text alone on one stream, all that is about it on another."""

from __future__ import annotations

import contextlib
import queue
import time
from collections.abc import Iterator
from typing import TextIO

from app.engine_client import EngineClient
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

_CANCEL_WAIT_S = 3.0
# Short, so that Ctrl+C is seen on systems whose queues cannot be interrupted.
_POLL_S = 0.1


class AnswerPrinter:
    """Prints answers of an engine as they come. One thread, the caller's."""

    def __init__(self, client: EngineClient, out: TextIO, notes: TextIO) -> None:
        """Takes streams for the text and for all else; progress is shown where `notes` is a terminal."""
        self._client = client
        self._out = out
        self._notes = notes
        self._shows_progress = notes.isatty()
        self._has_progress = False

    def print_answer(self, request: GenerationRequest) -> DoneEvent:
        """Submits a request and prints its answer, which ends with a line break.

        Raises:
            InferenceError: the request failed.
            BrokenPipeError: nobody reads `out` any more; the request has been cancelled.
            KeyboardInterrupt: likewise, by Ctrl+C.
        """
        events: queue.Queue[RequestEvent | ModelEvent] = queue.Queue()
        with self._listening(events):
            self._client.submit(request, events.put)
            try:
                return self._follow(events)
            except (BrokenPipeError, KeyboardInterrupt):
                self._client.cancel(request.request_id)
                self._await_end(events)
                raise

    def print_usage(self, usage: Usage) -> None:
        """One line about what an answer cost."""
        self._note(
            f"[{usage.prompt_tokens} prompt tokens, {usage.cached_tokens} of them cached; "
            f"{usage.new_tokens} new tokens; "
            f"first after {usage.time_to_first_token_ms / 1000:.2f} s, then {usage.decode_tok_s:.1f} tok/s]"
        )

    @contextlib.contextmanager
    def _listening(self, events: queue.Queue[RequestEvent | ModelEvent]) -> Iterator[None]:
        remove = self._client.listen(events.put)
        try:
            yield
        finally:
            remove()
            self._clear_progress()

    def _follow(self, events: queue.Queue[RequestEvent | ModelEvent]) -> DoneEvent:
        ends_line = True
        while True:
            try:
                event = events.get(timeout=_POLL_S)
            except queue.Empty:
                continue
            if isinstance(event, TokenEvent):
                self._clear_progress()
                self._out.write(event.text)
                self._out.flush()
                ends_line = event.text.endswith("\n")
            elif isinstance(event, DoneEvent):
                if not ends_line:
                    self._out.write("\n")
                    self._out.flush()
                return event
            elif isinstance(event, FailedEvent):
                raise event.error
            else:
                self._show_progress(event)

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

    def _note(self, text: str) -> None:
        self._notes.write(text + "\n")
        self._notes.flush()

    @staticmethod
    def _await_end(events: queue.Queue[RequestEvent | ModelEvent]) -> None:
        deadline = time.monotonic() + _CANCEL_WAIT_S
        while time.monotonic() < deadline:
            with contextlib.suppress(queue.Empty):
                if isinstance(events.get(timeout=_POLL_S), DoneEvent | FailedEvent):
                    return
