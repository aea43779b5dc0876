"""One request to the engine as an asynchronous stream of its events."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from types import TracebackType
from typing import Protocol, TypeVar

from starlette.requests import Request

from inference.errors import EngineStoppedError
from inference.gateway.errors import api_error
from inference.request import (
    DoneEvent,
    EngineReading,
    FailedEvent,
    GenerationRequest,
    ModelEvent,
    RequestEvent,
)

_Result = TypeVar("_Result")


class Engine(Protocol):
    """What the gateway needs of an engine; inference.engine.worker.Worker has it. Any thread; nothing waits."""

    def submit(self, request: GenerationRequest, listener: Callable[[RequestEvent], None]) -> None:
        """Queues a request; events come on the engine's thread."""
        ...

    def cancel(self, request_id: str) -> None:
        """Ends a request within two tokens."""
        ...

    def load(self, model: str) -> None:
        """Makes a model the resident one."""
        ...

    def unload(self) -> None:
        """Gives the memory back."""
        ...

    def listen(self, listener: Callable[[ModelEvent], None]) -> Callable[[], None]:
        """Adds a model listener; the result removes it."""
        ...

    def reading(self) -> EngineReading:
        """The last snapshot."""
        ...


class Answer:
    """Events of one request, to be used with `async with`: whatever happens inside, nothing goes on behind it."""

    def __init__(self, engine: Engine, request: GenerationRequest) -> None:
        self.request = request
        self._engine = engine
        self._events: asyncio.Queue[RequestEvent] = asyncio.Queue()
        self._has_ended = False

    async def __aenter__(self) -> Answer:
        loop = asyncio.get_running_loop()

        def hear(event: RequestEvent) -> None:
            # The server may have been stopped meanwhile: nobody waits then.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._events.put_nowait, event)

        self._engine.submit(self.request, hear)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._has_ended:
            with contextlib.suppress(EngineStoppedError):
                self._engine.cancel(self.request.request_id)

    async def events(self) -> AsyncIterator[RequestEvent]:
        """All events; the last one is a DoneEvent.

        Raises:
            ApiError: the request failed.
        """
        while True:
            event = await self._events.get()
            if isinstance(event, FailedEvent):
                self._has_ended = True
                raise api_error(event.error) from event.error
            if isinstance(event, DoneEvent):
                self._has_ended = True
                yield event
                return
            yield event


async def until_gone(request: Request, work: Coroutine[object, object, _Result]) -> _Result | None:
    """The result, or None where the client has hung up meanwhile, which ends the work."""
    done = asyncio.ensure_future(work)
    gone = asyncio.create_task(_gone(request))
    try:
        await asyncio.wait((done, gone), return_when=asyncio.FIRST_COMPLETED)
        return await done if done.done() else None
    finally:
        for task in (done, gone):
            task.cancel()
        await asyncio.gather(done, gone, return_exceptions=True)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
