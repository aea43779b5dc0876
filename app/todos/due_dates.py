"""The day that a text means by "by Friday", "before 3 May" or "下周三之前". Pure; what is not certain is None.

Words that say no more than a week or a month are no day. A date without a year is the one that is nearest, rather in
the future; a weekday is the next one after today.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterator
from datetime import date, timedelta

from app.text.chinese_numerals import numeral_value

_PAST_DAYS = 90
"""A date without a year that is less long ago is meant as past: minutes are read some weeks later."""
_MONTHS = {
    name: number
    for number, names in enumerate(
        "january jan|february feb|march mar|april apr|may|june jun|july jul|august aug|september sept sep|"
        "october oct|november nov|december dec".split("|"),
        1,
    )
    for name in names.split()
}
_WEEKDAYS = {
    name: number
    for number, names in enumerate(
        "monday mon|tuesday tue|wednesday wed|thursday thu|friday fri|saturday sat|sunday sun".split("|")
    )
    for name in names.split()
}
_ENGLISH_NUMBERS = {
    name: number
    for number, name in enumerate("one two three four five six seven eight nine ten eleven twelve".split(), 1)
} | {"a": 1, "an": 1}
_CHINESE_WEEKDAYS = {char: index for index, char in enumerate("一二三四五六日")} | {"天": 6}

_MONTH = rf"(?P<month>{'|'.join(sorted(_MONTHS, key=len, reverse=True))})\.?"
_WEEKDAY = rf"(?P<weekday>{'|'.join(sorted(_WEEKDAYS, key=len, reverse=True))})"
_NUMBER = rf"(?P<count>\d{{1,3}}|{'|'.join(_ENGLISH_NUMBERS)})"
_ZH = r"[\d〇零一二两三四五六七八九十]"
_NO_HOUSE = r"(?<![\d〇零一二两三四五六七八九十月路街巷道弄第])"
_YEAR = r"(?:,?\s+(?P<year>\d{4}))?"

Found = Callable[[re.Match[str], date | None], date | None]


def due_date(words: str, today: date | None = None) -> date | None:
    """The day.

    Args:
        words: what the text says of it.
        today: what "tomorrow" and dates without a year count from; None leaves these unknown.
    """
    for rules in (_DATES, _DAYS):
        found = set(_found(rules, " ".join(words.casefold().split()), today))
        if found:
            return found.pop() if len(found) == 1 else None
    return None


def _found(rules: dict[re.Pattern[str], Found], words: str, today: date | None) -> Iterator[date | None]:
    for pattern, day_of in rules.items():
        for match in pattern.finditer(words):
            yield day_of(match, today)
        words = pattern.sub(" ", words)


def _full(match: re.Match[str], today: date | None) -> date | None:
    """Day and month, with or without a year."""
    parts = match.groupdict()
    name = parts["month"]
    month, day = _MONTHS.get(name) or _number(name), _number(parts["day"])
    if parts.get("year"):
        return _valid(int(parts["year"]), month, day)
    return None if today is None else _nearest(month, day, today)


def _nearest(month: int, day: int, today: date) -> date | None:
    for year in (today.year - 1, today.year, today.year + 1):
        found = _valid(year, month, day)
        if found is not None and -_PAST_DAYS <= (found - today).days <= 366 - _PAST_DAYS:
            return found
    return None


def _valid(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _number(text: str) -> int:
    if text.isascii() and text.isdigit():
        return int(text)
    value = _ENGLISH_NUMBERS.get(text) or numeral_value(text)
    return 0 if value is None else int(value)


def _day_of_month(match: re.Match[str], today: date | None) -> date | None:
    """The next day of that number, today included."""
    day = _number(match["day"])
    if today is None:
        return None
    months = ((today.year + (today.month + ahead - 1) // 12, (today.month + ahead - 1) % 12 + 1) for ahead in range(3))
    days = (_valid(year, month, day) for year, month in months)
    return next((found for found in days if found is not None and found >= today), None)


def _end_of_month(match: re.Match[str], today: date | None) -> date | None:
    parts = match.groupdict()
    if today is None:
        return None
    if parts.get("month"):
        month = _MONTHS.get(parts["month"]) or _number(parts["month"])
        first = _nearest(month, 1, today) if 1 <= month <= 12 else None
    else:
        first = today.replace(day=1)
        if parts.get("next"):
            first = (first + timedelta(days=31)).replace(day=1)
    return None if first is None else first.replace(day=calendar.monthrange(first.year, first.month)[1])


def _ahead(days: int) -> Found:
    return lambda match, today: None if today is None else today + timedelta(days=days)


def _within(match: re.Match[str], today: date | None) -> date | None:
    unit = match["unit"]
    count = _number(match["count"])
    days = count * 7 if unit.startswith(("week", "周", "个星期", "星期")) else count
    if unit.startswith(("hour", "小时")):
        days = -(-count // 24)
    return None if today is None or not count else today + timedelta(days=days)


def _weekday(match: re.Match[str], today: date | None) -> date | None:
    """The next one after today; of the next calendar week where the words say so; this week's where they say that."""
    name = match["weekday"]
    day = _WEEKDAYS[name] if name in _WEEKDAYS else _CHINESE_WEEKDAYS[name]
    if today is None:
        return None
    monday = today - timedelta(days=today.weekday())
    which = match["which"] or ""
    if which in ("next", "下", "下个"):
        return monday + timedelta(days=7 + day)
    if which in ("this", "本", "这", "这个"):
        return monday + timedelta(days=day)
    return today + timedelta(days=(day - today.weekday() - 1) % 7 + 1)


def _week_end(match: re.Match[str], today: date | None) -> date | None:
    """Friday where a working week ends, and Sunday where the weekend does."""
    if today is None:
        return None
    is_weekend = "weekend" in match[0] or "周末" in match[0] or today.weekday() > 4
    return today + timedelta(days=(6 if is_weekend else 4) - today.weekday())


def _year_end(match: re.Match[str], today: date | None) -> date | None:
    return None if today is None else date(today.year, 12, 31)


def _past(match: re.Match[str], today: date | None) -> date | None:
    return None


def _rules(rules: dict[str, Found]) -> dict[re.Pattern[str], Found]:
    return {re.compile(pattern): found for pattern, found in rules.items()}


_DATES = _rules(
    {
        r"(?<!\d)(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})(?!\d)": _full,
        rf"(?:(?P<year>\d{{4}})年)?(?P<month>{_ZH}{{1,3}})月(?P<day>{_ZH}{{1,3}})[日号]?": _full,
        r"(?<![\d.])(?P<day>\d{1,2})\.\s?(?P<month>\d{1,2})\.(?:(?P<year>\d{4})|(?!\d))": _full,
        rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? {_MONTH}\b{_YEAR}": _full,
        rf"\b{_MONTH} (?:the )?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?!:){_YEAR}": _full,
    }
)
"""Dates of the calendar. Where there is one, the words of `_DAYS` beside it say the same, "Friday, 21 June"."""

_DAYS = _rules(
    {
        r"\byesterday\b|\bago\b|昨天|前天": _past,
        rf"\bend of {_MONTH}(?![a-z])": _end_of_month,
        rf"(?P<month>{_ZH}{{1,2}})月(?:底|末)": _end_of_month,
        r"\bend of (?:the |this )?(?P<next>next )?month\b|\bmonth end\b": _end_of_month,
        r"(?:(?P<next>下个?)|本|这个)?月(?:底|末)": _end_of_month,
        r"\bend of (?:the |this )?year\b|年底|年末|年内": _year_end,
        r"\bend of (?:the |this )?week\b|\b(?:this|the) weekend\b|(?:本|这)周内|周末": _week_end,
        r"\b(?:the )?day after tomorrow\b|(?<!大)后天": _ahead(2),
        r"\btomorrow\b|明天|明早|明晚": _ahead(1),
        r"大后天": _ahead(3),
        r"\b(?:today|tonight|this (?:morning|noon|afternoon|evening))\b|今天|今晚|今日": _ahead(0),
        rf"\b(?:in|within) (?:the next )?{_NUMBER} (?P<unit>hours?|days?|weeks?)\b": _within,
        rf"(?P<count>{_ZH}{{1,3}})(?P<unit>个?小时|天|个?星期|周)(?:之内|以内|内|后|之后|以后)": _within,
        rf"\b(?:(?P<which>next|this) )?{_WEEKDAY}\b": _weekday,
        r"(?P<which>下个?|本|这个?)?(?:周|星期|礼拜)(?P<weekday>[一二三四五六日天])": _weekday,
        r"\b(?:on |by |before |until |till )?the (?P<day>\d{1,2})(?:st|nd|rd|th)\b": _day_of_month,
        rf"{_NO_HOUSE}(?P<day>{_ZH}{{1,3}})[号日](?![\d楼室线桌院门店房])": _day_of_month,
    }
)
