"""To-dos as data: read out of a model's answer while it comes, and written as a checklist, JSON or a calendar file.

A model answers sentence by sentence, see app/todos/prompt.py; `TodoStream` finds the to-dos and the sentences that they
come from. What the app hands on afterwards is one object a line, which can be read without the text.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime
from hashlib import sha256
from typing import Any, Literal

from app.todos.due_dates import due_date
from app.todos.prompt import CHUNK, TODO_KEYS, sentences

TodoForm = Literal["markdown", "json", "ics"]

_FOLD_OCTETS = 75
_LITTLE_WORDS = frozenset(("the", "and", "for", "from", "with", "that", "this", "are", "about", "all", "new", "out"))
_ICS_ESCAPES = str.maketrans({"\\": "\\\\", ";": "\\;", ",": "\\,", "\n": "\\n", "\r": None})
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_MARKDOWN_MARKS = re.compile(r"([\\`*_\[\]<>])")


@dataclass(frozen=True, slots=True)
class Todo:
    """Something that somebody is to do.

    Attributes:
        owner: as the text names them, "" where it does not.
        due: until when, in the text's own words, "" where it does not say.
        source: the sentence of the text that says so; "" for an answer that names none.
    """

    task: str
    owner: str = ""
    due: str = ""
    source: str = ""


class TodoStream:
    """Finds the to-dos in an answer as each is complete, whatever else stands in it.

    An object is read at its opening brace, and what lies inside of it after it, so that lists may be wrapped and what
    is no JSON hides nothing behind it. However an answer is cut into pieces, the same is found.

    Args:
        text: the one that the answer is about, whose sentences it quotes the beginnings of.
    """

    def __init__(self, text: str = "") -> None:
        self._text = text
        self._sentences = sentences(text)
        self._next = 0
        self._answer = ""
        self._read_chars = 0
        # The last object that named a sentence, and where it ends.
        self._source = ""
        self._source_end = 0
        self._told: set[tuple[str, str, str]] = set()

    def push(self, text: str) -> list[Todo]:
        """Takes more of the answer; the to-dos that it has completed."""
        self._answer += text
        return list(self._todos())

    def _todos(self) -> Iterator[Todo]:
        while (start := self._answer.find("{", self._read_chars)) >= 0:
            found, end = _read_object(self._answer, start)
            if found is None:
                self._read_chars = start
                return
            self._read_chars = start + 1
            yield from self._todos_of(found, start, end)
        self._read_chars = len(self._answer)

    def _todos_of(self, found: Mapping[str, Any], start: int, end: int) -> Iterator[Todo]:
        if isinstance(found.get("sentence"), str):
            self._source, self._source_end = self._sentence(found["sentence"]), end
        task, owner, due = (_words(found.get(key)) for key in TODO_KEYS)
        if not task:
            return
        if start < self._source_end:
            todo = self._with_source(Todo(task, owner, due, self._source))
            todo = self._without_inventions(todo, f"{self._source}\n{todo.source}".strip() or self._text)
            # A small model may say the same more than once.
            if self._is_new(todo):
                yield todo
        else:
            todo = self._with_own_source(Todo(task, owner, due), found.get("source"))
            yield self._without_inventions(todo, self._text)

    def _without_inventions(self, todo: Todo, said: str) -> Todo:
        """Without an owner or a date that is not said where the task is.

        Asked for an owner, small models always give one: of a hundred, sixty were of another sentence, and most of
        those whoever had signed the letter.
        """
        if not self._sentences:
            return todo
        owner = todo.owner if todo.owner.casefold() not in _LITTLE_WORDS and _says(said, todo.owner) else ""
        return replace(todo, owner=owner, due=todo.due if _says(said, todo.due) else "")

    def _is_new(self, todo: Todo) -> bool:
        """False where a sentence's task comes again, as it may where the model names it under the next one too."""
        told = [(_key(todo.task), owner, todo.source) for owner in (todo.owner.casefold(), "")]
        is_new = told[0] not in self._told
        # Without an owner it would say less than what has been told.
        self._told.update(told)
        return is_new

    def _sentence(self, beginning: str) -> str:
        """The next sentence that begins so; an engine without grammars may leave some out."""
        begun = " ".join(beginning.split()).rstrip("… ")
        for index, sentence in enumerate(self._sentences[self._next :], self._next):
            if begun and " ".join(sentence.split()).startswith(begun):
                self._next = index + 1
                return sentence
        return "" if self._sentences else beginning

    def _with_source(self, todo: Todo) -> Todo:
        """A sentence close by that shares words with the task, where its own shares none: models run ahead."""
        if not todo.source:
            return self._with_own_source(todo, None)
        near = self._sentences[max(0, self._next - 2) : self._next + 2]
        return replace(
            todo, source=_most_alike(todo.task, [todo.source]) or _most_alike(todo.task, near) or todo.source
        )

    def _with_own_source(self, todo: Todo, source: object) -> Todo:
        """The sentence that a to-do names itself where the text has it, else the one that is most like it."""
        if isinstance(source, str) and (source in self._text or not self._sentences):
            return replace(todo, source=source)
        told = source if isinstance(source, str) else ""
        return replace(todo, source=_most_alike(told, self._sentences) or _most_alike(todo.task, self._sentences))


_LISTED = re.compile(r'\{\s*+"(?:[^"\\]|\\.)*+"\s*+:\s*+\[?\s*+\{', re.DOTALL)
"""An object that holds others: they are read by themselves, before it is complete."""
_DEEP = re.compile(r'(?:\{(?:[^{}"]|"(?:[^"\\]|\\.)*+")*+){20}', re.DOTALL)
"""Nested as no to-dos are: thousands of them, each read to its end, would take minutes."""
_MAY_GO_ON = re.compile(r"\s*\\?[-+.\w]{0,9}\Z")
"""A number, a literal or an escape that more text may complete."""


def _read_object(text: str, start: int) -> tuple[Mapping[str, Any] | None, int]:
    """The object that begins there, and where it ends.

    An empty one stands for what is none, or only holds others. None: that cannot be told before more of the text comes.
    """
    if _LISTED.match(text, start) or _DEEP.match(text, start):
        return {}, start
    try:
        found, end = json.JSONDecoder(strict=False).raw_decode(text, start)
    except json.JSONDecodeError as error:
        is_open = error.msg.startswith("Unterminated string") or _MAY_GO_ON.match(text, error.pos)
        return (None if is_open else {}), start
    except (ValueError, RecursionError):
        return {}, start
    return found, end


def _says(text: str, words: str) -> bool:
    """Whether a text has these words in a row."""
    whole, part = ("\0".join(["", *CHUNK.findall(" ".join(said.casefold().split())), ""]) for said in (text, words))
    return part in whole


def _most_alike(task: str, among: Sequence[str]) -> str:
    """The first of the sentences that share most words with a task; "" where none shares any."""
    words = _stems(task)
    found = max(among, key=lambda sentence: len(words & _stems(sentence)), default="")
    return found if words & _stems(found) else ""


def _stems(text: str) -> set[str]:
    """What words begin with, and pairs of characters of scripts without spaces."""
    words = re.findall(r"[^\W_]+", text.casefold())
    pairs = {word[index : index + 2] for word in words if not word.isascii() for index in range(len(word) - 1)}
    return {word[:5] for word in words if word.isascii() and len(word) > 2} - _LITTLE_WORDS | pairs


def _words(value: object) -> str:
    return " ".join(_CONTROL.sub(" ", value).split()) if isinstance(value, str) else ""


def parse_todos(answer: str, text: str = "") -> list[Todo]:
    """The to-dos of an answer, or of what `to_lines` or `to_json` wrote; what is no to-do is passed over.

    Args:
        text: see TodoStream.
    """
    return TodoStream(text).push(answer)


def merge(lists: Iterable[Sequence[Todo]]) -> list[Todo]:
    """One list out of those of a text's parts, without those that say nothing that an earlier one does not say.

    More to-dos at the end only add to the end of the list.
    """
    found: list[Todo] = []
    said: dict[str, list[Todo]] = {}
    for todo in (todo for todos in lists for todo in todos):
        earlier = said.setdefault(_key(todo.task), [])
        if not any(todo.owner in ("", one.owner) and todo.due in ("", one.due) for one in earlier):
            earlier.append(todo)
            found.append(todo)
    return found


def _key(task: str) -> str:
    """Tasks that differ in case, marks or spaces alone are the same."""
    return " ".join(re.findall(r"\w+", unicodedata.normalize("NFKC", task).casefold())) or task


def to_lines(todos: Iterable[Todo]) -> str:
    """One JSON object a line, each line ended: lines can be joined and read while more come."""
    return "".join(json.dumps(asdict(todo), ensure_ascii=False) + "\n" for todo in todos)


def to_markdown(todos: Iterable[Todo], chinese: bool = False) -> str:
    """A checklist, with owner and due date in brackets.

    Args:
        chinese: brackets and commas as Chinese texts have them.
    """
    opening, comma, closing = ("（", "，", "）") if chinese else (" (", ", ", ")")
    lines = []
    for todo in todos:
        details = comma.join(_MARKDOWN_MARKS.sub(r"\\\1", detail) for detail in (todo.owner, todo.due) if detail)
        task = _MARKDOWN_MARKS.sub(r"\\\1", todo.task)
        lines.append(f"- [ ] {task}{opening}{details}{closing}\n" if details else f"- [ ] {task}\n")
    return "".join(lines)


def to_json(todos: Iterable[Todo], today: date | None = None) -> str:
    """An array of objects; `due_date` is the day as ISO 8601 writes it, null where the words do not tell it.

    Args:
        today: what words like "tomorrow" count from; None is the day that it is.
    """
    objects = []
    for todo in todos:
        day = due_date(todo.due, today or date.today())
        objects.append({**asdict(todo), "due_date": None if day is None else day.isoformat()})
    return json.dumps(objects, ensure_ascii=False, indent=2) + "\n"


def to_ics(todos: Iterable[Todo], today: date | None = None, now: datetime | None = None) -> str:
    """A calendar of VTODOs (RFC 5545). The same to-do keeps its UID, so that taking it in twice makes no double.

    Args:
        today: what words like "tomorrow" count from; None is the day that it is.
        now: when the file was made, with its time zone.
    """
    stamp = (now or datetime.now(UTC)).astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//DeskInfer//To-dos//EN"]
    for todo in todos:
        uid = sha256("\0".join((todo.task, todo.owner, todo.due, todo.source)).encode("utf-8", "replace")).hexdigest()
        day = due_date(todo.due, today or date.today())
        lines += ["BEGIN:VTODO", f"UID:{uid[:32]}@deskinfer", f"DTSTAMP:{stamp}", _property("SUMMARY", _summary(todo))]
        if todo.source:
            lines.append(_property("DESCRIPTION", todo.source))
        if day is not None:
            lines.append(f"DUE;VALUE=DATE:{day:%Y%m%d}")
        lines += ["STATUS:NEEDS-ACTION", "END:VTODO"]
    lines.append("END:VCALENDAR")
    return "".join(f"{folded}\r\n" for line in lines for folded in _folded(line))


def _summary(todo: Todo) -> str:
    """Calendars show little more than this, so owner and due date stand in it as the text has them."""
    details = ", ".join(detail for detail in (todo.owner, todo.due) if detail)
    return f"{todo.task} ({details})" if details else todo.task


def _property(name: str, text: str) -> str:
    return f"{name}:{_CONTROL.sub(' ', text).translate(_ICS_ESCAPES)}"


def _folded(line: str) -> Iterator[str]:
    """The line in pieces of at most 75 octets that begin with a space, characters whole."""
    piece = ""
    size = 0
    for char in line:
        width = len(char.encode("utf-8", "replace"))
        if size + width > _FOLD_OCTETS:
            yield piece
            piece, size = " ", 1
        piece += char
        size += width
    yield piece
