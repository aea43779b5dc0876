"""What a translation left as it was is found; names, brands, code and quoted titles are let pass."""

import time
import tomllib
from pathlib import Path
from typing import Any

import pytest

from app.language import LANGUAGES
from app.text.checks import TRANSLATION_CHECKS, Loss, check

PAIRS = tomllib.loads((Path(__file__).parents[2] / "data" / "translations.toml").read_text("utf-8"))["pair"]


def _flagged(source: str, answer: str, languages: tuple[str, str]) -> list[Loss]:
    losses = check(source, answer, TRANSLATION_CHECKS, languages=languages)
    return [loss for loss in losses if loss.kind == "untranslated"]


@pytest.mark.parametrize("pair", PAIRS, ids=[f"{'-'.join(pair['languages'])}-{pair['answer'][:24]}" for pair in PAIRS])
def test_what_stayed_as_it_was_is_flagged_and_nothing_else(pair: dict[str, Any]):
    source, answer = pair["source"], pair["answer"]
    losses = _flagged(source, answer, tuple(pair["languages"]))
    assert sorted(loss.near for loss in losses) == sorted(pair["flagged"])
    for loss in losses:
        assert loss.answer_span is not None
        assert answer[slice(*loss.answer_span)] == loss.near
        if loss.source_span is not None:
            assert source[slice(*loss.source_span)] == loss.text


def test_the_pairs_are_of_all_kinds():
    for languages in (["en", "zh"], ["zh", "en"], ["en", "de"], ["en", "ja"]):
        flagged = [pair["flagged"] for pair in PAIRS if pair["languages"] == languages]
        assert sum(map(bool, flagged)) >= 8
        assert sum(not each for each in flagged) >= 8
    assert len(PAIRS) > 250


@pytest.mark.parametrize(
    ("source", "answer", "flagged"),
    [
        ("Our WeChat ID is green-tea.", "我们的微信号是 green-tea。", ["green-tea"]),
        ("The variable count is an int.", "变量 count 是 int。", ["count"]),
    ],
)
def test_a_name_in_lower_case_that_nothing_marks_is_taken_for_a_word(source: str, answer: str, flagged: list[str]):
    """What the rules cannot know; with marks around it, it is let pass."""
    assert [loss.near for loss in _flagged(source, answer, ("en", "zh"))] == flagged
    (word,) = flagged
    marked = [text.replace(word, f"`{word}`") for text in (source, answer)]
    assert _flagged(marked[0], marked[1], ("en", "zh")) == []


def test_a_loss_knows_its_places_each_one_its_own():
    source = "The pump broke. Buy a new pump now."
    answer = "pump 坏了。现在买一个新的 pump。"
    first, second = _flagged(source, answer, ("en", "zh"))
    assert first == Loss("untranslated", "pump", "pump", (4, 8), (0, 4))
    assert (second.source_span, second.answer_span) == ((26, 30), (16, 20))


def test_a_word_that_is_a_part_of_another_one_is_found_by_itself():
    source = "The relevant van is here."
    (loss,) = _flagged(source, "他的 van 在这里。", ("en", "zh"))
    assert loss.source_span == (13, 16)


def test_words_of_the_answers_own_are_flagged_only_where_they_are_a_clause():
    assert _flagged("请回复。", "Please reply.", ("zh", "en")) == []
    assert _flagged("Send it soon.", "请在 deadline 前发送。", ("en", "zh")) == []
    (loss,) = _flagged("Send it soon.", "尽快发送。Note that this is only a draft.", ("en", "zh"))
    assert (loss.text, loss.near, loss.source_span) == ("", "Note that this is only a draft", None)


_PARAGRAPHS = {
    "en": "The lift of house {n} is out of order, so please take the stairs. It will be repaired by Acme on Monday.",
    "zh": "{n}号楼的电梯坏了，请走楼梯。Acme 周一来修理。",
    "de": "Der Aufzug in Haus {n} ist außer Betrieb, bitte nehmen Sie die Treppe. Acme repariert ihn am Montag.",
    "ja": "{n}号棟のエレベーターは故障していますので、階段をご利用ください。月曜日に Acme が修理します。",
}


@pytest.mark.parametrize(
    ("one", "other"), [("en", "zh"), ("zh", "en"), ("en", "de"), ("de", "en"), ("en", "ja"), ("zh", "ja")]
)
def test_a_chunk_of_a_long_text_that_is_left_is_one_place(one: str, other: str):
    source = "\n\n".join(_PARAGRAPHS[one].format(n=n) for n in range(1, 41))
    good = [_PARAGRAPHS[other].format(n=n) for n in range(1, 41)]
    assert _flagged(source, "\n\n".join(good), (one, other)) == []
    chunk = [_PARAGRAPHS[one].format(n=n) for n in range(11, 16)]
    answer = "\n\n".join([*good[:10], *chunk, *good[15:]])
    losses = _flagged(source, answer, (one, other))
    covered = sum(len(loss.near) for loss in losses)
    assert covered > 0.9 * len("\n\n".join(chunk)) - 10
    assert len(losses) == 1
    assert all("\n\n".join(good[:10]) not in loss.near for loss in losses)


@pytest.mark.parametrize(("one", "other"), [("en", "zh"), ("zh", "en"), ("en", "de"), ("zh", "ja"), ("ja", "zh")])
def test_an_answer_that_is_its_source_is_flagged_as_a_whole(one: str, other: str):
    source = "\n\n".join(_PARAGRAPHS[one].format(n=n) for n in range(1, 4))
    losses = _flagged(source, source, (one, other))
    least = {("zh", "ja"): 0.7, ("ja", "zh"): 0.2}.get((one, other), 0.9)  # what the scripts do not share
    assert sum(len(loss.near) for loss in losses) > least * len(source)


@pytest.mark.parametrize("languages", [("", ""), ("en", ""), ("", "zh"), ("en", "en"), ("xx", "zh")])
def test_without_two_languages_nothing_is_said(languages: tuple[str, str]):
    assert _flagged("See you on Friday.", "See you on Friday.", languages) == []


@pytest.mark.parametrize("one", list(LANGUAGES))
@pytest.mark.parametrize("other", ["en", "zh", "ja", "ru", "ar", "th"])
def test_every_pair_of_languages_can_be_checked(one: str, other: str):
    text = (
        "Friday 周五 金曜日です пятница Παρασκευή يوم الجمعة ศุกร์ शुक्रवार שישי 금요일, Dr. (E. x) «a» [b] “c\n\n- d_e 5kg"
    )
    for loss in _flagged(text, text[::-1] + text, (one, other)):
        assert loss.near


@pytest.mark.parametrize(
    "source",
    [
        "x" * 100_000,
        "a." * 50_000,
        "a " * 50_000,
        "“a”" * 30_000,
        "“" * 100_000,
        "*a" * 50_000,
        "a (" * 30_000,
        "a b c.\n" * 20_000,
        "请看一下这个地方。Acme 来。" * 6000,
        "a=(" * 30_000,
        "字" * 100_000,
        "字a" * 50_000,
    ],
)
@pytest.mark.parametrize("languages", [("en", "zh"), ("zh", "en"), ("en", "de")])
def test_a_long_text_takes_seconds_at_most(source: str, languages: tuple[str, str]):
    check("a", "a", ("untranslated",), languages=languages)
    start = time.process_time()
    check(source, source, ("untranslated",), languages=languages)
    assert time.process_time() - start < 4.0


def test_a_book_that_is_half_translated_takes_seconds_at_most():
    source = " ".join(f"We met Bob number {n} and the old crane, said Carl." for n in range(2000))
    answer = "".join(f"我们见了 Bob {n} 号和旧 crane，Carl 说。We met Bob number {n}." for n in range(2000))
    start = time.process_time()
    assert len(_flagged(source, answer, ("en", "zh"))) == 4000
    assert time.process_time() - start < 8.0


def test_many_sentences_that_begin_alike_take_no_time():
    words = (str(number).translate(str.maketrans("0123456789", "abcdefghij")) for number in range(10_000))
    source = "\n".join(f"There is a {word}." for word in words)
    start = time.process_time()
    check(source, source, ("untranslated",), languages=("en", "de"))
    assert time.process_time() - start < 4.0
