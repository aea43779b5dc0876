"""What an answer lost, changed, invented or left untranslated.

The checks know no meaning. They flag rather than miss, and what they cannot compare they leave alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import regex

from app.text.pairing import Changes, Pairs, Row, split_up
from app.text.quantities import Quantity, Span, quantities
from app.text.text_index import TextIndex
from app.text.untranslated import untranslated
from app.text.word_diff import WordDiff

CheckName = Literal["numbers", "names", "urls", "placeholders", "code", "line_breaks", "invented", "untranslated"]
CHECK_NAMES: tuple[CheckName, ...] = get_args(CheckName)
# For an answer that takes the place of its source, for one in another language, and for one that only tells about it.
REWRITE_CHECKS: tuple[CheckName, ...] = ("numbers", "names", "urls", "placeholders", "code", "line_breaks")
TRANSLATION_CHECKS: tuple[CheckName, ...] = ("numbers", "urls", "placeholders", "code", "untranslated")
SUMMARY_CHECKS: tuple[CheckName, ...] = ("invented",)

# Languages in which number words, months and weekdays are known.
_WORD_LANGUAGES = ("en", "zh")
_TOP_DOMAINS = "com|org|net|edu|gov|io|dev|app|ai|cn|de|fr|uk|eu|jp|info"
_EMAIL = regex.compile(r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]++@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+")
_URL = regex.compile(
    r"(?:[a-z][a-z0-9+.-]{0,20}://|www\.|mailto:)[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]+"
    rf"|(?<![A-Za-z0-9@._/-])(?:[a-z0-9-]+\.)+(?:{_TOP_DOMAINS})(?![A-Za-z0-9-])(?:/[A-Za-z0-9\-._~:/?#@!$&'*+,;=%]*)?",
    regex.IGNORECASE,
)
_PLACEHOLDER = regex.compile(
    r"\{\{[^{}\n]{1,60}\}\}|\$\{[^{}\n]{1,60}\}|\{[\w.:!-]{0,40}\}"
    r"|(?<![\d%])%(?:\(\w+\))?(?:\d+\$)?[-+#0]*\d*(?:\.\d+)?[sdifgxXr@](?![A-Za-z])"
    r"|</?[A-Za-z][\w:-]*(?:\s[^<>\n]*)?/?>"
)
# What a letter's writer is meant to fill in: [Your Name], 【姓名】. No link, index or tick box of Markdown.
_BLANK = regex.compile(r"(?<![A-Za-z0-9_!])\[\p{L}[^\[\]\n]{1,40}\](?![(\[:])|[【［][^【】［］\n]{1,40}[】］]")
_CODE = regex.compile(r"```[^\n`]*\n(.*?)\n?[ \t]*```|(?<!`)`([^`\n]+)`(?!`)", regex.DOTALL)
_NAME = regex.compile(r"\b\p{Lu}[\p{L}\p{M}]*[\p{Ll}\p{Lu}](?:[-'’]\p{L}+)*\b")
_SENTENCE_END = regex.compile(r"(?:^|[.!?:;…。！？：；\n“”\"„«(\[（「•*>#|–—]|\s[-'‘])\s*[\"“„«(\[（「*_']*$")
# So far back from a name its sentence's beginning is looked for: a whole text may be one line.
_NEAR_CHARS = 80
_LATIN_WORD = regex.compile(r"\p{Latin}+")
_HAN = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}]")


@dataclass(frozen=True, slots=True)
class Loss:
    """One thing that an answer does not hold as its source does.

    Attributes:
        text: what the source says, "" for what only the answer says.
        near: what the answer says in its place, "" where it says nothing.
        source_span, answer_span: where, in characters; None where there is no place.
    """

    kind: CheckName
    text: str
    near: str = ""
    source_span: Span | None = None
    answer_span: Span | None = None


@dataclass(frozen=True, slots=True)
class _Item:
    """A piece of a text that has to be in the other text too."""

    span: Span
    text: str


def check(
    source: str,
    answer: str,
    checks: Sequence[CheckName] = REWRITE_CHECKS,
    *,
    languages: tuple[str, str] = ("", ""),
    diff: WordDiff | None = None,
) -> list[Loss]:
    """Compares an answer with its source; in the order of the source, what is invented last.

    Args:
        languages: ISO 639-1 codes of source and answer, "" where unknown.
        diff: from source to answer where they are in one language: it tells what took the place of what.
    """
    changes = Changes(diff)
    known = (languages[0] or _guess(source), languages[1] or _guess(answer))
    hidden = _without(source, answer)
    losses: list[Loss] = []
    if "numbers" in checks or "invented" in checks:
        losses += _numbers(hidden, (source, answer), known, diff, changes, "numbers" not in checks)
    if "urls" in checks or "invented" in checks:
        losses += _exact("urls", _addresses(source), _addresses(answer), changes, "urls" not in checks)
    if "placeholders" in checks:
        losses += _exact("placeholders", _found(_PLACEHOLDER, source), _found(_PLACEHOLDER, answer), changes)
        losses += _new_blanks(_found(_BLANK, source), _found(_BLANK, answer))
    if "code" in checks:
        losses += _code(source, answer)
    if "names" in checks:
        losses += _names(hidden, known[0], changes)
    if "line_breaks" in checks:
        losses += _line_breaks(source, answer)
    if "untranslated" in checks:
        losses += _untranslated(hidden, (source, answer), languages)
    end = len(source)
    return sorted(losses, key=lambda loss: loss.source_span or (end, *(loss.answer_span or (end,))[:1]))


def _guess(text: str) -> str:
    return "zh" if _HAN.search(text) else ""


def _without(source: str, answer: str) -> tuple[str, str]:
    """Both texts, addresses, placeholders and code blanked out in their places: they have checks of their own."""

    def blanked(text: str) -> str:
        for pattern in (_CODE, _EMAIL, _URL, _PLACEHOLDER):
            text = pattern.sub(lambda match: "\ufffc" * len(match[0]), text)
        return text

    return blanked(source), blanked(answer)


def _untranslated(hidden: tuple[str, str], texts: tuple[str, str], languages: tuple[str, str]) -> Iterator[Loss]:
    for left in untranslated(*hidden, languages):
        text = texts[0][slice(*left.source_span)] if left.source_span else ""
        yield Loss("untranslated", text, texts[1][slice(*left.answer_span)], left.source_span, left.answer_span)


# --- numbers --------------------------------------------------------------------------------------------------------


def _numbers(
    hidden: tuple[str, str],
    texts: tuple[str, str],
    languages: tuple[str, str],
    diff: WordDiff | None,
    changes: Changes,
    only_invented: bool,
) -> Iterator[Loss]:
    before = quantities(hidden[0], languages[0])
    after = quantities(hidden[1], languages[1])
    known = {key for quantity in after for key in quantity.keys}
    given = {key for quantity in before for key in quantity.keys}
    # Words are compared only where both languages' words are known.
    has_words = all(not code or code in _WORD_LANGUAGES for code in languages)
    lost = [q for q in before if not q.keys & known and q.must_stay and (has_words or not q.is_word)]
    new = [q for q in after if not q.keys & given and q.must_stay]
    if only_invented:
        # A single digit is a count of what is told about more often than a number out of it.
        yield from (Loss("invented", "", q.text, None, q.span) for q in new if not q.is_word and not _is_small(q))
        return
    split, new = split_up(lost, new)
    pairs_of = Pairs(lost, new, changes, _classes)
    pairs = {quantity: pairs_of.next(quantity) for quantity in lost}
    # A number for another one that the text has elsewhere as well: "page 2" for "page 4".
    for quantity, other in _changed_in_place(before, after, diff):
        pairs[quantity] = pairs.get(quantity) or other
    for quantity, found in pairs.items():
        near = split.get(quantity.span) or (found.span if found else None)
        place = near or changes.place(quantity.span)
        yield Loss("numbers", quantity.text, texts[1][slice(*near)] if near else "", quantity.span, place)
    taken = {other.span for other in pairs.values() if other}
    for quantity in new:
        if quantity.span not in taken and not quantity.is_word:
            yield Loss("numbers", "", quantity.text, None, quantity.span)


def _classes(quantity: Quantity) -> list[str]:
    """What stands in the place of a quantity: one of its kind, else a number for a number."""
    return [quantity.kind, *([] if quantity.is_word else ["any"])]


def _changed_in_place(
    before: Sequence[Quantity], after: Sequence[Quantity], diff: WordDiff | None
) -> Iterator[tuple[Quantity, Quantity]]:
    """Numbers in a change, and those that the answer has there, where it has as many and not the same."""
    numbers, others = (Row(q for q in each if not q.is_word) for each in (before, after))
    for change in diff.changes if diff else ():
        old, new = numbers.over(change.source_span), others.over(change.answer_span)
        if len(old) == len(new) and Counter(q.text for q in old) != Counter(q.text for q in new):
            yield from ((one, other) for one, other in zip(old, new, strict=True) if not one.keys & other.keys)


def _is_small(quantity: Quantity) -> bool:
    return len(quantity.text) == 1


# --- pieces that must be there letter by letter ---------------------------------------------------------------------


def _found(pattern: regex.Pattern[str], text: str) -> list[_Item]:
    return [_Item(match.span(), match[0]) for match in pattern.finditer(text)]


def _addresses(text: str) -> list[_Item]:
    """URLs and e-mail addresses, without the punctuation of the sentence around them."""
    items, found = _found(_EMAIL, text), list[_Item]()
    mails = Row(items)
    inside = set[int]()
    for match in _URL.finditer(text):
        url, around = _without_sentence(match[0]), mails.numbers(match.span())
        if url and not (around and "://" not in url):
            inside.update(around)
            found.append(_Item((match.start(), match.start() + len(url)), url))
    found += (item for number, item in enumerate(items) if number not in inside)
    return sorted(found, key=lambda item: item.span)


def _without_sentence(url: str) -> str:
    """An address without the punctuation behind it; a parenthesis that was opened in it is closed in it."""
    bare = str(regex.sub(r"[.,;:!?'*_)\]]+$", "", url))
    return bare + ")" if url.startswith(bare + ")") and bare.count("(") > bare.count(")") else bare


def _exact(
    kind: CheckName,
    before: Sequence[_Item],
    after: Sequence[_Item],
    changes: Changes,
    only_invented: bool = False,
) -> Iterator[Loss]:
    """What is in one list more often than in the other; for what is told about, only what is in no place of it."""
    lost = _surplus(before, after)
    known = {item.text for item in before}
    new = [item for item in after if item.text not in known] if only_invented else _surplus(after, before)
    taken = set[Span]()
    if not only_invented:
        # Without a diff one is known to stand for another only where there are as many.
        pairs = Pairs(lost, new if changes.exist or len(new) == len(lost) else [], changes, lambda _: [kind])
        for item in lost:
            other = pairs.next(item)
            place = other.span if other else changes.place(item.span)
            yield Loss(kind, item.text, other.text if other else "", item.span, place)
        taken = pairs.taken
    for item in new:
        if item.span not in taken:
            yield Loss("invented" if only_invented else kind, "", item.text, None, item.span)


def _new_blanks(before: Sequence[_Item], after: Sequence[_Item]) -> Iterator[Loss]:
    """Blanks to fill in that the source does not have; those that it has may be in other words, as in translations."""
    new = _surplus(after, before)
    reworded = len(_surplus(before, after))
    for item in new[reworded:]:
        yield Loss("placeholders", "", item.text, None, item.span)


def _surplus(items: Sequence[_Item], others: Sequence[_Item]) -> list[_Item]:
    left = Counter(item.text for item in others)
    found = []
    for item in items:
        left[item.text] -= 1
        if left[item.text] < 0:
            found.append(item)
    return found


def _code(source: str, answer: str) -> Iterator[Loss]:
    """Code that the answer does not hold to the letter, whether marked as code or not."""
    plain = TextIndex("\n".join(line.rstrip() for line in answer.split("\n")))
    for match in _CODE.finditer(source):
        code = match[1] if match[1] is not None else match[2]
        lines = [line.rstrip() for line in code.split("\n")]
        if "\n".join(lines) not in plain:
            missing = next((line for line in lines if line.strip() not in plain), lines[0])
            yield Loss("code", missing.strip(), "", match.span(), None)


# --- names ----------------------------------------------------------------------------------------------------------


def _names(hidden: tuple[str, str], language: str, changes: Changes) -> Iterator[Loss]:
    """Words with a capital inside sentences, and words in Latin letters inside Chinese text."""
    source, answer = hidden
    if language == "de":  # every noun has a capital
        return
    words = {word.lower() for word in regex.findall(r"[\p{L}\p{M}]+", answer) + _LATIN_WORD.findall(answer)}
    told: set[str] = set()
    others, plain = Row(_names_of(answer)), source.lower()
    for item in _names_of(source):
        parts = [part.lower() for part in regex.findall(r"[\p{L}\p{M}]{2,}", item.text)]
        if not parts or item.text in told or all(_is_in(part, words) for part in parts):
            continue
        told.add(item.text)
        place = changes.place(item.span)
        near = next((n.text for n in others.over(place)), "") if place else ""
        yield Loss("names", item.text, near if near.lower() not in plain else "", item.span, place)


def _is_in(part: str, words: set[str]) -> bool:
    return part in words or part.rstrip("s") in words or part + "s" in words


def _names_of(text: str) -> list[_Item]:
    found = []
    is_chinese = bool(_HAN.search(text))
    if is_chinese:
        found += [_Item(m.span(), m[0]) for m in _LATIN_WORD.finditer(text) if len(m[0]) > 1]
        return found
    start = 0
    for line in text.split("\n"):
        if not _is_title(line):
            for match in _NAME.finditer(line):
                if not _SENTENCE_END.search(
                    line, max(0, match.start() - _NEAR_CHARS), match.start()
                ) and not _is_calendar(match[0]):
                    found.append(_Item((start + match.start(), start + match.end()), match[0]))
        start += len(line) + 1
    return found


def _is_title(line: str) -> bool:
    """Whether most words of a line that is no sentence have a capital: a heading; then capitals tell nothing."""
    words = regex.findall(r"\p{L}{2,}", line)
    is_sentence = line.rstrip()[-1:] in (".", "!", "?", ",", ";", ":")
    return len(words) > 2 and not is_sentence and 2 * sum(word[0].isupper() for word in words) > len(words)


def _is_calendar(word: str) -> bool:
    """Months and weekdays are checked with the numbers."""
    return any(quantity.is_word for quantity in quantities(word)) or word in ("May", "March", "AM", "PM")


# --- line breaks ----------------------------------------------------------------------------------------------------


def _line_breaks(source: str, answer: str) -> Iterator[Loss]:
    """Paragraphs, and lines where they were not just wrapped."""
    before, after = _paragraphs(source), _paragraphs(answer)
    if len(before) != len(after):
        yield Loss("line_breaks", str(len(before)), str(len(after)))
    elif not any(map(_is_wrapped, before)):
        lines = [sum(map(len, (p.split("\n") for p in text))) for text in (before, after)]
        if lines[0] != lines[1]:
            yield Loss("line_breaks", str(lines[0]), str(lines[1]))


def _paragraphs(text: str) -> list[str]:
    return [part for part in regex.split(r"\n[ \t\r]*\n\s*", text.strip()) if part.strip()]


def _is_wrapped(paragraph: str) -> bool:
    """Whether a program broke the lines: all but the last are about as long as the longest."""
    lines = [line.rstrip() for line in paragraph.split("\n")]
    longest = max(map(len, lines))
    return len(lines) > 1 and longest > 45 and all(len(line) > 0.7 * longest for line in lines[:-1])
