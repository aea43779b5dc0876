"""Sentences of a text that a translation into another language of the same script has again word for word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import regex

from app.language import LANGUAGES, detect
from app.text.foreign_words import (
    CLAUSE_WORDS,
    LETTERS,
    WORD,
    Exempt,
    Vocabulary,
    Word,
    date_start,
    is_date_or_title,
    is_name_phrase,
)
from app.text.quantities import Span
from app.text.untranslated_words import CALENDAR, COMMANDS, CONNECTORS, FUNCTION_WORDS, TITLES

RUN_WORDS = 5
"""So many words in a row are no coincidence."""

_SENTENCE_END = regex.compile(r"[.!?…]+(?=\s|$)|\n")


def repeated(source: str, answer: str, languages: tuple[str, str]) -> Iterator[Span]:
    """Where sentences and longer runs come again, sentences are of the other language, dates and titles stayed.

    Args:
        languages: ISO 639-1 codes of source and answer, of one script.
    """
    words = [Word(match[0], match.span()) for match in WORD.finditer(answer)]
    exempt = Exempt(answer, LETTERS[LANGUAGES[languages[0]].script], True, languages[0])
    taken, is_whole = [False] * len(words), [False] * len(words)
    for first, end, whole in [*_again(source, answer, words), *_foreign(answer, words, languages)]:
        if sum(word.span not in exempt for word in words[first:end]) >= CLAUSE_WORDS:
            taken[first:end] = [True] * (end - first)
            is_whole[first] |= whole
    first = 0
    for index in range(len(words) + 1):
        goes_on = first < index < len(words) and not _SENTENCE_END.search(
            answer, words[index - 1].span[1], words[index].span[0]
        )
        if index < len(words) and taken[index] and (goes_on or index == first):
            continue
        if index > first and _is_of(words[first:index], any(is_whole[first:index]), languages):
            yield words[first].span[0], words[index - 1].span[1]
        first = index if index < len(words) and taken[index] else index + 1
    vocabulary = Vocabulary(source, languages[0])
    theirs = CALENDAR.get(languages[1], frozenset()) | {word.lower() for word in TITLES.get(languages[1], ())}
    titles = TITLES.get(languages[0], frozenset())
    for index, word in enumerate(words):
        if not taken[index] and word.low not in theirs and word.span not in exempt and vocabulary.has(word.text):
            if is_date_or_title(index, words, answer, vocabulary):
                yield date_start(word, answer, languages[0]), words[index + (word.text in titles)].span[1]


def _again(source: str, answer: str, words: Sequence[Word]) -> Iterator[tuple[int, int, bool]]:
    """Where runs of RUN_WORDS words and, True, whole sentences of the source come again; in words."""
    sentences: set[tuple[str, ...]] = set()
    runs: set[tuple[str, ...]] = set()
    for start, end in _sentences(source):
        row = [word.lower() for word in WORD.findall(source, start, end)]
        sentences.add(tuple(row))
        runs.update(tuple(row[index : index + RUN_WORDS]) for index in range(len(row) - RUN_WORDS + 1))
    lows = [word.low for word in words]
    for first, end in _sentences_of(answer, words):
        if end - first >= CLAUSE_WORDS and tuple(lows[first:end]) in sentences:
            yield first, end, True
    for index in range(len(lows) - RUN_WORDS + 1):
        if tuple(lows[index : index + RUN_WORDS]) in runs:
            yield index, index + RUN_WORDS, False


def _sentences_of(text: str, words: Sequence[Word]) -> Iterator[Span]:
    """Sentences of a text, in its words."""
    index = 0
    for _, end in _sentences(text):
        first = index
        while index < len(words) and words[index].span[1] <= end:
            index += 1
        yield first, index


def _sentences(text: str) -> Iterator[Span]:
    start = 0
    for match in _SENTENCE_END.finditer(text):
        yield start, match.end()
        start = match.end()
    yield start, len(text)


def _only(languages: tuple[str, str]) -> tuple[frozenset[str], frozenset[str]]:
    """Function words of each language that are not the other's; empty where one is not known."""
    one, other = (FUNCTION_WORDS.get(code, frozenset()) for code in languages)
    return (one - other, other - one) if one and other else (frozenset(), frozenset())


def _foreign(answer: str, words: Sequence[Word], languages: tuple[str, str]) -> Iterator[tuple[int, int, bool]]:
    """Sentences with several function words of the source's language and none of the answer's; in words."""
    ours, theirs = _only(languages)
    for first, end in _sentences_of(answer, words) if ours else ():
        lows = {word.low for word in words[first:end]}
        if len(lows & ours) >= CLAUSE_WORDS and not lows & theirs:
            yield first, end, False


def _is_of(row: Sequence[Word], is_whole: bool, languages: tuple[str, str]) -> bool:
    """Whether words that come again are of the source's language, and neither a name nor typed."""
    ours, theirs = _only(languages)
    lows = [word.low for word in row]
    capitals = sum(word.is_capital for word in row)
    if row[0].text in COMMANDS or is_name_phrase(row, [word for word in row if not word.is_capital]):
        return False
    if languages[0] != "de" and 2 * capitals > len(row):
        return any(low in ours - CONNECTORS for low in lows)
    told, other = sum(low in ours for low in lows), sum(low in theirs for low in lows)
    if ours and (told or other or not is_whole):
        return told > other and (told > 1 or is_whole)
    text = " ".join(word.text for word in row)
    return detect(text, (LANGUAGES[languages[0]], LANGUAGES[languages[1]])).code == languages[0]
