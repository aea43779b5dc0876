"""Notes of the servers that run, and what listens at a port."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from app.gateway import running
from app.gateway.running import Health, RunningServer, announced, ask_health, running_servers
from app.paths import runtime_dir
from inference.gateway.gateway import Gateway
from inference.gateway.options import GatewayOptions
from inference.gateway.server import GatewayServer
from tests.inference.gateway.conftest import ScriptedEngine


def test_a_server_is_known_while_it_serves() -> None:
    assert running_servers() == []
    with announced("127.0.0.1", 18055):
        (server,) = running_servers()
        assert (server.pid, server.host, server.port) == (os.getpid(), "127.0.0.1", 18055)
        assert runtime_dir().stat().st_mode & 0o077 == 0 or sys.platform == "win32"
    assert running_servers() == []


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "http://127.0.0.1:80"),
        ("localhost", "http://localhost:80"),
        ("0.0.0.0", "http://127.0.0.1:80"),
        ("::", "http://[::1]:80"),
        ("192.0.2.7", "http://192.0.2.7:80"),
    ],
)
def test_where_programs_of_this_machine_reach_it(host: str, address: str) -> None:
    assert RunningServer(1, host, 80, 0.0).address == address


def test_brackets_of_an_address_are_none_of_the_note() -> None:
    with announced("[::1]", 18055):
        assert running_servers()[0].address == "http://[::1]:18055"


def ended_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.parametrize(
    "told",
    [
        "no json",
        "[]",
        json.dumps({"pid": 1}),
        json.dumps({"pid": os.getpid(), "host": "127.0.0.1", "port": 1, "started": 12.0}),
        "ended",
    ],
)
def test_a_note_of_nobody_is_removed(told: str) -> None:
    if told == "ended":
        told = json.dumps({"pid": ended_process(), "host": "127.0.0.1", "port": 1, "started": 12.0})
    note = runtime_dir() / "serve-1.json"
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text(told, encoding="utf-8")
    assert running_servers() == []
    assert not note.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="rights of folders are other ones there")
def test_a_server_serves_where_no_note_can_be_left(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime_dir().parent.mkdir(parents=True, exist_ok=True)
    runtime_dir().write_text("a file in the folder's place")
    with announced("127.0.0.1", 1):
        assert running_servers() == []


@pytest.fixture
def gateway() -> Iterator[GatewayServer]:
    options = GatewayOptions(port=0, api_key="s3cret")
    server = GatewayServer(Gateway(ScriptedEngine(), options, lambda: {"one": "one"}, lambda: "one").app, options)
    server.start()
    yield server
    server.stop()


def test_a_gateway_tells_its_model_without_a_key(gateway: GatewayServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert ask_health(gateway.port) == Health(True, "ready", "one")


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


def test_nobody_listens() -> None:
    assert ask_health(free_port()) is None


@contextlib.contextmanager
def listening(answer: bytes | None) -> Iterator[int]:
    """A program that says something to whoever calls; None keeps silent."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                caller, _ = server.accept()
                with caller:
                    caller.recv(4096)
                    if answer is None:
                        caller.recv(4096)
                    else:
                        caller.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join(5)


def _response(body: str, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode()


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"",
        None,
        _response("not here", "404 Not Found"),
        _response(""),
        _response('{"status": "ok"}'),  # llama.cpp's server
        _response('{"status": "ok", "state": "well"}'),
        _response('["status"]'),
    ],
)
def test_another_program_listens(answer: bytes | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "HEALTH_TIMEOUT_S", 0.2)
    with listening(answer) as port:
        assert ask_health(port) == Health(is_ours=False)


def test_a_plain_web_server_is_another_program() -> None:
    class Quiet(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            return

    with http.server.HTTPServer(("127.0.0.1", 0), Quiet) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        assert ask_health(server.server_port) == Health(is_ours=False)
        thread.join(5)
