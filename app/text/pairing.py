"""What an answer says in the place of what it lost, in a time that is linear in how much that is."""

from __future__ import annotations

import bisect
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from decimal import Decimal
from typing import Generic, Protocol, TypeVar

import regex

from app.text.quantities import Quantity, Span
from app.text.word_diff import WordDiff

# The pieces of a date that is written in another way stand no further apart.
SPLIT_CHARS = 24


class Placed(Protocol):
    """A piece of a text."""

    @property
    def span(self) -> Span:
        """Where it is."""
        ...


_Piece = TypeVar("_Piece", bound=Placed)


class Spans:
    """Places in a text that do not overlap, in their order."""

    def __init__(self, spans: Iterable[Span]) -> None:
        places = list(spans)
        self._starts = [start for start, _ in places]
        self._ends = [end for _, end in places]

    def numbers(self, span: Span) -> range:
        """Which of them overlap a span."""
        first = bisect.bisect_right(self._ends, span[0])
        return range(first, max(first, bisect.bisect_left(self._starts, span[1])))


class Row(Spans, Generic[_Piece]):
    """Pieces of a text that do not overlap, in their order."""

    def __init__(self, pieces: Iterable[_Piece]) -> None:
        self._pieces = list(pieces)
        super().__init__(piece.span for piece in self._pieces)

    def over(self, span: Span) -> list[_Piece]:
        """Those that overlap a span."""
        return [self._pieces[number] for number in self.numbers(span)]


class Changes:
    """The changes of a diff by their places.

    Attributes:
        exist: there is a diff.
    """

    def __init__(self, diff: WordDiff | None) -> None:
        changes = diff.changes if diff else ()
        self.exist = diff is not None
        self._places = [change.answer_span for change in changes]
        self._by_source = Spans(change.source_span for change in changes)
        self._by_answer = Spans(self._places)

    def place(self, source_span: Span) -> Span | None:
        """Where the answer has what took the place of a piece of the source."""
        return next((self._places[number] for number in self.of_source(source_span)), None)

    def of_source(self, span: Span) -> range:
        """Which changes a piece of the source is in."""
        return self._by_source.numbers(span)

    def of_answer(self, span: Span) -> range:
        """Which changes a piece of the answer is in."""
        return self._by_answer.numbers(span)


class Pairs(Generic[_Piece]):
    """Takes, for one lost piece after the other, the first new one that may stand in its place.

    Args:
        lost, new: in their orders.
        classes: what a piece may be paired by, the best first.

    Attributes:
        taken: places of the new ones that were.
    """

    def __init__(
        self,
        lost: Sequence[_Piece],
        new: Sequence[_Piece],
        changes: Changes,
        classes: Callable[[_Piece], Sequence[Hashable]],
    ) -> None:
        self._changes, self._classes = changes, classes
        self.taken: set[Span] = set()
        self._waiting: defaultdict[Hashable, deque[_Piece]] = defaultdict(deque)
        for piece in new:
            for key in self._keys(piece, changes.of_answer(piece.span)):
                self._waiting[key].append(piece)
        self._left = Counter(self._keys(piece)[0] for piece in lost) if not changes.exist else Counter()

    def next(self, lost: _Piece) -> _Piece | None:
        """The new piece in the same change; without a diff the one of the same class, where there are as many left."""
        if self._changes.exist:
            keys = self._keys(lost, self._changes.of_source(lost.span))
        else:
            keys = self._keys(lost)[:1]
            self._left[keys[0]] -= 1
            if len(self._waiting[keys[0]]) != self._left[keys[0]] + 1:
                return None
        for key in keys:
            waiting = self._waiting.get(key, deque())
            while waiting:
                piece = waiting.popleft()
                if piece.span not in self.taken:
                    self.taken.add(piece.span)
                    return piece
        return None

    def _keys(self, piece: _Piece, changes: Iterable[int] = ()) -> list[Hashable]:
        """Its queues, the best first: classes, within the changes that it is in where there is a diff."""
        classes = self._classes(piece)
        if not self._changes.exist:
            return list(classes[:1])
        return [(kind, change) for kind in classes for change in changes]


def split_up(lost: Sequence[Quantity], new: Sequence[Quantity]) -> tuple[dict[Span, Span], list[Quantity]]:
    """Dates and fractions that the answer has in pieces: 31/12/2026 as "31 December 2026".

    Returns:
        Where the pieces of a lost quantity are, and the new ones that are no such pieces.
    """
    by_value: defaultdict[Hashable, deque[Quantity]] = defaultdict(deque)
    for quantity in (each for each in new if each.kind in ("number", "month")):
        for value in {value for _, value in quantity.keys}:
            by_value[value].append(quantity)
    used: set[Span] = set()
    places: dict[Span, Span] = {}
    for quantity in lost:
        values = {Decimal(part) for part in regex.findall(r"\d+", quantity.text)}
        if quantity.kind != "code" or len(values) < 2:
            continue
        rows = [row for value in values if (row := by_value.get(value))]
        for row in rows:
            while row and row[0].span in used:
                row.popleft()
            while row and row[-1].span in used:
                row.pop()
        rows = [row for row in rows if row]
        if not rows:
            continue
        start, end = min(row[0].span[0] for row in rows), max(row[-1].span[1] for row in rows)
        if end - start <= SPLIT_CHARS:
            places[quantity.span] = (start, end)
            used.update(part.span for row in rows for part in row)
    return places, [quantity for quantity in new if quantity.span not in used]
