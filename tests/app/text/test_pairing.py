"""What stands in the place of what, beside the plain rule, which takes a time that grows with the square."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from app.text.pairing import SPLIT_CHARS, Changes, Pairs, Row, split_up
from app.text.quantities import Span, quantities
from app.text.word_diff import Change, WordDiff


@dataclass(frozen=True)
class Piece:
    span: Span
    kind: str
    is_word: bool = False


def classes(piece: Piece) -> list[str]:
    return [piece.kind, *([] if piece.is_word else ["any"])]


def overlap(a: Span, b: Span) -> bool:
    return a[0] < b[1] and b[0] < a[1]


def pieces(rng: random.Random, chars: int) -> list[Piece]:
    ends = sorted(rng.sample(range(chars), 40))
    return [Piece((a, b), rng.choice("xyz"), rng.random() < 0.3) for a, b in zip(ends[::2], ends[1::2], strict=True)]


def plain_pairs(lost: Sequence[Piece], new: Sequence[Piece], diff: WordDiff | None) -> list[Piece | None]:
    left, found = list(new), []
    for place, piece in enumerate(lost):
        if diff is None:
            alike = [other for other in left if other.kind == piece.kind]
            rest = [other for other in lost[place:] if other.kind == piece.kind]
            row = alike if len(alike) == len(rest) else []
        else:
            near = [
                other
                for other in left
                if any(overlap(piece.span, c.source_span) and overlap(other.span, c.answer_span) for c in diff.changes)
            ]
            row = [other for other in near if other.kind == piece.kind]
            row += [] if piece.is_word else [other for other in near if not other.is_word]
        found.append(row[0] if row else None)
        if row:
            left.remove(row[0])
    return found


@pytest.mark.parametrize("seed", range(40))
def test_pairs_are_those_of_the_plain_rule(seed: int) -> None:
    rng = random.Random(seed)
    lost, new = pieces(rng, 200), pieces(rng, 200)
    edges = [sorted(rng.choices(range(200), k=12)) for _ in range(2)]
    spans = [list(zip(row[::2], row[1::2], strict=True)) for row in edges]
    changes = tuple(Change(a, b, "", "") for a, b in zip(*spans, strict=True))
    for diff in (None, WordDiff(changes)):
        at = Changes(diff)
        pairs = Pairs(lost, new, at, classes)
        assert [pairs.next(piece) for piece in lost] == plain_pairs(lost, new, diff)
        for piece in lost:
            places = [c.answer_span for c in changes if diff and overlap(piece.span, c.source_span)]
            assert at.place(piece.span) == (places[0] if places else None)


@pytest.mark.parametrize("seed", range(5))
def test_a_row_knows_what_overlaps(seed: int) -> None:
    rng = random.Random(seed)
    row = pieces(rng, 200)
    for _ in range(100):
        start, end = sorted((rng.randint(0, 200), rng.randint(0, 200)))
        assert Row(row).over((start, end)) == [piece for piece in row if overlap(piece.span, (start, end))]


def test_a_date_in_pieces_is_split_up_once() -> None:
    source, answer = "1/2/2026 and 1/2/2026", "1 of the 2nd in 2026"
    assert len(answer) <= SPLIT_CHARS
    lost = [quantity for quantity in quantities(source) if quantity.kind == "code"]
    places, left = split_up(lost, quantities(answer))
    assert [answer[slice(*span)] for span in places.values()] == ["1 of the 2nd in 2026"]
    assert left == []


def test_pieces_that_stand_far_apart_are_no_date() -> None:
    lost = [quantity for quantity in quantities("1/2/2026") if quantity.kind == "code"]
    new = quantities(f"1 {'word ' * 10} 2026")
    assert split_up(lost, new) == ({}, new)
