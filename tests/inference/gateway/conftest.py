"""A gateway over a scripted engine, on a port of this machine."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Callable, Iterator

import openai
import pytest

from inference.errors import EngineStoppedError, InferenceError
from inference.gateway.gateway import Gateway
from inference.gateway.options import GatewayOptions
from inference.gateway.server import GatewayServer
from inference.request import (
    DoneEvent,
    EngineReading,
    FailedEvent,
    GenerationRequest,
    ModelEvent,
    ModelState,
    RequestEvent,
    TokenEvent,
    TokenLogprob,
    Usage,
)


class ScriptedEngine:
    """Answers at once, on the caller's thread, with `pieces`; or holds requests back until they are cancelled.

    Attributes:
        error: fails the next requests.
        holds: requests get their first piece only.
        fails_late: requests fail behind their first piece.
        with_tokens: pieces come with their log-probabilities.
        loads_instead: what is loaded in place of what was asked for.
        closed, breaks: nothing can be asked any more, or what is asked meets an error that nobody foresaw.
        submitted, cancelled: what came.
        cancelled_one: set when a request was cancelled.
    """

    def __init__(self) -> None:
        self.pieces: tuple[str, ...] = ("Hello", " there")
        self.error: InferenceError | None = None
        self.holds = self.fails_late = self.with_tokens = self.closed = self.breaks = False
        self.loads_instead = ""
        self.submitted: list[GenerationRequest] = []
        self.cancelled: list[str] = []
        self.cancelled_one = threading.Event()
        self.state = EngineReading(state=ModelState.READY, model="one", context_tokens=512)
        self._listeners: list[Callable[[ModelEvent], None]] = []

    def submit(self, request: GenerationRequest, listener: Callable[[RequestEvent], None]) -> None:
        if self.closed:
            raise EngineStoppedError("The engine has been closed.")
        if self.breaks:
            raise ZeroDivisionError(request.messages[0].content)
        self.submitted.append(request)
        if self.error is not None:
            listener(FailedEvent(request.request_id, self.error))
            return
        usage = Usage(prompt_tokens=7, cached_tokens=3, new_tokens=len(self.pieces))
        for piece in self.pieces[:1] if self.holds else self.pieces:
            token = TokenLogprob(1, piece.encode(), -0.5, ((1, piece.encode(), -0.5),))
            listener(TokenEvent(request.request_id, piece, (token,) if self.with_tokens else ()))
            if self.fails_late:
                listener(FailedEvent(request.request_id, InferenceError("Someone fell over the cable.")))
                return
        if not self.holds:
            listener(DoneEvent(request.request_id, "stop", usage))

    def cancel(self, request_id: str) -> None:
        self.cancelled.append(request_id)
        self.cancelled_one.set()

    def load(self, model: str) -> None:
        if self.error is not None:
            self._tell(ModelEvent(ModelState.FAILED, model, error=self.error))
            return
        model = self.loads_instead or model
        self.state = dataclasses.replace(self.state, state=ModelState.READY, model=model)
        self._tell(ModelEvent(ModelState.READY, model))

    def unload(self) -> None:
        self.state = EngineReading()
        self._tell(ModelEvent(ModelState.EMPTY))

    def listen(self, listener: Callable[[ModelEvent], None]) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def reading(self) -> EngineReading:
        return self.state

    def _tell(self, event: ModelEvent) -> None:
        for listener in list(self._listeners):
            listener(event)


@pytest.fixture
def engine() -> ScriptedEngine:
    return ScriptedEngine()


@contextlib.contextmanager
def starting(engine: ScriptedEngine) -> Iterator[Callable[..., GatewayServer]]:
    """Starts servers with some options; all end with it, which takes a tenth of a second each."""
    servers: list[GatewayServer] = []

    def make(**changes: object) -> GatewayServer:
        options = GatewayOptions(**{"port": 0, **changes})  # type: ignore[arg-type]
        gateway = Gateway(engine, options, lambda: {"one": "one", "two": "two"}, lambda: "one")
        server = GatewayServer(gateway.app, options)
        server.start()
        servers.append(server)
        return server

    yield make
    for server in servers:
        server.stop()


@pytest.fixture
def start(engine: ScriptedEngine) -> Iterator[Callable[..., GatewayServer]]:
    """The same for a test."""
    with starting(engine) as make:
        yield make


@pytest.fixture(scope="module")
def steady() -> Iterator[openai.OpenAI]:
    """OpenAI's client of a server that is the same for all tests of a module that look at answers alone."""
    with (
        starting(ScriptedEngine()) as make,
        openai.OpenAI(base_url=f"http://127.0.0.1:{make().port}/v1", api_key="none", max_retries=0) as made,
    ):
        yield made


@pytest.fixture
def client(start: Callable[..., GatewayServer]) -> Iterator[openai.OpenAI]:
    """OpenAI's client of a server without a key."""
    with openai.OpenAI(base_url=f"http://127.0.0.1:{start().port}/v1", api_key="none", max_retries=0) as made:
        yield made
