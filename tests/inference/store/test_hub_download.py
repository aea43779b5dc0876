"""Models from a hub that can misbehave: files, and whole directories."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from inference.errors import DownloadCancelledError, DownloadError, ModelFormatError, ModelNotFoundError
from inference.store.catalog import CatalogEntry, HubSource
from inference.store.download import MANIFEST
from inference.store.model_store import ModelStore
from tests.inference.store.fake_hub import (
    COMMIT,
    FILE,
    FakeHub,
    FakeHubHandler,
    content,
    entry_of,
    is_clean,
    store_of,
)

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
    with pytest.raises(DownloadCancelledError, match=r"stopped at \S+ [kM]B of 2\.9 MB\..*deskinfer models pull tiny"):
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
