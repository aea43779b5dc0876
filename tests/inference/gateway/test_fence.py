"""Who may come in, over a raw connection."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Callable

import pytest

from inference.errors import InvalidRequestError
from inference.gateway.options import GatewayOptions, is_loopback
from inference.gateway.server import GatewayPortError, GatewayServer

CHAT = json.dumps({"model": "one", "messages": [{"role": "user", "content": "hi"}]})


def ask(port: int, method: str = "POST", path: str = "/v1/chat/completions", body: str | None = CHAT, **headers: str):
    """(status, JSON or None, headers) of one request."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    sent = {"Content-Type": "application/json"} | {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, body, sent)
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response.status, json.loads(content) if content[:1] == b"{" else None, dict(response.getheaders())


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:{port}", "[::1]:{port}", "LOCALHOST:1"])
def test_the_names_of_this_machine_are_let_in(start: Callable[..., GatewayServer], host: str) -> None:
    port = start().port
    assert ask(port, Host=host.format(port=port))[0] == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "10.0.0.7", ""]
)
def test_other_names_are_not(start: Callable[..., GatewayServer], host: str) -> None:
    status, body, _ = ask(start().port, Host=host)
    assert (status, body["error"]["code"]) == (403, "unknown_host")


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://localhost.evil.example", "file://", "http://["]
)
def test_pages_of_others_are_refused(start: Callable[..., GatewayServer], origin: str) -> None:
    status, body, headers = ask(start().port, Origin=origin)
    assert (status, body["error"]["code"]) == (403, "unknown_origin")
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize("origin", ["http://localhost:3000", "http://127.0.0.1", "https://notes.example"])
def test_pages_of_this_machine_and_chosen_ones_may_call(start: Callable[..., GatewayServer], origin: str) -> None:
    port = start(origins=("https://notes.example",)).port
    status, _, headers = ask(port, Origin=origin)
    assert (status, headers["access-control-allow-origin"]) == (200, origin)
    status, _, headers = ask(port, "OPTIONS", body=None, Origin=origin, Access_Control_Request_Method="POST")
    assert (status, headers["access-control-allow-origin"]) == (204, origin)
    assert "POST" in headers["access-control-allow-methods"]


@pytest.mark.parametrize(
    ("sent", "status"),
    [({}, 401), ({"Authorization": "Bearer wrong"}, 401), ({"Authorization": "Basic s3cret"}, 401),
     ({"Authorization": "Bearer s3cret"}, 200), ({"Authorization": "bearer  s3cret"}, 200)],
)  # fmt: skip
def test_a_key_is_asked_for(start: Callable[..., GatewayServer], sent: dict[str, str], status: int) -> None:
    port = start(api_key="s3cret").port
    assert ask(port, **sent)[0] == status
    assert ask(port, "GET", "/health", None)[0] == 200


def test_beyond_the_loopback_a_key_is_needed() -> None:
    with pytest.raises(InvalidRequestError, match=r"0\.0\.0\.0 can be reached from other machines"):
        GatewayOptions(host="0.0.0.0")
    GatewayOptions(host="0.0.0.0", api_key="k")


@pytest.mark.parametrize(("host", "is_one"), [("127.0.0.5", True), ("::1", True), ("192.168.0.2", False), ("a", False)])
def test_loopback(host: str, is_one: bool) -> None:
    assert is_loopback(host) is is_one


def test_bodies_have_a_limit(start: Callable[..., GatewayServer]) -> None:
    port = start(max_body_bytes=200).port
    assert ask(port, body=CHAT)[0] == 200
    status, body, _ = ask(port, body=CHAT + " " * 200)
    assert (status, body["error"]["code"]) == (413, "body_too_large")
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    chunks = iter([b" " * 150, b" " * 150, b" " * 150])
    connection.request("POST", "/v1/completions", chunks, {"Content-Type": "application/json"}, encode_chunked=True)
    assert connection.getresponse().status == 413
    connection.close()


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [("{", "application/json", 400), ("[]", "application/json", 400), ("NaN", "application/json", 400),
     (CHAT, "text/plain", 415), ("[" * 100_000, "application/json", 400)],
    ids=["cut", "list", "nan", "text", "deep"],
)  # fmt: skip
def test_what_is_no_json_is_refused(start: Callable[..., GatewayServer], body: str, kind: str, status: int) -> None:
    assert ask(start().port, body=body, Content_Type=kind)[0] == status


def test_a_client_that_says_nothing_more_is_hung_up_on(start: Callable[..., GatewayServer]) -> None:
    port = start(silence_s=0.2).port
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        headers = ("Host: localhost", "Content-Type: application/json", "Content-Length: 9")
        connection.sendall("\r\n".join(["POST /v1/completions HTTP/1.1", *headers, "", "{"]).encode())
        answer = connection.recv(4096)
    assert b" 408 " in answer.splitlines()[0] + b" "


def test_paths_and_methods_that_there_are_not(start: Callable[..., GatewayServer]) -> None:
    port = start().port
    assert ask(port, "GET", "/v1/nothing", None)[0] == 404
    assert ask(port, "GET", "/v1/chat/completions", None)[0] == 405


def test_a_port_that_is_taken_is_named(start: Callable[..., GatewayServer]) -> None:
    port = start().port
    with pytest.raises(GatewayPortError, match=rf"Port {port} on 127\.0\.0\.1 cannot be used"):
        start(port=port)


def test_figures_are_told(start: Callable[..., GatewayServer]) -> None:
    port = start().port
    ask(port)
    ask(port, body="{")
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    for line in ('deskinfer_answers_total{reason="stop"} 1.0', 'deskinfer_errors_total{code="invalid_json"} 1.0',
                 'deskinfer_tokens_total{kind="new"} 2.0', "deskinfer_kv_pages 0.0"):  # fmt: skip
        assert line in text
