"""Texts of the user's: what cannot be read is said with its cure."""

from __future__ import annotations

from pathlib import Path

import pytest

from inference.errors import InvalidRequestError
from inference.quantize import text_file
from inference.quantize.text_file import read_text_file


def test_a_text(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("Grüße, 世界", encoding="utf-8")
    assert read_text_file(tmp_path / "text") == "Grüße, 世界"


def test_texts_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "binary").write_bytes(b"abc\xff")
    (tmp_path / "large").write_bytes(b"12345")
    with pytest.raises(InvalidRequestError, match=r"cannot be read: .*Check the path"):
        read_text_file(tmp_path / "absent")
    with pytest.raises(InvalidRequestError, match=r"no UTF-8 text at byte 3\. Give a plain text file"):
        read_text_file(tmp_path / "binary")
    with pytest.raises(InvalidRequestError, match=r"is no file\. Give a text file"):
        read_text_file(tmp_path)
    monkeypatch.setattr(text_file, "MAX_TEXT_BYTES", 4)
    with pytest.raises(InvalidRequestError, match=r"large has .* Give a part of it"):
        read_text_file(tmp_path / "large")
