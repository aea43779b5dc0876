"""What an answer lost, in words: for the popup's bar and for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.text.checks import Loss
from app.translation import UserText

# A longer quotation is cut in its middle.
QUOTE_CHARS = 40


@dataclass(frozen=True, slots=True)
class LossGroup:
    """Losses that read the same."""

    text: UserText
    losses: tuple[Loss, ...]


def loss_text(loss: Loss) -> UserText:
    """A loss in a few words."""
    before, after = quote(loss.text), quote(loss.near)
    if loss.kind == "line_breaks":
        return UserText("Line breaks: {before} → {after}", before=before, after=after)
    if loss.kind == "untranslated":
        return UserText("Not translated: {text}", text=after)
    if not loss.text:
        return UserText("Not in your text: {text}", text=after)
    if after:
        return UserText("{before} → {after}", before=before, after=after)
    return UserText("Missing: {text}", text=before)


def left_out_text(words: str) -> UserText:
    """What of an answer is not part of the text, in a few words."""
    return UserText("Left out: {text}", text=quote(words))


def grouped(losses: Sequence[Loss]) -> list[LossGroup]:
    """The losses in their order, those that read the same together at the place of the first."""
    groups: dict[str, list[Loss]] = {}
    for loss in losses:
        groups.setdefault(str(loss_text(loss)), []).append(loss)
    return [LossGroup(loss_text(same[0]), tuple(same)) for same in groups.values()]


def quote(text: str) -> str:
    """A text on one line, its middle left out where it is long."""
    text = " ".join(text.split())
    half = QUOTE_CHARS // 2
    return text if len(text) <= QUOTE_CHARS else f"{text[:half]}…{text[-half:]}"
