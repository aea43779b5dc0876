"""`deskinfer ask --server`: the remote engine of the app, against our own gateway."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import keyring
import pytest
from keyring.backends import fail
from typer.testing import CliRunner

from app.cli import app
from app.engine_setup import SERVER_KEY_VARIABLE
from app.remote.key import RemoteKeys
from inference.errors import ContextOverflowError
from inference.gateway.gateway import Gateway
from inference.gateway.options import GatewayOptions
from inference.gateway.server import GatewayServer
from tests.app.remote.test_key import Ring
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


@pytest.fixture
def ring(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ring]:
    """The system's keyring, and no key in the environment."""
    before, ring = keyring.get_keyring(), Ring()
    monkeypatch.delenv(SERVER_KEY_VARIABLE, raising=False)
    keyring.set_keyring(ring)
    yield ring
    keyring.set_keyring(before)


def test_without_a_keyring_a_server_that_wants_no_key_answers_without_a_word_of_it(
    ring: Ring, engine: ScriptedEngine, project_root: Path
) -> None:
    keyring.set_keyring(fail.Keyring())
    options = GatewayOptions(port=0)
    server = GatewayServer(Gateway(engine, options, lambda: {"one": "one"}, lambda: "one").app, options)
    server.start()
    try:
        # Of its own process, since what a log writes where nobody has set it up is caught here.
        result = subprocess.run(
            [sys.executable, "-m", "app.cli", "ask", "--server", f"http://127.0.0.1:{server.port}", "why?"],
            cwd=project_root,
            env={**os.environ, "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
        )
    finally:
        server.stop()
    assert (result.returncode, result.stdout, result.stderr) == (0, b"Hello there\n", b"")


def test_a_refused_key_is_told_with_its_place(url: str, ring: Ring, monkeypatch: pytest.MonkeyPatch) -> None:
    def told() -> str:
        result = runner.invoke(app, ["ask", "--server", url, "why?"])
        assert result.exit_code == 1
        return result.stderr

    assert told().endswith("None was sent: DESKINFER_SERVER_KEY may hold it.\n")
    keyring.set_keyring(fail.Keyring())
    assert told().endswith("may hold it; the system's keyring does not answer (NoKeyringError).\n")
    keyring.set_keyring(ring)
    RemoteKeys().set(f"{url}/v1", "old")
    assert told().endswith("What was sent is in the system's keyring; DESKINFER_SERVER_KEY goes before it.\n")
    monkeypatch.setenv(SERVER_KEY_VARIABLE, "wrong")
    assert told().endswith("What was sent is in DESKINFER_SERVER_KEY.\n")


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
