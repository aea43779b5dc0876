"""Merging against the tokenizers library."""

from __future__ import annotations

import random

import pytest
from tokenizers import models

from inference.errors import ModelFormatError
from inference.text.byte_alphabet import characters_by_byte
from inference.text.byte_pairs import BytePairs


def random_vocabulary(rng: random.Random, letters: str, count: int) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Merges in a random order, so that low ranks may need high ones; ids are shuffled too."""
    tokens = list(letters)
    merges: list[tuple[str, str]] = []
    for _ in range(10 * count):
        pair = (rng.choice(tokens), rng.choice(tokens))
        if len(merges) < count and pair not in merges and len("".join(pair)) <= 9:
            merges.append(pair)
            if "".join(pair) not in tokens:
                tokens.append("".join(pair))
    rng.shuffle(merges)
    ids = list(range(len(tokens) + 5))
    rng.shuffle(ids)
    return dict(zip(tokens, ids, strict=False)), merges


@pytest.mark.parametrize("seed", range(30))
def test_equals_the_library(seed: int) -> None:
    rng = random.Random(seed)
    vocab, merges = random_vocabulary(rng, "abcd"[: rng.randint(1, 4)], rng.randint(1, 40))
    library = models.BPE(vocab, merges)
    pairs = BytePairs(vocab, merges)
    for _ in range(200):
        word = "".join(rng.choice("abcd") for _ in range(rng.randint(0, 40)))
        expected = tuple(token.id for token in library.tokenize(word))
        assert pairs.encode(word.encode()) == expected, word
        assert pairs.encode(word.encode()) == expected, "second time"


def test_a_word_of_a_hundred_thousand_letters() -> None:
    rng = random.Random(1)
    vocab, merges = random_vocabulary(rng, "abcd", 60)
    word = "".join(rng.choice("abcd") for _ in range(100_000))
    expected = tuple(token.id for token in models.BPE(vocab, merges).tokenize(word))
    assert BytePairs(vocab, merges).encode(word.encode()) == expected


def test_whole_words_come_first() -> None:
    vocab = {"a": 0, "b": 1, "ab": 2, "abab": 3, "Ġ": 4}
    assert BytePairs(vocab, [("a", "b")], whole_words=True).encode(b"abab") == (3,)
    assert BytePairs(vocab, [("a", "b")]).encode(b"abab") == (2, 2)
    assert BytePairs(vocab, [("a", "b")], whole_words=True).encode(b" abab") == (4, 2, 2)


def test_bytes_without_a_token_are_left_out() -> None:
    assert BytePairs({"a": 7}, []).encode(b"\x00a\xffa") == (7, 7)


def test_later_ranks_replace_earlier_ones_of_the_same_pair() -> None:
    vocab = {"a": 0, "b": 1, "c": 2, "ab": 3, "bc": 4}
    merges = [("a", "b"), ("b", "c"), ("a", "b")]
    expected = tuple(token.id for token in models.BPE(vocab, merges).tokenize("abc"))
    assert BytePairs(vocab, merges).encode(b"abc") == expected == (0, 4)


@pytest.mark.parametrize("merge", [("a", "x"), ("x", "a"), ("b", "a"), ("", "a")])
def test_merges_without_their_tokens(merge: tuple[str, str]) -> None:
    with pytest.raises(ModelFormatError, match="Merge 1 of the vocabulary"):
        BytePairs({"a": 0, "b": 1, "ab": 2}, [("a", "b"), merge])


def test_the_cache_stays_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inference.text.byte_pairs._MAX_CACHED_WORDS", 10)
    pairs = BytePairs({character: byte for byte, character in enumerate(characters_by_byte())}, [])
    for number in range(100):
        word = str(number).encode()
        assert pairs.encode(word) == tuple(word)
        assert len(pairs._cache) <= 10
