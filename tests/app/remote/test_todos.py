"""To-dos by way of servers: a scripted one, with and without schemas, and our own gateway with a real model."""

from __future__ import annotations

import json
import queue
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from app.actions.registry import ActionRegistry
from app.actions.text_task import TaskEvent, TextTask
from app.language import LANGUAGES, Languages
from app.remote.address import RemoteAddress
from app.remote.client import RemoteClient
from app.todos.prompt import sentences, todo_answer
from app.todos.todo import Todo, parse_todos
from inference.request import DoneEvent, FailedEvent, TokenEvent
from tests.app.remote.remote_server import Exchange, Script, answer, serve
from tests.inference.gateway.real_gateway import QWEN, served

LANGUAGE_PAIR = Languages(LANGUAGES["en"], LANGUAGES["zh"])
TEXT = "The roses look well. Omar buys twelve bags of soil by Saturday. Ruth has called the shop."
BUY = Todo("Buy soil", "Omar", "by Saturday", "Omar buys twelve bags of soil by Saturday.")
WAIT_S = 120.0


@contextmanager
def client_of(url: str, model: str) -> Iterator[RemoteClient]:
    client = RemoteClient()
    client.set_address(RemoteAddress(url, model))
    yield client
    client.close()


def text_of(start: Callable[[Callable[[TaskEvent], None]], None]) -> str:
    """The answer of what `start` gives a listener."""
    events: queue.SimpleQueue[TaskEvent] = queue.SimpleQueue()
    start(events.put)
    found = ""
    while not isinstance(event := events.get(timeout=WAIT_S), DoneEvent | FailedEvent):
        found += event.text if isinstance(event, TokenEvent) else ""
    assert isinstance(event, DoneEvent), event
    return found


@pytest.mark.parametrize(
    "text",
    [
        todo_answer(TEXT, {2: [{"task": "Buy soil", "owner": "Omar", "due": "by Saturday"}]}),
        'Sure! In {braces}:\n```json\n{"todos": [{"task": "Buy soil", "owner": "Omar", "due": "by Saturday"}]}\n```',
        '{"task": "Buy soil", "owner": "Omar", "due": "by Saturday", "source": "Omar should buy soil."} Done.',
    ],
)
@pytest.mark.parametrize("knows_forms", [True, False])
def test_todos_of_a_server_are_read_and_have_sentences_of_the_text(text: str, knows_forms: bool) -> None:
    def complete(exchange: Exchange) -> None:
        if "response_format" in exchange.json and not knows_forms:
            exchange.reply(400, {"error": {"message": "response_format is not supported"}})
        else:
            exchange.begin()
            exchange.write(answer(*text))

    with serve(Script(complete=complete)) as script, client_of(script.url, "small") as client:
        task = TextTask(client, ActionRegistry().get("todos"), TEXT, LANGUAGE_PAIR)
        assert parse_todos(text_of(task.run), TEXT) == [BUY]
    assert len(script.seen) == (1 if knows_forms else 2)
    schema = script.seen[0].json["response_format"]["json_schema"]["schema"]
    quoted = [row["properties"]["sentence"]["const"] for row in schema["prefixItems"]]
    assert quoted == sentences(TEXT)
    assert "response_format" in script.seen[-1].json or not knows_forms


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_our_own_gateway_holds_a_small_model_to_the_form(tmp_path: Path) -> None:
    text = "The roses look well. Omar, please buy twelve bags of soil by Saturday. 请小王周五之前交报告。"
    request = ActionRegistry().get("todos").request(text, LANGUAGE_PAIR)
    with served(QWEN, tmp_path) as gateway, client_of(gateway.url, gateway.model) as client:
        found = text_of(partial(client.submit, request))
    assert [row["sentence"] for row in json.loads(found)] == sentences(text)
    todos = parse_todos(found, text)
    assert todos
    assert {todo.source for todo in todos} <= set(sentences(text))
