"""A form that an answer should have: asked of the server as a schema, given up where it knows none."""

from __future__ import annotations

import pytest

from app.remote.address import RemoteAddress
from app.remote.client import RemoteClient
from app.remote.error import RemoteError, RemoteFault
from inference.request import (
    DoneEvent,
    FailedEvent,
    Grammar,
    PrefillEvent,
    TokenEvent,
)
from tests.app.remote.client_rig import ask, replies, request
from tests.app.remote.remote_server import Exchange, Script, answer, serve

SCHEMA = '{"type": "array"}'

FORM = {"type": "json_schema", "json_schema": {"name": "answer", "schema": {"type": "array"}, "strict": True}}

WISH = Grammar("lark", "start: /a+/", is_wish=True, json_schema=SCHEMA)


def without_forms(exchange: Exchange) -> None:
    """A server that knows no `response_format`, and no text with "long" in it."""
    if "response_format" in exchange.json or "long" in exchange.json["messages"][-1]["content"]:
        exchange.reply(400, {"error": {"message": "What is this?"}})
    else:
        exchange.begin()
        exchange.write(answer("Hello"))


def forms_of(script: Script) -> list[object]:
    return [seen.json.get("response_format") for seen in script.seen]


def test_a_wish_is_asked_for_as_a_schema(client: RemoteClient, script: Script) -> None:
    ask(client, request(grammar=WISH)).end()
    ask(client, request(grammar=Grammar("regex", "a+", is_wish=True))).end()
    assert forms_of(script) == [FORM, None]


def test_a_server_that_refuses_forms_answers_without_and_is_not_asked_for_them_again(
    client: RemoteClient, script: Script
) -> None:
    script.complete = without_forms
    for _ in range(2):
        events = ask(client, request(grammar=WISH))
        assert isinstance(events.end(), DoneEvent)
        assert events.text == "Hello"
        assert [type(event) for event in events.all] == [PrefillEvent, TokenEvent, DoneEvent]
    assert forms_of(script) == [FORM, None, None]
    with serve(Script()) as other:
        client.set_address(RemoteAddress(other.url, "small"))
        ask(client, request(grammar=WISH)).end()
        assert forms_of(other) == [FORM], "another server may know them"


def test_a_text_that_is_refused_says_nothing_of_forms(client: RemoteClient, script: Script) -> None:
    script.complete = without_forms
    end = ask(client, request("a long text", grammar=WISH)).end()
    assert isinstance(end, FailedEvent)
    assert isinstance(end.error, RemoteError)
    assert end.error.fault is RemoteFault.REFUSED
    script.complete = Script().complete
    ask(client, request(grammar=WISH)).end()
    assert forms_of(script) == [FORM, None, FORM]


@pytest.mark.parametrize(("status", "grammar"), [(400, Grammar("json_schema", SCHEMA)), (503, WISH), (401, WISH)])
def test_what_is_no_refusal_of_a_wish_is_told_at_once(
    client: RemoteClient, script: Script, status: int, grammar: Grammar
) -> None:
    script.complete = replies(status, {"error": {"message": "No."}})
    assert isinstance(ask(client, request(grammar=grammar)).end(), FailedEvent)
    assert forms_of(script) == [FORM]
