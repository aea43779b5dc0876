"""Cutting texts: nothing lost, nothing doubled, and at places that a reader would choose."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.text.parts import UNIT_CHARS, Border, cut, units


def parts(text: str, limit: int) -> list[str]:
    """Cut with a token for each character."""
    pieces = units(text)
    return [part.text for part in cut(pieces, [len(piece.text) for piece in pieces], limit)]


TEXTS = st.lists(
    st.sampled_from(
        [
            *(
                "word ",
                "Word. ",
                "Dr. Who ",
                "e.g. this, ",
                "3.5 ",
                "!? ",
                "“Yes.” ",
                "很好。",
                "そうです。",
                "你好，",
                "\n",
                "\n\n",
            ),
            *(
                "- item\n",
                "1. one\n",
                "| a | b |\n",
                "# Title\n",
                "```\n",
                "~~~~\n",
                "    code()\n",
                "\u00a0",
                "\t",
                "\r\n",
            ),
            *("x" * 300, "汉" * 250, "👩‍👩‍👧", "é", "\x0c", "\u2028", ":\n", "  \n"),
        ]
    ),
    max_size=60,
).map("".join)


@settings(max_examples=300, deadline=None)
@given(TEXTS, st.integers(1, 400))
def test_nothing_is_lost_or_doubled_and_no_part_is_too_long(text: str, limit: int) -> None:
    pieces = units(text)
    assert "".join(piece.text for piece in pieces) == text
    assert all(piece.text for piece in pieces)
    counts = [len(piece.text.encode()) for piece in pieces]
    found = cut(pieces, counts, limit)
    assert "".join(part.text for part in found) == text
    assert all(part.text for part in found)
    assert all(part.tokens <= limit for part in found)
    if limit >= 4:
        assert all(len(part.text.encode()) <= limit for part in found)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=600), st.integers(1, 50))
def test_any_text_comes_back(text: str, limit: int) -> None:
    assert "".join(parts(text, limit)) == text


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One is here. Two is there! Three?", ["One is here. ", "Two is there! ", "Three?"]),
        ('She said: "Go." Then he went.', ['She said: "Go." ', "Then he went."]),
        (
            "Dr. Hill pays 3.5 million, e.g. for J. Smith. Then ends.",
            ["Dr. Hill pays 3.5 million, e.g. for J. Smith. ", "Then ends."],
        ),
        ("今天下雨。明天呢？“好。”他说。", ["今天下雨。", "明天呢？", "“好。”", "他说。"]),
        ("今日は雨です。「はい。」と言った。", ["今日は雨です。", "「はい。」", "と言った。"]),
    ],
)
def test_sentences_are_found(text: str, sentences: list[str]) -> None:
    assert [unit.text for unit in units(text)] == sentences


def test_paragraphs_win_over_lines_and_lines_over_sentences() -> None:
    borders = [unit.border for unit in units("One. Two.\nThree.\n\nFour.")]
    assert borders == [Border.SENTENCE, Border.LINE, Border.PARAGRAPH, Border.PARAGRAPH]
    paragraph = "A sentence of some words. " * 4 + "The end.\n\n"
    assert parts(paragraph * 6, 260) == [paragraph * 2] * 3


def test_lines_that_were_only_wrapped_are_no_good_places() -> None:
    text = "This line is long and was wrapped by a program that knows\nno better, and so was\nthis one. A new sentence."
    assert [unit.border for unit in units(text)] == [Border.CLAUSE, Border.CLAUSE, Border.SENTENCE, Border.PARAGRAPH]


def test_parts_are_of_about_equal_length() -> None:
    found = parts("Sentence number one. " * 50, 600)
    assert len(found) == 2
    assert abs(len(found[0]) - len(found[1])) < 50


@pytest.mark.parametrize(
    "kept",
    [
        "```python\nfor i in x:\n    print(i)\n\nprint('Done.')\n```\n",
        "- milk. And bread.\n- eggs\n- butter\n- flour\n- salt\n",
        "| a | b |\n|---|---|\n| 1. | 2. |\n| 3. | 4. |\n",
    ],
)
def test_what_belongs_together_stays_whole_where_it_fits(kept: str) -> None:
    before, after = "Some words. " * 7 + "\n\n", "\n" + "Other words. " * 8
    found = parts(before + kept + after, 100)
    assert "".join(found) == before + kept + after
    assert any(kept in part for part in found)
    small = parts(before + kept + after, 30)
    assert "".join(small) == before + kept + after
    assert not any(kept in part for part in small)


def test_code_that_does_not_fit_is_cut_between_its_lines() -> None:
    code = "```\n" + "call_something(1, 2)\n" * 20 + "```\n"
    assert all(part.endswith("\n") for part in parts(code, 100))


def test_a_heading_stays_with_its_text_and_an_announcement_with_its_list() -> None:
    text = "Words of a paragraph. " * 3 + "\n\n# Title\n\nIts text is here. And more of it.\n"
    assert not any(part.rstrip().endswith("# Title") for part in parts(text, 80))
    text = "Words of a paragraph. " * 3 + "\n\nPlease bring:\n- bread\n- milk\n"
    assert not any(part.endswith("bring:\n") for part in parts(text, 85))


def test_a_sentence_over_a_part_is_cut_at_clauses_then_at_words_then_anywhere() -> None:
    clauses = "when it rains we stay, " * 30
    assert all(part.endswith(", ") for part in parts(clauses, 130))
    words = "word " * 100
    assert all(part.endswith(" ") for part in parts(words, 130))
    chinese = "一二三四五六七八九十，" * 60
    assert all(part.endswith("，") for part in parts(chinese, 130))
    endless = "x" * 1000
    assert {len(part) % UNIT_CHARS for part in parts(endless, 250)} == {0, 1000 % UNIT_CHARS}
    assert max(len(unit.text) for unit in units(clauses + words + chinese + endless)) <= UNIT_CHARS + 1


def test_a_family_is_not_taken_apart() -> None:
    family = "👩‍👩‍👧"
    assert all(unit.text.startswith("👩") for unit in units(family * 100))


def test_a_megabyte_takes_no_time() -> None:
    text = ("A sentence of a few words, and one more clause. " * 20 + "\n\n") * 1000
    started = time.perf_counter()
    pieces = units(text)
    cut(pieces, [len(piece.text) for piece in pieces], 5000)
    assert time.perf_counter() - started < 5.0


def test_many_blank_lines_take_no_time():
    text = "Hello.\n" + "\n" * 100_000 + "World."
    start = time.process_time()
    assert "".join(unit.text for unit in units(text)) == text
    assert time.process_time() - start < 2.0
