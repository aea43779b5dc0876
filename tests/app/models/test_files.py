"""Checks and deletions on threads, and who holds the memory."""

from __future__ import annotations

import queue
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from app.memory.holders import MemoryHolder, largest_holders
from app.models.files import ModelFiles
from app.translation import UserText
from inference.errors import InferenceError
from inference.store import own_models
from inference.store.model_store import ModelStore
from inference.store.own_models import OwnCheck
from tests.app.models.test_model_list import write_gguf

Told = UserText | InferenceError
WAIT_S = 10.0


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_gguf(tmp_path / "mine.gguf")
    return tmp_path


def test_a_check_says_what_could_be_compared(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, told = ModelFiles(lambda: ModelStore(root)), queue.SimpleQueue[Told]()
    for is_compared, words in ((True, "Every byte is right"), (False, "no checksum to compare with")):
        monkeypatch.setattr("app.models.files.verify_own", lambda *_, found=is_compared: OwnCheck(found))
        files.check("mine.gguf", told.put)
        assert words in str(told.get(timeout=WAIT_S))
    files.close()


def test_what_is_wrong_is_told(root: Path) -> None:
    files, told = ModelFiles(lambda: ModelStore(root)), queue.SimpleQueue[Told]()
    files.check("mine.gguf", told.put)
    assert isinstance(told.get(timeout=WAIT_S), InferenceError)
    files.check("gone.gguf", told.put)
    assert "There is no file" in str(told.get(timeout=WAIT_S))
    files.close()


def test_a_model_is_deleted(root: Path) -> None:
    files, told = ModelFiles(lambda: ModelStore(root)), queue.SimpleQueue[Told]()
    files.delete("mine.gguf", told.put)
    assert isinstance(told.get(timeout=WAIT_S), UserText)
    assert not (root / "mine.gguf").exists()
    files.close()


def test_close_ends_a_check(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: queue.SimpleQueue[bool] = queue.SimpleQueue()

    def endless(_path: Path, on_progress: own_models.OnProgress) -> OwnCheck:
        begun.put(True)
        while True:
            on_progress(0, 1, "")

    monkeypatch.setattr("app.models.files.verify_own", endless)
    files, told = ModelFiles(lambda: ModelStore(root)), queue.SimpleQueue[Told]()
    files.check("mine.gguf", told.put)
    begun.get(timeout=WAIT_S)
    files.close()
    assert told.empty()


def test_programs_are_counted_with_all_their_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    def process(pid: int, name: str, mib: int | None) -> SimpleNamespace:
        memory = None if mib is None else SimpleNamespace(rss=mib * 1024**2)
        return SimpleNamespace(info={"pid": pid, "name": name, "memory_info": memory})

    own = psutil.Process().pid
    listed = [
        process(1, "browser.exe", 300),
        process(2, "browser.exe", 500),
        process(3, "editor", 700),
        process(4, "small", 10),
        process(5, "secret", None),
        process(own, "python", 9000),
    ]
    monkeypatch.setattr(psutil, "process_iter", lambda _fields: iter(listed))
    mib = 1024**2
    assert largest_holders() == (MemoryHolder("browser", 800 * mib), MemoryHolder("editor", 700 * mib))
