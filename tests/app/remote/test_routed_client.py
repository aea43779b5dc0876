"""Requests go to the engine of this process or to a server, as the chosen model says."""

from __future__ import annotations

import io
import queue
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.engine_client import EngineClient, FakeClient, ScriptedAnswer
from app.instance.ask_channel import tell_where
from app.instance.instance import InstanceServer
from app.qt.instance_commands import InstanceCommands
from app.remote.address import RemoteAddress
from app.remote.client import RemoteClient
from app.remote.routed_client import RoutedClient
from inference.engine.options import EngineOptions
from inference.errors import InferenceError
from inference.request import (
    DoneEvent,
    GenerationRequest,
    Message,
    ModelEvent,
    ModelPlan,
    ModelState,
    RequestEvent,
    TokenCounts,
    TokenEvent,
)
from tests.app.remote.remote_server import Script, answer, serve

WAIT_S = 10.0


@pytest.fixture
def script() -> Iterator[Script]:
    with serve(Script(complete=lambda exchange: (exchange.begin(), exchange.write(answer("from afar")))[0])) as script:
        yield script


@pytest.fixture
def local() -> FakeClient:
    return FakeClient(ScriptedAnswer("from here"))


@pytest.fixture
def client(local: FakeClient, script: Script) -> Iterator[RoutedClient]:
    remote = RemoteClient()
    remote.set_address(RemoteAddress(script.url, "small"))
    client = RoutedClient(local, remote)
    yield client
    client.close()


def ask(client: EngineClient, local: FakeClient) -> str:
    events: queue.SimpleQueue[RequestEvent] = queue.SimpleQueue()
    client.submit(GenerationRequest((Message("user", "hi"),)), events.put)
    local.play()
    text = ""
    while not isinstance(event := events.get(timeout=WAIT_S), DoneEvent):
        text += event.text if isinstance(event, TokenEvent) else ""
    return text


def go_remote(client: RoutedClient) -> list[ModelEvent]:
    """Chooses the server; what listeners hear of it."""
    events: queue.SimpleQueue[ModelEvent] = queue.SimpleQueue()
    remove = client.listen(events.put)
    assert client.address is not None
    client.load(client.address.id)
    heard = [events.get(timeout=WAIT_S), events.get(timeout=WAIT_S)]
    remove()
    return heard


def test_it_is_local_until_a_server_is_chosen(client: RoutedClient, local: FakeClient, script: Script) -> None:
    assert ask(client, local) == "from here"
    assert not client.is_remote
    assert not client.remote.is_used
    assert not script.seen


def test_choosing_a_server_sends_requests_there_and_back(
    client: RoutedClient, local: FakeClient, script: Script
) -> None:
    client.load("mine")
    local.play()
    heard = go_remote(client)
    assert [event.state for event in heard] == [ModelState.LOADING, ModelState.READY]
    local.play()
    assert local.reading().state is ModelState.EMPTY
    assert client.is_remote
    assert ask(client, local) == "from afar"
    assert (client.reading().backend, client.reading().state) == ("remote", ModelState.READY)
    client.load("mine")
    assert not client.is_remote
    assert ask(client, local) == "from here"
    assert client.reading().backend == "fake"


def test_listeners_hear_only_of_the_side_in_use(client: RoutedClient, local: FakeClient) -> None:
    client.load("mine")
    local.play()
    heard: list[ModelEvent] = []
    client.listen(heard.append)
    go_remote(client)
    local.play()
    assert {event.model.split(":")[0] for event in heard} == {"remote"}


def test_memory_is_given_back_while_a_server_stays_chosen(client: RoutedClient, local: FakeClient) -> None:
    go_remote(client)
    client.unload()
    assert client.is_remote
    assert ask(client, local) == "from afar"


def test_plans_counts_and_options_go_where_they_belong(client: RoutedClient, local: FakeClient) -> None:
    plans: queue.SimpleQueue[ModelPlan | InferenceError] = queue.SimpleQueue()
    go_remote(client)
    client.plan("mine", 512, plans.put)
    local.play()
    assert isinstance(plans.get(timeout=WAIT_S), ModelPlan)
    assert client.address is not None
    client.plan(client.address.id, None, plans.put)
    assert isinstance(plans.get(timeout=WAIT_S), InferenceError)
    counts: queue.SimpleQueue[TokenCounts | InferenceError] = queue.SimpleQueue()
    client.count_tokens(["one"], counts.put)
    found = counts.get(timeout=WAIT_S)
    assert isinstance(found, TokenCounts)
    assert found.estimated
    options = EngineOptions(context_tokens=1024)
    client.set_options(options)
    assert local.options == options


def test_a_request_is_cancelled_where_it_began(client: RoutedClient, local: FakeClient) -> None:
    client.cancel("a")
    go_remote(client)
    client.cancel("b")
    assert local.cancelled == ["a", "b"]


def test_the_command_line_is_told_where_texts_go(client: RoutedClient, tmp_path: Path) -> None:
    server = InstanceServer(InstanceCommands(client, lambda function: function()), tmp_path)
    try:
        notes = io.StringIO()
        tell_where(notes, directory=tmp_path)
        assert notes.getvalue() == ""
        go_remote(client)
        tell_where(notes, directory=tmp_path)
        assert client.address is not None
        assert notes.getvalue() == f"deskinfer: the running app sends this text to {client.address.host}.\n"
    finally:
        server.close()
    tell_where(notes, directory=tmp_path)


def test_a_server_may_be_in_use_from_the_start(local: FakeClient, script: Script) -> None:
    remote = RemoteClient()
    remote.set_address(RemoteAddress(script.url, "small"))
    client = RoutedClient(local, remote, is_remote=True)
    assert client.reading().model.endswith("/small")
    assert ask(client, local) == "from afar"
    assert not local.submitted
    client.close()
