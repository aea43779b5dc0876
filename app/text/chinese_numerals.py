"""Numbers in Chinese characters: 三十万, 二〇二六, 百分之五, 三点五."""

from __future__ import annotations

from decimal import Decimal

import regex

_DIGITS = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "兩": 2}
_UNITS = {"十": 10, "百": 100, "千": 1000}
_BIG = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
_CHARS = "".join([*_DIGITS, *_UNITS, *_BIG])
# Group 1: 百分之 or nothing; group 2: the numeral.
NUMERAL = regex.compile(rf"(百分之)?([{_CHARS}]+(?:点[零〇一二三四五六七八九]+(?![刻分十]))?)")
# What a number stands before where it counts something.
_MEASURES = frozenset(
    "个位名人天日号月年元块岁点时分秒次台件条份页项周套本张只家章期倍米吨度层楼章种倍届轮批组米路室班"
)
# 万一 (in case), 十分 (very), 千万 (by all means) ...: words, not numbers.
_IDIOMS = frozenset(("万一", "千万", "百千", "十", "百", "千", "万", "亿", "一", "一一", "三五", "两"))


def numeral_value(numeral: str) -> Decimal | None:
    """The value of a numeral; None for characters that are no number together, such as 万一."""
    whole, _, part = numeral.partition("点")
    if part:
        value = numeral_value(whole)
        return None if value is None else value + Decimal("0." + "".join(str(_DIGITS[char]) for char in part))
    if all(char in _DIGITS for char in whole):
        return Decimal("".join(str(_DIGITS[char]) for char in whole))
    total = section = digit = 0
    last_unit = 0
    for char in whole:
        if char in _DIGITS:
            digit = _DIGITS[char]
        elif char in _UNITS:
            section += (digit or 1) * _UNITS[char]
            digit, last_unit = 0, _UNITS[char]
        else:
            # 三万亿 multiplies what came before it.
            total = (
                (total + section + digit or 1) * _BIG[char]
                if char in "亿億"
                else total + (section + digit or 1) * _BIG[char]
            )
            section = digit = 0
            last_unit = _BIG[char]
    if whole[0] in _BIG and len(whole) > 1:
        return None
    # 一万五 is 15,000: a last digit without a unit counts in tenths of the unit before it.
    if digit and last_unit >= 100 and "零" not in whole and "〇" not in whole:
        digit *= last_unit // 10
    return Decimal(total + section + digit)


def is_counting(numeral: str, before: str, after: str) -> bool:
    """Whether a numeral is surely meant as a number, by its length and its neighbours."""
    if numeral in ("一", "两", "兩") or (numeral in ("十", "一") and after == "分"):
        return False
    if numeral in _IDIOMS and not (after in _MEASURES and numeral not in ("万一", "千万")):
        return False
    return len(numeral) > 1 or before == "第" or after in _MEASURES
