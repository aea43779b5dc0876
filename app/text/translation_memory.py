"""How earlier parts of a text came out, and which of that a later part should see, so that terms stay the same."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from app.text.parts import units

MOST_PAIRS = 2
MOST_PAIR_CHARS = 240
"""Of source and answer together: a reminder, not a second text."""

# Words that may be terms: names, abbreviations, long words, and pairs of Han or kana.
_WORD = re.compile(r"[^\W\d_]{4,}|[A-Z][A-Za-z0-9]+|[A-Z]{2,}")
_EAST_ASIAN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]+")


@dataclass(frozen=True, slots=True)
class Pair:
    """A short piece of the text and what became of it."""

    source: str
    answer: str


@dataclass(slots=True)
class Memory:
    """Pairs of all parts so far."""

    _pairs: list[Pair] = field(default_factory=list)
    _terms: list[frozenset[str]] = field(default_factory=list)
    _counts: Counter[str] = field(default_factory=Counter)

    def add(self, source: str, answer: str) -> None:
        """Takes a part and its answer; what cannot be matched line by line or sentence by sentence is left out."""
        for pair in aligned(source, answer):
            terms = frozenset(_terms(pair.source))
            self._pairs.append(pair)
            self._terms.append(terms)
            self._counts.update(terms)

    def pairs_for(self, text: str) -> tuple[Pair, ...]:
        """The pairs that share the most and the rarest terms with a text, in the order of the text before it."""
        wanted = set(_terms(text))
        best: list[int] = []
        for _ in range(MOST_PAIRS):
            scored = [
                (sum(1.0 / self._counts[term] for term in terms & wanted) / (20 + len(terms)), index)
                for index, terms in enumerate(self._terms)
                if index not in best
            ]
            score, index = max(scored, default=(0.0, -1))
            if score <= 0.0:
                break
            best.append(index)
            wanted -= self._terms[index]
        return tuple(self._pairs[index] for index in sorted(best))


def aligned(source: str, answer: str) -> list[Pair]:
    """Pieces of a text beside those of its answer, where both have as many lines, or a line as many sentences."""
    lines, answers = _lines(source), _lines(answer)
    if len(lines) != len(answers):
        lines, answers = [" ".join(lines)], [" ".join(answers)]
    found: list[Pair] = []
    for line, other in zip(lines, answers, strict=True):
        sentences, others = _sentences(line), _sentences(other)
        if len(sentences) != len(others):
            sentences, others = [line], [other]
        found += [Pair(*pair) for pair in zip(sentences, others, strict=True)]
    return [pair for pair in found if 0 < len(pair.source) + len(pair.answer) <= MOST_PAIR_CHARS and pair.answer]


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _sentences(line: str) -> list[str]:
    return [unit.text.strip() for unit in units(line)]


def _terms(text: str) -> Sequence[str]:
    found = [word.casefold() for word in _WORD.findall(text)]
    for run in _EAST_ASIAN.findall(text):
        found += [run[i : i + 2] for i in range(len(run) - 1)]
    return found
