"""The file of the history: damage, other versions, locks and full disks are never fatal."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path

import pytest

from app.history import file as history_file
from app.history.file import HistoryError
from app.history.history import History


@pytest.mark.parametrize("rest", [b"not a database at all", b"SQLite format 3\0" + b"\1" * 5000])
def test_a_damaged_file_is_set_aside_and_named(path: Path, rest: bytes) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(rest)
    history = History(path)
    (aside,) = path.parent.glob("history.broken-*.db")
    assert str(history.problem) == (
        f"The history in {path} is damaged. It was set aside as {aside.name}; a new one has begun."
    )
    assert aside.read_bytes() == rest
    history.append(history.new_conversation(), "user", "goes on")
    history.close()
    path.write_bytes(rest)
    history = History(path)
    assert len(list(path.parent.glob("history.broken-*.db"))) == 2, "the first one is not overwritten"
    history.close()


def test_damaged_pages_are_found_at_the_start(path: Path) -> None:
    history = History(path)
    conversation = history.new_conversation()
    for count in range(200):
        history.append(conversation, "user", f"{count} " * 100)
    history.close()
    content = bytearray(path.read_bytes())
    for start in range(4096 * 4, len(content), 4096 * 2):
        content[start : start + 4096] = bytes(4096)
    path.write_bytes(content)
    again = History(path)
    assert "is damaged. It was set aside as" in str(again.problem)
    assert again.conversations() == []
    again.close()


def test_damage_found_later_is_told_and_the_history_goes_on(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_file, "CHECKED_BYTES", 0)
    history = History(path)
    conversation = history.new_conversation("lost")
    for count in range(300):
        history.append(conversation, "user", f"{count} " * 100)
    history.close()
    content = bytearray(path.read_bytes())
    content[4096 * 20 :] = bytes(len(content) - 4096 * 20)
    path.write_bytes(content)
    history = History(path)
    assert history.problem is None
    with pytest.raises(HistoryError, match="It was set aside as history"):
        history.messages(conversation)
    assert history.conversations() == []
    assert len(list(path.parent.glob("history.broken-*.db"))) == 1
    history.append(history.new_conversation(), "user", "goes on")
    history.close()


def test_a_file_of_a_later_version_is_left_alone(path: Path) -> None:
    History(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 999")
    connection.close()
    before = path.read_bytes()
    history = History(path)
    assert "written by a later version of this app; update the app" in str(history.problem)
    history.append(history.new_conversation(), "user", "in memory")
    history.close()
    assert path.read_bytes() == before


def test_a_file_of_an_earlier_version_is_brought_up_to_date(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = History(path)
    conversation = old.new_conversation("old")
    old.close()
    added = "ALTER TABLE results ADD COLUMN stars INTEGER NOT NULL DEFAULT 0; UPDATE conversations SET title = 'new';"
    monkeypatch.setattr(history_file, "MIGRATIONS", (*history_file.MIGRATIONS, added))
    new = History(path)
    found = new.conversation(conversation)
    assert found is not None
    assert found.title == "new"
    new.close()
    again = History(path)
    assert again.problem is None, "a script runs once"
    again.close()


def test_a_migration_that_fails_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = History(path)
    old.new_conversation("old")
    old.close()
    with monkeypatch.context() as patched:
        broken = "UPDATE conversations SET title = 'half'; INSERT INTO conversations SELECT * FROM conversations;"
        patched.setattr(history_file, "MIGRATIONS", (*history_file.MIGRATIONS, broken))
        failed = History(path)
        assert "UNIQUE constraint failed" in str(failed.problem)
        failed.close()
    again = History(path)
    assert [each.title for each in again.conversations()] == ["old"]
    again.close()


def test_another_programs_lock_does_not_hang_the_windows(history: History, path: Path) -> None:
    conversation = history.new_conversation("mine")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    started_s = time.monotonic()
    with pytest.raises(HistoryError, match="another program is writing to it; close it and try again"):
        history.append(conversation, "user", "must wait")
    assert time.monotonic() - started_s < 2.0
    assert [each.title for each in history.conversations()] == ["mine"], "reading goes on"
    other.execute("ROLLBACK")
    other.close()
    history.append(conversation, "user", "works again")
    assert [message.text for message in history.messages(conversation)] == ["works again"]


def test_a_file_that_another_program_has_to_itself(path: Path) -> None:
    first = History(path)
    first.new_conversation("mine")
    first.close()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN IMMEDIATE")
    other.execute("UPDATE conversations SET model = 'x'")
    history = History(path)
    assert "another program is writing to it" in str(history.problem)
    history.append(history.new_conversation(), "user", "in memory")
    history.close()
    other.execute("ROLLBACK")
    other.close()
    again = History(path)
    assert [each.title for each in again.conversations()] == ["mine"]
    again.close()


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    history = History(tmp_path / "file" / "history.db")
    assert "cannot be opened" in str(history.problem)
    history.append(history.new_conversation(), "user", "in memory")
    history.close()


def test_a_full_disk_keeps_what_was_there(history: History) -> None:
    conversation = history.new_conversation("small")
    history.append(conversation, "user", "fits")
    (pages,) = history._connection.execute("PRAGMA page_count").fetchone()
    history._connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(HistoryError, match="the disk is full; free some space and try again"):
        history.append(conversation, "user", "too long " * 5000)
    assert [message.text for message in history.messages(conversation)] == ["fits"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_write_protected_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    history = History(tmp_path / "sub" / "history.db")
    assert "cannot be opened" in str(history.problem)
    history.close()
    tmp_path.chmod(0o700)
