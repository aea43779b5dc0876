"""Requests to a scripted server, and the events that come of them."""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Any

from app.remote.client import RemoteClient
from app.remote.error import RemoteError, RemoteFault
from inference.request import (
    DoneEvent,
    FailedEvent,
    GenerationRequest,
    Message,
    RequestEvent,
    TokenEvent,
)
from tests.app.remote.remote_server import Exchange

WAIT_S = 10.0


def request(text: str = "hi", **fields: Any) -> GenerationRequest:
    return GenerationRequest((Message("system", "Be brief."), Message("user", text)), **fields)


class Events:
    """The events of one request."""

    def __init__(self) -> None:
        self.all: list[RequestEvent] = []
        self.queue: queue.SimpleQueue[RequestEvent] = queue.SimpleQueue()

    def __call__(self, event: RequestEvent) -> None:
        self.all.append(event)
        self.queue.put(event)

    def wait_for(self, *kinds: type) -> RequestEvent:
        while not isinstance(found := self.queue.get(timeout=WAIT_S), kinds):
            pass
        return found

    def end(self) -> DoneEvent | FailedEvent:
        found = self.wait_for(DoneEvent, FailedEvent)
        assert isinstance(found, (DoneEvent, FailedEvent))
        return found

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.all if isinstance(event, TokenEvent))


def ask(client: RemoteClient, asked: GenerationRequest | None = None) -> Events:
    events = Events()
    client.submit(asked or request(), events)
    return events


def fault(client: RemoteClient) -> RemoteFault:
    end = ask(client).end()
    assert isinstance(end, FailedEvent)
    assert isinstance(end.error, RemoteError)
    assert end.error.text.source
    return end.error.fault


def replies(status: int, document: Any, kind: str = "application/json") -> Callable[[Exchange], None]:
    return lambda exchange: exchange.reply(status, document, kind)


def streams(*parts: bytes) -> Callable[[Exchange], None]:
    def handler(exchange: Exchange) -> None:
        exchange.begin()
        for part in parts:
            exchange.write(part)

    return handler
