"""Requests and events as JSON objects, for the line between two processes of this app."""

from __future__ import annotations

import dataclasses
from typing import Any, get_args

from inference import errors
from inference.request import (
    DoneEvent,
    FailedEvent,
    FinishReason,
    GenerationRequest,
    Grammar,
    Message,
    PrefillEvent,
    Priority,
    RequestEvent,
    Role,
    SamplingParams,
    TokenEvent,
    Usage,
)

Json = dict[str, Any]


def request_to_json(request: GenerationRequest) -> Json:
    """Everything of a request; `request_from_json` gives it back equal."""
    return {
        "messages": [{"role": message.role, "content": message.content} for message in request.messages],
        "sampling": dataclasses.asdict(request.sampling),
        "priority": request.priority.name,
        "request_id": request.request_id,
        "grammar": None if request.grammar is None else dataclasses.asdict(request.grammar),
    }


def request_from_json(data: Json) -> GenerationRequest:
    """Reads a request that came from outside.

    Raises:
        ValueError: a field is missing, unknown or of the wrong type.
        InvalidRequestError: a field is out of its range.
    """
    try:
        messages = tuple(_message(item) for item in data["messages"])
        sampling = dict(data["sampling"])
        sampling["stop"] = tuple(_text(item) for item in sampling.get("stop", ()))
        sampling["logit_bias"] = tuple((int(token), float(bias)) for token, bias in sampling.get("logit_bias", ()))
        grammar = data.get("grammar")
        return GenerationRequest(
            messages,
            SamplingParams(**sampling),
            Priority[data["priority"]],
            _text(data["request_id"]),
            None if grammar is None else _grammar(grammar),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"This is no request: {error!r}. Use the same version of the app on both sides.") from error


def _grammar(data: Json) -> Grammar:
    return Grammar(data["kind"], _text(data["text"]), bool(data["is_wish"]), _text(data["json_schema"]))


def event_to_json(event: RequestEvent) -> Json:
    """An event as {"event": its kind, ...}; an error keeps its kind and its text."""
    if isinstance(event, FailedEvent):
        error = {"kind": type(event.error).__name__, "text": str(event.error)}
        return {"event": "FailedEvent", "request_id": event.request_id, "error": error}
    return {"event": type(event).__name__, **dataclasses.asdict(event)}


def event_from_json(data: Json) -> RequestEvent:
    """Reads an event. Raises ValueError for anything else."""
    try:
        kind = data["event"]
        request_id = _text(data["request_id"])
        if kind == "PrefillEvent":
            return PrefillEvent(request_id, int(data["done_tokens"]), int(data["prompt_tokens"]))
        if kind == "TokenEvent":
            return TokenEvent(request_id, _text(data["text"]))
        if kind == "DoneEvent":
            if data["finish_reason"] not in get_args(FinishReason):
                raise TypeError(data["finish_reason"])
            return DoneEvent(request_id, data["finish_reason"], Usage(**data["usage"]))
        if kind == "FailedEvent":
            return FailedEvent(request_id, _error(data["error"]))
    except (KeyError, TypeError) as error:
        raise ValueError(f"This is no event: {error!r}. Use the same version of the app on both sides.") from error
    raise ValueError(f"There is no event {kind!r}. Use the same version of the app on both sides.")


def _error(data: Json) -> errors.InferenceError:
    """An error of the same kind and text; values that only its own process needs stay there."""
    kind = getattr(errors, str(data["kind"]), errors.InferenceError)
    if not (isinstance(kind, type) and issubclass(kind, errors.InferenceError)):
        kind = errors.InferenceError
    error = kind.__new__(kind)
    Exception.__init__(error, _text(data["text"]))
    return error


def _message(data: Json) -> Message:
    if data["role"] not in get_args(Role):
        raise TypeError(f"role {data['role']!r}")
    return Message(data["role"], _text(data["content"]))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value
