"""Who may come in, over a raw connection."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import time
from collections.abc import Callable

import openai
import pytest

from inference.errors import InvalidRequestError
from inference.gateway.options import GatewayOptions, is_loopback
from inference.gateway.server import GatewayPortError, GatewayServer
from tests.inference.gateway.conftest import ScriptedEngine

LONG = "Host: localhost\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n"
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


@pytest.fixture(scope="module")
def port(steady: openai.OpenAI) -> int:
    """Of a server that is the same for all tests here that need no other."""
    return steady.base_url.port or 0


@pytest.mark.parametrize("path", ["/v1/chat/completions/", "//v1/chat/completions", "/v1//chat//completions//"])
def test_a_slash_too_many_does_no_harm(port: int, path: str) -> None:
    assert ask(port, path=path)[0] == 200
    assert ask(port, "GET", "/v1/models/", None)[0] == 200


@pytest.mark.parametrize("path", ["/chat/completions", "/v1/v1/chat/completions", "/v1/responses", "/"])
def test_a_path_that_is_none_is_answered_with_those_that_are(port: int, path: str) -> None:
    status, body, _ = ask(port, path=path)
    assert (status, body["error"]["code"]) == (404, "not_found")
    assert "/v1/chat/completions" in body["error"]["message"]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:{port}", "[::1]:{port}", "LOCALHOST:1"])
def test_the_names_of_this_machine_are_let_in(port: int, host: str) -> None:
    assert ask(port, Host=host.format(port=port))[0] == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "10.0.0.7", ""]
)
def test_other_names_are_not(port: int, host: str) -> None:
    status, body, _ = ask(port, Host=host)
    assert (status, body["error"]["code"]) == (403, "unknown_host")


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://localhost.evil.example", "file://", "http://["]
)
def test_pages_of_others_are_refused(port: int, origin: str) -> None:
    status, body, headers = ask(port, Origin=origin)
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


def test_a_page_may_send_what_its_library_adds(start: Callable[..., GatewayServer]) -> None:
    asked = {"Origin": "http://localhost:3000", "Access_Control_Request_Method": "POST"}
    names = "authorization,content-type,x-stainless-os"
    _, _, headers = ask(start().port, "OPTIONS", body=None, **asked, Access_Control_Request_Headers=names)
    assert headers["access-control-allow-headers"] == names
    _, _, headers = ask(start().port, "OPTIONS", body=None, **asked, Access_Control_Request_Headers="x; y")
    assert headers["access-control-allow-headers"] == "Authorization, Content-Type"


@pytest.mark.parametrize(
    ("more", "status"), [({}, 401), ({"Authorization": "Bearer k"}, 413), ({"Host": "evil.example"}, 403)]
)
def test_a_page_may_read_why_it_is_refused_but_not_under_another_name(
    start: Callable[..., GatewayServer], more: dict[str, str], status: int
) -> None:
    port = start(api_key="k", max_body_bytes=10).port
    found, body, headers = ask(port, Origin="http://localhost:3000", **more)
    assert found == status
    assert body["error"]["message"]
    assert headers.get("access-control-allow-origin") == (None if status == 403 else "http://localhost:3000")
    assert headers.get("access-control-expose-headers") == (None if status == 403 else "Retry-After")


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
     (CHAT, "text/plain", 415), ("[" * 100_000, "application/json", 400), ('{"a": 1e999}', "application/json", 400),
     ('{"n": 1' + "0" * 500 + "}", "application/json", 400),
     ('{"\\ud800": 1}', "application/json", 422), ('{"model": "\\ud800"}', "application/json", 422)],
    ids=["cut", "list", "nan", "text", "deep", "huge", "long", "half a name", "half a text"],
)  # fmt: skip
def test_what_is_no_json_is_refused(port: int, body: str, kind: str, status: int) -> None:
    assert ask(port, body=body, Content_Type=kind)[0] == status


@pytest.mark.parametrize("head", ["", "POST /v1/load HT", "POST /v1/load HTTP/1.1\r\nHost: localhost\r\nX: "])
def test_a_head_that_does_not_end_is_given_up(start: Callable[..., GatewayServer], head: str) -> None:
    port = start(silence_s=0.3).port
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(head.encode())
        assert closes(connection)


def test_so_is_a_second_one_on_the_same_connection(start: Callable[..., GatewayServer]) -> None:
    port = start(silence_s=0.3).port
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b" 200 " in connection.recv(4096)
        connection.sendall(b"GET /hea")
        assert closes(connection)


def test_a_body_has_a_time_as_a_whole(start: Callable[..., GatewayServer]) -> None:
    port = start(silence_s=0.4).port
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(f"POST /v1/completions HTTP/1.1\r\n{LONG}".encode())
        with contextlib.suppress(ConnectionError):
            for _ in range(100):  # a byte at a time is never silent for long
                connection.sendall(b" ")
                time.sleep(0.05)
        assert b" 408 " in connection.recv(4096)


def test_a_refused_body_is_not_read_for_ever(start: Callable[..., GatewayServer]) -> None:
    port = start(silence_s=0.3, max_body_bytes=10).port
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(f"POST /v1/completions HTTP/1.1\r\n{LONG}".encode())
        assert b" 413 " in connection.recv(4096)
        assert closes(connection)


def test_an_answer_that_nobody_takes_is_cancelled(start: Callable[..., GatewayServer], engine: ScriptedEngine) -> None:
    engine.pieces = ("x" * (16 << 20), "")
    engine.holds = True
    body = json.dumps({"model": "one", "stream": True, "messages": [{"role": "user", "content": "hi"}]})
    port = start(silence_s=0.3).port
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        head = f"Host: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(f"POST /v1/chat/completions HTTP/1.1\r\n{head}{body}".encode())
        assert engine.cancelled_one.wait(5)


def test_broken_chunks_get_one_answer(start: Callable[..., GatewayServer], caplog: pytest.LogCaptureFixture) -> None:
    port = start().port
    head = "Host: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(f"POST /v1/completions HTTP/1.1\r\n{head}5\r\n{{}}".encode())
        connection.sendall(b"zzzzzz\r\n\r\n")
        assert connection.recv(4096).startswith(b"HTTP/1.1 400 ")
        assert closes(connection)
    assert "Traceback" not in caplog.text


def test_a_connection_lives_on_behind_an_error(start: Callable[..., GatewayServer]) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", start(max_body_bytes=200).port, timeout=10)
    for body, status in (("{", 400), (CHAT + " " * 300, 413), (CHAT, 200)):
        connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        response.read()
        assert response.status == status
    connection.close()


@pytest.mark.parametrize(
    ("host", "sent", "status"),
    [
        ("localhost", "localhost", 200),
        ("127.0.0.1:1", "localhost", 200),
        ("evil.example", "localhost", 403),
        ("localhost", "evil.example", 403),
        ("localhost@evil.example", "localhost", 403),
    ],
)
def test_a_whole_url_may_be_the_target_where_it_is_one_of_ours(port: int, host: str, sent: str, status: int) -> None:
    for scheme in ("http", "HTTP", "https"):
        assert ask(port, path=f"{scheme}://{host}/v1/chat/completions", Host=sent)[0] == status
    assert ask(port, "GET", f"http://{host}", None, Host=sent)[0] == (404 if status == 200 else status)


def test_a_body_that_is_packed_is_refused_as_such(port: int) -> None:
    status, body, _ = ask(port, Content_Encoding="gzip")
    assert (status, body["error"]["code"]) == (415, "unsupported_content_encoding")
    assert ask(port, Content_Encoding="Identity")[0] == 200


def closes(connection: socket.socket) -> bool:
    """Whether the server hangs up."""
    with contextlib.suppress(ConnectionError):
        while connection.recv(4096):
            pass
    return True


def test_a_client_that_says_nothing_more_is_hung_up_on(start: Callable[..., GatewayServer]) -> None:
    port = start(silence_s=0.2).port
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        headers = ("Host: localhost", "Content-Type: application/json", "Content-Length: 9")
        connection.sendall("\r\n".join(["POST /v1/completions HTTP/1.1", *headers, "", "{"]).encode())
        answer = connection.recv(4096)
    assert b" 408 " in answer.splitlines()[0] + b" "


def test_paths_and_methods_that_there_are_not(port: int) -> None:
    assert ask(port, "GET", "/v1/nothing", None)[0] == 404
    status, body, headers = ask(port, "GET", "/v1/chat/completions", None)
    assert (status, body["error"]["code"], headers["allow"]) == (405, "method_not_allowed", "POST")
    assert ask(port, "HEAD", "/v1/models", None)[0] == 200
    assert ask(port, "OPTIONS", "/v1/models", None)[0] == 405


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
