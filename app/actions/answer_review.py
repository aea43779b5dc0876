"""An answer beside its source: what of it is the text that was asked for, what it changed, what it lost."""

from __future__ import annotations

from dataclasses import dataclass

from app.actions.action import Action, OutputKind
from app.language import UNKNOWN, Language, Languages, detect, other_language
from app.text.checks import CheckName, Loss, check
from app.text.payload import Payload, payload
from app.text.word_diff import WordDiff, with_edges_of, word_diff

# Less of the source than this is left in an answer that is a new text rather than a changed one.
CHANGED_SHARE = 0.15


@dataclass(frozen=True, slots=True)
class Subject:
    """What an answer is about.

    Attributes:
        source: the user's text, with plain line feeds.
        replaces: whether the answer is meant to take its place.
        languages: ISO 639-1 codes of source and answer, "" where unknown.
    """

    source: str = ""
    output: OutputKind = "text"
    replaces: bool = False
    checks: tuple[CheckName, ...] = ()
    languages: tuple[str, str] = ("", "")

    @classmethod
    def of(cls, action: Action, text: str, languages: Languages) -> Subject:
        """The subject of an action on a text."""
        source = detect(text, (languages.first, languages.second))
        target = other_language(text, languages.first, languages.second) if action.is_translation else source
        lines = text.replace("\r\n", "\n").replace("\r", "\n")
        return cls(lines, action.output, action.replaces, action.checks, (_code(source), _code(target)))


@dataclass(frozen=True, slots=True)
class Review:
    """What was found in an answer.

    Attributes:
        text: the payload; where it replaces its source, between the white space that stood around that.
        diff: from the source to `text`; None where the answer is no changed source.
    """

    payload: Payload
    text: str
    diff: WordDiff | None
    losses: tuple[Loss, ...]


def review(subject: Subject, answer: str) -> Review:
    """Looks an answer through. For 20,000 words this takes some tenths of a second."""
    found = payload(answer, subject.source)
    text = with_edges_of(subject.source, found.text) if subject.replaces else found.text
    diff = word_diff(subject.source, text) if subject.output == "changes" else None
    losses = check(subject.source, text, subject.checks, languages=subject.languages, diff=diff) if text.strip() else []
    return Review(found, text, diff, tuple(losses))


def is_new_text(source: str, diff: WordDiff) -> bool:
    """Whether so little of the source is left that its changes tell a reader nothing."""
    kept = len(source) - sum(len(change.before) for change in diff.changes)
    return kept < CHANGED_SHARE * len(source)


def _code(language: Language) -> str:
    return "" if language is UNKNOWN else language.code
