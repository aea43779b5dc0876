"""Numbers by what they mean, in digits and words, English and Chinese."""

from decimal import Decimal

import pytest

from app.text.chinese_numerals import numeral_value
from app.text.quantities import quantities, readings


def _keys(text: str, language: str = "en") -> list[str]:
    return [
        "|".join(sorted(f"{kind} {value}" for kind, value in quantity.keys)) for quantity in quantities(text, language)
    ]


@pytest.mark.parametrize(
    ("number", "language", "values"),
    [
        ("1,234.50", "", ["1234.5"]),
        ("1.234,50", "", ["1234.5"]),
        ("1,234", "en", ["1234"]),
        ("1,234", "de", ["1.234"]),
        ("1.234", "de", ["1234"]),
        ("1.234", "", ["1.234", "1234"]),
        ("1'234'567", "", ["1234567"]),
        ("1\u202f234,5", "fr", ["1234.5"]),
        ("12,34,567", "en", ["1234567"]),
        ("0.125", "de", ["0.125"]),
        ("1.2.3", "en", []),
        ("1,2,3", "en", []),
        ("1,234,56.7", "en", []),
    ],
)
def test_the_language_decides_what_a_comma_means(number: str, language: str, values: list[str]):
    assert sorted(readings(number, language)) == sorted(Decimal(value) for value in values)


@pytest.mark.parametrize(
    ("same", "languages"),
    [
        (("1,234.5", "1.234,5"), ("en", "de")),
        (("10,000", "一万", "1万", "ten thousand", "10k"), ("en", "zh", "zh", "en", "en")),
        (
            ("3.5 million", "350万", "3,500,000", "三百五十万", "3.5M", "3,5 Millionen"),
            ("en", "zh", "en", "zh", "en", "de"),
        ),
        (("5%", "5 percent", "百分之五", "five percent", "５％"), ("en", "en", "zh", "en", "zh")),
        (
            ("2:30 pm", "14:30", "下午2:30", "下午两点半", "2:30 P.M.", "下午2点30分"),
            ("en", "en", "zh", "zh", "en", "zh"),
        ),
        (("9am", "9:00", "上午九点", "9 a.m."), ("en", "en", "zh", "en")),
        (("三点一刻", "3:15", "三点十五分"), ("zh", "en", "zh")),
        (("LH 1823", "LH1823"), ("en", "en")),
        (("Friday", "周五", "星期五", "Fri"), ("en", "zh", "zh", "en")),
        (("两亿三千万", "230 million"), ("zh", "en")),
        (("二〇二六", "2026"), ("zh", "en")),
        (("-5", "minus 5", "零下5"), ("en", "en", "zh")),
        (("two hundred and fifty", "250", "二百五十"), ("en", "en", "zh")),
        (("3rd", "third", "第三", "3"), ("en", "en", "zh", "en")),
    ],
)
def test_what_means_the_same_shares_a_reading(same: tuple[str, ...], languages: tuple[str, ...]):
    found = [quantities(text, language) for text, language in zip(same, languages, strict=True)]
    assert [len(items) for items in found] == [1] * len(same)
    for items in found:
        assert items[0].keys & found[0][0].keys, items


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("3/4", "March 4"),
        ("3/4", "4 March"),
        ("2:30", "2:30 pm"),
        ("14:30", "13:30"),
        ("5%", "5"),
        ("-5", "5"),
        ("10k", "10"),
        ("1,234", "1.234"),
        ("v2.1.4", "v2.1.5"),
        ("0143", "143"),
        ("16:9", "9:16"),
        ("Friday", "Thursday"),
    ],
)
def test_what_differs_shares_none(one: str, other: str):
    keys = [set().union(*(quantity.keys for quantity in quantities(text, "en"))) for text in (one, other)]
    assert not keys[0] <= keys[1]


def test_a_date_that_begins_with_the_year_is_read():
    assert _keys("on 2026-03-14") == ["number 2026", "month 3", "number 14"]
    assert _keys("14 March 2026") == ["number 14", "month 3", "number 2026"]
    assert _keys("2026年3月14日", "zh") == ["number 2026", "month 3", "number 14"]
    assert _keys("2026-13-40") == ["number 2026", "number 13", "number 40"]


def test_codes_are_compared_letter_by_letter():
    assert _keys("Q3 at 192.168.0.1, x86") == ["code q3|number 3", "code 192.168.0.1", "code x86"]


def test_numbers_of_lists_are_none():
    assert _keys("1. One thing\n 2) Take 3 files\n三、五个人", "zh") == ["number 1", "number 3", "number 5"]


@pytest.mark.parametrize(
    "text", ["We may go", "They march on", "十分高兴", "万一", "one of us", "a hundred times", "一起", "第一"]
)
def test_words_that_often_are_no_numbers_need_not_stay(text: str):
    assert not [quantity for quantity in quantities(text) if quantity.must_stay and text != "第一"]


@pytest.mark.parametrize(
    ("numeral", "value"),
    [
        ("三百二十五", "325"),
        ("三千零五", "3005"),
        ("一万五", "15000"),
        ("十二", "12"),
        ("三点五", "3.5"),
        ("一百五", "150"),
    ],
)
def test_numerals(numeral: str, value: str):
    assert numeral_value(numeral) == Decimal(value)
    assert numeral_value("万一") is None
