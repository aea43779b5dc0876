"""The store: disks, processes, and what is here."""

from __future__ import annotations

import errno
import os
import threading
import time
from pathlib import Path

import filelock
import pytest

from inference.errors import DownloadCancelledError, DownloadError, ModelFormatError, ModelNotFoundError
from inference.formats import partial_file, transfer
from inference.store.catalog import HubSource
from inference.store.model_store import ModelStore
from tests.inference.store.fake_hub import (
    FILE,
    FakeHub,
    entry_of,
    store_of,
)

# Disks


def test_too_little_space_is_told_before_anything_is_fetched(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.files["o/tiny", "tiny.gguf"] = FILE
    usage = type("Usage", (), {"free": 1 << 20})
    monkeypatch.setattr(transfer.shutil, "disk_usage", lambda path: usage)
    store = store_of(tmp_path, entry_of(HubSource("o/tiny")), endpoint=hub.endpoint)
    with pytest.raises(DownloadError, match=r"needs 2\.9 MB more, and 1\.0 MB are free at .*Free some space"):
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
        with pytest.raises(DownloadError, match=r"found the disk full, and .* [MG]B are free"):
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
