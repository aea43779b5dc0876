"""Requests and events survive the way through JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.instance.event_json import event_from_json, event_to_json, request_from_json, request_to_json
from inference.errors import ContextOverflowError, InferenceError, InvalidRequestError, ModelNotFoundError
from inference.request import (
    LEAST_TEMPERATURE,
    DoneEvent,
    FailedEvent,
    GenerationRequest,
    Grammar,
    Message,
    PrefillEvent,
    Priority,
    RequestEvent,
    SamplingParams,
    TokenEvent,
    Usage,
)

_text = st.text(st.characters(exclude_categories=["Cs"]))
_messages = st.lists(
    st.builds(Message, st.sampled_from(["system", "user", "assistant"]), _text), min_size=1, max_size=4
)
_sampling = st.builds(
    SamplingParams,
    temperature=st.just(0.0) | st.floats(LEAST_TEMPERATURE, 10),
    top_k=st.integers(0, 100),
    seed=st.none() | st.integers(),
    max_new_tokens=st.none() | st.integers(1, 10_000),
    stop=st.lists(_text.filter(bool), max_size=3).map(tuple),
)
_grammars = st.builds(
    Grammar, st.sampled_from(["json_schema", "regex", "lark"]), _text.filter(str.strip), st.booleans(), _text
)
_requests = st.builds(
    GenerationRequest, _messages.map(tuple), _sampling, st.sampled_from(Priority), _text, st.none() | _grammars
)


def through_json(data: dict[str, Any]) -> dict[str, Any]:
    back: dict[str, Any] = json.loads(json.dumps(data, ensure_ascii=False).encode())
    return back


@given(_requests)
def test_a_request_comes_back_equal(request: GenerationRequest) -> None:
    assert request_from_json(through_json(request_to_json(request))) == request


@pytest.mark.parametrize(
    "event",
    [
        PrefillEvent("r", 3, 8),
        TokenEvent("r", "好 \n\0"),
        DoneEvent("r", "length", Usage(1, 2, 3, 4.5, 5.5, 6.5)),
    ],
)
def test_an_event_comes_back_equal(event: RequestEvent) -> None:
    assert event_from_json(through_json(event_to_json(event))) == event


@pytest.mark.parametrize(
    "error",
    [ContextOverflowError(5000, 4096), ModelNotFoundError("There is no model 'x'."), InferenceError("Plain.")],
)
def test_an_error_keeps_its_kind_and_its_text(error: InferenceError) -> None:
    event = event_from_json(through_json(event_to_json(FailedEvent("r", error))))
    assert isinstance(event, FailedEvent)
    assert type(event.error) is type(error)
    assert str(event.error) == str(error)


@pytest.mark.parametrize("kind", ["KeyboardInterrupt", "annotations", "Exception", "__name__", "Unknown"])
def test_an_error_of_any_other_kind_is_an_inference_error(kind: str) -> None:
    event = event_from_json({"event": "FailedEvent", "request_id": "r", "error": {"kind": kind, "text": "x"}})
    assert isinstance(event, FailedEvent)
    assert type(event.error) is InferenceError


@pytest.mark.parametrize(
    "change",
    [
        {"messages": 1},
        {"messages": [1]},
        {"messages": [{"role": "root", "content": "x"}]},
        {"messages": [{"role": "user", "content": 1}]},
        {"messages": [{"role": "user"}]},
        {"sampling": {"heat": 1}},
        {"sampling": {"temperature": "hot"}},
        {"sampling": {"stop": [1]}},
        {"sampling": None},
        {"priority": "FIRST"},
        {"request_id": 1},
    ],
)
def test_a_malformed_request_is_refused(change: dict[str, Any]) -> None:
    good = request_to_json(GenerationRequest((Message("user", "x"),)))
    with pytest.raises(ValueError, match="Use the same version"):
        request_from_json({**good, **change})
    with pytest.raises(ValueError, match="Use the same version"):
        request_from_json({key: value for key, value in good.items() if key not in change})


@pytest.mark.parametrize("change", [{"messages": []}, {"sampling": {"temperature": 99}}])
def test_values_out_of_range_are_refused(change: dict[str, Any]) -> None:
    good = request_to_json(GenerationRequest((Message("user", "x"),)))
    with pytest.raises(InvalidRequestError):
        request_from_json({**good, **change})


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"event": "TokenEvent", "request_id": "r"},
        {"event": "TokenEvent", "request_id": "r", "text": 1},
        {"event": "Surprise", "request_id": "r"},
        {"event": "DoneEvent", "request_id": "r", "finish_reason": "bored", "usage": {}},
        {"event": "DoneEvent", "request_id": "r", "finish_reason": "stop", "usage": {"x": 1}},
        {"event": "FailedEvent", "request_id": "r", "error": {}},
    ],
)
def test_a_malformed_event_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Use the same version"):
        event_from_json(data)
