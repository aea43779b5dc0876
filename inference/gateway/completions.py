"""POST /v1/chat/completions and /v1/completions: answers of the engine, whole or as a stream of server-sent events."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from inference.gateway.answer import Answer, Engine
from inference.gateway.chat_answer import ChatForm, Choice, Envelope, TextForm
from inference.gateway.errors import ApiError
from inference.gateway.schema import ChatRequest, CompletionRequest
from inference.gateway.tool_calls import ToolCallFinder
from inference.gateway.translation import chat_requests, completion_requests, read_body
from inference.request import DoneEvent, GenerationRequest, TokenEvent

CLIENT_GONE = 499
"""Of an answer that nobody takes any more; never sent."""

Watch = Callable[[Sequence[GenerationRequest]], contextlib.AbstractContextManager[Callable[[DoneEvent], None]]]
"""Lets requests in, or refuses them; what it gives takes note of each answer that has ended."""


class Completions:
    """The handlers.

    Args:
        check_model: raises ApiError where a model cannot answer.
    """

    def __init__(self, engine: Engine, check_model: Callable[[str], None], watch: Watch) -> None:
        self._engine, self._check_model, self._watch = engine, check_model, watch

    async def chat(self, request: Request) -> Response:
        """POST /v1/chat/completions."""
        body = await read_body(request, ChatRequest)
        self._check_model(body.model)
        envelope = Envelope(ChatForm(), body.model)
        return await self._answer(request, body, chat_requests(body), envelope, bool(body.logprobs))

    async def text(self, request: Request) -> Response:
        """POST /v1/completions."""
        body = await read_body(request, CompletionRequest)
        if body.echo:
            raise ApiError(400, "echo is not supported by this server. Leave it out.", "unsupported_parameter", "echo")
        self._check_model(body.model)
        envelope = Envelope(TextForm(), body.model)
        return await self._answer(request, body, completion_requests(body), envelope, body.logprobs is not None)

    async def _answer(
        self,
        request: Request,
        body: ChatRequest | CompletionRequest,
        requests: list[GenerationRequest],
        envelope: Envelope,
        with_logprobs: bool,
    ) -> Response:
        if body.stream_options is not None and not body.stream:
            raise ApiError(400, "stream_options needs stream to be true.", "invalid_value", "stream_options")
        answers = _Answers(self._engine, requests, self._watch)
        if body.stream:
            with_usage = body.stream_options is not None and body.stream_options.include_usage
            await answers.open()
            stream = _stream(answers, envelope, with_logprobs, with_usage)
            headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
            return StreamingResponse(stream, media_type="text/event-stream", headers=headers)
        choices = await _until_gone(request, answers.whole())
        if choices is None:
            return Response(status_code=CLIENT_GONE)
        return JSONResponse(envelope.whole(choices, with_logprobs))


class _Answers:
    """All answers of one API request, which end together."""

    def __init__(self, engine: Engine, requests: Sequence[GenerationRequest], watch: Watch) -> None:
        self._engine, self._requests, self._watch = engine, requests, watch
        self._stack = contextlib.AsyncExitStack()
        self._events: asyncio.Queue[tuple[int, TokenEvent | DoneEvent | ApiError]] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []
        self._finders = [ToolCallFinder(each.tools) for each in requests]
        self.choices = [Choice(index) for index in range(len(requests))]

    async def open(self) -> None:
        """Lets the requests in. Raises ApiError where there are too many."""
        async with contextlib.AsyncExitStack() as stack:
            self._note = stack.enter_context(self._watch(self._requests))
            answers = [await stack.enter_async_context(Answer(self._engine, each)) for each in self._requests]
            stack.push_async_callback(self._stop)
            self._tasks = [asyncio.create_task(self._take(index, each)) for index, each in enumerate(answers)]
            self._stack = stack.pop_all()

    async def close(self) -> None:
        """Cancels what still runs."""
        await self._stack.aclose()

    async def whole(self) -> list[Choice]:
        """All answers, when the last one has ended."""
        await self.open()
        try:
            async for _ in self.events():
                pass
        finally:
            await self.close()
        return self.choices

    async def events(self) -> AsyncIterator[tuple[Choice, TokenEvent | DoneEvent]]:
        """Each answer's events; the first failure ends all."""
        running = len(self.choices)
        while running:
            index, event = await self._events.get()
            if isinstance(event, ApiError):
                raise event
            choice = self.choices[index]
            if isinstance(event, DoneEvent):
                rest = self._finders[index].finish()
                choice.calls = self._finders[index].calls
                if rest:
                    choice.text += rest
                    yield choice, TokenEvent(event.request_id, rest)
                choice.done = event
                self._note(event)
                running -= 1
                yield choice, event
                continue
            text = self._finders[index].push(event.text) if self._requests[index].tools else event.text
            choice.text += text
            choice.tokens += event.tokens
            if text or event.tokens:
                yield choice, TokenEvent(event.request_id, text, event.tokens)

    async def _take(self, index: int, answer: Answer) -> None:
        try:
            async for event in answer.events():
                if isinstance(event, DoneEvent) and event.finish_reason == "cancelled":
                    raise ApiError(503, "The model was unloaded meanwhile. Try again.", "cancelled", retry_after_s=1)
                if isinstance(event, TokenEvent | DoneEvent):
                    await self._events.put((index, event))
        except ApiError as error:
            await self._events.put((index, error))

    async def _stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _stream(answers: _Answers, envelope: Envelope, with_logprobs: bool, with_usage: bool) -> AsyncIterator[bytes]:
    """Server-sent events; an error behind the first of them is an event as well, for the status is already sent."""
    form = envelope.form
    try:
        for choice in answers.choices:
            first = form.first(choice.index)
            if first is not None:
                yield _event(envelope.chunk(first, with_usage))
        async for choice, event in answers.events():
            if isinstance(event, DoneEvent):
                piece = form.last(choice)
            else:
                piece = form.piece(choice.index, event.text, event.tokens, with_logprobs)
            yield _event(envelope.chunk(piece, with_usage))
        if with_usage:
            yield _event(envelope.usage_chunk(answers.choices))
        yield b"data: [DONE]\n\n"
    except ApiError as error:
        yield _event(error.body)
    finally:
        await answers.close()


def _event(data: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()


async def _until_gone(request: Request, whole: Any) -> list[Choice] | None:
    """The result, or None where the client has hung up meanwhile."""
    work = asyncio.ensure_future(whole)
    gone = asyncio.create_task(_gone(request))
    try:
        await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
        return await work if work.done() else None
    finally:
        for task in (work, gone):
            task.cancel()
        await asyncio.gather(work, gone, return_exceptions=True)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
