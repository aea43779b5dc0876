"""Asking the model that the running app holds."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.connection import Client
from pathlib import Path

import pytest

from app.actions.action_file import parse_action
from app.actions.text_task import Coverage, PartEvent, TextTask
from app.engine_client import FakeClient, ScriptedAnswer
from app.instance.address import address_in
from app.instance.ask_channel import answer, ask_running, count, count_running
from app.instance.event_json import Json, request_to_json
from app.instance.instance import InstanceError, InstanceServer, Reply, send_to_running
from app.instance.running_app import RunningApp, app_events
from app.language import LANGUAGES, Languages
from inference.errors import ContextOverflowError
from inference.request import DoneEvent, FailedEvent, GenerationRequest, Message, PrefillEvent, TokenCounts, TokenEvent

REQUEST = GenerationRequest((Message("user", "总结 this"),))


class PlayedClient(FakeClient):
    """Delivers on a thread of its own, as an engine does; `paused` holds it up."""

    def __init__(self, *answers: ScriptedAnswer) -> None:
        super().__init__(*answers)
        self.paused = threading.Event()
        self._ended = threading.Event()
        self._player = threading.Thread(target=self._run)
        self._player.start()

    def _run(self) -> None:
        while not self._ended.is_set():
            if self.paused.is_set() or not self.step():
                time.sleep(0.002)

    def end(self) -> None:
        self._ended.set()
        self._player.join()
        self.close()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., PlayedClient]]:
    clients: list[PlayedClient] = []
    servers: list[InstanceServer] = []

    def begin(*answers: ScriptedAnswer) -> PlayedClient:
        clients.append(PlayedClient(*answers))
        servers.append(InstanceServer(partial(answer, client=clients[0]), tmp_path))
        return clients[0]

    yield begin
    for client in clients:
        client.end()
    for server in servers:
        server.close()


def wait_for_cancel(client: PlayedClient) -> None:
    deadline = time.monotonic() + 5
    while client.cancelled != [REQUEST.request_id]:
        assert time.monotonic() < deadline, "the request was not cancelled"
        time.sleep(0.005)


def test_nobody_runs(tmp_path: Path) -> None:
    assert ask_running(REQUEST, directory=tmp_path) is None


def test_the_answer_streams_to_the_other_process(tmp_path: Path, start: Callable[..., PlayedClient]) -> None:
    client = start(ScriptedAnswer("今", "天", " done"))
    events = ask_running(REQUEST, directory=tmp_path)
    assert events is not None
    received = list(events)
    assert [type(event) for event in received] == [PrefillEvent, TokenEvent, TokenEvent, TokenEvent, DoneEvent]
    assert "".join(event.text for event in received if isinstance(event, TokenEvent)) == "今天 done"
    assert client.submitted == [REQUEST]


def test_a_failure_arrives_as_the_last_event(tmp_path: Path, start: Callable[..., PlayedClient]) -> None:
    start(ScriptedAnswer(error=ContextOverflowError(5000, 4096)))
    events = ask_running(REQUEST, directory=tmp_path)
    assert events is not None
    *_, last = events
    assert isinstance(last, FailedEvent)
    assert isinstance(last.error, ContextOverflowError)
    assert "5000" in str(last.error)


def test_a_client_that_goes_away_cancels_its_request(tmp_path: Path, start: Callable[..., PlayedClient]) -> None:
    client = start(ScriptedAnswer(*["x"] * 200_000))
    events = ask_running(REQUEST, directory=tmp_path)
    assert events is not None
    next(events)
    events.close()
    wait_for_cancel(client)


def test_a_client_that_goes_away_before_the_first_event_cancels_too(
    tmp_path: Path, start: Callable[..., PlayedClient]
) -> None:
    client = start(ScriptedAnswer("a"))
    client.paused.set()
    command = {"command": "ask", "request": request_to_json(REQUEST)}
    with Client(address_in(tmp_path)) as connection:
        connection.send_bytes(json.dumps(command).encode())
        while not client.submitted:
            time.sleep(0.002)
    wait_for_cancel(client)


def test_another_model_than_the_resident_one_is_refused(tmp_path: Path, start: Callable[..., PlayedClient]) -> None:
    client = start()
    client.load("large")
    while client.reading().model != "large":
        time.sleep(0.002)
    events = ask_running(REQUEST, model="small", directory=tmp_path)
    assert events is not None
    (event,) = events
    assert isinstance(event, FailedEvent)
    assert "holds the model 'large'" in str(event.error)
    same = ask_running(REQUEST, model="large", directory=tmp_path)
    assert same is not None
    assert isinstance(list(same)[-1], DoneEvent)


def test_a_closed_engine_is_a_failure_not_a_hang(tmp_path: Path, start: Callable[..., PlayedClient]) -> None:
    start().close()
    events = ask_running(REQUEST, directory=tmp_path)
    assert events is not None
    (event,) = events
    assert isinstance(event, FailedEvent)


def test_a_command_without_a_request_gets_an_error(tmp_path: Path, start: Callable[..., PlayedClient]) -> None:
    start()
    assert send_to_running({"command": "ask"}, directory=tmp_path) == {"error": "The command has no request."}
    bad = {"command": "ask", "request": {"messages": [], "sampling": {}, "priority": "CHAT", "request_id": "r"}}
    reply = send_to_running(bad, directory=tmp_path)
    assert reply is not None
    assert "messages is ()" in reply["error"]


def test_an_app_that_answers_in_another_tongue_is_an_error(tmp_path: Path) -> None:
    server = InstanceServer(lambda command, reply: (reply.send({"error": "No."}), reply.close()) and None, tmp_path)
    events = ask_running(REQUEST, directory=tmp_path)
    assert events is not None
    with pytest.raises(InstanceError, match="No"):
        next(events)
    server.close()
    server = InstanceServer(lambda command, reply: reply.close(), tmp_path)
    events = ask_running(REQUEST, directory=tmp_path)
    assert events is not None
    with pytest.raises(InstanceError, match="without a result"):
        next(events)
    server.close()


def serve(command: Json, reply: Reply, client: FakeClient) -> None:
    (count if command["command"] == "count" else answer)(command, reply, client)


@pytest.fixture
def app_client(tmp_path: Path) -> Iterator[PlayedClient]:
    """An app that runs and serves both commands."""
    client = PlayedClient()
    client.context_tokens = 500
    server = InstanceServer(partial(serve, client=client), tmp_path)
    yield client
    client.end()
    server.close()


def test_tokens_are_counted_by_the_running_app(tmp_path: Path, app_client: PlayedClient) -> None:
    assert count_running(["two words", "三个字"], directory=tmp_path) == TokenCounts((2, 3), 500)


def test_nobody_counts(tmp_path: Path) -> None:
    assert count_running(["x"], directory=tmp_path) is None
    assert not RunningApp(directory=tmp_path).connect()


def test_counting_fails_as_the_load_does(tmp_path: Path, app_client: PlayedClient) -> None:
    app_client.load_error = ContextOverflowError(2, 1)
    error = count_running(["x"], directory=tmp_path)
    assert isinstance(error, ContextOverflowError)


def test_texts_that_are_none_are_refused(tmp_path: Path, app_client: PlayedClient) -> None:
    reply = send_to_running({"command": "count", "texts": [1]}, directory=tmp_path)
    assert reply == {"error": "The command has no texts."}


TEXT = "".join(f"Paragraph {number} has exactly ten words in all of it.\n\n" for number in range(60))
LONG_ACTION = parse_action('long = "part_by_part"\npart_tokens = 100\n[prompt.en]\nuser = "{text}"', "own")


def long_task(app: RunningApp) -> TextTask:
    return TextTask(app, LONG_ACTION, TEXT, Languages(LANGUAGES["en"], LANGUAGES["zh"]))


def test_a_long_text_is_done_by_the_running_app(tmp_path: Path, app_client: PlayedClient) -> None:
    app = RunningApp(directory=tmp_path)
    assert app.connect()
    task = long_task(app)
    events = list(app_events(app, task))
    assert "".join(event.text for event in events if isinstance(event, TokenEvent)) == TEXT.rstrip()
    assert [event.number for event in events if isinstance(event, PartEvent)] == [1, 2, 3, 4, 5, 6]
    assert isinstance(events[-1], DoneEvent)
    assert task.coverage == Coverage(600, 6, 6, 6)


def test_whoever_leaves_a_long_text_cancels_it_in_the_app(tmp_path: Path, app_client: PlayedClient) -> None:
    app = RunningApp(directory=tmp_path)
    assert app.connect()
    app_client._answers = [ScriptedAnswer(*["x "] * 200_000)]
    events = app_events(app, long_task(app))
    assert any(isinstance(event, TokenEvent) for event in events)
    events.close()
    deadline = time.monotonic() + 5
    while not app_client.cancelled:
        assert time.monotonic() < deadline, "the part was not cancelled"
        time.sleep(0.005)
    assert len(app_client.submitted) == 1
