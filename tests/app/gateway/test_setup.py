"""`deskinfer serve`: what it says, and what it does where the model cannot be loaded."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest

from app.engine_client import FakeClient
from app.engine_setup import EngineChoice, load_settings
from app.gateway import setup as gateway_setup
from app.gateway.running import RunningServer, announced, running_servers
from app.instance.instance import InstanceServer
from inference.errors import BackendUnavailableError, InferenceError, InvalidRequestError, ModelResidentError
from inference.gateway.server import GatewayPortError
from inference.request import ModelState


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> FakeClient:
    """The engine that is served; the server runs until all its events are delivered."""
    client = FakeClient()
    server = SimpleNamespace(port=18123, run=client.play)
    monkeypatch.setattr(gateway_setup, "build_engine", lambda *_, **__: (client, lambda: "/models/one.gguf"))
    monkeypatch.setattr(gateway_setup, "open_gateway", lambda *_: server)
    monkeypatch.setattr(gateway_setup, "tell_problems", lambda _: load_settings())
    return client


def served(host: str = "127.0.0.1") -> str:
    notes = io.StringIO()
    gateway_setup.serve(host, 0, "", None, notes)
    return notes.getvalue()


@pytest.mark.parametrize(("host", "shown"), [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")])
def test_it_says_where_it_serves_which_model(engine: FakeClient, host: str, shown: str) -> None:
    assert served(host) == f"deskinfer: serving one.gguf at http://{shown}:18123/v1; Ctrl+C ends it\n"


def test_it_is_known_to_others_while_it_serves(engine: FakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[RunningServer] = []
    server = SimpleNamespace(port=18123, run=lambda: seen.extend(running_servers()))
    monkeypatch.setattr(gateway_setup, "open_gateway", lambda *_: server)
    served()
    assert [each.address for each in seen] == ["http://127.0.0.1:18123"]
    assert running_servers() == []


@pytest.mark.parametrize("is_ours", [True, False])
def test_a_port_that_is_taken_is_told_with_who_of_ours_has_it(
    engine: FakeClient, monkeypatch: pytest.MonkeyPatch, is_ours: bool
) -> None:
    def fail(*_: object) -> None:
        raise GatewayPortError("Port 18055", "it is in use", "Choose another port.")

    monkeypatch.setattr(gateway_setup, "open_gateway", fail)
    told = r"runs already \(process \d+\), at http://127\.0\.0\.1:18055/v1" if is_ours else "Choose another port"
    with announced("127.0.0.1", 18055 if is_ours else 18056), pytest.raises(InferenceError, match=told):
        gateway_setup.serve("127.0.0.1", 18055, "", None, io.StringIO())


def test_it_says_why_no_request_can_be_answered(engine: FakeClient) -> None:
    engine.load_error = ModelResidentError("Another program holds the model. Quit it, then try again.")
    assert served().endswith("until this is mended: Another program holds the model. Quit it, then try again.\n")


@pytest.mark.parametrize(("choice", "cure"), [(None, "set engine.backend"), (EngineChoice("cuda"), "give --backend")])
def test_of_a_backend_it_says_what_helps(engine: FakeClient, choice: EngineChoice | None, cure: str) -> None:
    settings = load_settings()
    settings.set("engine.backend", "cuda")
    settings.save()
    engine.load_error = BackendUnavailableError("cuda", "no driver")
    notes = io.StringIO()
    gateway_setup.serve("127.0.0.1", 0, "", choice, notes)
    assert f"no driver. Or {cure}" in notes.getvalue()


def test_other_machines_are_let_in_with_a_key_only(engine: FakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        InvalidRequestError, match=r"0\.0\.0\.0 can be reached from other .* variable DESKINFER_API_KEY"
    ):
        served("0.0.0.0")
    monkeypatch.setenv(gateway_setup.KEY_VARIABLE, "secret")
    assert "http://0.0.0.0:18123/v1" in served("0.0.0.0")


def test_beside_the_running_app_it_says_that_the_app_can_serve(engine: FakeClient) -> None:
    app = InstanceServer(lambda _message, reply: reply.close())
    try:
        with pytest.raises(ModelResidentError, match=r"Serve other programs.*127\.0\.0\.1:18000/v1.*quit the app"):
            served()
        settings = load_settings()
        settings.set("gateway.enabled", True)
        settings.set("gateway.port", 18005)
        settings.save()
        with pytest.raises(ModelResidentError, match=r"serves its model already, at http://127\.0\.0\.1:18005/v1"):
            served()
    finally:
        app.close()
    assert engine.reading().state is ModelState.EMPTY
    assert "serving" in served()
