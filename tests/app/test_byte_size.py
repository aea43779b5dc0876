"""Sizes as a user writes them."""

from __future__ import annotations

import pytest

from app.byte_size import ByteSizeError, byte_size
from inference.byte_size import size_text


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("3.237GiB", int(3.237 * 1024**3)),
        ("3,5 GiB", 7 * 1024**3 // 2),
        ("3.5GB", 7 * 1024**3 // 2),
        ("800 MB", 800 * 1024**2),
        (" 2g ", 2 * 1024**3),
        ("512K", 512 * 1024),
        ("7", 7),
        ("7b", 7),
    ],
)
def test_a_size_is_read(text: str, size: int) -> None:
    assert byte_size(text) == size


@pytest.mark.parametrize("size", [340 * 1024**2, 4 * 1024**3, 512])
def test_a_size_is_typed_as_it_is_shown(size: int) -> None:
    assert byte_size(size_text(size)) == size


@pytest.mark.parametrize("text", ["", "much", "-3GiB", "0GiB", "3 GiB GiB", "0.0001k"])
def test_what_is_no_size_is_said_so(text: str) -> None:
    with pytest.raises(ByteSizeError, match="is no size of memory"):
        byte_size(text)
