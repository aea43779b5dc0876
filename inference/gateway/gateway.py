"""The gateway: an ASGI application over one engine."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from inference.errors import InferenceError
from inference.gateway.answer import Engine
from inference.gateway.completions import Completions
from inference.gateway.errors import RETRY_AFTER_S, ApiError, api_error
from inference.gateway.fence import Fence
from inference.gateway.metrics import CONTENT_TYPE, Metrics
from inference.gateway.options import GatewayOptions
from inference.gateway.schema import LoadRequest
from inference.gateway.translation import read_body
from inference.request import DoneEvent, EngineReading, GenerationRequest, ModelEvent, ModelState

log = logging.getLogger(__name__)


class Gateway:
    """Everything that the server answers.

    Args:
        models: names of the models that are on this machine; asked for each request that needs them.
        default_model: the one that the engine loads by itself.

    Attributes:
        app: the ASGI application.
    """

    def __init__(
        self,
        engine: Engine,
        options: GatewayOptions,
        models: Callable[[], Sequence[str]],
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
                Route("/metrics", self._show_metrics, methods=["GET"]),
                Route("/v1/models", self._list_models, methods=["GET"]),
                Route("/v1/models/{model:path}", self._show_model, methods=["GET"]),
                Route("/v1/chat/completions", completions.chat, methods=["POST"]),
                Route("/v1/completions", completions.text, methods=["POST"]),
                Route("/v1/load", self._load, methods=["POST"]),
                Route("/v1/unload", self._unload, methods=["POST"]),
            ],
            middleware=[Middleware(Fence, options=options)],
            exception_handlers={
                ApiError: self._on_api_error,
                HTTPException: self._on_http_error,
                Exception: self._on_error,
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
        """Raises ApiError where that model cannot answer now."""
        reading = self._engine.reading()
        if reading.state is ModelState.LOADING:
            raise ApiError(
                503, f"{reading.model} is being loaded.", "model_loading", "model", retry_after_s=RETRY_AFTER_S
            )
        resident = reading.model if reading.state is ModelState.READY else self._default_model()
        if name == resident:
            return
        known = name in self._models()
        cure = "Load it with POST /v1/load" if known else "GET /v1/models lists what is on this machine"
        what = "not resident" if known else "not on this machine"
        raise ApiError(404, f"The model {name[:200]!r} is {what}; {resident!r} is. {cure}.", "model_not_found", "model")

    async def _health(self, _: Request) -> Response:
        reading = self._engine.reading()
        return JSONResponse({"status": "ok", "state": reading.state.value, "model": reading.model or None})

    async def _show_metrics(self, _: Request) -> Response:
        return Response(self._metrics.text(), media_type=CONTENT_TYPE)

    async def _list_models(self, _: Request) -> Response:
        reading = self._engine.reading()
        names = dict.fromkeys([*([reading.model] if reading.model else ()), *self._models()])
        return JSONResponse({"object": "list", "data": [_model(name, reading) for name in names]})

    async def _show_model(self, request: Request) -> Response:
        name, reading = request.path_params["model"], self._engine.reading()
        if name != reading.model and name not in self._models():
            raise ApiError(404, f"The model {name[:200]!r} is not on this machine.", "model_not_found", "model")
        return JSONResponse(_model(name, reading))

    async def _load(self, request: Request) -> Response:
        body = await read_body(request, LoadRequest)
        # Paths are for the user at the machine, not for a program that can only reach a port.
        if body.model not in self._models():
            raise ApiError(404, f"The model {body.model[:200]!r} is not on this machine.", "model_not_found", "model")
        event = await self._until(
            lambda: self._engine.load(body.model),
            lambda event: event.model == body.model and event.state in (ModelState.READY, ModelState.FAILED),
        )
        if event.error is not None:
            raise api_error(event.error)
        return JSONResponse(_model(body.model, self._engine.reading()))

    async def _unload(self, _: Request) -> Response:
        if self._engine.reading().state is not ModelState.EMPTY:
            await self._until(self._engine.unload, lambda event: event.state is ModelState.EMPTY)
        return JSONResponse({"status": "ok"})

    async def _until(self, start: Callable[[], None], is_meant: Callable[[ModelEvent], bool]) -> ModelEvent:
        loop, found = asyncio.get_running_loop(), asyncio.Event()
        events: list[ModelEvent] = []

        def hear(event: ModelEvent) -> None:
            if is_meant(event):
                events.append(event)
                with contextlib.suppress(RuntimeError):
                    loop.call_soon_threadsafe(found.set)

        stop = self._engine.listen(hear)
        try:
            start()
            await found.wait()
        finally:
            stop()
        return events[0]

    # -- errors -------------------------------------------------------------------------------------------------------

    async def _on_api_error(self, _: Request, error: Exception) -> Response:
        assert isinstance(error, ApiError)
        self._metrics.refused(error.code)
        return JSONResponse(error.body, error.status, error.headers)

    async def _on_http_error(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        said = {404: f"There is no {request.url.path[:200]}.", 405: f"{request.method} is not allowed here."}
        return await self._on_api_error(
            request, ApiError(error.status_code, said.get(error.status_code, str(error.detail)), "not_found")
        )

    async def _on_error(self, request: Request, error: Exception) -> Response:
        # Type only: what an error says may quote a text.
        log.error("The gateway met %s at %s.", type(error).__name__, request.url.path)
        if isinstance(error, InferenceError):
            return await self._on_api_error(request, api_error(error))
        return await self._on_api_error(
            request, ApiError(503, "The server failed at this request. Its log says more.", "internal_error")
        )


def _model(name: str, reading: EngineReading) -> dict[str, Any]:
    is_resident = reading.state is ModelState.READY and reading.model == name
    entry: dict[str, Any] = {"id": name, "object": "model", "created": 0, "owned_by": "local", "resident": is_resident}
    if is_resident:
        entry["context_tokens"] = reading.context_tokens
    return entry
