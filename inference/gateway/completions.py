"""POST /v1/chat/completions and /v1/completions: answers of the engine, whole or as a stream of server-sent events."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from inference.gateway.answer import Answer, Engine, until_gone
from inference.gateway.chat_answer import ChatForm, Choice, Envelope, TextForm
from inference.gateway.errors import ApiError
from inference.gateway.schema import ChatRequest, CompletionRequest
from inference.gateway.tool_calls import call_finder
from inference.gateway.translation import chat_requests, completion_requests, read_body
from inference.request import DoneEvent, GenerationRequest, TokenEvent

CLIENT_GONE = 499
"""Of an answer that nobody takes any more; never sent."""
_BEGIN_S = 3.0
"""A stream begins with the first event of the engine, so that what is refused has its status; else after this."""

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
        answers = _Answers(self._engine, requests, body.n or 1, self._watch)
        if body.stream:
            with_usage = body.stream_options is not None and bool(body.stream_options.include_usage)
            await answers.open()
            await answers.wait_for_first()
            return _EventStream(answers, _events(answers, envelope, with_logprobs, with_usage))
        choices = await until_gone(request, answers.whole())
        if choices is None:
            return Response(status_code=CLIENT_GONE)
        return JSONResponse(envelope.whole(choices, with_logprobs))


class _Answers:
    """All answers of one API request, which end together."""

    def __init__(self, engine: Engine, requests: Sequence[GenerationRequest], choices: int, watch: Watch) -> None:
        self._engine, self._requests, self._watch = engine, requests, watch
        self._stack = contextlib.AsyncExitStack()
        self._events: asyncio.Queue[tuple[int, TokenEvent | DoneEvent | ApiError]] = asyncio.Queue()
        self._begun = asyncio.Event()
        self._early_failure: ApiError | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._finders = [call_finder(each) for each in requests]
        self.choices = [Choice(index, index // choices) for index in range(len(requests))]

    async def open(self) -> None:
        """Lets the requests in. Raises ApiError where there are too many."""
        async with contextlib.AsyncExitStack() as stack:
            self._note = stack.enter_context(self._watch(self._requests))
            answers = [await stack.enter_async_context(Answer(self._engine, each)) for each in self._requests]
            stack.push_async_callback(self._stop)
            self._tasks = [asyncio.create_task(self._take(index, each)) for index, each in enumerate(answers)]
            self._stack = stack.pop_all()

    async def wait_for_first(self) -> None:
        """Waits for a moment until the engine says something. Raises ApiError, and closes, where that is a failure."""
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_BEGIN_S):
                    await self._begun.wait()
            if self._early_failure is not None:
                raise self._early_failure
        except BaseException:
            await self.close()
            raise

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
            for each in self._sorted(choice, event):
                if isinstance(each, TokenEvent):
                    choice.add(each)
                else:
                    choice.done = each
                    self._note(each)
                    running -= 1
                yield choice, each

    def _sorted(self, choice: Choice, event: TokenEvent | DoneEvent) -> list[TokenEvent | DoneEvent]:
        """The event without the calls of tools in its text; those are the choice's when it ends."""
        if not self._requests[choice.index].tools:
            return [event]
        finder = self._finders[choice.index]
        if isinstance(event, DoneEvent):
            rest = finder.finish()
            choice.calls = finder.calls
            return [TokenEvent(event.request_id, rest), event] if rest else [event]
        text = finder.push(event.text)
        return [TokenEvent(event.request_id, text, event.tokens)] if text or event.tokens else []

    async def _take(self, index: int, answer: Answer) -> None:
        try:
            async for event in answer.events():
                if isinstance(event, DoneEvent) and event.finish_reason == "cancelled":
                    raise ApiError(503, "The model was unloaded meanwhile. Try again.", "cancelled", retry_after_s=1)
                if isinstance(event, TokenEvent | DoneEvent):
                    await self._events.put((index, event))
                self._begun.set()
        except ApiError as error:
            if not self._begun.is_set():
                self._early_failure = error
            await self._events.put((index, error))
        finally:
            self._begun.set()

    async def _stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class _EventStream(StreamingResponse):
    """A stream of events. However it ends, and even where it never begins, the requests behind it end with it."""

    def __init__(self, answers: _Answers, events: AsyncIterator[bytes]) -> None:
        headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        super().__init__(events, media_type="text/event-stream", headers=headers)
        self._answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._answers.close()


async def _events(answers: _Answers, envelope: Envelope, with_logprobs: bool, with_usage: bool) -> AsyncIterator[bytes]:
    """Server-sent events; an error behind the first of them is an event as well, for the status is already sent."""
    form = envelope.form
    try:
        for choice in answers.choices:
            first = form.first(choice.index)
            if first is not None:
                yield _event(envelope.chunk(first, with_usage))
        async for choice, event in answers.events():
            if isinstance(event, DoneEvent):
                pieces = form.last(choice)
            else:
                pieces = [form.piece(choice, event, with_logprobs)]
            for piece in pieces:
                yield _event(envelope.chunk(piece, with_usage))
        if with_usage:
            yield _event(envelope.usage_chunk(answers.choices))
    except ApiError as error:
        yield _event(error.body)
    yield b"data: [DONE]\n\n"


def _event(data: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()
