"""What an answer changed in a text, word by word, so that each change can be taken or left.

Words, numbers, punctuation, white space and line breaks are tokens of their own; in scripts that put no spaces between
words (Chinese, Japanese, Thai ...) each character is one. Neighbouring changes are joined where the pieces between them
are too small to read.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate, pairwise

import regex

Span = tuple[int, int]
# Equal tokens: start in the source, start in the answer, length.
_Match = tuple[int, int, int]

# A part is compared as a whole where no more pairs of equal tokens than this can be made of it; a few milliseconds.
PART_PAIRS = 4_000
# What may be spent on larger parts that cannot be cut, for the whole text; about 100 ms.
SPARE_PAIRS = 40_000
# Long parts are first cut where this many words or marks in a row stand once in both.
ANCHOR_LENGTHS = (3, 1)
# An equal piece between two changes is too small to stand alone with no more than one word of this many letters.
SHORT_WORD_LETTERS = 3

_TOKEN = regex.compile(
    r"""
    \r\n | \n | \r
  | [^\S\r\n]+
  | \d+ (?: [.,:'’] \d+ )*
  | [\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}] \p{M}*
  | (?: (?! [\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}] ) [\p{L}\p{N}_] [\p{M}\u200c\u200d]* )+
    (?: ['’] \p{L}+ )*
  | \X
    """,
    regex.VERBOSE,
)
_LINE_ENDS = ("\n", "\r\n", "\r")
_WORD = regex.compile(r"[\p{L}\p{N}_]")
_SPACELESS = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")


@dataclass(frozen=True, slots=True)
class Change:
    """A piece of the source and what the answer has in its place; either may be empty, both never are.

    Attributes:
        source_span: start and end in characters of the source.
        answer_span: the same in the answer.
    """

    source_span: Span
    answer_span: Span
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class WordDiff:
    """All changes from a source to an answer, in their order.

    Attributes:
        is_coarse: a part that has too little in common was not compared word by word: it is one large change.
    """

    changes: tuple[Change, ...]
    is_coarse: bool = False


def tokens_of(text: str) -> list[str]:
    """The tokens of a text; joined they are the text."""
    return list(_TOKEN.findall(text))


def word_diff(source: str, answer: str) -> WordDiff:
    """Compares two texts. Takes about 10 ms for 1,000 words, and never much more than 200 ms."""
    before, after = tokens_of(source), tokens_of(answer)
    # Compared with the white space behind them: alone it is so common that it would match anything.
    starts, others = _group_starts(before), _group_starts(after)
    found, is_coarse = _matches(_groups(before, starts), _groups(after, others))
    matches = [(starts[i], others[j], starts[i + size] - starts[i]) for i, j, size in found]
    pieces = _slid(_trimmed(_gaps(matches, len(before), len(after)), before, after), before, after)
    before_at, after_at = _offsets(before), _offsets(after)
    changes = []
    for a, b, c, d in _joined(pieces, before):
        source_span, answer_span = (before_at[a], before_at[b]), (after_at[c], after_at[d])
        changes.append(Change(source_span, answer_span, source[slice(*source_span)], answer[slice(*answer_span)]))
    return WordDiff(tuple(changes), is_coarse)


def apply(source: str, changes: Sequence[Change], accepted: Collection[int]) -> str:
    """The source with some of its changes made.

    Args:
        changes: of this source, in their order.
        accepted: indices into `changes`; the others are left as they were.
    """
    pieces, end = [], 0
    for index, change in enumerate(changes):
        pieces += [source[end : change.source_span[0]], change.after if index in accepted else change.before]
        end = change.source_span[1]
    return "".join([*pieces, source[end:]])


def with_edges_of(source: str, answer: str) -> str:
    """The answer between the white space that the source begins and ends with: models drop it, an editor needs it."""
    if not source.strip() or not answer.strip():
        return answer
    start = len(source) - len(source.lstrip())
    return source[:start] + answer.strip() + source[len(source.rstrip()) :]


# --- equal tokens ---------------------------------------------------------------------------------------------------


def _group_starts(tokens: Sequence[str]) -> list[int]:
    """Where each token begins that is no white space within a line, and the end."""
    starts = [index for index, token in enumerate(tokens) if not token.isspace() or token in _LINE_ENDS or index == 0]
    return [*starts, len(tokens)] if tokens else [0]


def _groups(tokens: Sequence[str], starts: Sequence[int]) -> list[str]:
    return ["".join(tokens[start:end]) for start, end in pairwise(starts)]


def _matches(before: Sequence[str], after: Sequence[str]) -> tuple[list[_Match], bool]:
    """Runs of equal tokens in their order, and whether a part was too different to be compared."""
    matches: list[_Match] = []
    spare, is_coarse = SPARE_PAIRS, False
    # Parts that are still to be compared: a, b of the source, c, d of the answer, and which anchors come next.
    parts = [(0, len(before), 0, len(after), 0)]
    while parts:
        a, b, c, d, level = parts.pop()
        head = _common(before, after, a, b, c, d)
        if head:
            matches.append((a, c, head))
            a, c = a + head, c + head
        tail = _common_end(before, after, a, b, c, d)
        if tail:
            b, d = b - tail, d - tail
            matches.append((b, d, tail))
        if a == b or c == d:
            continue
        pairs = _pairs(before[a:b], after[c:d])
        is_last = level == len(ANCHOR_LENGTHS)
        if pairs <= PART_PAIRS or (is_last and pairs <= spare):
            spare -= pairs if is_last else 0
            matcher = SequenceMatcher(None, before[a:b], after[c:d], autojunk=False)
            matches += [(a + i, c + j, size) for i, j, size in matcher.get_matching_blocks() if size]
        elif not is_last:
            anchors = _anchors(before[a:b], after[c:d], ANCHOR_LENGTHS[level])
            ends = [(a + i, c + j) for i, j in anchors]
            starts = [(a, c), *ends]
            parts += [(*_zip_part(start, end), level + 1) for start, end in zip(starts, [*ends, (b, d)], strict=True)]
        elif units := _unit_pairs(before[a:b], after[c:d]):
            parts += [(a + i, a + j, c + k, c + m, level) for i, j, k, m in units]
        else:
            is_coarse = True
    matches.sort()
    return matches, is_coarse


def _zip_part(start: tuple[int, int], end: tuple[int, int]) -> tuple[int, int, int, int]:
    return start[0], end[0], start[1], end[1]


def _common(before: Sequence[str], after: Sequence[str], a: int, b: int, c: int, d: int) -> int:
    count, limit = 0, min(b - a, d - c)
    while count < limit and before[a + count] == after[c + count]:
        count += 1
    return count


def _common_end(before: Sequence[str], after: Sequence[str], a: int, b: int, c: int, d: int) -> int:
    count, limit = 0, min(b - a, d - c)
    while count < limit and before[b - 1 - count] == after[d - 1 - count]:
        count += 1
    return count


def _pairs(before: Sequence[str], after: Sequence[str]) -> int:
    """How many pairs of equal elements there are: what a comparison costs."""
    counts = Counter(after)
    return sum(number * counts[element] for element, number in Counter(before).items())


def _anchors(before: Sequence[str], after: Sequence[str], length: int) -> list[tuple[int, int]]:
    """Where runs that stand once in each of the texts begin, in an order that both share (patience diff)."""
    places = _once(before, length)
    others = _once(after, length)
    pairs = sorted((place, others[key]) for key, place in places.items() if key in others)
    # The longest rising run of the second member.
    tails: list[int] = []
    ends: list[int] = []
    previous = [-1] * len(pairs)
    for index, (_, place) in enumerate(pairs):
        at = bisect.bisect_left(tails, place)
        if at == len(tails):
            tails.append(place)
            ends.append(index)
        else:
            tails[at], ends[at] = place, index
        previous[index] = ends[at - 1] if at else -1
    chosen, index = [], ends[-1] if ends else -1
    while index >= 0:
        chosen.append(pairs[index])
        index = previous[index]
    chosen.reverse()
    # Of anchors in a row the first is enough: what follows it is equal.
    return [pair for pair, last in zip(chosen, [(-2, -2), *chosen], strict=False) if pair != (last[0] + 1, last[1] + 1)]


def _unit_pairs(before: Sequence[str], after: Sequence[str]) -> list[tuple[int, int, int, int]]:
    """Line by line or sentence by sentence, where both texts have as many; [] where they do not, or have one."""
    for marks in (_LINE_ENDS, (".", "!", "?", "。", "！", "？")):
        ends = [
            [
                index
                for index in range(1, len(tokens) + 1)
                if tokens[index - 1].strip(" \t") in marks or index == len(tokens)
            ]
            for tokens in (before, after)
        ]
        if len(ends[0]) == len(ends[1]) > 1:
            starts = [[0, *places] for places in ends]
            return list(zip(starts[0], ends[0], starts[1], ends[1], strict=False))
    return []


def _once(tokens: Sequence[str], length: int) -> dict[tuple[str, ...], int]:
    """Runs of this length that stand once in a text, and where they do."""
    places: dict[tuple[str, ...], int] = {}
    for place, key in enumerate(zip(*(tokens[start:] for start in range(length)), strict=False)):
        places[key] = -1 if key in places else place
    return {key: place for key, place in places.items() if place >= 0}


# --- from equal tokens to changes that can be read ------------------------------------------------------------------

# Start and end in tokens of the source, start and end in tokens of the answer.
_Piece = tuple[int, int, int, int]


def _gaps(matches: Sequence[_Match], before_count: int, after_count: int) -> Iterator[_Piece]:
    a = c = 0
    for i, j, size in [*matches, (before_count, after_count, 0)]:
        if i > a or j > c:
            yield a, i, c, j
        a, c = i + size, j + size


def _trimmed(pieces: Iterator[_Piece], before: Sequence[str], after: Sequence[str]) -> Iterator[_Piece]:
    """Without the tokens that both have at an end: groups differ where only the white space behind a word does."""
    for a, b, c, d in pieces:
        head = _common(before, after, a, b, c, d)
        tail = _common_end(before, after, a + head, b, c + head, d)
        if a + head < b - tail or c + head < d - tail:
            yield a + head, b - tail, c + head, d - tail


def _slid(pieces: Iterator[_Piece], before: Sequence[str], after: Sequence[str]) -> Iterator[_Piece]:
    """Moves what was only added or only removed to the right, so that it begins with a word, not with a space."""
    queue = list(pieces)
    for index, (a, b, c, d) in enumerate(queue):
        end = queue[index + 1][0] if index + 1 < len(queue) else len(before)
        tokens, first = (before, a) if c == d else (after, c)
        if (a == b or c == d) and tokens[first].isspace() and b < end and before[b] == tokens[first]:
            a, b, c, d = a + 1, b + 1, c + 1, d + 1
        yield a, b, c, d


def _joined(pieces: Iterator[_Piece], before: Sequence[str]) -> list[_Piece]:
    joined: list[_Piece] = []
    for piece in pieces:
        if joined and _is_too_small(before[joined[-1][1] : piece[0]], joined[-1], piece):
            last = joined[-1]
            joined[-1] = (last[0], piece[1], last[2], piece[3])
        else:
            joined.append(piece)
    return joined


def _is_too_small(between: Sequence[str], left: _Piece, right: _Piece) -> bool:
    """Whether the equal tokens between two changes are no help to a reader.

    A word between two corrections of one word each is left alone: "teh cat adn" is two mistakes.
    """
    if any("\n" in token or "\r" in token for token in between):
        return False
    words = [token for token in between if _WORD.match(token)]
    if not words:
        return all(token.isspace() for token in between) or len(between) == 1
    if len(words) > 1 or max(map(len, words)) > (1 if _SPACELESS.match(words[0]) else SHORT_WORD_LETTERS):
        return False
    return any(max(piece[1] - piece[0], piece[3] - piece[2]) > 1 for piece in (left, right))


def _offsets(tokens: Sequence[str]) -> list[int]:
    return [0, *accumulate(map(len, tokens))]
