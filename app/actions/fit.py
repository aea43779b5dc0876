"""How an action fits a context: a text as one request or in parts, with as many examples as there is room for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.actions.action import Action, FramedAction
from app.actions.long_text import Budget, answer_room, part_budget
from inference.errors import ContextOverflowError

ENOUGH_PART_TOKENS = 100
"""A part of several sentences, at which an example is worth more than a longer part."""
_TEMPLATE_TOKENS = 12
"""What a chat template may write around a message."""


@dataclass(frozen=True, slots=True)
class Fit:
    """
    Attributes:
        framed: the action with the examples that there is room for.
        budget: of the parts; None where the text fits one request.
    """

    framed: FramedAction
    budget: Budget | None


def frame_texts(framed: FramedAction) -> list[str]:
    """What prompts hold beside the text."""
    prompt = framed.prompt
    return [message.content for message in framed.request("").messages] + [prompt.part, prompt.join]


def fits_one(
    action: Action, framed: FramedAction, frame_counts: Sequence[int], text_tokens: int, context_tokens: int
) -> bool:
    """Whether a text fits one request with all examples.

    Args:
        frame_counts: tokens of each of the `frame_texts`.
    """
    return _fits(action, framed, sum(frame_counts) + _TEMPLATE_TOKENS * len(frame_counts), text_tokens, context_tokens)


def fit(
    action: Action,
    framed: FramedAction,
    frame_counts: Sequence[int],
    text_tokens: int,
    context_tokens: int,
    may_be_one: bool = True,
) -> Fit:
    """Leaves out examples, the first ones first, until there is room for the text or for parts of some length.

    Args:
        frame_counts: tokens of each of the `frame_texts`.
        may_be_one: whether the text may go into one request.

    Raises:
        ContextOverflowError: there is no room for a part even without examples.
    """
    best: Fit | None = None
    most, least = framed.sampling.max_new_tokens, 0
    for fewer, frame_tokens in _with_fewer_examples(framed, frame_counts):
        if may_be_one and _fits(action, fewer, frame_tokens, text_tokens, context_tokens):
            return Fit(fewer, None)
        free = context_tokens - frame_tokens
        budget = part_budget(action.plan, free, action.growth, most, action.part_tokens)
        if budget is not None and budget.part_tokens > least:
            best, least = Fit(fewer, budget), budget.part_tokens
        if least >= min(ENOUGH_PART_TOKENS, action.part_tokens):
            break
    if best is None:
        raise ContextOverflowError(frame_tokens + text_tokens, context_tokens)
    return best


def _with_fewer_examples(framed: FramedAction, frame_counts: Sequence[int]) -> Iterator[tuple[FramedAction, int]]:
    """The action and the tokens of its prompts: with all examples, without the first, and so on."""
    first = 1 if framed.prompt.system else 0
    for left_out in range(len(framed.prompt.examples) + 1):
        counts = [*frame_counts[:first], *frame_counts[first + 2 * left_out :]]
        yield framed.without_examples(left_out), sum(counts) + _TEMPLATE_TOKENS * len(counts)


def _fits(action: Action, framed: FramedAction, frame_tokens: int, text_tokens: int, context_tokens: int) -> bool:
    room = answer_room(action.plan, text_tokens, action.growth, framed.sampling.max_new_tokens)
    if not action.growth:
        room = min(room, context_tokens // 3)
    return frame_tokens + text_tokens + room <= context_tokens
