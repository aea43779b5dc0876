"""Words in the letters of one script inside a text of another, less names, abbreviations, units and quoted titles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import regex

from app.text.quantities import Span
from app.text.untranslated_words import (
    CALENDAR,
    CHINESE_FUNCTION_CHARS,
    CHINESE_SPEAKERS,
    CHINESE_SURNAMES,
    COMMANDS,
    CONNECTORS,
    FAMILY,
    FUNCTION_WORDS,
    JAPANESE_SURNAMES,
    KOREAN_SURNAMES,
    LOWER_CASE_NAMES,
    MONTHS_BEHIND,
    MONTHS_BESIDE_NUMBERS,
    NO_NAMES,
    OPENERS,
    SPEAKERS,
    STAYS,
    TITLES,
)

LETTERS = {
    "latin": r"\p{Latin}",
    "han": r"\p{Han}",
    "kana": r"\p{Han}\p{Hiragana}\p{Katakana}ー",
    "hangul": r"\p{Hangul}",
    "cyrillic": r"\p{Cyrillic}",
    "greek": r"\p{Greek}",
    "arabic": r"\p{Arabic}",
    "hebrew": r"\p{Hebrew}",
    "devanagari": r"\p{Devanagari}",
    "thai": r"\p{Thai}",
}
"""By the names that `app.language` has for scripts, the letters for a class of a regular expression."""
WITH_CAPITALS = ("latin", "cyrillic", "greek")
CLAUSE_WORDS = 3
"""A clause with so many words that are no names is named as a whole, with the names in it."""

_QUOTED_WORDS, _GLOSS_WORDS, _QUOTED_CHARS, _GLOSS_CHARS, _LEAST_HAN = 12, 5, 15, 24, 6
WORD = regex.compile(r"[\p{L}\p{M}]+(?:['’\-][\p{L}\p{M}]+)*")
_CLAUSE_END = regex.compile(
    r"(?<!\b(?:Mr|Mrs|Ms|Dr|Prof|Sr|Sra|St|\p{Lu}))[.!?…]+(?=\s|$|[^\x00-\u024f])|[。！？…，、；：,;:|*_#>•]|\n|\s[-–—]\s|[–—]"
    r"|[()（）\[\]{}<《》〈〉「」『』“”„\"«»【】]"
)
_QUOTED = regex.compile(
    r"“[^“”\n]{1,120}”|„[^„“”\n]{1,120}[“”]|\"[^\"\n]{1,120}\"|«[^«»\n]{1,120}»|《[^《》\n]{1,120}》"
    r"|「[^「」\n]{1,120}」|『[^『』\n]{1,120}』|‘[^‘’\n]{1,120}’|(?<!\w)'[^'\n]{1,120}'(?!\w)"
    r"|(?<![\w*])\*{1,2}[^*\n]{1,120}\*{1,2}(?![\w*])|(?<!\w)_[^_\n]{1,120}_(?!\w)"
)
_IN_BRACKETS = regex.compile(r"(?<=[\p{L}\p{N}”」》\"'.])[ \t]?[(（]([^()（）\n]{1,80})[)）]")
_SPEECH_BEFORE = regex.compile(r"[,，:：]\s*$")
_SPEECH_END = regex.compile(r"[.!?,。！？，]\s*$")
_LATIN_END = regex.compile(r"(?:us|um|is|ia|ae|ii|oides)$")
_SPEAKER_END = regex.compile(r"\s{0,2}[:：]")
# A time or a mark may stand before the speaker.
_SPEAKER_CHARS = 24
_DAY_BEFORE = regex.compile(r"(?<!\d)\d{1,2}(?:st|nd|rd|th)?[ \t]{1,2}$")
_NUMBER_BEFORE, _NUMBER_BEHIND = regex.compile(r"\d\S{0,2}\s{0,2}$"), regex.compile(r"[ \t]{0,2}\d")


@dataclass(frozen=True, slots=True)
class Word:
    """A word and its place."""

    text: str
    span: Span

    @property
    def low(self) -> str:
        """In lower case."""
        return self.text.lower()

    @property
    def is_capital(self) -> bool:
        """Whether it begins with a capital."""
        return self.text[0].isupper()


class Exempt:
    """Places of a text in which words may stay: titles in quotation marks, terms in brackets behind their translation.

    Args:
        letters: those that are looked for, as a class of a regular expression without its brackets.
        has_capitals: whether they come in two cases.
    """

    def __init__(self, text: str, letters: str, has_capitals: bool, language: str) -> None:
        self._is_exempt = bytearray(len(text))
        functions = FUNCTION_WORDS.get(language, frozenset()) - CONNECTORS
        for match in _QUOTED.finditer(text):
            inner = match[0][1:-1]
            is_short = len(WORD.findall(inner)) <= _QUOTED_WORDS if has_capitals else len(inner) <= _QUOTED_CHARS
            is_after_colon = _SPEECH_BEFORE.search(text, max(0, match.start() - 4), match.start()) is not None
            is_said = _SPEECH_END.search(inner) or (is_after_colon and _is_told(inner))
            if is_short and (not is_said or match[0][0] in "《*_"):
                self._add(match.span())
        for match in _IN_BRACKETS.finditer(text):
            words = WORD.findall(match[1])
            if has_capitals:
                has_functions = any(word.lower() in functions for word in words)
                is_title = all(word[0].isupper() for word in words)
                is_term = len(words) <= _GLOSS_WORDS and (is_title or not has_functions)
            else:
                is_term = len(match[1]) <= _GLOSS_CHARS and not CHINESE_FUNCTION_CHARS & set(match[1])
            if is_term and not regex.search(r"\d|[,，。]", match[1]):
                self._add(match.span())
        if not has_capitals:  # the other way round: 微信 (WeChat) in an English text
            for match in regex.finditer(rf"[{letters}]{{1,{_QUOTED_CHARS}}}(?=[ \t]?[(（]\p{{Latin}}{{2}})", text):
                self._add(match.span())

    def _add(self, span: Span) -> None:
        self._is_exempt[slice(*span)] = b"\1" * (span[1] - span[0])

    def __contains__(self, span: Span) -> bool:
        return bool(self._is_exempt[span[0]] and self._is_exempt[span[1] - 1])


def _is_told(text: str) -> bool:
    """Whether somebody says it, rather than that it is a title."""
    return bool(SPEAKERS & {word.lower() for word in WORD.findall(text)} or CHINESE_SPEAKERS & set(text))


def clauses(text: str) -> Iterator[Span]:
    """Where the pieces between marks of punctuation are."""
    start = 0
    for match in _CLAUSE_END.finditer(text):
        yield start, match.start()
        start = match.end()
    yield start, len(text)


# --- letters with capitals ------------------------------------------------------------------------------------------


class Vocabulary:
    """What a source tells of its words: which are no names although an answer gives them a capital."""

    def __init__(self, source: str, language: str) -> None:
        self.source, self.language = source, language
        self.functions = FUNCTION_WORDS.get(language, frozenset())
        self._first: set[str] = set()
        words: set[str] = set()
        for start, end in clauses(source):
            row = WORD.findall(source, start, end)
            self._first.update(word.lower() for word in row[:1])
            words.update(row)
        self._plain = {word for word in words if word.islower()}
        self._known = {word.lower() for word in words}
        self._all = "\n".join(self._known)

    def has(self, word: str) -> bool:
        """Whether the source has a word, in another form or as a part of one as well: jackets of lifejackets."""
        low = word.lower()
        return low in self._known or low + "s" in self._known or (len(low) > 3 and low.rstrip("s") in self._all)

    def begins_clauses(self, word: str) -> bool:
        """Whether the source begins a clause with a word."""
        return word.lower() in self._first

    def is_plain(self, word: str) -> bool:
        """Whether a word is neither a name nor an abbreviation, a unit or a word that stays."""
        low = word.lower()
        if len(word) < 2 or word[1] == "-" or low in STAYS or low in LOWER_CASE_NAMES:
            return False
        if word.islower() or low in FAMILY.get(self.language, ()):
            return True
        if not word[1:].islower():
            return False
        opens = low in self._first and (low in OPENERS.get(self.language, ()) or low in self.functions)
        return low in self._plain or opens


def foreign_with_capitals(answer: str, letters: str, own: str, words: Vocabulary) -> Iterator[Span]:
    """Whole clauses, and single words that the source has, where they are no names.

    Args:
        letters, own: of the source's script and of the answer's, each for a class of a regular expression.
    """
    exempt = Exempt(answer, letters, True, words.language)
    foreign = regex.compile(rf"[{letters}\p{{M}}]+(?:['’\-][{letters}\p{{M}}]+)*")
    border = regex.compile(rf"[{own}]")
    for start, end in clauses(answer):
        row: list[Word] = []
        last = start
        for match in foreign.finditer(answer, start, end):
            if row and border.search(answer, last, match.start()):
                yield from _left_in(row, answer, words)
                row = []
            last = match.end()
            if match.span() not in exempt:
                row.append(Word(match[0], match.span()))
        yield from _left_in(row, answer, words)


def _left_in(row: Sequence[Word], answer: str, words: Vocabulary) -> Iterator[Span]:
    """What is no name of the words between two letters of the other script."""
    if not row:
        return
    plain = [word for word in row if words.is_plain(word.text)]
    if len(row) >= CLAUSE_WORDS and all(w.text.isupper() for w in row) and any(w.low in words.functions for w in row):
        plain = list(row)
    is_typed = row[0].text in COMMANDS and sum(word.text in words.functions for word in plain) < 2
    if is_name_phrase(row, plain) or is_typed:
        plain = []
    # "Breakfast starts at": what begins a sentence has a capital anyway.
    opens = len(plain) > 1 and row[0] not in plain and words.begins_clauses(row[0].text)
    if len(plain) + opens >= CLAUSE_WORDS:
        yield row[0].span[0], row[-1].span[1]
        return
    end = -1
    for index, word in enumerate(row):
        if index <= end:  # behind a title
            continue
        if is_date_or_title(index, row, answer, words):
            end = index
            while word.text in TITLES[words.language] and end + 1 < len(row) and row[end + 1].is_capital:
                end += 1
            yield date_start(word, answer, words.language), row[end].span[1]
        elif (
            word in plain
            and words.has(word.text)
            and not (_is_speaker(word, answer) or _is_species(index, row, answer))
        ):
            yield word.span


def _is_speaker(word: Word, answer: str) -> bool:
    """Whether a line begins with the word and a colon: a chat names its speakers in any case."""
    line = answer.rfind("\n", 0, word.span[0]) + 1
    is_first = word.span[0] - line <= _SPEAKER_CHARS and not regex.search(r"\p{L}", answer[line : word.span[0]])
    return is_first and _SPEAKER_END.match(answer, word.span[1]) is not None


def _is_species(index: int, row: Sequence[Word], answer: str) -> bool:
    """Whether a word is the second of a Latin name: E. coli, Rana temporaria."""
    if not index or not row[index - 1].is_capital or row[index].is_capital:
        return False
    between = answer[row[index - 1].span[1] : row[index].span[0]]
    return between == ". " or (between == " " and _LATIN_END.search(row[index].text) is not None)


def is_name_phrase(row: Sequence[Word], plain: Sequence[Word]) -> bool:
    """Whether words are a name such as The Lord of the Rings: a capital at both ends, the rest connects."""
    has_ends = len(row) > 1 and row[0].is_capital and row[-1].is_capital
    return not plain or (has_ends and all(word.low in CONNECTORS for word in plain))


def is_date_or_title(index: int, row: Sequence[Word], text: str, words: Vocabulary) -> bool:
    """Whether a word of a row is a weekday, a month or the title of a person: Friday, 14 March, Ms Lopez.

    What stands in a name is none: Black Friday.
    """
    word, language = row[index], words.language
    titles, calendar = TITLES.get(language, frozenset()), CALENDAR.get(language, frozenset())
    if word.text in titles:
        return index + 1 < len(row) and row[index + 1].is_capital
    if word.low not in calendar | MONTHS_BESIDE_NUMBERS.get(language, frozenset()) or not word.text[1:].islower():
        return False
    start, end = word.span
    if _NUMBER_BEFORE.search(text, max(0, start - 8), start) or _NUMBER_BEHIND.match(text, end):
        return True
    if word.low not in calendar:
        behind = MONTHS_BEHIND.get(language, "")
        return bool(behind) and regex.search(rf"\b(?:{behind})[ -]{word.text}\b", words.source) is not None
    near = [other for other in (index - 1, index + 1) if 0 <= other < len(row)]
    return not any(
        row[other].is_capital
        and row[other].low not in calendar
        and row[other].text not in titles
        and text[min(end, row[other].span[1]) : max(start, row[other].span[0])].isspace()
        for other in near
    )


def date_start(word: Word, text: str, language: str) -> int:
    """Where a word begins, with the day before it where it is a month: 14 March."""
    start = word.span[0]
    is_date = word.low in CALENDAR.get(language, ()) or word.low in MONTHS_BESIDE_NUMBERS.get(language, ())
    match = _DAY_BEFORE.search(text, max(0, start - 8), start) if is_date else None
    return match.start() if match else start


# --- letters without capitals ---------------------------------------------------------------------------------------


def foreign_without_capitals(answer: str, letters: str, language: str) -> Iterator[Span]:
    """Every run of letters that is no name of a person."""
    exempt = Exempt(answer, letters, False, language)
    for match in regex.finditer(rf"[{letters}\p{{M}}]+", answer):
        around = answer[max(0, match.start() - 1) : match.start()] + answer[match.end() : match.end() + 1]
        touches = regex.search(r"\p{L}", around)
        if regex.search(rf"[{letters}]", match[0]) and match.span() not in exempt:
            if touches or not _is_person(match[0], language):
                yield match.span()


def _is_person(word: str, language: str) -> bool:
    if language == "zh":
        return len(word) in (2, 3) and word[0] in CHINESE_SURNAMES and word not in NO_NAMES
    if language == "ja":
        return any(word.startswith(name) and len(word) <= len(name) + 3 for name in JAPANESE_SURNAMES)
    return language == "ko" and len(word) == 3 and word[0] in KOREAN_SURNAMES


def chinese_clauses(source: str, answer: str) -> Iterator[Span]:
    """Clauses of a Chinese source in a Japanese answer, which shares its characters but not its small words."""
    by_start: dict[str, list[str]] = {}
    for clause in dict.fromkeys(source[start:end].strip() for start, end in clauses(source)):
        if len(regex.findall(r"\p{Han}", clause)) >= _LEAST_HAN and CHINESE_FUNCTION_CHARS & set(clause):
            by_start.setdefault(clause[:_LEAST_HAN], []).append(clause)
    ends: dict[str, int] = {}
    # The answer is read once, not once for each clause.
    for start in range(len(answer) - _LEAST_HAN + 1):
        for clause in by_start.get(answer[start : start + _LEAST_HAN], ()):
            if start >= ends.get(clause, 0) and answer.startswith(clause, start):
                ends[clause] = start + len(clause)
                yield start, start + len(clause)
