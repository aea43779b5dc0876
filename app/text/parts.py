"""A text cut into parts by its tokens, at the best places: between paragraphs, lines, sentences, clauses, words.

`units` finds the smallest pieces that are ever taken apart from each other, and how good the place behind each is;
their tokens are counted by the engine; `cut` packs them into parts. Nothing is lost and nothing doubled:
"".join(unit.text for unit in units(text)) == text == "".join(part.text for part in cut(...)).
"""

from __future__ import annotations

import enum
import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

UNIT_CHARS = 120
"""A sentence that is longer is taken apart at clauses and words, so that every part can be filled well."""


class Border(enum.IntEnum):
    """How good a place is to cut, better is higher."""

    WORD = 0
    CLAUSE = 1
    ITEM = 2
    """A line's end inside of code, a list or a table, which stay whole where they fit."""
    SENTENCE = 3
    LINE = 4
    PARAGRAPH = 5


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of the text with the white space behind it, and the place behind that."""

    text: str
    border: Border


@dataclass(frozen=True, slots=True)
class Part:
    """Neighbouring units.

    Attributes:
        tokens: as counted; a little more than the part has as a whole.
    """

    text: str
    tokens: int


_SENTENCE_END = re.compile(
    r"""(?:[.!?…؟।]+["'”’»)\]*_]*\s+|[。！？…︒｡]+["'”’」』）)\]]*\s*)""",
)
_CLAUSE_END = re.compile(r"[,;:，；：、،]\s+|[，；：、]|\s[–—-]\s")
_WORD_END = re.compile(r"\s+")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[])(?:[A-Za-z]|Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|etc|cf|approx|ca|bzw|usw|Nr|No|Fig|Vol|pp?|e\.g|i\.e)\.\s+$"
)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_ITEM = re.compile(
    r"\s*(?:(?:[-*+•]|\d{1,3}[.)])\s+\S|(?:\d{1,3}|[一二三四五六七八九十]{1,3})、|[（(][\d一二三四五六七八九十]{1,3}[）)]|\|)"
)
_HEADING = re.compile(r" {0,3}#{1,6}\s")
_ENDS = tuple("""。！？….!?؟।:：;；」』”"'）)]""")
_WRAPPED_CHARS = 55
"""A line at least so long that ends in the middle of a sentence was probably wrapped."""
_LEAST_SHARE = 0.6
"""Of the length that is aimed at: a good border behind it wins over a better one that is far away."""


def units(text: str) -> list[Unit]:
    """The pieces of a text, at most UNIT_CHARS long each but for their white space."""
    found: list[Unit] = []
    for block, kind in _blocks(text):
        pieces = list(_block_units(block, kind))
        found += pieces[:-1]
        last = pieces[-1]
        leads_on = kind == "heading" or last.text.rstrip().endswith((":", "："))
        found.append(Unit(last.text, Border.CLAUSE if leads_on else Border.PARAGRAPH))
    return found


def cut(pieces: Sequence[Unit], counts: Sequence[int], limit: int) -> list[Part]:
    """Parts of about equal length, none with more than `limit` tokens.

    Args:
        counts: tokens of each piece.
        limit: at least 1.
    """
    pieces, counts = _refined(pieces, counts, limit)
    parts: list[Part] = []
    start, left = 0, sum(counts)
    while start < len(pieces):
        target = math.ceil(left / math.ceil(left / limit)) if left else limit
        end = _best_end(pieces, counts, start, limit, target)
        tokens = sum(counts[start:end])
        parts.append(Part("".join(piece.text for piece in pieces[start:end]), tokens))
        start, left = end, left - tokens
    return parts


def _best_end(pieces: Sequence[Unit], counts: Sequence[int], start: int, limit: int, target: int) -> int:
    """Where a part that begins at `start` ends: the best border near the target, else an earlier good one."""
    near: list[tuple[Border, float, int]] = []
    tokens = early = 0
    last = start + 1
    for index in range(start, len(pieces)):
        tokens += counts[index]
        if tokens > limit:
            break
        last = index + 1
        if tokens >= _LEAST_SHARE * target:
            near.append((pieces[index].border, -abs(tokens - target), last))
        elif pieces[index].border >= Border.SENTENCE:
            early = last
    if last == len(pieces):
        return last
    border, _, end = max(near, default=(Border.WORD, 0.0, last))
    # What is to stay whole, and does not fit here, goes into the next part.
    return early if early and border < Border.SENTENCE else end


def _refined(pieces: Sequence[Unit], counts: Sequence[int], limit: int) -> tuple[list[Unit], list[int]]:
    """Takes pieces apart that alone are over the limit. A token is never longer than its bytes."""
    found: list[Unit] = []
    tokens: list[int] = []
    for piece, count in zip(pieces, counts, strict=True):
        if count <= limit:
            found.append(piece)
            tokens.append(count)
            continue
        small = list(_by_bytes(piece.text, limit))
        found += [Unit(text, Border.WORD) for text in small[:-1]] + [Unit(small[-1], piece.border)]
        tokens += [min(limit, _bytes(text)) for text in small]
    return found, tokens


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _by_bytes(text: str, limit: int) -> Iterator[str]:
    start = size = 0
    for index, char in enumerate(text):
        width = _bytes(char)
        if size and size + width > limit:
            yield text[start:index]
            start, size = index, 0
        size += width
    yield text[start:]


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Paragraphs with the blank lines behind them, and what each is: "prose", "kept" (code, list, table), "heading"."""
    lines = text.splitlines(keepends=True)
    start = 0
    while start < len(lines):
        end, kind = _block_end(lines, start)
        while end < len(lines) and not lines[end].strip():
            end += 1
        yield "".join(lines[start:end]), kind
        start = end


def _block_end(lines: Sequence[str], start: int) -> tuple[int, str]:
    end = start
    while end < len(lines) and not lines[end].strip():
        end += 1  # blank lines before the first paragraph
    if end == len(lines):
        return end, "prose"
    first = lines[end]
    fence = _FENCE.match(first)
    if fence:
        mark = fence[1]
        closing = re.compile(rf" {{0,3}}{re.escape(mark[0])}{{{len(mark)},}}\s*$")
        after = next((i + 1 for i in range(end + 1, len(lines)) if closing.match(lines[i])), len(lines))
        return after, "kept"
    if _HEADING.match(first):
        return end + 1, "heading"
    kind = "kept" if _ITEM.match(first) else "prose"
    end += 1
    while end < len(lines) and lines[end].strip() and not _FENCE.match(lines[end]) and not _HEADING.match(lines[end]):
        if kind == "prose" and _ITEM.match(lines[end]):
            break
        end += 1
    return end, kind


def _block_units(block: str, kind: str) -> Iterator[Unit]:
    lines = block.splitlines(keepends=True)
    index = 0
    while index < len(lines):
        first, has_text = index, bool(lines[index].strip())
        index += 1
        while index < len(lines) and not (has_text and lines[index].strip()):
            has_text = has_text or bool(lines[index].strip())
            index += 1  # blank lines go with the line before them, or after them at the beginning
        line = "".join(lines[first:index])
        following = lines[index] if index < len(lines) else ""
        pieces = list(_line_units(line))
        if kind == "kept":
            yield from (Unit(piece.text, min(piece.border, Border.CLAUSE)) for piece in pieces[:-1])
            yield Unit(pieces[-1].text, Border.ITEM)
        else:
            yield from pieces[:-1]
            yield Unit(pieces[-1].text, _line_border(line.rstrip(), following))


def _line_border(line: str, following: str) -> Border:
    """Behind a line of prose: good, unless the line was only wrapped."""
    if line.endswith(_ENDS):
        return Border.LINE
    is_wrapped = following[:1].islower() or line.endswith((",", "，", "、", "-")) or len(line) >= _WRAPPED_CHARS
    return Border.CLAUSE if is_wrapped else Border.LINE


def _line_units(line: str) -> Iterator[Unit]:
    start = 0
    for match in _SENTENCE_END.finditer(line):
        if match.end() == len(line) or _is_abbreviation(line, match):
            continue
        yield from _sentence_units(line[start : match.end()])
        start = match.end()
    yield from _sentence_units(line[start:])


def _is_abbreviation(line: str, match: re.Match[str]) -> bool:
    following = line[match.end() : match.end() + 1]
    head = line[max(0, match.start() - 12) : match.end()]
    return match[0][:1] == "." and (following.islower() or _ABBREVIATION.search(head) is not None)


def _sentence_units(sentence: str) -> Iterator[Unit]:
    """The sentence, or where it is too long its clauses, words or characters."""
    start = 0
    while len(sentence) - start > UNIT_CHARS:
        end, border = _piece_end(sentence, start, start + UNIT_CHARS)
        if end >= len(sentence):
            break
        yield Unit(sentence[start:end], border)
        start = end
    yield Unit(sentence[start:], Border.SENTENCE)


def _piece_end(sentence: str, start: int, limit: int) -> tuple[int, Border]:
    for pattern, border in ((_CLAUSE_END, Border.CLAUSE), (_WORD_END, Border.WORD)):
        ends = [match.end() for match in pattern.finditer(sentence, start + UNIT_CHARS // 4, limit)]
        if ends:
            return ends[-1], border
    while limit < len(sentence) and _joins(sentence[limit - 1], sentence[limit]):
        limit += 1
    return limit, Border.WORD


def _joins(before: str, char: str) -> bool:
    """Whether a character is no beginning: an accent, a joined emoji."""
    return unicodedata.category(char) in ("Mn", "Mc", "Me", "Cf", "Sk") or before == "\u200d"
