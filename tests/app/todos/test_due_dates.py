"""Which day words mean, and that nothing is guessed."""

from __future__ import annotations

from datetime import date

import pytest

from app.todos.due_dates import due_date

TODAY = date(2025, 3, 12)  # a Wednesday


@pytest.mark.parametrize(
    ("words", "iso"),
    [
        ("2025-04-14", "2025-04-14"),
        ("by 14 April 2026", "2026-04-14"),
        ("until April 14th, 2026, noon", "2026-04-14"),
        ("before 30 April (customer number)", "2025-04-30"),
        ("Friday, 21 March", "2025-03-21"),
        ("by March 31", "2025-03-31"),
        ("by 2 January", "2025-01-02"),
        ("31.3.", "2025-03-31"),
        ("31.03.2026", "2026-03-31"),
        ("by 1 October", "2025-10-01"),
        ("before 2 December", "2025-12-02"),
        ("today at 5", "2025-03-12"),
        ("tonight", "2025-03-12"),
        ("tomorrow evening", "2025-03-13"),
        ("the day after tomorrow", "2025-03-14"),
        ("by Friday", "2025-03-14"),
        ("on Monday at 8:15", "2025-03-17"),
        ("until Wednesday noon", "2025-03-19"),
        ("this Wednesday", "2025-03-12"),
        ("next Friday", "2025-03-21"),
        ("by the end of the week", "2025-03-14"),
        ("this weekend", "2025-03-16"),
        ("by the end of the month", "2025-03-31"),
        ("end of next month", "2025-04-30"),
        ("before the end of June", "2025-06-30"),
        ("end of the year", "2025-12-31"),
        ("within 24 hours", "2025-03-13"),
        ("in three days", "2025-03-15"),
        ("within two weeks", "2025-03-26"),
        ("by the 15th", "2025-03-15"),
        ("for her birthday on the 9th", "2025-04-09"),
        ("the 31st", "2025-03-31"),
        ("2026年4月14日", "2026-04-14"),
        ("7月1日前", "2025-07-01"),
        ("三月二十号之前", "2025-03-20"),
        ("9月25日前", "2025-09-25"),
        ("今天下午", "2025-03-12"),
        ("明晚", "2025-03-13"),
        ("后天", "2025-03-14"),
        ("大后天", "2025-03-15"),
        ("周五前", "2025-03-14"),
        ("周三下班前", "2025-03-19"),
        ("本周三", "2025-03-12"),
        ("下周一", "2025-03-17"),
        ("下个星期天", "2025-03-23"),
        ("这个周末", "2025-03-16"),
        ("月底", "2025-03-31"),
        ("下个月底", "2025-04-30"),
        ("六月底之前", "2025-06-30"),
        ("三天内", "2025-03-15"),
        ("两周之内", "2025-03-26"),
        ("15日前", "2025-03-15"),
        ("年底", "2025-12-31"),
    ],
)
def test_words_that_mean_a_day(words: str, iso: str) -> None:
    assert due_date(words, TODAY) == date.fromisoformat(iso)


@pytest.mark.parametrize(
    "words",
    ["", "soon", "next week", "next month", "this month", "as soon as possible", "yesterday", "three days ago",
     "30 February", "31.13.", "after lunch", "at 14:00", "room 204", "2,375 instead of 2,500", "8.3.2", "4.2.1",
     "Monday or Tuesday", "15 June or 20 June", "may be late", "下周", "下个月", "尽快", "昨天", "下班前", "四点前",
     "before the demo", "within 0 days", "港湾路17号12室", "港湾路十七号", "3号楼508室", "第5号",
     "每天走路30分钟", "17 Harbour Lane"],
)  # fmt: skip
def test_what_is_no_certain_day_is_none(words: str) -> None:
    assert due_date(words, TODAY) is None


def test_without_today_only_whole_dates_are_known() -> None:
    assert due_date("by 14 April 2026") == date(2026, 4, 14)
    for words in ("14 April", "tomorrow", "Friday", "下周一", "月底", "the 9th", "in two days", "this weekend", "年底"):
        assert due_date(words) is None


def test_a_date_without_a_year_is_the_nearest_one_rather_in_the_future() -> None:
    assert due_date("30 January", date(2025, 12, 10)) == date(2026, 1, 30)
    assert due_date("20 December", date(2026, 1, 10)) == date(2025, 12, 20)
    assert due_date("the 30th", date(2025, 1, 31)) == date(2025, 3, 30)
    assert due_date("29 February", date(2027, 6, 1)) == date(2028, 2, 29)
