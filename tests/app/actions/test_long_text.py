"""Plans for long texts: their steps, and what becomes of the answers."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.actions.long_text import (
    PLAN_KINDS,
    MapReduce,
    Merge,
    PartByPart,
    Plan,
    PlanKind,
    answer_room,
    merged_lines,
    part_budget,
)
from app.text.parts import Part


def parts(*texts: str) -> list[Part]:
    return [Part(text, len(text)) for text in texts]


def answer(plan: Plan, *answers: str) -> None:
    """Gives the answers to the steps that are open, one after another."""
    for text in answers:
        plan.finish(plan.steps()[0], text, len(text.split()))


@given(
    st.sampled_from(PLAN_KINDS),
    st.integers(0, 40_000),
    st.sampled_from([0.0, 1.3, 1.5, 2.0]),
    st.one_of(st.none(), st.integers(1, 4000)),
    st.integers(32, 3000),
)
def test_part_and_answer_never_take_more_than_there_is(
    kind: PlanKind, free: int, growth: float, most: int | None, wanted: int
) -> None:
    budget = part_budget(kind, free, growth, most, wanted)
    if budget is None:
        return
    assert 32 <= budget.part_tokens <= wanted
    assert budget.answer_tokens >= 1
    assert budget.part_tokens + budget.answer_tokens <= free + 1
    assert most is None or budget.answer_tokens <= most
    if growth:
        assert budget.answer_tokens >= growth * budget.part_tokens


def test_a_translation_needs_room_as_the_text_is_long_a_summary_does_not() -> None:
    assert answer_room("part_by_part", 1000, 2.0, None) == 2032
    assert answer_room("part_by_part", 1000, 2.0, 100) == 100
    assert answer_room("map_reduce", 1000, 0.0, None) == answer_room("map_reduce", 9, 0.0, None)
    assert answer_room("map_reduce", 1000, 0.0, 300) == 300


def test_breaks_between_parts_are_kept() -> None:
    plan = PartByPart(parts("a.\n", "b.\n\n\n", "c. ", "d."))
    answer(plan, "A.", "\nB.  \n", "C.", "D.")
    assert plan.shown({}) == "A.\nB.\n\nC. D."
    assert plan.is_done


def test_what_is_under_way_is_shown_and_only_grows() -> None:
    plan = PartByPart(parts("a.\n\n", "b."))
    answer(plan, "A.")
    seen = [plan.shown({(0, 1): text}) for text in ("", "\n", "\n  B", "\n  B ", "\n  B \n", "\n  B \nB")]
    assert seen[0] == "A.\n\n"
    assert seen[-1] == "A.\n\n  B \nB"
    assert all(after.startswith(before) for before, after in itertools.pairwise(seen))


def test_parts_come_with_the_pairs_of_those_before() -> None:
    plan = PartByPart(parts("The Frobnicator hums.", "Oil the Frobnicator."))
    answer(plan, "Der Frobnikator brummt.")
    (pair,) = plan.steps()[0].memory
    assert (pair.source, pair.answer) == ("The Frobnicator hums.", "Der Frobnikator brummt.")


def test_a_part_can_be_split_and_the_others_stay() -> None:
    plan = PartByPart(parts("One. " * 20, "Two. " * 20, "Three. " * 20))
    answer(plan, "1")
    assert plan.split(plan.steps()[0])
    assert [step.of for step in plan.steps()] == [4]
    assert "".join(part.text for part in plan.parts) == "One. " * 20 + "Two. " * 20 + "Three. " * 20
    answer(plan, "2a", "2b", "3")
    assert plan.shown({}) == "1 2a 2b 3"
    assert not PartByPart(parts("tiny")).split(PartByPart(parts("tiny")).steps()[0])


def test_white_space_is_not_asked_about() -> None:
    plan = PartByPart(parts("a.\n", "\n\n", "b."))
    assert plan.steps()[0].index == 0
    answer(plan, "A.", "B.")
    assert plan.shown({}) == "A.\nB."
    summary = MapReduce(parts("a", " ", "b"), limit=10)
    assert [step.text for step in summary.steps()] == ["a", "b"]


def test_answers_put_together_that_end_at_the_length_limit_are_noted() -> None:
    plan = MapReduce(parts("a", "b"), limit=1000)
    answer(plan, "A", "B")
    (step,) = plan.steps()
    assert not plan.is_cut
    plan.finish(step, "A and", 2, is_cut=True)
    assert plan.is_done
    assert plan.is_cut
    assert plan.cut_parts == ()


def test_shares_go_by_tokens() -> None:
    plan = Merge([Part("a", 30), Part("b", 70)])
    answer(plan, "- x")
    assert plan.share == pytest.approx(0.3)


def test_one_part_needs_no_joining() -> None:
    plan = MapReduce(parts("a"), limit=10)
    assert plan.shown({(0, 0): "A"}) == "A"
    answer(plan, "All.")
    assert plan.is_done
    assert plan.shown({}) == "All."


def test_levels_end_even_if_answers_are_longer_than_the_limit() -> None:
    plan = MapReduce(parts(*"abcdefgh"), limit=4)
    steps = 0
    while not plan.is_done:
        plan.finish(plan.steps()[0], "word " * 10, 10)
        steps += 1
        assert steps < 40
    assert plan.steps() == []


def test_parts_at_the_length_limit_are_remembered() -> None:
    plan = Merge(parts("a", "b", "c"))
    plan.finish(plan.steps()[1], "- x", 1, is_cut=True)
    assert plan.cut_parts == (2,)
    assert plan.done_parts == 1


@pytest.mark.parametrize(
    ("answers", "merged"),
    [
        (["- a\n- b", "- B!\n- c"], "- a\n- b\n- c"),
        (["1. a", "Here they are:\n1) a\n2) b"], "1. a\n2) b"),
        (["None.", "- a"], "- a"),
        (["None.", "None."], "None."),
        (["- [ ] a", "- [x] A"], "- [ ] a"),
        (["- 买土。", "- 买土"], "- 买土。"),
        (["", " "], ""),
    ],
)
def test_lists_are_merged_without_doubles(answers: list[str], merged: str) -> None:
    assert merged_lines(answers) == merged


@given(
    st.lists(st.text("ab-\n ", max_size=12), max_size=4), st.text("ab-\n ", max_size=12), st.text("ab-\n ", max_size=9)
)
def test_a_merged_list_only_grows(done: list[str], partial: str, more: str) -> None:
    plan = Merge(parts(*(["x"] * (len(done) + 1))))
    answer(plan, *done)
    key = (0, len(done))
    first, second = plan.shown({key: partial}), plan.shown({key: partial + more})
    assert second.startswith(first)
    answer(plan, partial + more)
    assert plan.shown({}).startswith(second)
