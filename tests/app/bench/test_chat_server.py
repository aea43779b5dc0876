"""An OpenAI-compatible server, played by a small one in a thread."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from app.bench.chat_server import ChatServer
from app.bench.figures import DECODE_TOK_S, NEW_TOKENS, PREFILL_TOK_S, PROMPT_TOKENS, TTFT_MS, WALL_MS
from app.bench.peers import PeerError
from app.bench.protocol import CHAT, DECODE, PREFILL, PROMPTS, Case, Plan

PLAN = Plan(prompts=(58,), depths=(0,), decode_tokens=4, repeats=2)
FIRST_S, TOKEN_S = 0.02, 0.004


class FakeServer(ThreadingHTTPServer):
    """Streams `tokens` chunks; keeps what it was asked."""

    daemon_threads = False
    tokens = 5
    status = 200
    counts = True
    error = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[dict] = []
        self.headers_seen: list[dict] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: FakeServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append({"path": self.path, **body})
        self.server.headers_seen.append(dict(self.headers))
        self.send_response(self.server.status)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        if self.server.status != 200:
            self.wfile.write(b'{"error": "model not found"}')
            return
        time.sleep(FIRST_S)
        self.event({"choices": [{"delta": {"role": "assistant", "content": ""}}]})
        if self.server.error:
            self.event({"error": {"message": "out of memory"}})
            return
        for _ in range(self.server.tokens):
            self.event({"choices": [{"delta": {"content": "字"}}]})
            time.sleep(TOKEN_S)
        if self.server.counts:
            usage = {"prompt_tokens": 40, "completion_tokens": self.server.tokens + 1}
            self.event({"choices": [], "usage": usage})
        self.wfile.write(b": a comment\n\ndata: [DONE]\n\n")

    def event(self, data: dict) -> None:
        self.wfile.write(f"data: {json.dumps(data)}\n\n".encode())
        self.wfile.flush()

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[FakeServer]:
    fake = FakeServer()
    thread = threading.Thread(target=fake.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield fake
    fake.shutdown()
    thread.join()
    fake.server_close()


def test_figures_come_from_the_stream_and_the_usage(server: FakeServer) -> None:
    result = ChatServer(server.url, "qwen").measure(PLAN, lambda text: None)
    assert result.name == f"127.0.0.1:{server.server_port}"
    assert result.note == "qwen"
    for case in (Case(CHAT, 0), Case(CHAT, 1)):
        ttft = result.figures.median(case, TTFT_MS)
        assert 1000 * FIRST_S <= ttft < 1000
        assert result.figures.median(case, PREFILL_TOK_S) == pytest.approx(40_000 / ttft, rel=0.5)
        assert 5 < result.figures.median(case, DECODE_TOK_S) < 5 / (4 * TOKEN_S) * 1.01
        assert result.figures.median(case, WALL_MS) > ttft
        assert result.figures.median(case, PROMPT_TOKENS) == 40
        assert result.figures.median(case, NEW_TOKENS) == 6
    assert result.figures.median(Case(PREFILL, 58), DECODE_TOK_S) is None
    assert result.figures.median(Case(DECODE, 0), PREFILL_TOK_S) is None
    assert len(result.figures.values[Case(CHAT, 0), TTFT_MS]) == 2


def test_what_is_asked(server: FakeServer) -> None:
    ChatServer(f"{server.url}/v1/", "qwen", api_key="secret").measure(PLAN, lambda text: None)
    first = server.asked[0]
    assert first["path"] == "/v1/chat/completions"
    assert (first["model"], first["temperature"], first["stream"], first["max_tokens"]) == ("qwen", 0, True, 64)
    assert first["messages"][1]["content"] == PROMPTS[0]
    assert server.headers_seen[0]["Authorization"] == "Bearer secret"
    # A warm-up and two repeats of four cases, each prompt with a beginning of its own.
    texts = [json.dumps(asked["messages"]) for asked in server.asked]
    assert len(texts) == 12 == len(set(texts))
    assert [asked["max_tokens"] for asked in server.asked[:4]] == [64, 64, 1, 5]


def test_a_server_that_counts_no_tokens_is_measured_by_its_chunks(server: FakeServer) -> None:
    server.counts = False
    result = ChatServer(server.url, "qwen").measure(PLAN, lambda text: None)
    assert result.figures.median(Case(CHAT, 0), NEW_TOKENS) == server.tokens
    assert result.figures.median(Case(CHAT, 0), PREFILL_TOK_S) is None


def test_a_refusal_is_told(server: FakeServer) -> None:
    server.status = 404
    with pytest.raises(PeerError, match=r"status 404: .*model not found"):
        ChatServer(server.url, "none").measure(PLAN, lambda text: None)


def test_an_error_in_the_stream_is_told(server: FakeServer) -> None:
    server.error = True
    with pytest.raises(PeerError, match="out of memory"):
        ChatServer(server.url, "qwen").measure(PLAN, lambda text: None)


def test_an_answer_without_text_is_told(server: FakeServer) -> None:
    server.tokens = 0
    with pytest.raises(PeerError, match="no text"):
        ChatServer(server.url, "qwen").measure(PLAN, lambda text: None)


def test_no_server() -> None:
    fake = FakeServer()
    url = fake.url
    fake.server_close()
    with pytest.raises(PeerError, match="does not answer"):
        ChatServer(url, "qwen").measure(PLAN, lambda text: None)


def test_the_key_is_not_shown() -> None:
    assert "secret" not in repr(ChatServer("http://host", "m", api_key="secret"))
