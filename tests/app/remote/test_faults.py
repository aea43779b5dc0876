"""What goes wrong between here and a server has a name, and keeps what had arrived."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from app.remote.address import RemoteAddress
from app.remote.client import RemoteClient, RemoteTimeouts
from app.remote.error import RemoteError, RemoteFault
from inference.request import (
    FailedEvent,
    GenerationRequest,
    Grammar,
    SamplingParams,
    Tool,
)
from tests.app.remote.client_rig import ask, fault, replies, request, streams
from tests.app.remote.remote_server import Exchange, Script, chunk, event


@pytest.mark.parametrize(
    "asked",
    [
        request(tools=(Tool("f", "", "{}"),)),
        request(sampling=SamplingParams(top_logprobs=0)),
        request(grammar=Grammar("regex", "a+")),
        GenerationRequest((), prompt="Once"),
    ],
)
def test_what_servers_have_not_in_common_is_refused_here(
    client: RemoteClient, script: Script, asked: GenerationRequest
) -> None:
    end = ask(client, asked).end()
    assert isinstance(end, FailedEvent)
    assert isinstance(end.error, RemoteError)
    assert end.error.fault is RemoteFault.LOCAL_ONLY
    assert not script.seen


def test_an_answer_that_breaks_off_keeps_its_text(client: RemoteClient, script: Script) -> None:
    script.complete = streams(event(chunk("half an ")))
    events = ask(client)
    end = events.end()
    assert isinstance(end, FailedEvent)
    assert isinstance(end.error, RemoteError)
    assert end.error.fault is RemoteFault.BROKEN_OFF
    assert events.text == "half an "


@pytest.mark.parametrize(
    ("status", "document", "expected"),
    [
        (401, {"error": {"message": "Invalid key"}}, RemoteFault.KEY),
        (403, "no", RemoteFault.KEY),
        (404, {"error": {"message": "model 'small' not found"}}, RemoteFault.MODEL),
        (404, {"object": "error", "message": "The model does not exist.", "code": 404}, RemoteFault.MODEL),
        (404, {"detail": "Not Found"}, RemoteFault.NOT_OPENAI),
        (404, "<html>", RemoteFault.NOT_OPENAI),
        (301, "", RemoteFault.NOT_OPENAI),
        (400, {"error": {"message": "too long"}}, RemoteFault.REFUSED),
        (429, {"error": {"message": "slow down"}}, RemoteFault.BUSY),
        (503, {"error": {"message": "Loading model"}}, RemoteFault.BUSY),
        (500, [], RemoteFault.SERVER),
    ],
)
def test_each_refusal_has_a_name(
    client: RemoteClient, script: Script, status: int, document: Any, expected: RemoteFault
) -> None:
    script.complete = replies(status, document)
    assert fault(client) is expected


@pytest.mark.parametrize(
    "handler",
    [
        replies(200, "<html>a router</html>", "text/html"),
        replies(200, "no JSON"),
        replies(200, {"hello": 1}),
        streams(b"data: nonsense\n\n"),
        streams(b'data: {"hello": 1}\n\n'),
        streams(b"data: 1\n\n"),
    ],
)
def test_what_is_no_such_server_is_named(client: RemoteClient, script: Script, handler: Any) -> None:
    script.complete = handler
    assert fault(client) is RemoteFault.NOT_OPENAI


def test_a_failure_in_the_stream_is_told_in_its_own_words(client: RemoteClient, script: Script) -> None:
    script.complete = streams(event(chunk("a")), event('{"error": {"message": "out of memory"}}'))
    end = ask(client).end()
    assert isinstance(end, FailedEvent)
    assert "out of memory" in str(end.error)


def test_nobody_listens() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    client = RemoteClient()
    client.set_address(RemoteAddress(f"http://127.0.0.1:{port}/v1", "small"))
    assert fault(client) is RemoteFault.UNREACHABLE
    client.close()


def test_nothing_is_set_up() -> None:
    client = RemoteClient()
    assert fault(client) is RemoteFault.NOT_SET_UP
    client.close()


@pytest.mark.parametrize("begins", [True, False])
def test_a_server_that_hangs_is_given_up(script: Script, begins: bool) -> None:
    def handler(exchange: Exchange) -> None:
        if begins:
            exchange.begin()
            exchange.write(event(chunk("one")))
        exchange.wait_until_gone()

    script.complete = handler
    client = RemoteClient(timeouts=RemoteTimeouts(answer_s=0.2))
    client.set_address(RemoteAddress(script.url, "small"))
    assert fault(client) is RemoteFault.TIMEOUT
    client.close()


def test_a_key_that_cannot_be_sent_is_refused_here(script: Script) -> None:
    for key in ("schlüssel", "two\nlines"):
        client = RemoteClient(lambda _url, key=key: key)
        client.set_address(RemoteAddress(script.url, "small"))
        assert fault(client) is RemoteFault.KEY
        client.close()
    assert not script.seen
