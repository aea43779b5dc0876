"""Pieces in a long text."""

from __future__ import annotations

import random

import pytest

from app.text.text_index import TextIndex


@pytest.mark.parametrize("seed", range(5))
def test_it_finds_what_str_finds(seed: int) -> None:
    rng = random.Random(seed)
    text = "".join(rng.choices("ab中", k=300))
    index = TextIndex(text)
    for _ in range(300):
        piece, start = "".join(rng.choices("ab中", k=rng.randint(0, 9))), rng.randint(0, 300)
        assert index.find(piece, start) == text.find(piece, start)
        assert (piece in index) == (piece in text)
    assert index.find(text) == 0
    assert index.find(text[:200] + "x") == -1
    assert index.find(text[100:]) == text.find(text[100:])
    assert TextIndex("ab").find("abcd") == -1
