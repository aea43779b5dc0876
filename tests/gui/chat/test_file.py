"""Files that go along with a question."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.qt.chat.file import LARGEST_BYTES, ChatFile, ChatFileError, read_chat_file, split_files, with_files


def test_a_text_is_read_whole(tmp_path: Path):
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeff你好\r\nb\n\n".encode())
    assert read_chat_file(path) == ChatFile("a.txt", "你好\nb")
    assert read_chat_file(path).size == "8 B"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"x" * (LARGEST_BYTES + 1), "the limit is 1.0 MB"),
        (b"\xff\xfe\x00", "no text in UTF-8"),
        (b"a\0b", "no text in UTF-8"),
        (b" \n", "is empty"),
    ],
)
def test_what_is_refused_is_named(tmp_path: Path, content: bytes, words: str):
    path = tmp_path / "a.bin"
    path.write_bytes(content)
    with pytest.raises(ChatFileError, match=words) as raised:
        read_chat_file(path)
    assert "a.bin" in str(raised.value)


def test_a_folder_cannot_be_read(tmp_path: Path):
    with pytest.raises(ChatFileError, match="cannot be read"):
        read_chat_file(tmp_path)


@given(st.text(), st.lists(st.tuples(st.sampled_from(["a.txt", "b c.md"]), st.text())))
def test_taking_apart_and_joining_again_loses_nothing(text: str, files: list[tuple[str, str]]):
    joined = with_files(text, [ChatFile(name, body) for name, body in files])
    assert with_files(*split_files(joined)) == joined


def test_question_and_files_are_told_apart():
    joined = with_files("What is it?", [ChatFile("a.txt", "one\n\ntwo"), ChatFile("b.txt", "three")])
    assert split_files(joined) == ("What is it?", [ChatFile("a.txt", "one\n\ntwo"), ChatFile("b.txt", "three")])
    assert split_files("no files") == ("no files", [])
