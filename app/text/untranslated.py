"""What of a text in one language a translation has left as it was.

Between scripts every run of the source's letters is looked at, and names, brands, abbreviations, units, code and quoted
titles are let pass. Between languages of one script whole sentences that come again word for word are found, longer
runs of words, dates and titles. No meaning is known: a name in lower case that is on no list is taken for a word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import regex

from app.language import LANGUAGES
from app.text.foreign_words import (
    CLAUSE_WORDS,
    LETTERS,
    WITH_CAPITALS,
    WORD,
    Vocabulary,
    chinese_clauses,
    foreign_with_capitals,
    foreign_without_capitals,
)
from app.text.quantities import Span
from app.text.repeated_sentences import repeated
from app.text.text_index import TextIndex

# Over so much of the answer's script what is left is still one piece, where the source has the words between as well.
_GAP_CHARS = 40
# Letters without spaces that are as much as CLAUSE_WORDS words.
_CLAUSE_CHARS = 6
# More of a piece need not be read to know that it is a clause.
_ENOUGH_CHARS = 200
_HIDDEN = "\ufffc"
# Names of files, paths, calls, options, variables and accounts; bounded, so that no text is slow.
_CODE_LIKE = regex.compile(
    r"(?<![\w.])[\w-]{1,60}(?:(?:\.|->|::|/|\\)[\w-]{1,60}){1,12}(?:\(\))?(?!\w)|\b[A-Za-z_]\w{0,60}\([^()\n]{0,80}\)"
    r"|(?<!\w)--?[A-Za-z][\w-]{0,40}|[$@#]\w[\w.-]{0,60}|\b\w{0,40}_\w{0,40}|:\w{1,30}:|(?<![\w.])\.[a-z]\w{1,30}"
    r"|(?<![\w/])/[\w.-]{1,60}(?:/[\w.-]{0,60}){0,12}|\b[\w-]{1,60}/(?!\w)|\b\w{1,40}=[\w./:-]{1,60}|\b\w{1,40}(?:Error|Exception|Warning):[\x20-\x7e]{1,80}",
    regex.ASCII,
)
_FILE = regex.compile(
    r"(?:[\w.-]{1,40}/){0,8}[\w-]{1,20}\.(?:docx?|xlsx?|pptx?|pdf|txt|md|csv|json|toml|ya?ml|zip|png|jpe?g|mp[34]|py)\b"
)
_WITH_DIGITS = regex.compile(r"\b[A-Za-z]{1,30}\d\w{0,30}|\b\d{1,20}[A-Za-z]\w{0,30}", regex.ASCII)
_GLUED = regex.compile(r"[a-z]{4,}\d[\d.,]*$")
_CODE_LINE = regex.compile(
    r"^[ \t]*+(?:(?:def|class|import|from|return|for|if|elif|else|while|with|const|let|var|public|private|static|func"
    r"|fn|void|int|SELECT|INSERT|UPDATE|DELETE)\b[^\n]*[(){}=\[\];*][^\n]*|[$>]{1,3}[ \t][^\n]*|[^\n]*[;{}]"
    r"|[\w.\[\]]+[ \t]*[-+*/]?=[ \t]*[^\n]*)[ \t]*$",
    regex.MULTILINE,
)
_SMALL_GAP = regex.compile(r"[\p{L}\p{M}\p{N}\s,，、'’%\ufffc-]*")
_TOKEN = regex.compile(r"[\p{L}\p{M}]+|\p{N}+")
_EDGE_TOKENS, _EDGE_CHARS = 4, 3


@dataclass(frozen=True, slots=True)
class Remnant:
    """A piece of the answer that is in the language of the source.

    Attributes:
        source_span: where the source says it; None where it does not say just that.
    """

    answer_span: Span
    source_span: Span | None


def untranslated(source: str, answer: str, languages: tuple[str, str]) -> list[Remnant]:
    """What is left of the source's language in an answer, in the order of the answer.

    Args:
        source, answer: addresses, placeholders and marked code blanked out in their places.
        languages: ISO 639-1 codes of source and answer; nothing is found where one is unknown, or both are the same.
    """
    one, other = (LANGUAGES.get(code) for code in languages)
    if one is None or other is None or one is other:
        return []
    before, after = _without_code(source, source), _without_code(answer, source)
    letters, own, border = LETTERS[one.script], LETTERS[other.script], r"\p{L}"
    if one.script == other.script:
        spans = list(repeated(before, after, languages))
    elif (one.script, other.script) == ("han", "kana"):
        spans = list(chinese_clauses(before, after))
    else:
        border = rf"[{own}]"
        if one.script in WITH_CAPITALS:
            spans = list(foreign_with_capitals(after, letters, own, Vocabulary(before, one.code)))
        else:
            letters = letters.replace(r"\p{Han}", "") if other.script == "han" else letters
            spans = list(foreign_without_capitals(after, letters, one.code))
    finder = _Places(source)
    return [Remnant(span, finder.place(answer[slice(*span)])) for span in _merged(spans, after, before, border)]


def _without_code(text: str, source: str) -> str:
    """A text with what looks like code blanked out in its places."""

    def blank(match: regex.Match[str]) -> str:
        # A word and a number that only the answer has in one: credited612.40.
        found = str(match[0])
        if _GLUED.match(found) and found not in source:
            return found
        return "\n".join(_HIDDEN * len(line) for line in found.split("\n"))

    for pattern in (_CODE_LINE, _FILE, _CODE_LIKE, _WITH_DIGITS):
        text = str(pattern.sub(blank, text))
    return text


def _merged(spans: Sequence[Span], answer: str, source: str, border: str) -> list[Span]:
    """Joins spans with nothing between them but marks, names, or words of the answer's script that the source has too.

    Over the end of a sentence only whole clauses are joined, or what the source has between them as well.
    """
    known = {word.lower() for word in WORD.findall(source)}
    index, behind = TextIndex(source), 0
    found: list[Span] = []
    for start, end in sorted(spans):
        last = found[-1] if found else (start, start)
        gap = answer[last[1] : start]
        is_clear = not regex.search(border, gap) or (
            len(gap) <= _GAP_CHARS and all(word.lower() in known for word in WORD.findall(gap))
        )
        around = answer[max(last[0], last[1] - _EDGE_CHARS) : min(end, start + _EDGE_CHARS)]
        is_same = False
        if len(gap) <= _GAP_CHARS:  # looked for behind the last one first: both texts have one order
            place = index.find(around, behind)
            place = index.find(around) if place < 0 else place
            is_same, behind = place >= 0, max(place, 0)
        is_small = "\n" not in gap and _SMALL_GAP.fullmatch(gap)
        is_whole = is_small or (_is_clause(answer, last) and _is_clause(answer, (start, end)))
        if found and (is_same or (is_clear and is_whole)):
            found[-1] = (last[0], max(end, last[1]))
        else:
            found.append((start, end))
    return found


def _is_clause(text: str, span: Span) -> bool:
    piece = text[span[0] : min(span[1], span[0] + _ENOUGH_CHARS)]
    return len(WORD.findall(piece)) >= CLAUSE_WORDS or len(regex.findall(r"\p{Lo}", piece)) >= _CLAUSE_CHARS


class _Places:
    """Finds where a source says pieces of an answer, in the order of the answer.

    A piece is looked for behind the one before it first, and one that comes again behind its last place.
    """

    def __init__(self, source: str) -> None:
        low = source.lower()
        self._source, self._low = TextIndex(source), TextIndex(low)
        self._is_even = len(low) == len(source)
        self._places: dict[str, Span | None] = {}
        self._has: dict[str, bool] = {}
        self._end = 0  # of the last place: what comes next is mostly behind it

    def place(self, piece: str) -> Span | None:
        """To the letter, else in another case, else its words and numbers, else how it begins and ends."""
        before = self._places.get(piece)
        if piece in self._places and before is None:
            return None
        span = self._plain(piece, self._source, before[1] if before else self._end)
        span = span or before or self._plain(piece, self._source, 0)
        span = span or (self._plain(piece.lower(), self._low, 0) if self._is_even else None)
        self._places[piece] = span = span or self._by_tokens(piece)
        self._end = span[1] if span else self._end
        return span

    def _plain(self, piece: str, index: TextIndex, start: int) -> Span | None:
        """The first place, as a word of its own where there is one."""
        source = index.text
        first = found = index.find(piece, start)
        while found >= 0:
            end = found + len(piece)
            if not (_is_cased(source[found - 1 : found]) or _is_cased(source[end : end + 1])):
                return found, end
            found = source.find(piece, found + 1)
        return (first, first + len(piece)) if first >= 0 else None

    def _by_tokens(self, piece: str) -> Span | None:
        tokens = _TOKEN.findall(piece)
        edges = tokens if len(tokens) <= 2 * _EDGE_TOKENS else tokens[:_EDGE_TOKENS] + tokens[-_EDGE_TOKENS:]
        if len(tokens) < 2 or not all(map(self._has_token, edges)):
            return None
        gap, source = r"[^\p{L}\p{N}]{0,6}", self._source.text
        escaped = list(map(regex.escape, edges))
        if edges is tokens:
            match = regex.search(gap.join(escaped), source, regex.IGNORECASE)
            return match.span() if match else None
        first = regex.search(gap.join(escaped[:_EDGE_TOKENS]), source, regex.IGNORECASE)
        last = first and regex.search(gap.join(escaped[_EDGE_TOKENS:]), source, regex.IGNORECASE, pos=first.end())
        is_alike = first and last and last.end() - first.start() < 1.5 * len(piece)
        return (first.start(), last.end()) if first and last and is_alike else None

    def _has_token(self, token: str) -> bool:
        """Whether the source has a word in any case: reading a long source by a pattern takes long."""
        low = token.lower()
        if low not in self._has:
            self._has[low] = low in self._low
        return self._has[low]


def _is_cased(char: str) -> bool:
    return char.islower() or char.isupper()
