"""What the history holds: conversations, their messages, results of actions, and what a search found."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from inference.errors import InvalidRequestError
from inference.request import Role, SamplingParams

Detail = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Conversation:
    """A chat, without its messages. Times are seconds since 1970, UTC.

    Attributes:
        title: "" until it has one.
        system: the system prompt, "" for none.
        model: catalog id or path that it was begun with, "" for the default one.
        updated_s: of its last message or change.
    """

    id: int
    title: str
    system: str
    sampling: SamplingParams
    model: str
    created_s: float
    updated_s: float

    @classmethod
    def of_row(cls, row: tuple[Any, ...]) -> Conversation:
        """Out of the database: all columns in their order."""
        id_, title, system, sampling, model, created_ms, updated_ms = row
        return cls(id_, title, system, sampling_of(sampling), model, created_ms / 1000, updated_ms / 1000)


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message of a conversation.

    Attributes:
        details: what else is known of it: tokens, duration_ms, finish_reason, model, ...
    """

    id: int
    role: Role
    text: str
    created_s: float
    details: Mapping[str, Detail] = field(default_factory=dict)

    @classmethod
    def of_row(cls, row: tuple[Any, ...]) -> StoredMessage:
        """Out of the database: all columns in their order."""
        id_, role, text, created_ms, details = row
        return cls(id_, role, text, created_ms / 1000, json.loads(details))


@dataclass(frozen=True, slots=True)
class ActionResult:
    """What an action made of a text."""

    id: int
    action_id: str
    source_text: str
    answer: str
    model: str
    created_s: float
    details: Mapping[str, Detail] = field(default_factory=dict)

    @classmethod
    def of_row(cls, row: tuple[Any, ...]) -> ActionResult:
        """Out of the database: all columns in their order."""
        id_, action_id, source_text, answer, model, created_ms, details = row
        return cls(id_, action_id, source_text, answer, model, created_ms / 1000, json.loads(details))


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A message or an action's result in which all words were found.

    Attributes:
        id: of the message or the result.
        conversation_id: None for the result of an action.
        title: of the conversation, or the action's id.
    """

    kind: Literal["message", "result"]
    id: int
    conversation_id: int | None
    title: str
    text: str
    created_s: float


def sampling_json(sampling: SamplingParams) -> str:
    """For the database."""
    return json.dumps(asdict(sampling), ensure_ascii=False)


def sampling_of(text: str) -> SamplingParams:
    """What this version of the app does not know, or does not allow any more, is left at its default."""
    known = {each.name for each in fields(SamplingParams)}
    values = {name: _frozen(value) for name, value in json.loads(text).items() if name in known}
    try:
        return SamplingParams(**values)
    except InvalidRequestError:
        return SamplingParams()


def _frozen(value: Any) -> Any:
    """JSON has no tuples."""
    return tuple(_frozen(each) for each in value) if isinstance(value, list) else value
