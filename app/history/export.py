"""The history outside of the app: a conversation as Markdown to read, conversations and results as JSON to keep."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from app.history.entry import ActionResult, Conversation, StoredMessage
from inference.request import Role

FORMAT = "deskinfer-history"
FORMAT_VERSION = 1
ENGLISH_NAMES: Mapping[Role, str] = {"system": "System prompt", "user": "You", "assistant": "Assistant"}


def conversation_markdown(
    conversation: Conversation, messages: Iterable[StoredMessage], names: Mapping[Role, str] | None = None
) -> str:
    """A conversation to read: a heading for each message, the texts as they are.

    Args:
        names: headings in the user's language; English without.
    """
    named = names or ENGLISH_NAMES
    day = datetime.fromtimestamp(conversation.created_s).astimezone().isoformat(" ", "minutes")
    parts = [f"# {conversation.title or day}", f"*{day}*"]
    if conversation.system:
        parts += [f"## {named['system']}", conversation.system.strip()]
    for message in messages:
        parts += [f"## {named[message.role]}", message.text.strip()]
    return "\n\n".join(parts) + "\n"


def history_json(
    conversations: Iterable[tuple[Conversation, Sequence[StoredMessage]]], results: Iterable[ActionResult]
) -> str:
    """Conversations with their messages and results of actions; times are ISO 8601 in UTC."""
    document = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "conversations": [
            {**_entry(conversation), "messages": [_entry(message) for message in messages]}
            for conversation, messages in conversations
        ],
        "results": [_entry(result) for result in results],
    }
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _entry(entry: Conversation | StoredMessage | ActionResult) -> dict[str, object]:
    values = asdict(entry)
    del values["id"]
    for name in ("created_s", "updated_s"):
        if name in values:
            time = datetime.fromtimestamp(values.pop(name), tz=UTC)
            values[name.removesuffix("_s")] = time.isoformat(timespec="milliseconds")
    return values
