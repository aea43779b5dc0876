"""Counting in slices between steps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.engine.count_queue import SLICE_CHARS, CountQueue, slices
from inference.errors import InferenceError
from inference.request import TokenCounts

USER_WORDS = "what a user wrote"


class LetterEngine:
    """A token is a character; a text of "!" cannot be counted."""

    def __init__(self, context_tokens: int = 100) -> None:
        self.context_tokens = context_tokens
        self.seen: list[str] = []

    def count_tokens(self, text: str) -> int:
        if text == "!":
            raise ValueError(USER_WORDS)
        self.seen.append(text)
        return len(text)


class Clock:
    """Each look at it takes a second."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def test_several_texts_are_counted_at_once() -> None:
    answers: list[object] = []
    counts = CountQueue()
    counts.put(["one", "", "three"], answers.append)
    assert counts
    answer = counts.work(LetterEngine(), budget_s=10.0)
    assert answer == (answers.append, TokenCounts((3, 0, 5), 100))
    assert not counts


def test_a_long_text_takes_a_slice_each_time_and_another_engine_begins_anew() -> None:
    answers: list[object] = []
    text = "word " * 10_000
    counts = CountQueue()
    counts.put([text], answers.append)
    first, second = LetterEngine(), LetterEngine(7)
    assert counts.work(first, 0.5, Clock()) is None
    assert 0 < len(first.seen[0]) <= SLICE_CHARS
    for _ in range(10):
        answer = counts.work(second, 0.5, Clock())
        if answer is not None:
            break
    assert answer is not None
    assert answer[1] == TokenCounts((len(text),), 7)
    assert len(first.seen) == 1
    assert max(map(len, second.seen)) <= SLICE_CHARS


def test_what_cannot_be_counted_ends_alone_and_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    counts = CountQueue()
    counts.put(["!"], print)
    counts.put(["fine"], print)
    bad = counts.work(LetterEngine(), 1.0)
    assert bad is not None
    assert isinstance(bad[1], InferenceError)
    good = counts.work(LetterEngine(), 1.0)
    assert good is not None
    assert good[1] == TokenCounts((4,), 100)
    assert "ValueError" in caplog.text
    assert USER_WORDS not in caplog.text


def test_dropping_ends_all() -> None:
    counts = CountQueue()
    counts.put(["a"], print)
    counts.put(["b"], print)
    error = InferenceError("gone")
    assert counts.drop(error) == [(print, error), (print, error)]
    assert not counts


def test_slices_end_where_tokens_end() -> None:
    pieces = list(slices("some words\n" * 5000))
    assert len(pieces) > 2
    assert all(piece.endswith(("some", "\n")) for piece in pieces)


@given(st.text(max_size=40), st.integers(0, 3000))
def test_joined_slices_are_the_text(unit: str, times: int) -> None:
    text = unit * times
    pieces = list(slices(text))
    assert "".join(pieces) == text
    assert all(len(piece) <= SLICE_CHARS for piece in pieces)
