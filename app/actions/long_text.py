"""What is done with a text that is too long for one request: its steps, and how their answers become one.

Three plans: `PartByPart` for translations and rewritten texts, each part with examples of how earlier ones came out;
`MapReduce` for summaries, and summaries of summaries where there are many; `Merge` for lists, without doubles. A plan
is told what its steps have answered and says what is open, so it can go on after an error where it stopped.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from app.text.parts import Border, Part, Unit, cut, units
from app.text.translation_memory import Memory, Pair
from app.todos.todo import Todo, TodoStream, merge, parse_todos, to_lines

PlanKind = Literal["part_by_part", "map_reduce", "merge"]
PLAN_KINDS: tuple[PlanKind, ...] = ("part_by_part", "map_reduce", "merge")
PART_TOKENS: dict[PlanKind, int] = {"part_by_part": 600, "map_reduce": 1200, "merge": 800}
"""Parts that small models do well with: longer ones lose more than they save."""

LEAST_PART_TOKENS = 32
"""A part below that says too little to be worth a request."""


_MEMORY_TOKENS = 300
_SLACK_TOKENS = 32
_USUAL_ROOM: dict[PlanKind, int] = {"part_by_part": 600, "map_reduce": 400, "merge": 600}


@dataclass(frozen=True, slots=True)
class Budget:
    """How long parts may be, and their answers.

    Attributes:
        part_tokens: most of a part, or of answers that are put together.
        answer_tokens: most of an answer to a part.
        remembers: whether there is room for examples of earlier parts.
    """

    part_tokens: int
    answer_tokens: int
    remembers: bool = False


def answer_room(kind: PlanKind, text_tokens: int, growth: float, most: int | None) -> int:
    """Tokens that the answer to a text may take.

    Args:
        growth: tokens of an answer for each of a text, 0 where it does not grow with the text.
        most: the action's own limit.
    """
    if growth:
        wanted = math.ceil(growth * text_tokens) + _SLACK_TOKENS
        return wanted if most is None else min(wanted, most)
    return _USUAL_ROOM[kind] if most is None else most


def part_budget(kind: PlanKind, free_tokens: int, growth: float, most: int | None, wanted: int) -> Budget | None:
    """Divides the context that the prompt leaves between part and answer; None where it is too small for both.

    Args:
        wanted: length of a part that models do well with.
    """
    remembers = kind == "part_by_part" and free_tokens >= 4 * _MEMORY_TOKENS
    if growth:
        free_tokens -= _MEMORY_TOKENS if remembers else 0
        room = free_tokens if most is None else min(free_tokens, most)
        part = min(wanted, int((free_tokens - _SLACK_TOKENS) / (1 + growth)), int((room - _SLACK_TOKENS) / growth))
        answer = answer_room(kind, part, growth, most)
    else:
        answer = min(answer_room(kind, 0, growth, most), free_tokens // 3)
        part = min(wanted, free_tokens - answer)
    return Budget(part, answer, remembers) if part >= LEAST_PART_TOKENS else None


@dataclass(frozen=True, slots=True)
class Step:
    """One request of a plan.

    Attributes:
        level: 0 for parts of the text, above that for answers that are put together.
        index: of the part or group in its level, from 0.
        of: how many there are in the level.
        memory: how earlier parts came out.
    """

    level: int
    index: int
    of: int
    text: str
    tokens: int
    memory: tuple[Pair, ...] = ()

    @property
    def key(self) -> tuple[int, int]:
        """Names the step within its plan."""
        return self.level, self.index


class Plan(ABC):
    """Steps over the parts of a text.

    Attributes:
        parts: of the text, in order.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = list(parts)
        self._answers: list[str | None] = _unanswered(parts)
        self._is_cut = [False] * len(parts)

    @property
    @abstractmethod
    def is_done(self) -> bool:
        """All has been answered."""

    @abstractmethod
    def steps(self) -> list[Step]:
        """What can be asked now, in order: what is under way as well."""

    @abstractmethod
    def shown(self, partial: Mapping[tuple[int, int], str]) -> str:
        """What can be shown of the answer; grows at its end only.

        Args:
            partial: what steps under way have answered so far.
        """

    def finish(self, step: Step, answer: str, tokens: int, is_cut: bool = False) -> None:
        """Takes the answer of a step, which has that many tokens and may have ended at the length limit."""
        self._answers[step.index], self._is_cut[step.index] = answer, is_cut

    @property
    def done_parts(self) -> int:
        """How many parts are answered."""
        return sum(answer is not None for answer in self._answers)

    @property
    def answer_parts(self) -> int:
        """How many parts the answer so far is of: those before the first that is missing."""
        return next((index for index, answer in enumerate(self._answers) if answer is None), len(self._answers))

    @property
    def cut_parts(self) -> tuple[int, ...]:
        """Numbers, from 1, of the parts whose answers ended at the length limit."""
        return tuple(index + 1 for index, is_cut in enumerate(self._is_cut) if is_cut)

    @property
    def is_cut(self) -> bool:
        """Whether something that the answer is made of ended at the length limit."""
        return any(self._is_cut)

    @property
    def share(self) -> float:
        """How much is done, 0 to 1."""
        tokens = sum(part.tokens for part in self.parts)
        pairs = zip(self.parts, self._answers, strict=True)
        return sum(part.tokens for part, answer in pairs if answer is not None) / max(1, tokens)

    def split(self, step: Step) -> bool:
        """Makes two parts of one that did not fit after all; False where it is too small for that."""
        part = self.parts[step.index] if step.level == 0 else None
        if part is None or part.tokens < 2 * LEAST_PART_TOKENS:
            return False
        pieces = units(part.text)
        share = part.tokens / max(1, sum(len(piece.text) for piece in pieces))
        halves = cut(pieces, [math.ceil(share * len(piece.text)) for piece in pieces], part.tokens // 2 + 1)
        self.parts[step.index : step.index + 1] = halves
        self._answers[step.index : step.index + 1] = _unanswered(halves)
        self._is_cut[step.index : step.index + 1] = [False] * len(halves)
        return len(halves) > 1

    def _open(self) -> list[Step]:
        """Parts without an answer."""
        of = len(self.parts)
        return [
            Step(0, index, of, part.text, part.tokens)
            for index, (part, answer) in enumerate(zip(self.parts, self._answers, strict=True))
            if answer is None
        ]


def _unanswered(parts: Sequence[Part]) -> list[str | None]:
    """White space is nothing to ask about: a model would invent something."""
    return [None if part.text.strip() else "" for part in parts]


class PartByPart(Plan):
    """The answers one behind the other, with the line breaks that stand between the parts.

    Args:
        spaced: whether the language of the answer puts spaces between sentences.
    """

    def __init__(self, parts: Sequence[Part], spaced: bool = True) -> None:
        super().__init__(parts)
        self._spaced = spaced
        self._memory = Memory()
        self._finished = ""

    @property
    def is_done(self) -> bool:
        return None not in self._answers

    def steps(self) -> list[Step]:
        """One at a time: each part is to know the terms of those before it."""
        step = next(iter(self._open()), None)
        if step is None:
            return []
        return [Step(0, step.index, step.of, step.text, step.tokens, self._memory.pairs_for(step.text))]

    def finish(self, step: Step, answer: str, tokens: int, is_cut: bool = False) -> None:
        super().finish(step, answer, tokens, is_cut)
        self._memory.add(step.text, answer)
        self._finished += _trimmed(answer) + ("" if self.is_done else self._break_behind(step.text))

    def shown(self, partial: Mapping[tuple[int, int], str]) -> str:
        return self._finished + _trimmed(partial.get((0, self.answer_parts), ""))

    def _break_behind(self, text: str) -> str:
        end = text[len(text.rstrip()) :]
        if "\n" in end or "\r" in end:
            return "\n" * min(2, len(end.splitlines()))
        return " " if self._spaced else ""


class MapReduce(Plan):
    """The answers of the parts are put together by the action itself; in several levels where they are many.

    Args:
        limit: tokens of answers that one request can put together.
    """

    def __init__(self, parts: Sequence[Part], limit: int) -> None:
        super().__init__(parts)
        self._limit = limit
        self._tokens = [0] * len(parts)
        self._level = 0
        self._groups: list[Part] = []
        self._group_answers: list[str | None] = []
        self._group_tokens: list[int] = []
        self._has_cut_groups = False

    @property
    def is_cut(self) -> bool:
        return super().is_cut or self._has_cut_groups

    @property
    def is_done(self) -> bool:
        answers = self._group_answers if self._level else self._answers
        return len(answers) == 1 and answers[0] is not None

    @property
    def answer_parts(self) -> int:
        """None before the last step has ended: what it has written until then may be of any of them."""
        return len(self.parts) if self.is_done else 0

    def steps(self) -> list[Step]:
        if self._level == 0:
            return self._open()
        return [
            Step(self._level, index, len(self._groups), group.text, group.tokens)
            for index, group in enumerate(self._groups)
            if self._group_answers[index] is None
        ]

    def finish(self, step: Step, answer: str, tokens: int, is_cut: bool = False) -> None:
        if step.level == 0:
            super().finish(step, answer, tokens, is_cut)
            self._tokens[step.index] = tokens
            answers, counts = self._answers, self._tokens
        else:
            self._group_answers[step.index], self._group_tokens[step.index] = answer, tokens
            self._has_cut_groups |= is_cut
            answers, counts = self._group_answers, self._group_tokens
        if len(answers) > 1 and None not in answers:
            self._next_level([answer or "" for answer in answers], counts)

    def split(self, step: Step) -> bool:
        done = super().split(step)
        self._tokens += [0] * (len(self.parts) - len(self._tokens))
        return done

    def shown(self, partial: Mapping[tuple[int, int], str]) -> str:
        """The last step's answer: all before it are means to an end."""
        answers = self._group_answers if self._level else self._answers
        if len(answers) > 1:
            return ""
        return (answers[0] or partial.get((self._level, 0), "")).strip()

    def _next_level(self, answers: Sequence[str], counts: Sequence[int]) -> None:
        said = [pair for pair in zip(answers, counts, strict=True) if pair[0].strip()] or [("", 0)]
        texts, counts = [Unit(answer.strip() + "\n", Border.PARAGRAPH) for answer, _ in said], [n for _, n in said]
        # Two fit in any case, or the levels would never end: answers are bounded, see Budget.
        limit = max(self._limit, 2 * max(counts) + 2)
        self._groups = cut(texts, [count + 1 for count in counts], limit)
        self._level += 1
        self._group_answers = [None] * len(self._groups)
        self._group_tokens = [0] * len(self._groups)


class Merge(Plan):
    """One list out of the lists of the parts: a line that has been there is left out."""

    @property
    def is_done(self) -> bool:
        return None not in self._answers

    def steps(self) -> list[Step]:
        return self._open()

    def shown(self, partial: Mapping[tuple[int, int], str]) -> str:
        """Whole lines of the parts in order, up to the first that is missing."""
        ready: list[str] = []
        for index, answer in enumerate(self._answers):
            if answer is None:
                lines = partial.get((0, index), "")
                ready.append(lines[: lines.rfind("\n") + 1])
                break
            ready.append(answer)
        return merged_lines(ready, is_complete=self.is_done)


def _trimmed(answer: str) -> str:
    return answer.lstrip("\r\n").rstrip()


class MergeTodos(Merge):
    """The same of to-dos, as `app.todos.todo` hands them on: each with the sentence that it comes from."""

    def __init__(self, parts: Sequence[Part]) -> None:
        super().__init__(parts)
        self._todos: list[list[Todo]] = []
        # The answer that grows, how far it has been read, and what that and all before it came to.
        self._part: Part | None = None
        self._stream = TodoStream()
        self._under_way: list[Todo] = []
        self._read_chars = 0
        self._lines = ""

    def shown(self, partial: Mapping[tuple[int, int], str]) -> str:
        for index in range(len(self._todos), len(self.parts)):
            answer = self._answers[index]
            if answer is None:
                return self._shown_with(self.parts[index], partial.get((0, index), ""))
            self._todos.append(parse_todos(answer, self.parts[index].text))
        return to_lines(merge(self._todos))

    def _shown_with(self, part: Part, answer: str) -> str:
        """Reads only what is new of an answer: this is called for every token of it."""
        is_new = part is not self._part or len(answer) < self._read_chars
        if is_new:
            self._part, self._stream, self._under_way, self._read_chars = part, TodoStream(part.text), [], 0
        found = self._stream.push(answer[self._read_chars :])
        self._read_chars = len(answer)
        self._under_way += found
        if is_new or found:
            self._lines = to_lines(merge([*self._todos, self._under_way]))
        return self._lines


_LIST_LINE = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s+")
_CHECKBOX = re.compile(r"^\[[ xX]\]\s*")


def merged_lines(answers: Sequence[str], is_complete: bool = True) -> str:
    """The list lines of several answers, each once; what differs in case, marks or spaces alone is a double.

    An answer without a list says that there was nothing to list: it is left out, unless no answer has one.
    """
    seen: set[str] = set()
    lines: list[str] = []
    for answer in answers:
        for line in answer.splitlines():
            mark = _LIST_LINE.match(line)
            key = _line_key(line[mark.end() :]) if mark else ""
            if key and key not in seen:
                seen.add(key)
                lines.append(line.rstrip())
    if lines or not is_complete:
        return "\n".join(lines)
    return next((answer.strip() for answer in answers if answer.strip()), "")


def _line_key(text: str) -> str:
    return " ".join(re.findall(r"\w+", _CHECKBOX.sub("", text).casefold()))
