"""An OpenAI-compatible server in a few lines, scripted by the tests: streams, cuts, errors, hangs."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Handler = Callable[["Exchange"], None]


def chunk(text: str = "", finish: str | None = None, **more: Any) -> str:
    """An event's data."""
    delta = {"content": text} if text else {}
    return json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}, ensure_ascii=False)


def event(data: str) -> bytes:
    return f"data: {data}\n\n".encode()


def answer(*texts: str, finish: str = "stop", usage: dict[str, Any] | None = None) -> bytes:
    """A whole stream."""
    events = [chunk(text) for text in texts] + [chunk(finish=finish)]
    if usage is not None:
        events.append(json.dumps({"choices": [], "usage": usage}))
    return b"".join(event(data) for data in [*events, "[DONE]"])


class Exchange:
    """One request and what is written back."""

    def __init__(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        self._handler = handler
        self.path = handler.path
        self.headers = dict(handler.headers)
        self.json: dict[str, Any] = json.loads(body) if body else {}

    def begin(self, status: int = 200, kind: str = "text/event-stream", **headers: str) -> None:
        self._handler.send_response(status)
        self._handler.send_header("Content-Type", kind)
        self._handler.send_header("Connection", "close")
        for name, value in headers.items():
            self._handler.send_header(name, value)
        self._handler.end_headers()

    def write(self, data: bytes) -> None:
        self._handler.wfile.write(data)
        self._handler.wfile.flush()

    def reply(self, status: int, document: Any, kind: str = "application/json") -> None:
        self.begin(status, kind)
        self.write(document.encode() if isinstance(document, str) else json.dumps(document).encode())

    def wait_until_gone(self) -> bool:
        """Whether the client closes the connection within some seconds."""
        connection = self._handler.connection
        connection.settimeout(10)
        try:
            return connection.recv(1) == b""
        except ConnectionError:
            return True
        except TimeoutError:
            return False


@dataclass
class Script:
    """What the server does, and what it was asked."""

    complete: Handler = lambda exchange: (exchange.begin(), exchange.write(answer("Hello", " there")))[0]
    models: Handler = lambda exchange: exchange.reply(
        200, {"object": "list", "data": [{"id": "small", "max_model_len": 2048}, {"id": "large"}]}
    )
    seen: list[Exchange] = field(default_factory=list)
    gone: queue.SimpleQueue[bool] = field(default_factory=queue.SimpleQueue)
    url: str = ""


@contextmanager
def serve(script: Script) -> Iterator[Script]:
    """Runs the script on a free port of this machine."""

    class Scripted(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._take(script.models)

        def do_POST(self) -> None:
            self._take(script.complete)

        def _take(self, handler: Handler) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            exchange = Exchange(self, body)
            script.seen.append(exchange)
            try:
                handler(exchange)
            except ConnectionError:
                script.gone.put(True)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Scripted)
    server.daemon_threads = False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    script.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield script
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
