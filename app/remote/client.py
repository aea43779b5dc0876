"""An engine on another machine: any OpenAI-compatible server (vLLM, SGLang, Ollama, llama.cpp) as an EngineClient.

One thread with one event loop carries all requests; it starts with the first use. What goes over the line is in
app/remote/wire.py, what can go wrong in app/remote/error.py. Texts and answers never reach a log.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import traceback
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from app.remote import error as remote_error
from app.remote.address import RemoteAddress
from app.remote.answer import Answer, RequestListener
from app.remote.connection import MAX_BODY_BYTES, NamedFailures, check_status, event_data, open_client, read_body
from app.remote.error import RemoteError, RemoteFault
from app.remote.wire import Json, RemoteModel, completion_body, estimated_tokens, read_models, read_piece
from app.translation import UserText
from inference.engine.options import DEFAULT_CONTEXT_TOKENS, EngineOptions
from inference.errors import EngineStoppedError, InferenceError, InvalidRequestError
from inference.listeners import Listeners
from inference.request import (
    DoneEvent,
    EngineReading,
    FailedEvent,
    GenerationRequest,
    ModelEvent,
    ModelPlan,
    ModelState,
    PrefillEvent,
    TokenCounts,
    TokenEvent,
)

if TYPE_CHECKING:
    import httpx2

ModelListener = Callable[[ModelEvent], None]
ModelsListener = Callable[[tuple[RemoteModel, ...] | InferenceError], None]

CLOSE_TIMEOUT_S = 3.0
_T = TypeVar("_T")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RemoteTimeouts:
    """Seconds of silence after which a server is given up."""

    connect_s: float = 10.0
    answer_s: float = 120.0


class RemoteClient:
    """Every method returns at once and may be called from any thread; listeners run on the client's own thread.

    Args:
        key: tells the key of a server's address, "" for none; asked on the client's thread, where it may wait.
    """

    def __init__(self, key: Callable[[str], str] = lambda _url: "", timeouts: RemoteTimeouts | None = None) -> None:
        self._key, self._timeouts = key, timeouts or RemoteTimeouts()
        self._lock = threading.Lock()
        self._address: RemoteAddress | None = None
        self._closed = False
        self._listeners: Listeners[ModelEvent] = Listeners()
        self._state = ModelEvent(ModelState.EMPTY)
        self._context_tokens = 0
        # Addresses of servers that refuse `response_format`.
        self._formless: set[str] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        # All below belongs to the thread.
        self._http: httpx2.AsyncClient | None = None
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._others: set[asyncio.Task[None]] = set()

    # -- any thread ---------------------------------------------------------------------------------------------------

    @property
    def address(self) -> RemoteAddress | None:
        """Where requests go; None where nothing is set up."""
        return self._address

    @property
    def is_used(self) -> bool:
        """Whether anything has been asked of it."""
        return self._loop is not None

    def set_address(self, address: RemoteAddress | None) -> None:
        """Holds for the next request on."""
        self._address, self._context_tokens = address, 0

    def submit(self, request: GenerationRequest, listener: RequestListener) -> None:
        """Sends a request to the server. Raises EngineStoppedError once closed."""
        answer = Answer(request, listener, time.perf_counter())
        self._send(partial(self._start, answer))

    def cancel(self, request_id: str) -> None:
        """Closes the request's connection; it ends with DoneEvent("cancelled"). Unknown ids are ignored."""
        self._send(partial(self._cancel, request_id))

    def load(self, model: str) -> None:
        """Asks the server whether it has the model of the address; `model` is that address's id."""
        self._send(lambda: self._spawn(self._check()))

    def unload(self) -> None:
        """Cancels what runs. There is no memory to give back."""
        self._send(self._leave)

    def set_options(self, options: EngineOptions) -> None:
        """How an engine is built here does not concern a server."""

    def plan(
        self, model: str, context_tokens: int | None, listener: Callable[[ModelPlan | InferenceError], None]
    ) -> None:
        """Not applicable: it takes no memory of this machine. The listener gets that as an error."""
        error = remote_error.local_only(UserText("The server plans its memory itself."))
        self._send(partial(self._call, listener, error))

    def count_tokens(self, texts: Sequence[str], listener: Callable[[TokenCounts | InferenceError], None]) -> None:
        """Estimates, rather too high, and marked as such: only the server knows its vocabulary."""
        self._send(lambda: self._spawn(self._count(tuple(texts), listener)))

    def list_models(self, listener: ModelsListener) -> None:
        """Asks the server for its models."""
        self._send(lambda: self._spawn(self._list(listener)))

    def listen(self, listener: ModelListener) -> Callable[[], None]:
        """Adds a model listener; the result removes it."""
        return self._listeners.add(listener)

    def reading(self) -> EngineReading:
        """State, model and number of open requests; this machine gives no memory."""
        state = self._state
        return EngineReading(
            state=state.state,
            model=state.model,
            backend="remote",
            context_tokens=self._context_tokens,
            running=len(self._tasks),
        )

    def close(self) -> None:
        """Cancels everything and ends the thread, within three seconds. Later calls raise EngineStoppedError."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            loop, thread = self._loop, self._thread
        if loop is not None and thread is not None and thread is not threading.current_thread():
            loop.call_soon_threadsafe(self._stop)
            thread.join(CLOSE_TIMEOUT_S)

    def _send(self, command: Callable[[], object]) -> None:
        with self._lock:
            if self._closed:
                raise EngineStoppedError("The engine has been closed. Start the app again.")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._run, args=(self._loop,), name="remote-engine", daemon=True)
                self._thread.start()
            self._loop.call_soon_threadsafe(command)

    # -- the thread ---------------------------------------------------------------------------------------------------

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
            for task in [*self._tasks.values(), *self._others]:
                task.cancel()
            while self._tasks or self._others:
                loop.run_until_complete(asyncio.wait([*self._tasks.values(), *self._others]))
                loop.run_until_complete(asyncio.sleep(0))  # their last words
            if self._http is not None:
                loop.run_until_complete(self._http.aclose())
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()

    def _stop(self) -> None:
        assert self._loop is not None
        self._loop.stop()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._others.add(task)
        task.add_done_callback(self._others.discard)

    def _client(self) -> httpx2.AsyncClient:
        if self._http is None:
            self._http = open_client(self._timeouts.connect_s, self._timeouts.answer_s)
        return self._http

    def _failures(self, address: RemoteAddress) -> NamedFailures:
        return NamedFailures(address, self._timeouts.connect_s, self._timeouts.answer_s)

    def _headers(self, address: RemoteAddress) -> dict[str, str]:
        key = self._key(address.url).strip()
        if not key.isascii() or not (key.isprintable() or not key):
            raise remote_error.refusal(address.host, address.model, 401, "the key holds signs that no key has", True)
        return {"Authorization": f"Bearer {key}"} if key else {}

    def _target(self) -> RemoteAddress:
        if self._address is None:
            raise remote_error.not_set_up()
        return self._address

    # -- the thread: requests -----------------------------------------------------------------------------------------

    def _start(self, answer: Answer) -> None:
        request_id = answer.request.request_id
        if request_id in self._tasks:
            error = InvalidRequestError(f"request_id is {request_id!r}, but a request of that id is under way.")
            self._call(answer.listener, FailedEvent(request_id, error))
            return
        task = asyncio.ensure_future(self._answer(answer))
        self._tasks[request_id] = task
        task.add_done_callback(partial(self._end, answer))

    def _cancel(self, request_id: str) -> None:
        if request_id in self._tasks:
            self._tasks[request_id].cancel()

    def _end(self, answer: Answer, task: asyncio.Task[None]) -> None:
        """The one last event of a request."""
        request_id = answer.request.request_id
        del self._tasks[request_id]
        error = None if task.cancelled() else task.exception()
        if task.cancelled():
            self._call(answer.listener, DoneEvent(request_id, "cancelled", answer.usage()))
        elif error is None:
            self._call(answer.listener, DoneEvent(request_id, answer.finish_reason or "stop", answer.usage()))
        elif isinstance(error, InferenceError):
            self._call(answer.listener, FailedEvent(request_id, error))
        else:
            self._call(answer.listener, FailedEvent(request_id, _unforeseen(error)))

    async def _answer(self, answer: Answer) -> None:
        address, request = self._target(), answer.request
        model = address.model or (await self._models(address))[0].id
        body = completion_body(request, model, with_wish=address.url not in self._formless)
        answer.prompt_tokens = sum(estimated_tokens(message.content) for message in request.messages)
        try:
            await self._stream(answer, address, body)
        except RemoteError as error:
            formless = completion_body(request, model, with_wish=False)
            if error.fault is not RemoteFault.REFUSED or formless == body:
                raise
            # Perhaps it was the form. If it was the text, this is refused as well.
            await self._stream(answer, address, formless)
            self._formless.add(address.url)
        if answer.finish_reason is None:
            raise remote_error.broken_off(address.host)

    async def _stream(self, answer: Answer, address: RemoteAddress, body: Json) -> None:
        request_id, estimate = answer.request.request_id, answer.prompt_tokens
        async with self._failures(address):
            async with self._client().stream(
                "POST", f"{address.url}/chat/completions", json=body, headers=self._headers(address)
            ) as response:
                await check_status(response, address)
                self._enter_ready(address)
                self._call(answer.listener, PrefillEvent(request_id, estimate, estimate))
                async for data in event_data(response, address):
                    text = answer.take(read_piece(data), address)
                    if text:
                        self._call(answer.listener, TokenEvent(request_id, text))

    # -- the thread: the model ----------------------------------------------------------------------------------------

    async def _check(self) -> None:
        address = self._address
        model = "" if address is None else address.id
        self._enter(ModelEvent(ModelState.LOADING, model))
        try:
            address = self._target()
            models = await self._models(address)
            known = {each.id: each for each in models}
            if address.model and address.model not in known:
                raise remote_error.no_model(address.host, address.model, tuple(known))
            chosen = known.get(address.model, models[0])
            self._context_tokens = address.context_tokens or chosen.context_tokens or DEFAULT_CONTEXT_TOKENS
        except InferenceError as error:
            self._enter(ModelEvent(ModelState.FAILED, model, error=error))
        except Exception as error:  # noqa: BLE001 - this thread serves other requests too, as the worker's does
            self._enter(ModelEvent(ModelState.FAILED, model, error=_unforeseen(error)))
        else:
            self._enter_ready(address)

    async def _models(self, address: RemoteAddress) -> tuple[RemoteModel, ...]:
        async with self._failures(address):
            async with self._client().stream(
                "GET", f"{address.url}/models", headers=self._headers(address)
            ) as response:
                await check_status(response, address)
                models = read_models(await read_body(response, MAX_BODY_BYTES))
        if models is None:
            raise remote_error.not_openai(address.host, "it has no list of models")
        if not models:
            raise remote_error.no_model(address.host, address.model)
        return models

    async def _list(self, listener: ModelsListener) -> None:
        try:
            models: tuple[RemoteModel, ...] | InferenceError = await self._models(self._target())
        except InferenceError as error:
            models = error
        except Exception as error:  # noqa: BLE001 - see _check
            models = _unforeseen(error)
        self._call(listener, models)

    async def _count(self, texts: tuple[str, ...], listener: Callable[[TokenCounts | InferenceError], None]) -> None:
        if self._state.state is not ModelState.READY:
            await self._check()
        if self._state.error is not None:
            self._call(listener, self._state.error)
            return
        counts = tuple(map(estimated_tokens, texts))
        self._call(listener, TokenCounts(counts, self._context_tokens, estimated=True))

    def _leave(self) -> None:
        for task in list(self._tasks.values()):
            task.cancel()
        self._enter(ModelEvent(ModelState.EMPTY))

    def _enter_ready(self, address: RemoteAddress) -> None:
        self._context_tokens = self._context_tokens or address.context_tokens or DEFAULT_CONTEXT_TOKENS
        ready = ModelEvent(ModelState.READY, address.id, 1.0)
        if ready != self._state:
            self._enter(ready)

    def _enter(self, event: ModelEvent) -> None:
        self._state = event
        for listener in self._listeners:
            self._call(listener, event)

    def _call(self, listener: Callable[[_T], None], event: _T) -> None:
        try:
            listener(event)
        except Exception as error:  # noqa: BLE001 - what a listener does wrong is no affair of the requests
            places = "".join(traceback.format_tb(error.__traceback__))
            log.error("A listener met %s.\n%s", type(error).__name__, places)


def _unforeseen(error: BaseException) -> InferenceError:
    """Type and place only reach the log: what an error says may quote a text."""
    places = "".join(traceback.format_tb(error.__traceback__))
    log.error("The remote engine met %s.\n%s", type(error).__name__, places)
    return InferenceError(f"The remote engine failed ({type(error).__name__}). Try again, or choose a local model.")
