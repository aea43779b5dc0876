"""Numbers, times, months and weekdays in a text, by what they mean: 10,000 and 一万 are one, 3/4 and March 4 are not.

Where a notation is ambiguous, the language of the text decides; where that is unknown, every reading counts.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

import regex

from app.text.chinese_numerals import NUMERAL, is_counting, numeral_value

Kind = Literal["number", "percent", "time", "month", "weekday", "code"]
Key = tuple[Kind, Decimal | str]
Span = tuple[int, int]

# Their decimal sign is the comma, and a point may part thousands.
COMMA_LANGUAGES = frozenset("de fr es it pt nl pl ru uk cs sk sv da nb no fi tr el ro hu bg hr sr sl vi id".split())
_MAGNITUDES = {
    **{word: Decimal(10**2) for word in ("hundred", "百")},
    **{word: Decimal(10**3) for word in ("k", "thousand", "tausend", "mille", "mil", "tsd", "千")},
    **{word: Decimal(10**4) for word in ("万", "萬")},
    **{word: Decimal(10**6) for word in ("mn", "mio", "million", "millions", "millionen", "millones", "百万", "百萬")},
    **{word: Decimal(10**7) for word in ("千万", "千萬")},
    **{word: Decimal(10**8) for word in ("亿", "億")},
    **{word: Decimal(10**9) for word in ("bn", "billion", "billions", "milliarde", "milliarden", "milliards", "十亿")},
    **{word: Decimal(10**12) for word in ("trillion", "trillions", "万亿")},
}
# Letters that stand for a magnitude only where they touch the number: 3.5M.
_TOUCHING = {"k": Decimal(10**3), "K": Decimal(10**3), "M": Decimal(10**6), "B": Decimal(10**9)}
_UNITS = dict(
    zip("one two three four five six seven eight nine ten eleven twelve".split(), range(1, 13), strict=True)
) | dict(zip("thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split(), range(13, 20), strict=True))
_TENS = dict(zip("twenty thirty forty fifty sixty seventy eighty ninety".split(), range(20, 100, 10), strict=True))
_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "dozen": 12}
_ORDINALS = dict(
    zip("first second third fourth fifth sixth seventh eighth ninth tenth".split(), range(1, 11), strict=True)
)
_MONTHS = "January February March April May June July August September October November December".split()
_WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_DAY_CHARS = "一二三四五六日"


@dataclass(frozen=True, slots=True)
class Quantity:
    """One number, time, month or weekday.

    Attributes:
        span: start and end in characters of the text.
        keys: its readings; two quantities are the same if they share one.
        is_word: written in words, as "three", "March" and "周五" are.
        must_stay: whether a text that says the same has to hold it; "one" and "first" often stand for no number.
    """

    span: Span
    text: str
    keys: frozenset[Key]
    is_word: bool = False
    must_stay: bool = True

    @property
    def kind(self) -> Kind:
        """The kind of its first reading."""
        return min(self.keys, key=str)[0]


# From the beginning of a word, or a line of 20,000 letters would be looked at from each of them.
_RUN = regex.compile(
    r"(?<![\p{Latin}\d_])[\p{Latin}_]*+\d[\p{Latin}\d_]*(?:[.,:/'’\u00a0\u202f](?=\d)[\p{Latin}\d_]+)*"
)
# LH1823 is LH 1823 as well; of fewer digits the letters are a part of the name.
_CODED = regex.compile(r"\p{Latin}{1,4}(\d{3,})")
_ISO_DATE = regex.compile(r"(?<![\d/.-])(\d{4})([-/])(\d{1,2})\2(\d{1,2})(?![\d/-]|\.\d)")
_CLOCK = regex.compile(r"(\d{1,2}):(\d\d)(?::\d\d)?([ap]m)?", regex.IGNORECASE)
_HOUR = regex.compile(r"(\d{1,2})([ap]m)", regex.IGNORECASE)
_HALF_OF_DAY = regex.compile(r"[ \u00a0\u202f]?([ap])\.?m\b\.?", regex.IGNORECASE)
_PLAIN = regex.compile(r"([\d.,'’\u00a0\u202f]*\d)([^\d.,:/]*)")
_PERCENT = regex.compile(r"[ \u00a0\u202f]?(?:[%％]|per ?cents?\b|pct\b|Prozent\b|pour cent\b|por ciento\b)")
_MAGNITUDE = regex.compile(
    r"\s?(?:("
    + "|".join(sorted((w for w in _MAGNITUDES if w.isascii() and len(w) > 1), key=len, reverse=True))
    + r")\b"
    r"|(万亿|十亿|百万|百萬|千万|千萬|[百千万萬亿億]))",
    regex.IGNORECASE,
)
_CHINESE_CLOCK = regex.compile(
    r"\s?[点點时時](?!间|候|刻|代|期|段|常)(?:(半)|([一三])刻|(\d{1,2}|[零〇一二三四五十]{1,3})分?)?"
)
_CHINESE_AFTERNOON = regex.compile(r"(?:下午|晚上|傍晚|夜里|今晚|明晚)\s?$")
_CHINESE_MORNING = regex.compile(r"(?:上午|早上|早晨|凌晨|清晨|中午)\s?$")
_MINUS = regex.compile(r"(?:(?<![^\s(（:：,，=\p{Han}])([-−])|\b(minus )|(零下\s?|负))$")
_LIST_NUMBER = regex.compile(
    r"^[ \t]*(?:\d{1,2}|[一二三四五六七八九十]{1,2})(?:[.)](?=\s|$)|[、．）])", regex.MULTILINE
)
_ANY_UNIT = "|".join([*_UNITS, *_TENS, *_SCALES])
_WORDS = regex.compile(rf"\b(?:{_ANY_UNIT})(?:(?:[ -]|[ -]and[ -])(?:{_ANY_UNIT}))*\b", regex.IGNORECASE)
_ORDINAL = regex.compile(rf"\b(?:{'|'.join(_ORDINALS)})\b", regex.IGNORECASE)
# Full names in any case; short ones only as names.
_MONTH = regex.compile(
    rf"\b(?:((?i:{'|'.join(_MONTHS)}))|({'|'.join(name[:3] for name in _MONTHS)}|Sept)\b\.?)(?![\p{{L}}\d])"
)
_WEEKDAY = regex.compile(
    rf"\b(?:((?i:{'|'.join(_WEEKDAYS)}))s?|(Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun)\.?)(?![\p{{L}}\d])"
)
_CHINESE_WEEKDAY = regex.compile(rf"(?:周|星期|礼拜|週)([{_DAY_CHARS}天])")
_SMALL_DIGITS = 4
_CHINESE_MONTH = regex.compile(r"\s?月(?!球|光|亮|饼)")


def quantities(text: str, language: str = "") -> list[Quantity]:
    """All quantities of a text, in their order; numbers of list items ("1.") are none.

    Args:
        language: ISO 639-1 code of the text, "" where it is unknown.
    """
    found: list[Quantity] = []
    taken = [False] * (len(text) + 1)
    for match in _LIST_NUMBER.finditer(text):
        taken[match.start() : match.end()] = [True] * (match.end() - match.start())
    readers = (_dates, _weekdays, _numbers, _chinese, _months, _number_words)
    for reader in readers:
        for quantity in reader(text, language):
            start, end = quantity.span
            if not any(taken[start:end]):
                taken[start:end] = [True] * (end - start)
                found.append(quantity)
    return sorted(found, key=lambda quantity: quantity.span)


def readings(number: str, language: str = "") -> set[Decimal]:
    """The values that digits with points, commas, apostrophes or narrow spaces may have; none for 1.2.3 or 1,2,3."""
    plain = regex.sub(r"(?<=\d)['’\u00a0\u202f](?=\d{3}(?!\d))", "", number)
    if plain.isdecimal():
        return {Decimal(plain)}
    signs = regex.findall(r"\D", plain)
    if set(signs) - {".", ","}:
        return set()
    if len(set(signs)) == 2:
        sign = signs[-1]
        whole, _, part = plain.rpartition(sign)
        grouping = signs[0]
        if sign in whole or not _is_grouped(whole, grouping):
            return set()
        return {Decimal(f"{whole.replace(grouping, '')}.{part}")}
    sign = signs[0]
    grouped = {Decimal(plain.replace(sign, ""))} if _is_grouped(plain, sign) else set()
    if len(signs) > 1:
        return grouped
    decimal = {Decimal(plain.replace(sign, "."))}
    if not grouped:
        return decimal
    if not language:
        return grouped | decimal
    return decimal if (sign == ",") == (language in COMMA_LANGUAGES) else grouped


def _is_grouped(number: str, sign: str) -> bool:
    sign = regex.escape(sign)
    return bool(regex.fullmatch(rf"[1-9]\d{{0,2}}(?:{sign}\d{{2,3}})*{sign}\d{{3}}", number))


def _quantity(text: str, start: int, end: int, *keys: Key, is_word: bool = False, must_stay: bool = True) -> Quantity:
    return Quantity((start, end), text[start:end], frozenset(keys), is_word, must_stay)


def _keys(kind: Kind, values: set[Decimal], factor: Decimal = Decimal(1)) -> list[Key]:
    return [(kind, value * factor) for value in values]


def _literal(text: str) -> Key:
    return "code", text.lower()


def _dates(text: str, language: str) -> Iterator[Quantity]:
    """Dates that begin with the year are read in one way only."""
    for match in _ISO_DATE.finditer(text):
        year, month, day = int(match[1]), int(match[3]), int(match[4])
        if 1 <= month <= 12 and 1 <= day <= 31:
            yield _quantity(text, *match.span(1), ("number", Decimal(year)))
            yield _quantity(text, *match.span(3), ("month", Decimal(month)))
            yield _quantity(text, *match.span(4), ("number", Decimal(day)))


def _weekdays(text: str, language: str) -> Iterator[Quantity]:
    starts = [name[:3] for name in _WEEKDAYS]
    for match in _WEEKDAY.finditer(text):
        number = starts.index((match[1] or match[2])[:3].capitalize()) + 1
        # "Sun", "Sat" and "Mon" have other meanings.
        yield _quantity(text, *match.span(), ("weekday", Decimal(number)), is_word=True, must_stay=bool(match[1]))
    for match in _CHINESE_WEEKDAY.finditer(text):
        number = _DAY_CHARS.index(match[1].replace("天", "日")) + 1
        yield _quantity(text, *match.span(), ("weekday", Decimal(number)), is_word=True)


def _months(text: str, language: str) -> Iterator[Quantity]:
    starts = [name[:3] for name in _MONTHS]
    for match in _MONTH.finditer(text):
        before, after = text[max(0, match.start() - 40) : match.start()], text[match.end() : match.end() + 2]
        is_dated = bool(regex.search(r"\d(?:st|nd|rd|th)?(?: of)?\s$", before) or regex.match(r"\s?\d", after))
        is_name = bool(match[1]) and match[0].lower() not in ("may", "march")
        said = regex.search(
            r"\b(?:[Ii]n|[Bb]y|[Uu]ntil|[Ss]ince|[Ll]ast|[Nn]ext|[Tt]his|[Oo]f|[Mm]id|[Ee]arly|[Ll]ate)[ -]$", before
        )
        if is_dated or is_name or (match[1] and said):
            number = starts.index((match[1] or match[2])[:3].capitalize()) + 1
            yield _quantity(text, *match.span(), ("month", Decimal(number)), is_word=True)


def _numbers(text: str, language: str) -> Iterator[Quantity]:
    for match in _RUN.finditer(text):
        yield from _number(text, match.start(), match.end(), language)


def _number(text: str, start: int, end: int, language: str) -> Iterator[Quantity]:
    run = unicodedata.normalize("NFKC", text[start:end]) if not text[start:end].isascii() else text[start:end]
    clock = _CLOCK.fullmatch(run) or _HOUR.fullmatch(run)
    if clock:
        half = _HALF_OF_DAY.match(text, end)
        minutes = _minutes(clock[1], clock[2] if clock[2].isdecimal() else "0", text, start, _letter(run, half))
        if minutes is not None:
            yield _quantity(text, start, half.end() if half else end, ("time", minutes))
            return
    plain = _PLAIN.fullmatch(run)
    values = readings(plain[1], language) if plain else set()
    if plain and values:
        yield _with_surroundings(text, start, end, plain[1], plain[2], values)
    elif plain and not plain[2] and regex.fullmatch(r"\d+(?:,\d+)+", run):
        for part in regex.finditer(r"\d+", text, pos=start, endpos=end):
            yield _quantity(text, *part.span(), ("number", Decimal(part[0])))
    else:
        keys = [_literal(run)]
        if regex.fullmatch(r"[Qq][1-4]", run):
            keys.append(("number", Decimal(run[1])))
        elif coded := _CODED.fullmatch(run):
            keys.append(("number", Decimal(coded[1])))
        yield _quantity(text, start, end, *keys)


def _letter(run: str, half: regex.Match[str] | None) -> str:
    if run[-1:] in "mM":
        return str(run[-2]).lower()
    return str(half[1]).lower() if half else ""


def _minutes(hours: str, minutes: str, text: str, start: int, half: str) -> Decimal | None:
    """Minutes since midnight; None where it is no time of a day. `half` is "a", "p" or "" of a.m. and p.m."""
    hour, minute = int(hours), int(minutes)
    if hour > 24 or minute > 59:
        return None
    before = text[max(0, start - 6) : start]
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    elif hour < 12 and _CHINESE_AFTERNOON.search(before):
        hour += 12
    return Decimal(60 * hour + minute)


def _with_surroundings(text: str, start: int, end: int, digits: str, suffix: str, values: set[Decimal]) -> Quantity:
    """A number with what stands around it: sign, magnitude, percent, half of the day, 月 and 点."""
    if minus := _MINUS.search(text, max(0, start - 8), start):
        values = {-value for value in values}
        start = minus.start(minus.lastindex or 0)
    half = None if suffix else _HALF_OF_DAY.match(text, end)
    # Only small ones are looked at as hours and months: Python makes no number of thousands of digits.
    small = int(digits) if digits.isdecimal() and len(digits) <= _SMALL_DIGITS else None
    if half and small is not None and small <= 12:
        minutes = _minutes(digits, "0", text, start, half[1].lower())
        assert minutes is not None
        return _quantity(text, start, half.end(), ("time", minutes))
    if not suffix and small is not None:
        if clock := _chinese_clock(text, start, end, small):
            return clock
        if small <= 12 and _CHINESE_MONTH.match(text, end):
            return _quantity(text, start, end, ("month", Decimal(small)))
    if percent := (None if suffix else _PERCENT.match(text, end)):
        return _quantity(text, start, percent.end(), *_keys("percent", values))
    if suffix in _TOUCHING:
        literal = _literal(digits + suffix)
        return _quantity(text, start, end, literal, *_keys("number", values, _TOUCHING[suffix]))
    lower = suffix.lower()
    if lower in _MAGNITUDES:
        return _quantity(text, start, end, *_keys("number", values, _MAGNITUDES[lower]))
    magnitude = None if suffix else _MAGNITUDE.match(text, end)
    if magnitude:
        factor = _MAGNITUDES[(magnitude[1] or magnitude[2]).lower()]
        return _quantity(text, start, magnitude.end(), *_keys("number", values, factor))
    keys = _keys("number", values)
    if len(digits) > 1 and digits[0] == "0" and digits.isdecimal():  # 007 and 0143 are names, 05 is five
        keys = [_literal(digits), *(keys if len(digits) == 2 else [])]
    return _quantity(text, start, end, *keys)


def _chinese_clock(text: str, start: int, end: int, hour: int, is_word: bool = False) -> Quantity | None:
    """下午3点半; 三点 is three points as well, unless a part of the day stands before it."""
    match = _CHINESE_CLOCK.match(text, end)
    if not match or hour > 24:
        return None
    minute = 30 if match[1] else 15 * int(numeral_value(match[2]) or 0) if match[2] else 0
    if match[3]:
        minute = int(match[3]) if match[3].isdecimal() else int(numeral_value(match[3]) or 0)
    minutes = _minutes(str(hour), str(minute), text, start, "")
    if minutes is None:
        return None
    is_time = match[0].strip() not in "点點" or _CHINESE_AFTERNOON.search(text[max(0, start - 6) : start])
    is_time = is_time or _CHINESE_MORNING.search(text[max(0, start - 6) : start])
    keys = [*_keys("time", {minutes}), *([] if is_time else _keys("number", {Decimal(hour)}))]
    return _quantity(text, start, match.end(), *keys, is_word=is_word)


def _chinese(text: str, language: str) -> Iterator[Quantity]:
    for match in NUMERAL.finditer(text):
        value = numeral_value(match[2])
        start, end = match.start(), match.end()
        if value is None:
            continue
        if match[1]:
            yield _quantity(text, start, end, ("percent", value), is_word=True)
        elif value == int(value) and (clock := _chinese_clock(text, start, end, int(value), is_word=True)):
            yield clock
        elif value in range(1, 13) and _CHINESE_MONTH.match(text, end):
            yield _quantity(text, start, end, ("month", value), is_word=True)
        else:
            must_stay = is_counting(match[2], text[start - 1 : start], text[end : end + 1])
            yield _quantity(text, start, end, ("number", value), is_word=True, must_stay=must_stay)


def _number_words(text: str, language: str) -> Iterator[Quantity]:
    for match in _WORDS.finditer(text):
        value = _value_of_words(regex.findall(r"\w+", match[0].lower()))
        percent = _PERCENT.match(text, match.end())
        if percent:
            yield _quantity(text, match.start(), percent.end(), ("percent", Decimal(value)), is_word=True)
        else:
            must_stay = value > 1 and match[0].lower() not in _SCALES
            yield _quantity(text, *match.span(), ("number", Decimal(value)), is_word=True, must_stay=must_stay)
    for match in _ORDINAL.finditer(text):
        value = _ORDINALS[match[0].lower()]
        yield _quantity(text, *match.span(), ("number", Decimal(value)), is_word=True, must_stay=False)


def _value_of_words(words: list[str]) -> int:
    total = part = 0
    for word in words:
        if word in _SCALES:
            scale = _SCALES[word]
            part = max(1, part) * scale
            if scale >= 1000:
                total, part = total + part, 0
        else:
            part += _UNITS.get(word, 0) + _TENS.get(word, 0)
    return total + part
