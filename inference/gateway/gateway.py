"""The gateway: an ASGI application over one engine."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from inference.errors import InferenceError
from inference.gateway.answer import Engine, until_gone
from inference.gateway.completions import CLIENT_GONE, Completions
from inference.gateway.errors import RETRY_AFTER_S, ApiError, api_error
from inference.gateway.fence import Fence
from inference.gateway.metrics import CONTENT_TYPE, Metrics
from inference.gateway.openapi import description
from inference.gateway.options import GatewayOptions
from inference.gateway.schema import LoadRequest, UnloadRequest
from inference.gateway.translation import read_body
from inference.request import DoneEvent, EngineReading, GenerationRequest, ModelEvent, ModelState

_NO_PATH = "There is no {}: the API is under /v1, as /v1/chat/completions is, and GET /openapi.json lists all of it."
_SETTLE_S = 2.0
"""So long after a model has left, another one may begin to load that was asked for earlier."""


class Gateway:
    """Everything that the server answers.

    Args:
        models: the models that are on this machine: the name under which each is served, and what the engine calls
            it; asked for each request that needs them.
        default_model: what the engine calls the one that it loads by itself.

    Attributes:
        app: the ASGI application.
    """

    def __init__(
        self,
        engine: Engine,
        options: GatewayOptions,
        models: Callable[[], Mapping[str, str]],
        default_model: Callable[[], str],
    ) -> None:
        self._engine, self._options = engine, options
        self._models, self._default_model = models, default_model
        self._open = 0
        self._metrics = Metrics(engine.reading)
        completions = Completions(engine, self._check_model, self._let_in)
        self.app = Starlette(
            routes=[
                Route("/health", self._health, methods=["GET"]),
                Route("/openapi.json", self._describe, methods=["GET"]),
                Route("/metrics", self._show_metrics, methods=["GET"]),
                Route("/v1/models", self._list_models, methods=["GET"]),
                Route("/v1/models/{model:path}", self._show_model, methods=["GET"]),
                Route("/v1/chat/completions", completions.chat, methods=["POST"]),
                Route("/v1/completions", completions.text, methods=["POST"]),
                Route("/v1/load", self._load, methods=["POST"]),
                Route("/v1/unload", self._unload, methods=["POST"]),
            ],
            middleware=[Middleware(Fence, options=options, refused=self._metrics.refused)],
            exception_handlers={
                ApiError: self._on_api_error,
                HTTPException: self._on_http_error,
                InferenceError: self._on_engine_error,
            },
        )

    # -- engine and models --------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _let_in(self, requests: Sequence[GenerationRequest]) -> Iterator[Callable[[DoneEvent], None]]:
        """Refuses requests where too many are open."""
        if self._open + len(requests) > self._options.max_waiting:
            raise ApiError(
                429,
                f"{self._open} requests are under way and {self._options.max_waiting} is the limit. Come again later.",
                "queue_full",
                retry_after_s=RETRY_AFTER_S,
            )
        self._open += len(requests)
        try:
            yield self._metrics.ended
        finally:
            self._open -= len(requests)

    def _check_model(self, name: str) -> None:
        """Raises ApiError where that model cannot answer now. With none in memory it is the one that is loaded."""
        reading = self._engine.reading()
        if reading.state is ModelState.LOADING:
            raise ApiError(
                503,
                f"{self._served(reading.model)} is being loaded. Come again in a moment.",
                "model_loading",
                "model",
                retry_after_s=RETRY_AFTER_S,
            )
        is_ready = reading.state is ModelState.READY
        usual = self._served(reading.model if is_ready else self._default_model())
        if name == usual:
            return
        model = self._models().get(name)
        if model is not None and not is_ready:
            self._engine.load(model)
            return
        cure = "GET /v1/models lists what is on this machine" if model is None else "Load it with POST /v1/load"
        what = "not on this machine" if model is None else "not resident"
        other = f"; {usual!r} is" if is_ready else ""
        raise ApiError(404, f"The model {name[:200]!r} is {what}{other}. {cure}.", "model_not_found", "model")

    @staticmethod
    def _served(model: str) -> str:
        """The name of a model for clients: whom a path belongs to is nobody's business."""
        return PurePath(model).name

    async def _health(self, _: Request) -> Response:
        reading = self._engine.reading()
        model = self._served(reading.model) or None
        return JSONResponse({"status": "ok", "state": reading.state.value, "model": model})

    async def _describe(self, _: Request) -> Response:
        return JSONResponse(description())

    async def _show_metrics(self, _: Request) -> Response:
        return Response(self._metrics.text(), media_type=CONTENT_TYPE)

    async def _list_models(self, _: Request) -> Response:
        reading = self._engine.reading()
        models, resident, usual = self._models(), self._served(reading.model), self._served(self._default_model())
        # Clients that have no choice take the first.
        names = dict.fromkeys([*filter(None, [resident]), *(name for name in (usual,) if name in models), *models])
        return JSONResponse({"object": "list", "data": [self._entry(name, reading) for name in names]})

    async def _show_model(self, request: Request) -> Response:
        name, reading = request.path_params["model"], self._engine.reading()
        if name != self._served(reading.model) and name not in self._models():
            raise ApiError(404, f"The model {name[:200]!r} is not on this machine.", "model_not_found", "model")
        return JSONResponse(self._entry(name, reading))

    def _entry(self, name: str, reading: EngineReading) -> dict[str, Any]:
        is_resident = reading.state is ModelState.READY and self._served(reading.model) == name
        entry = {"id": name, "object": "model", "created": 0, "owned_by": "local", "resident": is_resident}
        # The name that servers of this kind give it.
        return entry | ({"max_model_len": reading.context_tokens} if is_resident else {})

    async def _load(self, request: Request) -> Response:
        body = await read_body(request, LoadRequest)
        # Paths are for the user at the machine, not for a program that can only reach a port.
        model = self._models().get(body.model)
        if model is None:
            raise ApiError(404, f"The model {body.model[:200]!r} is not on this machine.", "model_not_found", "model")
        event = await until_gone(request, self._loaded(model))
        if event is None:
            return Response(status_code=CLIENT_GONE)
        if event.error is not None and event.model == model:
            raise api_error(event.error)
        if event.state is not ModelState.READY or event.model != model:
            raise ApiError(409, "Meanwhile something else was asked of the engine. Try again.", "superseded", "model")
        return JSONResponse(self._entry(body.model, self._engine.reading()))

    async def _loaded(self, model: str) -> ModelEvent:
        """The event that says what became of a load."""
        with self._model_events() as events:
            self._engine.load(model)
            event = await events.get()
            while not (event.state is ModelState.READY or (event.state is ModelState.FAILED and event.model == model)):
                moves = event.state in (ModelState.LOADING, ModelState.UNLOADING)
                try:
                    event = await asyncio.wait_for(events.get(), None if moves else _SETTLE_S)
                except TimeoutError:
                    return event
            return event

    async def _unload(self, request: Request) -> Response:
        await read_body(request, UnloadRequest)
        await until_gone(request, self._unloaded())
        return JSONResponse({"status": "ok"})

    async def _unloaded(self) -> None:
        with self._model_events() as events:
            if self._engine.reading().state is not ModelState.EMPTY:
                self._engine.unload()
                while (await events.get()).state is not ModelState.EMPTY:
                    pass

    @contextlib.contextmanager
    def _model_events(self) -> Iterator[asyncio.Queue[ModelEvent]]:
        """The engine's events from here on."""
        loop = asyncio.get_running_loop()
        events: asyncio.Queue[ModelEvent] = asyncio.Queue()

        def hear(event: ModelEvent) -> None:
            with contextlib.suppress(RuntimeError):  # the server has been stopped meanwhile
                loop.call_soon_threadsafe(events.put_nowait, event)

        stop = self._engine.listen(hear)
        try:
            yield events
        finally:
            stop()

    # -- errors -------------------------------------------------------------------------------------------------------

    async def _on_api_error(self, _: Request, error: Exception) -> Response:
        assert isinstance(error, ApiError)
        self._metrics.refused(error.code)
        return JSONResponse(error.body, error.status, error.headers)

    async def _on_http_error(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if error.status_code == 405:
            failure = ApiError(405, f"{request.method} is not allowed here.", "method_not_allowed")
        else:
            failure = ApiError(error.status_code, _NO_PATH.format(request.url.path[:200]), "not_found")
        response = await self._on_api_error(request, failure)
        response.headers.update(error.headers or {})
        return response

    async def _on_engine_error(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, InferenceError)
        return await self._on_api_error(request, api_error(error))
