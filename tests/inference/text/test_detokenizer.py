"""The stream against a decode of the whole, for random tokens, cuts and stop strings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from inference.text.detokenizer import Detokenizer
from inference.text.tokenizer import Tokenizer

TEXT = "plain 👩‍👩‍👧‍👦 🇫🇷 你好世界 e\u0301q\u0307\u0323 مرحبا 각\u1112\u1161\u11ab 👍🏽 1️⃣ \U0010ffff\ufffd\x00 end"


class Pieces:
    """A vocabulary whose tokens are given byte strings."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self.pieces = pieces

    def token_bytes(self, token_id: int) -> bytes:
        return self.pieces[token_id]


def stream(pieces: Sequence[bytes], stop: Sequence[str] = ()) -> tuple[list[str], Detokenizer]:
    """What each push returned, and finish."""
    detokenizer = Detokenizer(Pieces(pieces), stop)
    parts = [detokenizer.push(token_id) for token_id in range(len(pieces))]
    return [*parts, detokenizer.finish()], detokenizer


def cut_at_first_stop(text: str, stop: Sequence[str]) -> tuple[str, bool]:
    """The documented rule on the whole text: the stop string that ends first; of these the one that began first."""
    ends = [(text.index(word) + len(word), text.index(word)) for word in stop if word in text]
    return (text[: min(ends)[1]], True) if ends else (text, False)


pieces_of_bytes = st.lists(st.binary(max_size=5), max_size=30)
letters = st.text(alphabet="ab", min_size=1, max_size=5)


@st.composite
def cut_texts(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> list[bytes]:
    """A text's UTF-8, cut at random places, also inside of characters."""
    data = draw(texts).encode()
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=20)))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


class TestCharacters:
    @given(pieces_of_bytes)
    def test_any_bytes_equal_the_decode_of_the_whole(self, pieces: list[bytes]) -> None:
        parts, _ = stream(pieces)
        assert "".join(parts) == b"".join(pieces).decode("utf-8", "replace")

    @given(cut_texts(st.text(max_size=40) | st.just(TEXT)))
    @example([b"plain ", "\U0001f469\u200d".encode(), "\U0001f469\u200d".encode()])
    def test_only_whole_characters_come_out(self, pieces: list[bytes]) -> None:
        parts, _ = stream(pieces)
        for count in range(1, len(pieces) + 1):
            # Of sound text, this leaves out the incomplete character at the end.
            assert "".join(parts[:count]) == b"".join(pieces[:count]).decode("utf-8", "ignore")
        assert "".join(parts) == b"".join(pieces).decode()

    def test_a_character_waits_for_its_last_byte(self) -> None:
        assert stream([b"\xf0", b"\x9f", b"\x98", b"\x80", b"!"])[0] == ["", "", "", "😀", "!", ""]

    def test_bytes_that_cannot_become_a_character_are_replaced_at_once(self) -> None:
        assert stream([b"\xff", b"a"])[0] == ["\ufffd", "a", ""]
        assert stream([b"\xf0\x9f", b"a"])[0] == ["", "\ufffda", ""]

    def test_an_answer_cut_inside_a_character_ends_in_a_replacement(self) -> None:
        assert stream([b"ok \xf0\x9f\x98"])[0] == ["ok ", "\ufffd"]

    @given(data=st.data())
    def test_random_tokens_of_a_real_kind_equal_transformers(self, trained: Any, data: st.DataObject) -> None:
        tokenizer = self.tokenizer(trained)
        ids = data.draw(st.lists(st.integers(0, tokenizer.vocab_size - 1), max_size=40))
        detokenizer = Detokenizer(tokenizer)
        text = "".join([*map(detokenizer.push, ids), detokenizer.finish()])
        expected = b"".join(map(tokenizer.token_bytes, ids)).decode("utf-8", "replace")
        assert text == expected
        ordinary = [token_id for token_id in ids if tokenizer.token_bytes(token_id)]
        # The library decodes added tokens apart from their neighbours, so only where there are none it is the same.
        if not any(token_id in trained.reference.added_tokens_decoder for token_id in ordinary):
            assert text == trained.reference.decode(ordinary, clean_up_tokenization_spaces=False)

    def tokenizer(self, trained: Any, _built: dict[str, Tokenizer] = {}) -> Tokenizer:  # noqa: B006 - one for all examples
        return _built.setdefault(trained.rule, Tokenizer.from_data(trained.from_pieces))

    def test_text_comes_back_through_a_trained_vocabulary(self, trained: Any) -> None:
        tokenizer = self.tokenizer(trained)
        detokenizer = Detokenizer(tokenizer)
        text = "".join([*map(detokenizer.push, tokenizer.encode_text(TEXT)), detokenizer.finish()])
        assert text == trained.reference.decode(trained.ids(TEXT), clean_up_tokenization_spaces=False)


class TestStopStrings:
    @given(cut_texts(st.text(alphabet="abc", max_size=40)), st.lists(letters, max_size=4))
    def test_equal_the_rule_on_the_whole_text(self, pieces: list[bytes], stop: list[str]) -> None:
        parts, detokenizer = stream(pieces, stop)
        expected, stopped = cut_at_first_stop(b"".join(pieces).decode(), stop)
        assert ("".join(parts), detokenizer.stopped) == (expected, stopped)

    @given(pieces_of_bytes, st.lists(st.text(min_size=1, max_size=3), max_size=3))
    def test_any_bytes_and_any_stop_strings(self, pieces: list[bytes], stop: list[str]) -> None:
        parts, detokenizer = stream(pieces, stop)
        expected, stopped = cut_at_first_stop(b"".join(pieces).decode("utf-8", "replace"), stop)
        assert ("".join(parts), detokenizer.stopped) == (expected, stopped)

    @given(cut_texts(st.text(alphabet="ab你😀\u0301", max_size=40)), st.lists(letters, min_size=1, max_size=3))
    def test_nothing_is_held_that_cannot_begin_a_stop_string(self, pieces: list[bytes], stop: list[str]) -> None:
        detokenizer = Detokenizer(Pieces(pieces), stop)
        shown, data = "", b""
        for token_id, piece in enumerate(pieces):
            shown += detokenizer.push(token_id)
            data += piece
            if detokenizer.stopped:
                break
            held = data.decode("utf-8", "ignore")[len(shown) :]
            assert held == "" or any(word.startswith(held) and word != held for word in stop)

    @pytest.mark.parametrize(
        ("text", "stop", "expected"),
        [
            ("aaab", ["aab"], "a"),
            ("ababac", ["abac"], "ab"),
            ("aaaaab", ["aaab"], "aa"),
            ("one\n\ntwo", ["\n\n"], "one"),
            ("xSTOP", ["STOP", "TO"], "xS"),
            ("xSTOP", ["STOP", "OP"], "x"),
            ("xSTO", ["STOP"], "xSTO"),
            ("STOP", ["STOP"], ""),
            ("你好😀世界", ["😀世"], "你好"),
            ("e\u0301x", ["\u0301"], "e"),
            ("no stop here", ["STOP", "zzz"], "no stop here"),
        ],
    )
    @pytest.mark.parametrize("size", [1, 2, 3, 100])
    def test_examples(self, text: str, stop: list[str], expected: str, size: int) -> None:
        data = text.encode()
        parts, detokenizer = stream([data[at : at + size] for at in range(0, len(data), size)], stop)
        assert "".join(parts) == expected
        assert detokenizer.stopped == (expected != text)

    def test_stops_at_the_token_that_completes_it(self) -> None:
        detokenizer = Detokenizer(Pieces([b"ab", b"cd", b"ef"]), ["bc"])
        assert (detokenizer.push(0), detokenizer.stopped) == ("a", False)
        assert (detokenizer.push(1), detokenizer.stopped) == ("", True)
        assert (detokenizer.push(2), detokenizer.finish()) == ("", "")

    def test_replacement_at_the_end_may_complete_a_stop_string(self) -> None:
        parts, detokenizer = stream([b"a\xf0\x9f"], ["a\ufffd"])
        assert ("".join(parts), detokenizer.stopped) == ("", True)

    def test_control_tokens_between_the_bytes_of_a_character_are_skipped(self) -> None:
        assert "".join(stream([b"\xf0\x9f", b"", b"\x98\x80"])[0]) == "😀"
