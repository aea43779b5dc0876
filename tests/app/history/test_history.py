"""The history: kept at once, found by any part, gone when it is cleared, and never fatal."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.history import file as history_file
from app.history.file import HistoryError
from app.history.history import History
from inference.request import SamplingParams

posix = pytest.mark.skipif(sys.platform == "win32", reason="rights of files are different there")


class Clock:
    """Seconds that only grow when they are asked for."""

    def __init__(self) -> None:
        self.now_s = 1_800_000_000.0

    def __call__(self) -> float:
        self.now_s += 1
        return self.now_s


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "history" / "history.db"


@pytest.fixture
def history(path: Path) -> Iterator[History]:
    opened = History(path, now=Clock())
    assert opened.problem is None
    yield opened
    opened.close()


def bytes_on_disk(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(path.parent.glob("*"))) if path.parent.exists() else b""


def test_a_conversation_comes_back(history: History, path: Path) -> None:
    sampling = SamplingParams(temperature=0.7, top_p=0.9, seed=3, stop=("###", "终"))
    first = history.new_conversation("A title", system="Be brief.", model="qwen", sampling=sampling)
    asked = history.append(first, "user", "Hello?")
    answered = history.append(first, "assistant", "你好 🙂\n", tokens=4, duration_ms=12.5, finish_reason="stop")
    history.close()

    again = History(path)
    (conversation,) = again.conversations()
    assert (conversation.id, conversation.title, conversation.system) == (first, "A title", "Be brief.")
    assert (conversation.model, conversation.sampling) == ("qwen", sampling)
    assert conversation.created_s == 1_800_000_001.0
    assert conversation.updated_s == 1_800_000_003.0
    one, two = again.messages(first)
    assert (one.id, one.role, one.text, one.details) == (asked, "user", "Hello?", {})
    assert (two.id, two.role, two.text) == (answered, "assistant", "你好 🙂\n")
    assert two.details == {"tokens": 4, "duration_ms": 12.5, "finish_reason": "stop"}
    again.close()


def test_conversations_are_listed_by_their_last_change(history: History) -> None:
    one, two, three = (history.new_conversation(title) for title in ("one", "two", "three"))
    history.append(one, "user", "again")
    assert [each.id for each in history.conversations()] == [one, three, two]
    assert [each.id for each in history.conversations(limit=1, offset=1)] == [three]
    history.rename(two, "renamed")
    history.configure(three, "New.", SamplingParams(temperature=1.0), "other")
    changed, renamed, _ = history.conversations()
    assert renamed.title == "renamed"
    assert (changed.system, changed.sampling.temperature, changed.model) == ("New.", 1.0, "other")


def test_delete_takes_the_messages_along_and_no_other(history: History) -> None:
    one, two = history.new_conversation("one"), history.new_conversation("two")
    history.append(one, "user", "goes away")
    history.append(two, "user", "stays here")
    history.delete(one)
    history.delete(4711)
    assert [each.id for each in history.conversations()] == [two]
    assert history.conversation(one) is None
    assert history.messages(one) == []
    assert history.search("goes away") == []
    assert [hit.text for hit in history.search("stays")] == ["stays here"]


def test_truncate_from_drops_a_message_and_all_after_it(history: History) -> None:
    one, two = history.new_conversation(), history.new_conversation()
    history.append(one, "user", "first")
    other = history.append(two, "user", "of another one")
    edited = history.append(one, "assistant", "second")
    history.append(one, "user", "third")
    history.truncate_from(edited)
    history.truncate_from(4711)
    assert [message.text for message in history.messages(one)] == ["first"]
    assert [message.id for message in history.messages(two)] == [other]
    assert history.search("third") == []
    assert history.append(one, "assistant", "anew") > edited, "an id is never given twice"


def test_rewrite_gives_a_message_another_text_in_its_place(history: History) -> None:
    chat = history.new_conversation("a")
    first = history.append(chat, "user", "question")
    answer = history.append(chat, "assistant", "pelican", finish_reason="cancelled")
    told: list[int] = []
    history.listen(lambda: told.append(1))
    history.rewrite(answer, "pelican and cormorant", finish_reason="stop")
    history.rewrite(999, "of nobody")
    assert [(each.id, each.text) for each in history.messages(chat)] == [
        (first, "question"),
        (answer, "pelican and cormorant"),
    ]
    assert history.messages(chat)[1].details == {"finish_reason": "stop"}
    assert [hit.id for hit in history.search("cormorant")] == [answer]
    history.rewrite(answer, "heron")
    assert history.search("pelican") == []
    assert told == []


def test_a_conversation_that_is_gone_says_so(history: History) -> None:
    gone = history.new_conversation()
    history.delete(gone)
    for use in (
        lambda: history.append(gone, "user", "x"),
        lambda: history.rename(gone, "x"),
        lambda: history.export_markdown(gone),
        lambda: history.export_json(gone),
    ):
        with pytest.raises(HistoryError, match="no longer in the history"):
            use()
    assert history.search("x") == []


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("weather", "The weather in Zürich"),
        ("EATHE", "The weather in Zürich"),
        ("zürich the", "The weather in Zürich"),
        ("ZÜRICH", "The weather in Zürich"),
        ("in Zü", "The weather in Zürich"),
        ("今天的天气", "今天的天气很好，我们去公园吧"),
        ("天气", "今天的天气很好，我们去公园吧"),
        ("园", "今天的天气很好，我们去公园吧"),
        ("天气 去公园", "今天的天气很好，我们去公园吧"),
        ("100 %_", "It is 100 %_ sure"),
        ('say "no', 'They say "no" AND (NOT) maybe*'),
        ("(NOT) maybe*", 'They say "no" AND (NOT) maybe*'),
        ("x\\y", "A path x\\y"),
        ("погода", "Сегодня ПОГОДА"),
    ],
)
def test_search_finds_any_part_in_any_script(history: History, query: str, found: str) -> None:
    texts = [
        "The weather in Zürich",
        "今天的天气很好，我们去公园吧",
        "It is 100 %_ sure",
        "Nothing at all, 100 xyz",
        'They say "no" AND (NOT) maybe*',
        "A path x\\y",
        "Сегодня ПОГОДА",
    ]
    conversation = history.new_conversation("talk")
    for text in texts:
        history.append(conversation, "user", text)
    other = history.new_conversation("other")
    history.append(other, "user", "unrelated")
    (hit,) = history.search(query)
    assert (hit.kind, hit.text, hit.conversation_id, hit.title) == ("message", found, conversation, "talk")
    assert [each.id for each in history.conversations(query)] == [conversation]


def test_search_needs_all_words_and_something_to_search_for(history: History) -> None:
    conversation = history.new_conversation("Plans")
    history.append(conversation, "user", "alpha beta")
    assert history.search("alpha gamma") == []
    assert history.search("  ") == []
    assert history.conversations("Plan")[0].id == conversation, "a title is found too"
    assert history.conversations("nowhere") == []


def test_results_of_actions_are_kept_and_found(history: History) -> None:
    conversation = history.new_conversation("talk")
    history.append(conversation, "user", "about the harbour")
    result = history.add_result("translate", "Der Hafen", "The harbour", "qwen", tokens=3)
    (found,) = history.results("hafen")
    assert (found.id, found.action_id, found.source_text, found.answer) == (
        result,
        "translate",
        "Der Hafen",
        "The harbour",
    )
    assert (found.model, found.details) == ("qwen", {"tokens": 3})
    assert [hit.kind for hit in history.search("harbour")] == ["result", "message"], "newest first"
    assert history.results("hafen harbour") == [found], "words may be spread over both"
    assert history.results("Ha") == [found]
    history.delete_result(result)
    assert history.results() == []
    assert [hit.kind for hit in history.search("harbour")] == ["message"]


def test_export_markdown(history: History) -> None:
    conversation = history.new_conversation("港口 & more", system="Be brief.")
    history.append(conversation, "user", "Show code")
    history.append(conversation, "assistant", "```python\nprint(1)\n```\n")
    head, _, rest = history.export_markdown(conversation).partition("\n\n*")
    assert head == "# 港口 & more"
    assert rest.split("*\n\n", 1)[1] == (
        "## System prompt\n\nBe brief.\n\n## You\n\nShow code\n\n## Assistant\n\n```python\nprint(1)\n```\n"
    )
    chinese = {"system": "系统提示", "user": "我", "assistant": "助手"}
    assert "## 我\n\nShow code" in history.export_markdown(conversation, chinese)  # type: ignore[arg-type]


def test_export_json(history: History) -> None:
    one, two = history.new_conversation("one", model="m"), history.new_conversation("two")
    history.append(one, "user", "你好", tokens=2)
    history.add_result("summarize", "long", "short", "m")
    document = json.loads(history.export_json())
    assert (document["format"], document["version"]) == ("deskinfer-history", 1)
    assert [each["title"] for each in document["conversations"]] == ["one", "two"], "last changed first"
    assert document["conversations"][0]["messages"] == [
        {"role": "user", "text": "你好", "details": {"tokens": 2}, "created": "2027-01-15T08:00:03.000+00:00"}
    ]
    assert document["results"][0]["answer"] == "short"
    (only,) = json.loads(history.export_json(two))["conversations"]
    assert only["title"] == "two"
    assert only["sampling"]["temperature"] == 0.0


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


def test_sampling_of_another_version_is_read_as_far_as_it_is_known(history: History) -> None:
    conversation = history.new_conversation()
    for stored, expected in (
        ('{"temperature": 0.5, "of_later": 1}', SamplingParams(temperature=0.5)),
        ('{"temperature": 99}', SamplingParams()),
    ):
        history._connection.execute("UPDATE conversations SET sampling = ?", (stored,))
        found = history.conversation(conversation)
        assert found is not None
        assert found.sampling == expected


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_write_protected_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    history = History(tmp_path / "sub" / "history.db")
    assert "cannot be opened" in str(history.problem)
    history.close()
    tmp_path.chmod(0o700)


def test_halves_of_characters_are_kept_as_far_as_they_go(history: History) -> None:
    conversation = history.new_conversation("\udc00")
    history.append(conversation, "assistant", "a \ud83d\ude42 b \ud83d")
    assert [message.text for message in history.messages(conversation)] == ["a 🙂 b \ufffd"]
    history.add_result("own", "\ud83d", "x")
    assert history.results()[0].source_text == "\ufffd"


def test_changes_that_belong_together_are_made_together(history: History) -> None:
    conversation = history.new_conversation("one")
    first = history.append(conversation, "user", "before")

    def replace_in(conversation: int) -> None:
        with history.together():
            history.truncate_from(first)
            history.append(conversation, "user", "after")

    with pytest.raises(HistoryError):
        replace_in(conversation + 1)
    assert [message.text for message in history.messages(conversation)] == ["before"]
    replace_in(conversation)
    assert [message.text for message in history.messages(conversation)] == ["after"]
