"""What an answer lost is found; what it only says in other words is not flagged."""

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.text.checks import (
    CHECK_NAMES,
    SUMMARY_CHECKS,
    TRANSLATION_CHECKS,
    Loss,
    check,
)
from app.text.word_diff import word_diff


def _rewritten(source: str, answer: str) -> list[tuple[str, str, str]]:
    return [(loss.kind, loss.text, loss.near) for loss in check(source, answer, diff=word_diff(source, answer))]


@pytest.mark.parametrize(
    ("source", "answer", "losses"),
    [
        ("Meet at 14:30 on Friday.", "We meet at 13:30 on Thursday.", ["14:30>13:30", "Friday>Thursday"]),
        ("It has 3 files.", "It has three files.", []),
        ("It takes 5 %.", "It takes five percent.", []),
        ("Call 555 0143.", "Call 555 0134.", ["0143>0134"]),
        ("Rows 5 and 5, page 7", "Rows 5 and 6, page 7", ["5>6"]),
        (
            "Due 31/12/2026, not 3/4",
            "Due on 31 December 2026, not 3 April",
            ["31/12/2026>31 December 2026", "3/4>3 April"],
        ),
        ("on thursday, room 204", "on Thursday", ["204>"]),
        ("About 40 percents of it", "About 40% of it", []),
        ("Page 2, with 4 lines", "Page 4, with 4 lines", ["2>4"]),
        ("In 2026 we grew.", "We grew.", ["2026>"]),
        ("明天下午三点开会，带两份合同。", "会议定于明天15:00，请带上2份合同。", []),
        ("明天下午三点开会。", "明天下午四点开会。", ["三点>四点"]),
        ("I asked Maria and Tom Wu.", "I asked Maria and Tom.", ["Wu>"]),
        ("I asked Maria today.", "I asked Marie today.", ["Maria>Marie"]),
        ("The API of ACME is old.", "The interface of ACME is old.", ["API>"]),
        ("请看 Windows 的说明。", "请看系统的说明。", ["Windows>"]),
        ("See https://x.org/a?b=1.", "See https://x.org/a?b=2.", ["https://x.org/a?b=1>https://x.org/a?b=2"]),
        ("See http://x.org (http://e.org/A_(b)).", "Look at http://x.org and http://e.org/A_(b).", []),
        ("See docs.x.org/start.", "See the docs.", ["docs.x.org/start>"]),
        ("Mail me@x.org!", "Please write to me@x.org.", []),
        ("Mail me@x.org!", "Please write to we@x.org.", ["me@x.org>we@x.org"]),
        ("Hi {name}, %s has ${X}, {{y}}.", "Hello {name}, %s has ${X}, {{ y }}.", ["{{y}}>{{ y }}"]),
        ("A <b>bold</b> word", "A bold word", ["<b>>", "</b>>"]),
        ("50% discount, a < b", "a < b, 50 % discount", []),
        ("Run `pip install x`.", "Please run `pip install y`.", ["pip install x>"]),
        ("Run `pip install x`.", "Please run pip install x.", []),
        ("```py\na = 1\nb = 2\n```", "```\na = 1\nb = 3\n```", ["b = 2>"]),
        ("one\n\ntwo", "one, two", ["2>1"]),
        ("- a\n- b\n- c", "- a\n- b and c", ["3>2"]),
    ],
)
def test_rewrites(source: str, answer: str, losses: list[str]):
    assert [f"{text}>{near}" for _, text, near in _rewritten(source, answer)] == losses


def test_a_loss_knows_its_place():
    source, answer = "See you at 14:30.", "We will meet at 13:30."
    (loss,) = check(source, answer, diff=word_diff(source, answer))
    assert loss == Loss("numbers", "14:30", "13:30", (11, 16), (16, 21))
    (lost,) = check("Maria and Wu ask Lopez.", "Maria and Wu ask.", diff=None)
    assert (lost.source_span, lost.answer_span) == ((17, 22), None)


@pytest.mark.parametrize(
    ("source", "answer", "languages", "losses"),
    [
        (
            "The workshop is on Tuesday, 17 March at 9:30. It costs 3.5 million dollars, 200,000 more. Ask Mr Hill.",
            "研讨会于3月17日星期二9:30举行，费用为350万美元，多20万美元。请问希尔先生。",
            ("en", "zh"),
            [],
        ),
        (
            "研讨会定于3月17日星期二上午九点半举行，费用从三十万元增加到350万元，见 https://x.cn/a。",
            "It will take place on Tuesday, 17 March at 9:30 am. The cost rises from 300,000 to 3.5 million yuan, see https://x.cn/a.",
            ("zh", "en"),
            [],
        ),
        ("It costs 350万元 now", "It costs 35 million yuan.", ("zh", "en"), ["350万>35 million"]),
        ("It costs 1,234.5 euros.", "Es kostet 1.234,5 Euro.", ("en", "de"), []),
        ("It costs 1,234 euros.", "Es kostet 1,234 Euro.", ("en", "de"), ["1,234>1,234"]),
        ("Two of the three came on Friday.", "Zwei der drei kamen am Freitag.", ("en", "de"), []),
        (
            "Due 3/4, http://x.org/a",
            "截止3月4日，http://x.org/b",
            ("en", "zh"),
            ["3/4>3月4", "http://x.org/a>http://x.org/b"],
        ),
    ],
)
def test_translations(source: str, answer: str, languages: tuple[str, str], losses: list[str]):
    found = check(source, answer, TRANSLATION_CHECKS, languages=languages)
    assert [f"{loss.text}>{loss.near}" for loss in found] == losses


def test_a_summary_may_leave_out_but_not_invent():
    source = "In 2025 the firm sold 1,200 cars, see http://x.org/a. Ms Hill left on Friday."
    assert check(source, "Sold 1200 cars, two points.", SUMMARY_CHECKS) == []
    losses = check(source, "Sold 12,000 cars in 2024, see http://x.org/b.", SUMMARY_CHECKS)
    assert [(loss.kind, loss.text, loss.near) for loss in losses] == [
        ("invented", "", "12,000"),
        ("invented", "", "2024"),
        ("invented", "", "http://x.org/b"),
    ]


def test_lines_that_a_program_wrapped_may_be_wrapped_anew():
    lines = (
        "The lift in house B has been out of order since last",
        "Sunday; the company found a broken motor and it will",
    )
    wrapped = "\n".join([*lines, "come soon."])
    assert _rewritten(wrapped, wrapped.replace("\n", " ")) == []


def test_a_heading_or_a_signature_has_no_names():
    assert _rewritten("Minutes Of The Garden Club\nWe met.", "Minutes of a gardening group\nWe met.") == []


@given(st.text(max_size=80), st.sampled_from(["", "en", "zh", "de"]))
def test_a_text_loses_nothing_against_itself(text: str, language: str):
    assert check(text, text, CHECK_NAMES, languages=(language, language)) == []


@given(
    st.lists(
        st.sampled_from(
            "12 3.5 , 1,000 三 十 万 点 月 : . am % - ( ) http://x.org a@b.cc {n} `c` A Bob \n one hundred".split(" ")
        ),
        max_size=14,
    ).map(" ".join),
    st.text(max_size=40),
)
def test_any_two_texts_can_be_checked(source: str, answer: str):
    for loss in check(source, answer, CHECK_NAMES, diff=word_diff(source, answer)):
        if loss.source_span and loss.kind != "code":
            assert source[slice(*loss.source_span)] == loss.text


@pytest.mark.parametrize("source", ["x" * 100_000, "a." * 50_000, "+x" * 50_000])
def test_a_line_without_spaces_takes_no_time(source: str):
    start = time.process_time()
    check(source, source[:50_000] + " y")
    assert time.process_time() - start < 5.0  # it was hours


def test_a_long_text_on_one_line_takes_seconds_at_most():
    source = "We met Bob and Ann in May 2024 on Friday, said Carl. " * 1000
    start = time.process_time()
    check(source, "We met somebody. " * 1000, diff=word_diff(source, "We met somebody. " * 1000))
    assert time.process_time() - start < 5.0  # it was half a minute


@pytest.mark.parametrize(
    ("source", "answer", "invented"),
    [
        ("Thanks. Anna", "Thank you.\n\nBest regards,\n[Your Name]", ["[Your Name]"]),
        ("谢谢", "谢谢！\n【您的姓名】", ["【您的姓名】"]),
        ("Dear [Name], hello", "Dear [Name], good day", []),
        ("Dear [Name], hello", "尊敬的[姓名]，您好", []),
        ("Dear [Name], hello", "Dear [Name], good day. [Your Company]", ["[Your Company]"]),
        ("the x", "See [the page](https://example.org), `a[index]`, [1] and\n- [ ] this", []),
    ],
)
def test_blanks_to_fill_in_that_nobody_wrote_are_flagged(source: str, answer: str, invented: list[str]) -> None:
    losses = check(source, answer, ("placeholders",))
    assert [(loss.text, loss.near) for loss in losses] == [("", text) for text in invented]
    assert all(loss.answer_span is not None and answer[slice(*loss.answer_span)] == loss.near for loss in losses)


def test_of_several_addresses_each_has_the_one_in_its_place() -> None:
    source = "See https://a.example/1 and https://a.example/2."
    losses = check(source, source.replace("a.example", "b.example"), ("urls",))
    assert [(loss.text, loss.near) for loss in losses] == [
        ("https://a.example/1", "https://b.example/1"),
        ("https://a.example/2", "https://b.example/2"),
    ]


def test_a_number_of_thousands_of_digits_is_a_number() -> None:
    digits = "7" * 5_000
    assert check(f"It is {digits}.", f"It is {digits}!") == []
    assert [loss.text for loss in check(f"It is {digits}.", "It is.")] == [digits]


@pytest.mark.parametrize(
    ("unit", "chars"),
    [
        (unit, 15_000)
        for unit in ("12 ", "1, ", "5-", "$3", "| 3 | 4 |\n", "x = 1;\n", "https://a.b/c ", "`a`", "a@b.co ")
    ]
    + [(" ", 100_000), ("Mr. ", 60_000)],
)
@pytest.mark.parametrize("languages", [("en", "en"), ("en", "zh")])
def test_no_text_is_slow(unit: str, chars: int, languages: tuple[str, str]) -> None:
    """Much that was lost is looked at as fast as little: with the square of it these took minutes."""
    other = "The cat sat on the mat on 3 May 2024 at 10:15. "
    text, other = unit * (chars // len(unit)), other * (chars // len(other))
    diff = word_diff(text, other) if languages == ("en", "en") else None
    started = time.process_time()
    check(text, other, CHECK_NAMES, languages=languages, diff=diff)
    check(other, text, CHECK_NAMES, languages=languages)
    check(text, text, CHECK_NAMES, languages=languages)
    assert time.process_time() - started < 10


@pytest.mark.parametrize("languages", [("zh", "en"), ("zh", "ja")])
def test_an_answer_in_another_text_of_the_language_is_not_slow(languages: tuple[str, str]) -> None:
    rng = random.Random(1)

    def text() -> str:
        row = ("".join(chr(0x4E00 + rng.randint(0, 3_000)) for _ in range(rng.randint(4, 16))) for _ in range(12_000))
        return "".join(f"{clause}的{rng.choice('，。')}" for clause in row)

    started = time.process_time()
    check(text(), text(), ("untranslated",), languages=languages)
    assert time.process_time() - started < 10
