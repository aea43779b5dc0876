"""Requests that nobody would write: no error of the server but 503, no hang, nothing left behind."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import httpx2
import openai
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import CHECKS
from schemathesis.generation import GenerationMode

from inference.gateway.openapi import description
from inference.gateway.server import GatewayServer
from tests.inference.gateway.conftest import ScriptedEngine, starting
from tests.inference.gateway.real_gateway import SMOLLM2, RealGateway, served

BOUNDED = settings(max_examples=40, deadline=None, database=None, suppress_health_check=list(HealthCheck))
SILENCE_S = 0.1
HANGS_S = 20.0

schemathesis.checks.load_all_checks()
SCHEMA = schemathesis.openapi.from_dict(description())
OPERATIONS = {operation.label: operation for result in SCHEMA.get_all_operations() for operation in [result.ok()]}
KEPT_CHECKS = CHECKS.get_by_names(
    [
        "status_code_conformance",
        "content_type_conformance",
        "response_headers_conformance",
        "response_schema_conformance",
    ]
)
CHAT: dict[str, Any] = {
    "model": "one",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {
            "role": "assistant",
            "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "1", "content": "2"},
    ],
    "stop": ["a"],
    "n": 2,
    "seed": 1,
    "logprobs": True,
    "top_logprobs": 2,
    "logit_bias": {"5": 1.5},
    "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}},
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
    "tool_choice": "auto",
    "stream": True,
    "stream_options": {"include_usage": True},
}
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just("\ud800") | st.just(10**40),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
HEAD = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


class Target:
    """A server with little patience, and what is left in it."""

    def __init__(self, server: GatewayServer, engine: ScriptedEngine) -> None:
        self.server, self.engine, self.url = server, engine, f"http://127.0.0.1:{server.port}"

    def send(self, data: bytes) -> bytes:
        """What comes back, up to the end of the connection."""
        came = b""
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=HANGS_S) as connection:
            with contextlib.suppress(ConnectionError):
                connection.sendall(data)
            with contextlib.suppress(ConnectionError):
                while piece := connection.recv(65536):
                    came += piece
        return came

    def post(self, body: bytes, path: str = "/v1/chat/completions") -> int:
        """The status of a whole request."""
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
        return status_of(self.send(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body))

    def check(self) -> None:
        """It works, and nothing is open any more."""
        assert status_of(self.send(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")) == 200
        state = self.server._server.server_state
        until = time.monotonic() + 5
        while (state.tasks or state.connections) and time.monotonic() < until:
            time.sleep(0.01)
        assert not state.tasks
        assert not state.connections


def status_of(answer: bytes) -> int:
    """Of an answer's first line; 0 where nothing came."""
    return int(answer.split(b" ", 2)[1]) if answer else 0


@pytest.fixture(scope="module")
def all_tests_target() -> Iterator[Target]:
    engine = ScriptedEngine()
    with starting(engine) as make:
        yield Target(make(silence_s=SILENCE_S, max_body_bytes=100_000), engine)


@pytest.fixture
def target(all_tests_target: Target) -> Iterator[Target]:
    yield all_tests_target
    all_tests_target.check()


CASES = [
    (label, mode)
    for label in OPERATIONS
    for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    if mode is GenerationMode.POSITIVE or label.startswith("POST")  # there is no wrong way to ask for nothing
]


@pytest.mark.parametrize(("label", "mode"), CASES, ids=[f"{label} {mode.value}" for label, mode in CASES])
def test_what_is_described_is_what_is_served(steady: openai.OpenAI, label: str, mode: GenerationMode) -> None:
    url = str(steady.base_url).removesuffix("/v1/")

    @settings(BOUNDED, max_examples=25)
    @given(case=OPERATIONS[label].as_strategy(generation_mode=mode))
    def run(case: Any) -> None:
        if mode is GenerationMode.POSITIVE and isinstance(case.body, dict) and "model" in case.body:
            case.body["model"] = "one"  # else nothing but the name would be looked at
        response = case.call(base_url=url, timeout=HANGS_S)
        assert response.status_code < 500 or response.status_code == 503
        case.validate_response(response, checks=KEPT_CHECKS)

    run()


def test_one_part_of_a_request_is_something_else(target: Target) -> None:
    @BOUNDED
    @given(st.data())
    def run(data: st.DataObject) -> None:
        body = json.loads(json.dumps(CHAT))
        place, key = body, data.draw(st.sampled_from(sorted(body)))
        while isinstance(place[key], dict | list) and place[key] and data.draw(st.booleans()):
            place = place[key]
            key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else list(range(len(place)))))
        place[key] = data.draw(ANY_JSON)
        status = target.post(json.dumps(body).encode())
        assert status in (200, 400, 404, 422), body

    run()


def test_bodies_of_any_bytes(target: Target) -> None:
    @BOUNDED
    @given(
        st.binary(max_size=300) | ANY_JSON.map(lambda value: json.dumps(value).encode()),
        st.sampled_from(sorted(OPERATIONS)),
    )
    def run(body: bytes, label: str) -> None:
        method, path = label.split()
        if method == "POST":
            assert target.post(body, path) in (200, 400, 404, 422), body

    run()


def test_requests_that_are_cut_or_hurt(target: Target) -> None:
    body = json.dumps(CHAT).encode()
    whole = f"{HEAD}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body
    chunked = (
        f"{HEAD}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n{len(body):x}\r\n".encode()
        + body
        + b"\r\n0\r\n\r\n"
    )

    @BOUNDED
    @given(st.sampled_from([whole, chunked]), st.data())
    def run(request: bytes, data: st.DataObject) -> None:
        place = data.draw(st.integers(0, len(request)))
        hurt = data.draw(st.sampled_from([b"", b"\0", b"\r\n", b"\xff" * 9, b"\r\n\r\n", b"0" * 40, b"Host: evil\r\n"]))
        cut = data.draw(st.booleans())
        status = status_of(target.send(request[:place] + hurt + (b"" if cut else request[place:])))
        assert status < 500

    run()


@pytest.mark.parametrize(
    "head",
    [
        "GET / HTTP/1.1\r\n\r\n",
        "GET /health HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
        "GET /health HTTP/9.9\r\nHost: localhost\r\n\r\n",
        "GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /%00%ff%2e%2e/v1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        "GET /v1/models/" + "a" * 60_000 + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        "GET /v1/models/" + "a" * 70_000 + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "POST /v1/load HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        "POST /v1/load HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "POST /v1/load HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        "POST /v1/load HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST /v1/load HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n",
        "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        "GET /health HTTP/1.1\r\nHost: localhost\r\n" + "X: y\r\n" * 20_000 + "\r\n",
        "GET /health HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \xe9\xff\r\nConnection: close\r\n\r\n",
    ],
    ids=range(17),
)
def test_heads_that_are_no_good(target: Target, head: str) -> None:
    assert status_of(target.send(head.encode("latin-1"))) < 500


@pytest.mark.parametrize("behind", [b"", b"\r\n", b"GET /health HTTP/1.1\r\n", b"\0" * 100_000], ids=len)
@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
def test_who_hangs_up_is_heard_whatever_came_behind_the_request(
    target: Target, behind: bytes, is_streamed: bool
) -> None:
    engine = target.engine
    engine.holds = True
    engine.cancelled_one.clear()
    body = json.dumps({"model": "one", "messages": [{"role": "user", "content": "hi"}], "stream": is_streamed}).encode()
    try:
        before = len(engine.submitted)
        with socket.create_connection(("127.0.0.1", target.server.port), timeout=HANGS_S) as connection:
            connection.sendall(f"{HEAD}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            until = time.monotonic() + HANGS_S
            while len(engine.submitted) == before and time.monotonic() < until:
                time.sleep(0.005)
            connection.sendall(behind)
            time.sleep(0.02)  # it has been read
        assert engine.cancelled_one.wait(5)
        assert engine.cancelled[-1] == engine.submitted[-1].request_id
    finally:
        engine.holds = False


def test_nobody_fills_the_memory_behind_a_request(target: Target) -> None:
    target.engine.holds = True
    body = json.dumps({"model": "one", "messages": [{"role": "user", "content": "hi"}]}).encode()
    try:
        with socket.create_connection(("127.0.0.1", target.server.port), timeout=HANGS_S) as connection:
            connection.sendall(f"{HEAD}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            with pytest.raises(ConnectionError):  # long before all of it was sent
                connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1_000_000)
    finally:
        target.engine.holds = False


HOSTILE_FORMS: list[dict[str, Any]] = [
    {"type": "string", "pattern": "^(a{1,1000}){1,1000}$"},
    {"type": "string", "pattern": "^(((a+)+)+)+b$"},
    {"type": "string", "pattern": "(" * 500},
    {"type": "string", "minLength": 10**9},
    {"type": "array", "items": {"type": "integer"}, "minItems": 10**7},
    {"enum": [f"value {number}" for number in range(20_000)]},
    {"type": "object", "properties": {f"p{number}": {"type": "integer"} for number in range(5_000)}},
    {"$ref": "#"},
    {"$ref": "https://example.org/schema.json"},
    {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
    {"allOf": [{"anyOf": [{"const": n}, {"const": n + 1}]} for n in range(40)]},
    {"type": "string", "pattern": "\ud800"},
    {"anyOf": []},
    {"not": {}},
    {"type": "string", "pattern": "a" * 10_000},
    {"type": "string", "pattern": "^(.*a.{40}|.*b.{41}|.*c.{43})$"},
    {"$defs": {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(30)}, "$ref": "#/$defs/d0"},
    {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"},
    {"type": "integer", "multipleOf": 999_999_937},
    {"allOf": [{"type": "integer", "multipleOf": number} for number in (97, 89, 83, 79)]},
    {"allOf": [{"type": "string", "pattern": f"a{number}"} for number in range(40)]},
    json.loads('{"items":' * 900 + "{}" + "}" * 900),
    {"x-guidance": {"whitespace_pattern": "(" * 100}, "type": "object"},
]


@pytest.fixture(scope="module")
def smollm2(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealGateway]:
    with served(SMOLLM2, tmp_path_factory.mktemp("lock")) as gateway:
        yield gateway


@pytest.mark.parametrize("schema", HOSTILE_FORMS, ids=range(len(HOSTILE_FORMS)))
def test_forms_that_are_no_good_hold_up_nobody_for_long(smollm2: RealGateway, schema: dict[str, Any]) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    body = {"model": SMOLLM2, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 4, "response_format": form}
    headers = {"Content-Type": "application/json"}
    response = httpx2.post(
        f"{smollm2.url}/chat/completions", content=json.dumps(body), headers=headers, timeout=HANGS_S
    )
    assert response.status_code in (200, 400)
    assert smollm2.is_idle()
