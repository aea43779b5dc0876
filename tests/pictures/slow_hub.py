"""A hub on 127.0.0.1 that sends slowly, and nothing but zeros: for pictures of a download that is not to arrive."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from inference.store.catalog import load_catalog

CHUNK_BYTES = 1 << 20


class _Handler(BaseHTTPRequestHandler):
    server: SlowHub
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._begin()

    def do_GET(self) -> None:
        left = self._begin()
        begin, sent = time.monotonic(), 0
        with suppress(OSError):  # the app has closed the line
            while left > 0 and not self.server.ended.is_set():
                size = min(CHUNK_BYTES, left)
                self.wfile.write(bytes(size))
                sent, left = sent + size, left - size
                # The first part comes at once, so that the bar shows something.
                ahead_s = (sent - self.server.head_start_bytes) / self.server.bytes_per_s - (time.monotonic() - begin)
                self.server.ended.wait(max(0.0, ahead_s))

    def _begin(self) -> int:
        name = self.path.rpartition("/")[2].partition("?")[0]
        size = self.server.sizes.get(name, 0)
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        start = int(asked[1]) if asked else 0
        self.send_response(404 if not size else 206 if asked else 200)
        self.send_header("Content-Length", str(max(0, size - start)))
        self.send_header("ETag", '"zeros"')
        self.send_header("X-Repo-Commit", "1" * 40)
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
        self.end_headers()
        return size - start


class SlowHub(ThreadingHTTPServer):
    """Knows the files of the catalog by their names and sizes.

    Attributes:
        ended: set when nothing more is to be sent.
        head_start_bytes: that come at once.
    """

    daemon_threads = True

    def __init__(self, head_start_bytes: int, bytes_per_s: float) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.ended = threading.Event()
        self.head_start_bytes, self.bytes_per_s = head_start_bytes, bytes_per_s
        self.sizes = {entry.file: entry.num_bytes or 0 for entry in load_catalog().entries.values() if entry.file}

    @property
    def address(self) -> str:
        """For the setting hub.endpoint."""
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def slow_hub(head_start_bytes: int = 440_000_000, bytes_per_s: float = 9e6) -> Iterator[SlowHub]:
    """Runs one on a thread."""
    hub = SlowHub(head_start_bytes, bytes_per_s)
    thread = threading.Thread(target=hub.serve_forever, name="slow-hub", daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        hub.ended.set()
        hub.shutdown()
        thread.join()
        hub.server_close()
