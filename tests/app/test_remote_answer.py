"""Answers across processes: every event survives the line, failures and cancels reach the other side."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.engine_client import FakeClient, ScriptedAnswer
from app.instance import InstanceServer
from app.remote_answer import RemoteError, RunningClient, ask_command, event_message, event_of, request_of, serve_answer
from inference.errors import EngineStoppedError, InvalidRequestError, ModelNotFoundError
from inference.request import (
    DoneEvent,
    FailedEvent,
    GenerationRequest,
    Message,
    ModelEvent,
    ModelState,
    PrefillEvent,
    Priority,
    SamplingParams,
    TokenEvent,
    Usage,
)

REQUEST = GenerationRequest(
    (Message("system", "be kind"), Message("user", "你好 👋")),
    SamplingParams(temperature=0.5, seed=3, stop=("END",), max_new_tokens=9),
    Priority.ACTION,
)


def test_request_survives_the_line() -> None:
    assert request_of(ask_command(REQUEST)) == REQUEST


@pytest.mark.parametrize(
    "event",
    [
        TokenEvent("r", "héllo 👋"),
        PrefillEvent("r", 3, 8),
        DoneEvent("r", "length", Usage(prompt_tokens=3, decode_ms=2.5)),
        ModelEvent(ModelState.LOADING, "tiny", 0.25),
    ],
)
def test_events_survive_the_line(event: TokenEvent | PrefillEvent | DoneEvent | ModelEvent) -> None:
    assert event_of(event_message(event), "r") == event


@pytest.mark.parametrize(
    "command",
    [
        {"ask": {}},
        {"ask": 3},
        {"ask": {"messages": [{"role": "user"}], "sampling": {}, "priority": 0, "request_id": "a"}},
        {"ask": {"messages": [], "sampling": {}, "priority": 0, "request_id": "a"}},
        {"ask": {**ask_command(REQUEST)["ask"], "sampling": {"heat": 1}}},
        {"ask": {**ask_command(REQUEST)["ask"], "sampling": {"temperature": 99}}},
    ],
)
def test_commands_that_are_no_requests(command: dict[str, object]) -> None:
    with pytest.raises(InvalidRequestError):
        request_of(command)


@pytest.mark.parametrize("message", [{}, {"event": "song"}, {"event": "token"}, {"event": "done", "usage": {"x": 1}}])
def test_messages_of_another_version(message: dict[str, object]) -> None:
    with pytest.raises(RemoteError):
        event_of(message, "r")


class App:
    """A running app with a scripted engine that plays on a thread of its own."""

    def __init__(self, directory: Path, *answers: ScriptedAnswer) -> None:
        self.client = FakeClient(*answers)
        self.submitted = threading.Event()
        self.go_on = threading.Event()
        self.server = InstanceServer(self.handle, directory)

    def handle(self, command, reply) -> None:
        serve_answer(self.client, command, reply)
        self.submitted.set()
        self.go_on.wait(5)
        self.client.play()

    def close(self) -> None:
        self.go_on.set()
        self.server.close()


@pytest.fixture
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run")


@pytest.fixture
def app(directory: Path) -> Iterator[App]:
    made = App(directory, ScriptedAnswer("Hal", "lo"))
    yield made
    made.close()


def collect(client: RunningClient) -> queue.Queue:
    events: queue.Queue = queue.Queue()
    client.listen(events.put)
    client.submit(REQUEST, events.put)
    return events


def drain(events: queue.Queue) -> list[object]:
    found = []
    while not found or not isinstance(found[-1], DoneEvent | FailedEvent):
        found.append(events.get(timeout=5))
    return found


def test_answer_of_the_running_app(app: App, directory: Path) -> None:
    app.go_on.set()
    client = RunningClient(directory)
    found = drain(collect(client))
    client.close()
    assert app.client.submitted == [REQUEST]
    assert "".join(event.text for event in found if isinstance(event, TokenEvent)) == "Hallo"
    assert any(isinstance(event, ModelEvent) for event in found)
    assert isinstance(found[-1], DoneEvent)
    assert app.client._model_listeners == []


def test_failure_comes_across_with_its_text(app: App, directory: Path) -> None:
    app.client.load_error = ModelNotFoundError("no model of that name")
    app.go_on.set()
    client = RunningClient(directory)
    last = drain(collect(client))[-1]
    client.close()
    assert isinstance(last, FailedEvent)
    assert str(last.error) == "no model of that name"


def test_client_that_leaves_cancels(app: App, directory: Path) -> None:
    client = RunningClient(directory)
    events = collect(client)
    assert app.submitted.wait(5)
    client.cancel(REQUEST.request_id)
    app.go_on.set()
    last = drain(events)[-1]
    client.close()
    assert isinstance(last, DoneEvent)
    assert last.finish_reason == "cancelled"


def test_no_running_app(directory: Path) -> None:
    with pytest.raises(EngineStoppedError):
        collect(RunningClient(directory))
