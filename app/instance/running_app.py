"""The running app's engine for a task of this process, over the line of single requests (ask_channel.py)."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from functools import partial
from pathlib import Path

from app.actions.text_task import TaskEvent, TextTask
from app.engine_client import CountListener, RequestListener
from app.instance.ask_channel import ask_running, count_running
from app.instance.instance import InstanceError
from inference.errors import EngineStoppedError
from inference.request import EngineReading, GenerationRequest, TokenCounts


class RunningApp:
    """A TextEngine without a thread: what is asked is done by `work`, one thing after another.

    Args:
        model: refuse to answer with another resident model; "" takes what the app has.
        directory: of the app's line; the user's by default.
    """

    def __init__(self, model: str = "", directory: Path | None = None) -> None:
        self._model, self._directory = model, directory
        self._context_tokens = 0
        self._open: deque[partial[Iterator[None]]] = deque()

    def connect(self) -> bool:
        """Whether an app runs. It loads its model if it has none.

        Raises:
            InstanceError: it runs, but cannot be reached, or holds another model.
        """
        counts = count_running((), self._model, directory=self._directory)
        if isinstance(counts, TokenCounts):
            self._context_tokens = counts.context_tokens
        return counts is not None

    def submit(self, request: GenerationRequest, listener: RequestListener) -> None:
        """Queues a request."""
        self._open.append(partial(self._ask, request, listener))

    def count_tokens(self, texts: Sequence[str], listener: CountListener) -> None:
        """Queues texts."""
        self._open.append(partial(self._count, texts, listener))

    def cancel(self, request_id: str) -> None:
        """Nothing to do: whoever stops working breaks the line, and that cancels the request in the app."""

    def reading(self) -> EngineReading:
        """The context, once it is known."""
        return EngineReading(context_tokens=self._context_tokens)

    def work(self) -> Iterator[None]:
        """Does what has been asked for, and what its listeners ask for then; yields after each event.

        Raises:
            InstanceError: the app went away.
        """
        while self._open:
            yield from self._open.popleft()()

    def _ask(self, request: GenerationRequest, listener: RequestListener) -> Iterator[None]:
        events = ask_running(request, self._model, directory=self._directory)
        if events is None:
            raise _gone()
        with contextlib.closing(events):
            for event in events:
                listener(event)
                yield

    def _count(self, texts: Sequence[str], listener: CountListener) -> Iterator[None]:
        counts = count_running(texts, self._model, directory=self._directory)
        if counts is None:
            raise _gone()
        listener(counts)
        yield


def _gone() -> InstanceError:
    return InstanceError("The running app has ended meanwhile. Start it again, or leave it to the command line alone.")


def app_events(app: RunningApp, task: TextTask) -> Generator[TaskEvent, None, None]:
    """Runs a task with the app's engine and yields its events. Closing the generator cancels it.

    Raises:
        InstanceError: the app went away.
    """
    events: deque[TaskEvent] = deque()
    task.run(events.append)
    try:
        for _ in app.work():
            while events:
                yield events.popleft()
        yield from events
    finally:
        with contextlib.suppress(EngineStoppedError):
            task.cancel()
