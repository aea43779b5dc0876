"""What goes over the line to an OpenAI-compatible server: requests as JSON, and its answers. Pure."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from app.remote.error import local_only
from app.translation import UserText
from inference.request import FinishReason, GenerationRequest

Json = dict[str, Any]

ASCII_PER_TOKEN = 3.5
"""Characters of a token in English and in code, at the low end: an estimate that is too high cuts a text too early,
one that is too low loses its end."""


def estimated_tokens(text: str) -> int:
    """About how many tokens a text has, rather too many: nobody but the server knows its vocabulary."""
    ascii_characters = sum(character < "\x80" for character in text)
    return math.ceil(ascii_characters / ASCII_PER_TOKEN) + len(text) - ascii_characters


def completion_body(request: GenerationRequest, model: str, with_wish: bool = True) -> Json:
    """The body of /chat/completions.

    Fields beyond the common ones are sent only where they do something: some servers refuse what they do not know.

    Args:
        with_wish: whether a form that the answer need not have is asked for.

    Raises:
        RemoteError: it asks for what servers do not have in common: a bare prompt, tools, log-probabilities, a grammar
            other than a JSON schema.
    """
    sampling = request.sampling
    has_calls = any(message.tool_calls or message.tool_call_id for message in request.messages)
    if request.prompt or request.tools or has_calls or sampling.top_logprobs is not None:
        raise local_only(UserText("Bare prompts, tools and log-probabilities are not passed on to servers."))
    body: Json = {
        "model": model,
        "messages": [{"role": message.role, "content": message.content} for message in request.messages],
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": sampling.temperature,
    }
    optional: dict[str, tuple[object, object]] = {
        "top_p": (sampling.top_p, 1.0),
        "top_k": (sampling.top_k, 0),
        "min_p": (sampling.min_p, 0.0),
        "repetition_penalty": (sampling.repetition_penalty, 1.0),
        "presence_penalty": (sampling.presence_penalty, 0.0),
        "frequency_penalty": (sampling.frequency_penalty, 0.0),
        "logit_bias": ({str(token): bias for token, bias in sampling.logit_bias}, {}),
        "seed": (sampling.seed, None),
        "max_tokens": (sampling.max_new_tokens, None),
        "stop": (list(sampling.stop), []),
    }
    body |= {name: value for name, (value, off) in optional.items() if value != off}
    grammar = request.grammar
    if grammar is None or (grammar.is_wish and not with_wish):
        return body
    schema = grammar.text if grammar.kind == "json_schema" else grammar.json_schema
    if schema:
        form = {"name": "answer", "schema": json.loads(schema), "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": form}
    elif not grammar.is_wish:
        raise local_only(UserText("Servers have no common way to hold an answer to such a form."))
    return body


@dataclass(frozen=True, slots=True)
class Piece:
    """One event of an answer.

    Attributes:
        text: what it adds.
        finish_reason: set in the last one with text.
        error: the server's words where it failed in the middle.
    """

    text: str = ""
    finish_reason: FinishReason | None = None
    prompt_tokens: int | None = None
    cached_tokens: int = 0
    new_tokens: int | None = None
    error: str = ""


def read_piece(data: str) -> Piece | None:
    """An event's data; None where it is not what such a server sends."""
    try:
        chunk = json.loads(data)
    except ValueError:
        return None
    if not isinstance(chunk, dict):
        return None
    if chunk.get("error"):
        return Piece(error=error_words(data)[0] or "error")
    choices, usage = chunk.get("choices"), chunk.get("usage")
    if not isinstance(choices, list):
        return None
    text, finish = "", None
    if choices and isinstance(choices[0], dict):
        choice = choices[0]
        part = choice.get("delta") or choice.get("message") or {}
        content = part.get("content") if isinstance(part, dict) else None
        text = content if isinstance(content, str) else ""
        finish = choice.get("finish_reason")
    return Piece(
        text=text,
        finish_reason=None if not finish else "length" if finish == "length" else "stop",
        prompt_tokens=_count(usage, "prompt_tokens"),
        cached_tokens=_count(usage.get("prompt_tokens_details"), "cached_tokens") or 0
        if isinstance(usage, dict)
        else 0,
        new_tokens=_count(usage, "completion_tokens"),
    )


def _count(table: object, name: str) -> int | None:
    value = table.get(name) if isinstance(table, dict) else None
    return value if type(value) is int and value >= 0 else None


@dataclass(frozen=True, slots=True)
class RemoteModel:
    """A model that a server has; `context_tokens` is 0 where it does not say."""

    id: str
    context_tokens: int = 0


def read_models(data: str) -> tuple[RemoteModel, ...] | None:
    """The models of /models; None where it is not such a list."""
    try:
        document = json.loads(data)
    except ValueError:
        return None
    entries = document.get("data") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        # An empty Ollama says null.
        return () if isinstance(document, dict) and document.get("object") == "list" else None
    found = []
    for entry in entries:
        if isinstance(entry, dict) and isinstance(entry.get("id"), str) and entry["id"]:
            context = _count(entry, "max_model_len") or _count(entry.get("meta"), "n_ctx") or 0
            found.append(RemoteModel(entry["id"], context))
    return tuple(found)


def error_words(body: str) -> tuple[str, bool]:
    """The server's words about an error, and whether they came in the form that these servers use."""
    try:
        document = json.loads(body)
    except ValueError:
        return ("" if "<" in body else body), False
    if not isinstance(document, dict):
        return "", False
    error = document.get("error", document)
    if isinstance(error, str):
        return error, True
    message = error.get("message") if isinstance(error, dict) else None
    if isinstance(message, str):
        return message, True
    detail = document.get("detail")
    return (detail if isinstance(detail, str) else ""), False
