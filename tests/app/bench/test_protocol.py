"""What is measured: cases, lengths, prompts."""

from __future__ import annotations

import pytest

from app.bench.protocol import CHAT, DECODE, PREFILL, PROMPTS, Case, Plan, chat_messages, random_ids

PLAN = Plan(prompts=(5,), depths=(0, 700), decode_tokens=4, repeats=2)


def test_cases_come_in_order() -> None:
    assert PLAN.cases == [
        Case(CHAT, 0),
        Case(CHAT, 1),
        Case(PREFILL, 5),
        Case(DECODE, 0),
        Case(DECODE, 700),
    ]
    assert [case.what for case in Plan(prompts=(5,), depths=(), chat=False).cases] == [PREFILL]


def test_context_holds_the_longest_case() -> None:
    assert PLAN.context_tokens >= 700 + 4 + 1
    assert Plan(prompts=(512,), depths=(), chat=False).context_tokens >= 512 + 1
    assert Plan(prompts=(), depths=(0,), decode_tokens=4, chat=False).context_tokens >= 64
    assert Plan(prompts=(), depths=(), chat=False).context_tokens >= 64


@pytest.mark.parametrize(
    ("case", "length", "new"), [(Case(PREFILL, 5), 5, 1), (Case(DECODE, 0), 1, 5), (Case(DECODE, 700), 700, 5)]
)
def test_lengths_of_cases(case: Case, length: int, new: int) -> None:
    """The first new token belongs to the prefill, so a decode has one more than it measures."""
    assert (PLAN.length_of(case), PLAN.new_tokens_of(case)) == (length, new)


def test_the_protocols_answers_have_64_tokens() -> None:
    assert PLAN.new_tokens_of(Case(CHAT, 1)) == 64


def test_prompts_are_chinese_and_begin_differently_in_each_run() -> None:
    first, again = chat_messages(0, 1), chat_messages(0, 2)
    assert first[1] == again[1] == PROMPTS[0]
    assert "CUDA Graph" in first[1]
    assert first[0][:3] != again[0][:3]
    assert all("一" <= text[0] <= "鿿" for text in PROMPTS)


def test_random_ids_differ_by_seed_and_stay_in_the_vocabulary() -> None:
    first, second = random_ids(600, 0, 2000), random_ids(600, 1, 2000)
    assert first != second
    assert first == random_ids(600, 0, 2000)
    assert 0 <= min(first)
    assert max(first) < 2000


def test_prompts_of_ids_begin_alike_nowhere() -> None:
    plan = Plan(prompts=(600,), depths=(600,))
    prompts = [plan.ids_of(case, run) for run in range(3) for case in plan.cases]
    assert [len(ids) for ids in prompts[2:4]] == [600, 600]
    assert len({tuple(ids[:8]) for ids in prompts}) == len(prompts)


def test_labels_name_the_case() -> None:
    assert [case.label for case in PLAN.cases] == ["prompt 1", "prompt 2", "prefill 5", "decode at 0", "decode at 700"]
