"""A small hub on 127.0.0.1 that can misbehave, small wheels in a directory, and stores that know of both."""

from __future__ import annotations

import hashlib
import json
import re
import time
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from inference.store.catalog import Catalog, CatalogEntry, HubSource, WheelPart, WheelSource
from inference.store.download import DownloadOptions
from inference.store.model_store import ModelStore

COMMIT = "1" * 40
# Nothing listens on port 9 ("discard") of a normal machine: the connection is refused at once.
NO_HUB = "http://127.0.0.1:9"


def content(num_bytes: int, seed: int = 0) -> bytes:
    return b"".join(hashlib.sha256(f"{seed}:{i}".encode()).digest() for i in range(num_bytes // 32 + 1))[:num_bytes]


FILE = content(3_000_000)


class FakeHub(ThreadingHTTPServer):
    """The part of a hub's interface that downloads use, with faults to order.

    Attributes:
        files: by (repo, name).
        requests: (method, path, Range header) of each request, in order.
        cut_after: bytes after which a response ends too early, once; None never.
        pause_s: between chunks of 64 KiB.
        knows_ranges: False answers 200 with the whole file to any range.
        status: answered to every request instead of content.
        etags: by file name, instead of the content's sha256.
        pages: content type and bytes of anything else, by path: a package index.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), FakeHubHandler)
        self.files: dict[tuple[str, str], bytes] = {}
        self.requests: list[tuple[str, str, str | None]] = []
        self.cut_after: int | None = None
        self.pause_s = 0.0
        self.knows_ranges = True
        self.status: int | None = None
        self.etags: dict[str, str] = {}
        self.pages: dict[str, tuple[str, bytes]] = {}

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def ranges(self) -> list[str | None]:
        return [asked for method, path, asked in self.requests if method == "GET" and "/resolve/" in path]


class FakeHubHandler(BaseHTTPRequestHandler):
    server: FakeHub
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def answer(self, *, body: bool) -> None:
        hub = self.server
        hub.requests.append((self.command, self.path, self.headers.get("Range")))
        if self.path in hub.pages:
            self.reply(200, {"Content-Type": hub.pages[self.path][0]}, hub.pages[self.path][1], body=body)
            return
        if hub.status is not None:
            self.reply(hub.status, {}, b"")
            return
        listing = re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/revision/[^/?]+)?(?:\?.*)?", self.path)
        if listing:
            self.reply(200, {"Content-Type": "application/json"}, self.listing(listing[1]))
            return
        match = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/([^/]+)", self.path)
        data = hub.files.get((match[1], match[3])) if match else None
        if match is None or data is None:
            self.reply(404, {"X-Error-Code": "EntryNotFound"}, b"")
            return
        etag = hub.etags.get(match[3], hashlib.sha256(data).hexdigest())
        headers = {"ETag": f'"{etag}"', "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if asked and hub.knows_ranges:
            start = int(asked[1])
            if start >= len(data):
                self.reply(416, headers, b"")
                return
            headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
            self.reply(206, headers, data[start:], body=body)
        else:
            self.reply(200, headers, data, body=body)

    def listing(self, repo: str) -> bytes:
        siblings = []
        for (owner, name), data in self.server.files.items():
            if owner == repo:
                git = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
                sibling: dict[str, object] = {"rfilename": name, "size": len(data), "blobId": git}
                if name.endswith(".safetensors"):
                    sha256 = self.server.etags.get(name, hashlib.sha256(data).hexdigest())
                    sibling["lfs"] = {"size": len(data), "sha256": sha256, "pointerSize": 134}
                siblings.append(sibling)
        return json.dumps({"id": repo, "sha": COMMIT, "siblings": siblings}).encode()

    def reply(self, status: int, headers: dict[str, str], data: bytes, *, body: bool = True) -> None:
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(data))}).items():
            self.send_header(name, value)
        self.end_headers()
        if not body:
            return
        hub = self.server
        limit = len(data)
        if hub.cut_after is not None and hub.cut_after < len(data):
            limit, hub.cut_after = hub.cut_after, None
            self.close_connection = True
        try:
            for start in range(0, limit, 65_536):
                self.wfile.write(data[start : min(start + 65_536, limit)])
                time.sleep(hub.pause_s)
        except OSError:
            self.close_connection = True


def make_wheel(directory: Path, package: str, member: str, data: bytes) -> str:
    """A minimal wheel; its sha256."""
    directory.mkdir(exist_ok=True)
    module = package.replace("-", "_")
    path = directory / f"{module}-1.0-py3-none-any.whl"
    info = f"{module}-1.0.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, data)
        # Would be written if anything of the wheel were run or installed.
        archive.writestr(f"{module}/__init__.py", "raise SystemExit('a wheel was run')")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def wheel_source(directory: Path, data: bytes, num_parts: int = 3) -> WheelSource:
    size = -(-len(data) // num_parts)
    parts = []
    for index in range(num_parts):
        piece = data[index * size : (index + 1) * size]
        member = f"tiny_part{index}/data.bin"
        sha256 = make_wheel(directory, f"tiny-part{index}", member, piece)
        parts.append(WheelPart(f"tiny-part{index}", "1.0", member, len(piece), sha256))
    return WheelSource(tuple(parts))


def entry_of(*sources: HubSource | WheelSource, data: bytes = FILE) -> CatalogEntry:
    sha256 = hashlib.sha256(data).hexdigest()
    return CatalogEntry("tiny", "Tiny", "MIT", "", "gguf", "tiny.gguf", len(data), sha256, 1, 1, tuple(sources))


def store_of(root: Path, entry: CatalogEntry, *, endpoint: str = NO_HUB, wheels: Path | None = None) -> ModelStore:
    pip_arguments = ("--isolated", "--no-index", "--find-links", str(wheels or root / "no-wheels"))
    options = DownloadOptions(endpoint, pip_arguments)
    return ModelStore(root, catalog=Catalog({entry.id: entry}, (entry.id,)), options=options)


def is_clean(root: Path) -> bool:
    """Nothing but models and locks is left."""
    return not any((root / ".partial").iterdir()) and not list(root.rglob("*.part"))
