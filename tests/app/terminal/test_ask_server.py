"""`deskinfer ask --server`: the remote engine of the app, against our own gateway."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from typer.testing import CliRunner

from app.cli import app
from app.engine_setup import SERVER_KEY_VARIABLE
from inference.errors import ContextOverflowError
from inference.gateway.gateway import Gateway
from inference.gateway.options import GatewayOptions
from inference.gateway.server import GatewayServer
from tests.inference.gateway.conftest import ScriptedEngine

runner = CliRunner()


@pytest.fixture
def engine() -> ScriptedEngine:
    return ScriptedEngine()


@pytest.fixture
def url(engine: ScriptedEngine, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A gateway whose key is in the environment."""
    monkeypatch.setenv(SERVER_KEY_VARIABLE, "s3cret")
    options = GatewayOptions(port=0, api_key="s3cret")
    gateway = Gateway(engine, options, lambda: {"one": "one", "two": "two"}, lambda: "one")
    server = GatewayServer(gateway.app, options)
    server.start()
    yield f"http://127.0.0.1:{server.port}"
    server.stop()


def test_a_server_answers(url: str, engine: ScriptedEngine) -> None:
    result = runner.invoke(app, ["ask", "--server", url, "--max-new-tokens", "9", "why?"])
    assert (result.exit_code, result.stdout, result.stderr) == (0, "Hello there\n", "")
    assert engine.submitted[0].messages[-1].content == "why?"
    assert engine.submitted[0].sampling.max_new_tokens == 9


def test_so_it_does_to_an_action(url: str, engine: ScriptedEngine) -> None:
    words = ["ask", "--server", url, "--server-model", "one", "--action", "summarize", "A text."]
    result = runner.invoke(app, words)
    assert (result.exit_code, result.stdout) == (0, "Hello there\n")
    assert "A text." in engine.submitted[0].messages[-1].content


def test_what_the_server_refuses_is_told(url: str, engine: ScriptedEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.error = ContextOverflowError(900, 512)
    result = runner.invoke(app, ["ask", "--server", url, "why?"])
    assert result.exit_code == 1
    assert "900 tokens" in result.stderr
    monkeypatch.setenv(SERVER_KEY_VARIABLE, "wrong")
    result = runner.invoke(app, ["ask", "--server", url, "why?"])
    assert result.exit_code == 1
    assert "key" in result.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--server", "http://localhost:1", "--model", "two"], "leave --model"),
        (["--server", "http://localhost:1", "--backend", "cpu"], "leave --model, --backend"),
        (["--server-model", "two"], "give --server URL"),
        (["--server", "nowhere at all"], "is not the address of a server"),
        (["--server", "http://192.0.2.1:1"], "would not be encrypted"),
    ],
)
def test_what_does_not_go_together(words: list[str], told: str) -> None:
    result = runner.invoke(app, ["ask", *words, "why?"])
    assert result.exit_code == 1
    assert told in result.stderr
