"""What is kept and what is not: nothing stays on the disk that was cleared, and nobody else can read it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from app.history.file import HistoryError
from app.history.history import History
from tests.app.history.conftest import Clock

posix = pytest.mark.skipif(sys.platform == "win32", reason="rights of files are different there")


def bytes_on_disk(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(path.parent.glob("*"))) if path.parent.exists() else b""


def test_clear_leaves_no_text_on_the_disk(history: History, path: Path) -> None:
    conversation = history.new_conversation("hush-title")
    for _ in range(50):
        history.append(conversation, "user", "hush-message " * 200)
    history.add_result("translate", "hush-source", "hush-answer")
    path.with_name("history.broken-2026-01-01.db").write_text("hush-damaged")
    path.with_name("history.broken-2026-01-01.db-wal").write_text("hush-log")
    assert b"hush-message" in bytes_on_disk(path)
    history.clear()
    assert b"hush" not in bytes_on_disk(path)
    assert history.conversations() == []
    assert history.results() == []
    history.append(history.new_conversation("anew"), "user", "kept again")
    assert b"kept again" in bytes_on_disk(path)


@pytest.mark.parametrize("at_once", [True, False])
def test_delete_leaves_no_text_on_the_disk(path: Path, at_once: bool) -> None:
    history = History(path)
    kept, hushed = history.new_conversation("kept"), history.new_conversation("hush-title")
    for count in range(50):
        history.append(kept, "user", f"kept {count}")
        history.append(hushed, "user", f"hush-{count} qzxj")
    result = history.add_result("translate", "hush-source qzxj", "hush-answer")
    history.delete(hushed)
    history.delete_result(result)
    if at_once:
        steps = 1
        while history.tidy():
            steps += 1
        assert steps > 1
    else:
        history.close()
    assert b"hush" not in bytes_on_disk(path)
    assert b"qzx" not in bytes_on_disk(path), "nor in the index of the search"
    history.close()
    again = History(path)
    assert len(again.messages(kept)) == 50
    assert len(again.search("kept 4")) == 14
    assert not again.tidy()
    again.close()


def test_keep_nothing_never_touches_the_disk(path: Path) -> None:
    history = History(path, keeps=False, now=Clock())
    conversation = history.new_conversation("hush")
    history.append(conversation, "user", "hush")
    history.add_result("translate", "hush", "hush")
    assert [hit.kind for hit in history.search("hush")] == ["result", "message"]
    assert not path.parent.exists()
    history.close()
    again = History(path, keeps=False)
    assert again.conversations() == []
    again.close()


def test_keeping_can_be_switched_while_the_app_runs(history: History, path: Path) -> None:
    changes: list[int] = []
    history.listen(lambda: changes.append(len(history.conversations())))
    kept = history.new_conversation("kept")
    history.append(kept, "user", "on the disk")
    assert changes == [1, 1]
    history.set_keeps(False)
    assert not history.keeps
    assert changes == [1, 1, 0], "the list is another one, and its viewers hear of it"
    before = {file.name: file.stat().st_mtime_ns for file in path.parent.iterdir()}
    hushed = history.new_conversation("hush")
    history.append(hushed, "user", "hush")
    assert history.conversation(kept) is None, "what the file has is out of sight"
    assert {file.name: file.stat().st_mtime_ns for file in path.parent.iterdir()} == before
    with pytest.raises(HistoryError):
        history.append(kept, "user", "a message for the other history")
    history.set_keeps(True)
    assert [each.id for each in history.conversations()] == [kept], "it stayed until it is cleared"
    assert history.conversation(hushed) is None
    assert b"hush" not in bytes_on_disk(path)


def test_clear_while_nothing_is_kept_clears_the_file_too(history: History, path: Path) -> None:
    history.append(history.new_conversation(), "user", "hush")
    history.set_keeps(False)
    history.append(history.new_conversation(), "user", "in memory")
    history.clear()
    assert history.conversations() == []
    assert b"hush" not in bytes_on_disk(path)
    assert not path.exists()


@posix
def test_nobody_else_can_read_it(path: Path) -> None:
    path.parent.mkdir(parents=True, mode=0o755)
    path.touch(mode=0o644)
    history = History(path)
    history.append(history.new_conversation(), "user", "private")
    assert path.parent.stat().st_mode & 0o777 == 0o700
    modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    assert modes == dict.fromkeys(["history.db", "history.db-wal", "history.db-shm"], 0o600)
    history.close()
