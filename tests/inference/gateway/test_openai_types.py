"""Field by field against the types of OpenAI's package: what it can send is served or refused by name, and what is
answered has the shape that it reads, checked without any leniency.
"""

from __future__ import annotations

import dataclasses
import json
import math
import typing
from collections.abc import Callable
from typing import Any

import httpx2
import openai
import pytest
from openai.types import Completion, Model, completion_create_params
from openai.types.chat import (
    ChatCompletion,
    ChatCompletionAssistantMessageParam,
    ChatCompletionChunk,
    ChatCompletionContentPartRefusalParam,
    ChatCompletionContentPartTextParam,
    ChatCompletionDeveloperMessageParam,
    ChatCompletionFunctionToolParam,
    ChatCompletionMessageFunctionToolCallParam,
    ChatCompletionNamedToolChoiceParam,
    ChatCompletionStreamOptionsParam,
    ChatCompletionSystemMessageParam,
    ChatCompletionToolMessageParam,
    ChatCompletionUserMessageParam,
)
from openai.types.chat import (
    completion_create_params as chat_create_params,
)
from openai.types.shared import ErrorObject
from openai.types.shared_params import FunctionDefinition, ResponseFormatJSONSchema
from openai.types.shared_params.response_format_json_schema import JSONSchema

from inference.gateway.chat_answer import Choice, Envelope, TextForm
from inference.gateway.server import GatewayServer
from inference.request import TokenEvent, TokenLogprob
from tests.inference.gateway.conftest import ScriptedEngine

Json = dict[str, Any]
HI: list[Json] = [{"role": "user", "content": "hi"}]
FUNCTION: Json = {"name": "look", "description": "Looks.", "parameters": {"type": "object"}, "strict": False}
TOOL: Json = {"type": "function", "function": FUNCTION}
CALL: Json = {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
SCHEMA: Json = {"name": "x", "description": "y", "schema": {"type": "object"}, "strict": True}
PART: Json = {"type": "text", "text": "hi", "prompt_cache_breakpoint": {"mode": "explicit"}}


def chat(**more: Any) -> Json:
    """A chat's body."""
    return {"model": "one", "messages": HI, **more}


def text(**more: Any) -> Json:
    """A completion's body."""
    return {"model": "one", "prompt": "hi", **more}


def said(**message: Any) -> Json:
    """A chat whose last message is this one."""
    return chat(messages=[*HI, message])


REFUSED = "refused"
"""Stands behind the values that this server has nothing for."""

FIELDS: list[tuple[Any, Callable[..., Json], str, dict[str, list[Any]]]] = [
    (chat_create_params.CompletionCreateParamsBase, chat, "", {
        "messages": [HI], "model": ["one"], "audio": [REFUSED, {"voice": "x", "format": "wav"}],
        "frequency_penalty": [-2, 0.5], "function_call": [REFUSED, "auto", {"name": "x"}],
        "functions": [REFUSED, [FUNCTION]],
        "logit_bias": [{"5": -100, "6": 1.5}], "logprobs": [True, False], "max_completion_tokens": [5],
        "max_tokens": [5, -1], "metadata": [{"a": "b"}], "modalities": [["text"], REFUSED, ["text", "audio"]],
        "moderation": [REFUSED, {"model": "x"}], "n": [1, 2], "parallel_tool_calls": [True, False],
        "prediction": [REFUSED, {"type": "content", "content": "x"}], "presence_penalty": [2],
        "prompt_cache_key": ["k"], "prompt_cache_options": [{"mode": "implicit", "ttl": "30m"}],
        "prompt_cache_retention": ["in_memory", "24h"], "reasoning_effort": [REFUSED, "low"],
        "response_format": [{"type": "text"}, {"type": "json_object"}, {"type": "json_schema", "json_schema": SCHEMA}],
        "safety_identifier": ["x"], "seed": [-5, 2**62],
        "service_tier": ["auto", "default", REFUSED, "flex", "priority"],
        "stop": ["x", ["x", "y"], "", []], "store": [False, REFUSED, True], "stream_options": [],
        "temperature": [0, 2, 1e-300],
        "tool_choice": ["none", "auto", REFUSED, {"type": "allowed_tools", "allowed_tools": {}}],
        "tools": [[TOOL], [], REFUSED, [{"type": "custom", "custom": {"name": "x"}}]], "top_logprobs": [0],
        "top_p": [0, 1], "user": ["ann"], "verbosity": ["medium", REFUSED, "high"],
        "web_search_options": [REFUSED, {}],
    }),
    (completion_create_params.CompletionCreateParamsBase, text, "", {
        "model": ["one"], "prompt": ["x", ["x", "y"], REFUSED, [1, 2], [[1, 2], [3]]], "best_of": [1, REFUSED, 3],
        "echo": [False, REFUSED, True], "frequency_penalty": [1], "logit_bias": [{"5": 1}], "logprobs": [0, 5],
        "max_tokens": [5, -1], "n": [2], "presence_penalty": [1], "seed": [5], "stop": ["x"], "stream_options": [],
        "suffix": ["", REFUSED, "x"], "temperature": [1], "top_p": [0.5], "user": ["ann"],
    }),
    (ChatCompletionStreamOptionsParam, lambda **more: chat(stream=True, stream_options=more), "stream_options.", {
        "include_usage": [True, False], "include_obfuscation": [False, REFUSED, True],
    }),
    (ChatCompletionSystemMessageParam, said, "messages.1.", {
        "role": ["system"], "content": ["x", [PART]], "name": ["ann"]}),
    (ChatCompletionDeveloperMessageParam, said, "messages.1.", {
        "role": ["developer"], "content": ["x", [PART]], "name": ["ann"]}),
    (ChatCompletionUserMessageParam, said, "messages.1.", {
        "role": ["user"], "content": ["x", [PART], REFUSED, [{"type": "image_url", "image_url": {"url": "x"}}],
                                      [{"type": "input_audio", "input_audio": {}}], [{"type": "file", "file": {}}]],
        "name": ["ann"]}),
    (ChatCompletionAssistantMessageParam, said, "messages.1.", {
        "role": ["assistant"], "content": ["x", "", [PART], [{"type": "refusal", "refusal": "No."}]],
        "audio": [REFUSED, {"id": "x"}], "function_call": [REFUSED, {"name": "x", "arguments": ""}], "name": ["ann"],
        "refusal": ["No."], "tool_calls": [[CALL], [], REFUSED, [{**CALL, "type": "custom"}]]}),
    (ChatCompletionToolMessageParam, said, "messages.1.", {
        "role": ["tool"], "content": ["x", [PART]], "tool_call_id": ["1"]}),
    (ChatCompletionContentPartTextParam, lambda **more: said(role="user", content=[{**PART, **more}]),
     "messages.1.content.0.", {"text": ["x"], "type": ["text"], "prompt_cache_breakpoint": [{"mode": "explicit"}]}),
    (ChatCompletionContentPartRefusalParam,
     lambda **more: said(role="assistant", content=[{"type": "refusal", "refusal": "No.", **more}]),
     "messages.1.content.0.", {"refusal": ["No."], "type": ["refusal"]}),
    (ChatCompletionMessageFunctionToolCallParam, lambda **more: said(role="assistant", tool_calls=[{**CALL, **more}]),
     "messages.1.tool_calls.0.", {"id": ["x"], "type": ["function"], "function": [CALL["function"]]}),
    (ChatCompletionFunctionToolParam, lambda **more: chat(tools=[{**TOOL, **more}]), "tools.0.", {
        "function": [FUNCTION], "type": ["function"]}),
    (FunctionDefinition, lambda **more: chat(tools=[{**TOOL, "function": {**FUNCTION, **more}}]), "tools.0.function.", {
        "name": ["x"], "description": ["x"], "parameters": [{}, {"type": "object"}], "strict": [True, False]}),
    (ChatCompletionNamedToolChoiceParam,
     lambda **more: chat(tools=[TOOL], tool_choice={"type": "function", "function": {"name": "look"}, **more}),
     "tool_choice.", {"type": ["function", REFUSED, "custom"], "function": [{"name": "look"}]}),
    (ResponseFormatJSONSchema,
     lambda **more: chat(response_format={"type": "json_schema", "json_schema": SCHEMA, **more}), "response_format.",
     {"type": ["json_schema"], "json_schema": [SCHEMA]}),
    (JSONSchema,
     lambda **more: chat(response_format={"type": "json_schema", "json_schema": {**SCHEMA, **more}}),
     "response_format.json_schema.",
     {"name": ["x"], "description": ["x"], "schema": [{}], "strict": [True, False]}),
]  # fmt: skip
NEEDED: dict[str, Json] = {
    "system": {"content": "x"}, "developer": {"content": "x"}, "user": {"content": "x"}, "assistant": {"content": "x"},
    "tool": {"content": "x", "tool_call_id": "1"},
}  # fmt: skip
CASES = [
    (place, name, value, REFUSED in values[:position])
    for place, (_, _, _, table) in enumerate(FIELDS)
    for name, values in table.items()
    for position, value in enumerate(values)
    if value != REFUSED
]


def post(client: openai.OpenAI, body: Json) -> httpx2.Response:
    """The answer to a body, at the path that it is for."""
    path = "completions" if "prompt" in body else "chat/completions"
    return httpx2.post(
        f"{client.base_url}{path}", content=json.dumps(body), headers={"Content-Type": "application/json"}
    )


@pytest.mark.parametrize("place", range(len(FIELDS)), ids=[kind.__name__ for kind, *_ in FIELDS])
def test_a_field_that_only_the_package_knows_is_refused_by_its_name(steady: openai.OpenAI, place: int) -> None:
    """So it is with all that later versions bring; what the tables above name is looked at below."""
    kind, build, before, table = FIELDS[place]
    role = table.get("role")
    for name in ["from_next_year", *(set(typing.get_type_hints(kind)) - set(table))]:
        response = post(steady, build(**{**({"role": role[0], **NEEDED[role[0]]} if role else {}), name: 1}))
        assert (response.status_code, response.json()["error"]["param"]) == (400, before + name)


@pytest.mark.parametrize(
    ("place", "name", "value", "is_refused"), CASES, ids=[f"{FIELDS[case[0]][2]}{case[1]}" for case in CASES]
)
def test_a_field_is_served_or_refused_by_its_name(
    steady: openai.OpenAI, place: int, name: str, value: Any, is_refused: bool
) -> None:
    _, build, before, table = FIELDS[place]
    role = table.get("role")
    body = build(**{**({"role": role[0], **NEEDED[role[0]]} if role else {}), name: value})
    response = post(steady, body)
    if not is_refused:
        assert response.status_code == 200, response.text
        return
    assert response.status_code == 400, response.text
    error = ErrorObject.model_validate(response.json()["error"], strict=True)
    assert (error.code, error.type) == ("unsupported_parameter", "invalid_request_error")
    assert (error.param or "").startswith(before + name)


def test_values_that_stand_for_others_become_those(client: openai.OpenAI, engine: ScriptedEngine) -> None:
    def sampling(body: Json) -> Any:
        assert post(client, body).status_code == 200
        return engine.submitted[-1].sampling

    assert sampling(chat(max_tokens=-1)).max_new_tokens is None
    assert sampling(chat(max_completion_tokens=-1)).max_new_tokens is None
    assert sampling(text(max_tokens=-1)).max_new_tokens is None
    assert sampling(text()).max_new_tokens == 16
    assert sampling(chat(top_k=-1)).top_k == 0
    assert 0 < sampling(chat(top_p=0)).top_p < 1e-5  # the likeliest token alone
    assert [sampling(chat(temperature=given)).temperature for given in (1e-320, 1e-9, 0.01)] == [0, 0, 0.01]
    refusal: Json = {"role": "assistant", "content": None, "refusal": "No."}
    parts: Json = {
        "role": "assistant",
        "content": [{"type": "refusal", "refusal": "No"}, {"type": "text", "text": "!"}],
    }
    post(client, chat(messages=[*HI, refusal, parts]))
    assert [message.content for message in engine.submitted[-1].messages] == ["hi", "No.", "No!"]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (chat(stop=["x"] * 16), "stop: List should have at most 15 items"),
        (text(prompt=["x"] * 9), "prompt: List should have at most 8 items"),
        (chat(max_tokens=0), "max_tokens: Input should be 1 or more, or -1 for no limit."),
        (chat(max_tokens=-2), "max_tokens: Input should be greater than or equal to -1."),
        (said(role="user", content=[{"type": "text"}]), "messages.1.content.0.text: Field required."),
        (said(role="user", content=5), "messages.1.content: Input should be a valid string."),
        (chat(repetition_penalty=1e-300), "repetition_penalty: Input should be greater than or equal to 0.01."),
        (chat(top_k=2**40), "top_k: Input should be less than or equal to"),
        (chat(logit_bias={"\u0661": 1}), "logit_bias.\u0661: String should match"),
        (chat(logit_bias={"01": 1}), "logit_bias.01: String should match"),
        (chat(**{"x" * 100_000: 1}), "xxx is not supported by this server"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_what_is_said(steady: openai.OpenAI, body: Json, says: str) -> None:
    response = post(steady, body)
    assert response.status_code in (400, 422)
    error = ErrorObject.model_validate(response.json()["error"], strict=True)
    assert says in error.message
    assert len(response.text) < 1000


def events(response: httpx2.Response) -> list[Json]:
    """Of a stream."""
    lines = [line.removeprefix("data: ") for line in response.text.split("\n\n")]
    assert lines[-2:] == ["[DONE]", ""]
    return [json.loads(line) for line in lines[:-2]]


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"n": 3},
        {"logprobs": True, "top_logprobs": 2},
        {"tools": [TOOL]},
        {"tools": [TOOL], "logprobs": True, "n": 2},
        {"stream_options": {"include_usage": True}},
    ],
    ids=["plain", "n", "logprobs", "tools", "all", "usage"],
)
def test_chats_are_answered_in_the_shape_of_the_package(
    client: openai.OpenAI, engine: ScriptedEngine, more: Json
) -> None:
    engine.with_tokens = "logprobs" in more
    engine.pieces = ("Well. ", '<tool_call>{"name": "look", "arguments": {}}</tool_call>')
    choices = more.get("n", 1)
    if "stream_options" not in more:
        whole = ChatCompletion.model_validate_json(post(client, chat(**more)).text, strict=True)
        assert [choice.finish_reason for choice in whole.choices] == [
            "tool_calls" if "tools" in more else "stop"
        ] * choices
        assert all((choice.logprobs is not None) == engine.with_tokens for choice in whole.choices)
    chunks = events(post(client, chat(stream=True, **more)))
    read = [ChatCompletionChunk.model_validate_json(json.dumps(chunk), strict=True) for chunk in chunks]
    assert len({chunk.id for chunk in read}) == 1
    last = {choice.index: choice.finish_reason for chunk in read for choice in chunk.choices}
    assert last == dict.fromkeys(range(choices), "tool_calls" if "tools" in more else "stop")
    assert all(("usage" in chunk) == ("stream_options" in more) for chunk in chunks)
    if "stream_options" in more:
        assert [chunk.usage is None for chunk in read] == [True] * (len(read) - 1) + [False]
        assert read[-1].choices == []


@pytest.mark.parametrize("more", [{}, {"n": 2, "prompt": ["a", "b"]}, {"logprobs": 3}], ids=["plain", "n", "logprobs"])
def test_texts_are_answered_in_the_shape_of_the_package(
    client: openai.OpenAI, engine: ScriptedEngine, more: Json
) -> None:
    engine.with_tokens = "logprobs" in more
    whole = Completion.model_validate_json(post(client, text(**more)).text, strict=True)
    assert all(choice.logprobs is None or choice.logprobs.text_offset == [0, 5] for choice in whole.choices)
    for chunk in events(post(client, text(stream=True, **more))):
        for choice in chunk["choices"]:
            choice["finish_reason"] = choice["finish_reason"] or "stop"  # null up to the end, which the type leaves out
        Completion.model_validate_json(json.dumps(chunk), strict=True)


def test_models_and_errors_have_the_shape_of_the_package(
    client: openai.OpenAI, engine: ScriptedEngine, start: Callable[..., GatewayServer]
) -> None:
    listed = httpx2.get(f"{client.base_url}models").json()
    assert listed["object"] == "list"
    for entry in listed["data"]:
        Model.model_validate(entry, strict=True)
        Model.model_validate(httpx2.get(f"{client.base_url}models/{entry['id']}").json(), strict=True)
    engine.closed = True
    for response in (
        post(client, chat()),
        httpx2.get(f"{client.base_url}models/nobody"),
        httpx2.get(f"{client.base_url}nothing"),
        httpx2.get(f"http://127.0.0.1:{start(api_key='s3cret').port}/v1/models"),
    ):
        assert set(response.json()) == {"error"}
        ErrorObject.model_validate(response.json()["error"], strict=True)
        assert {"message", "type", "param", "code"} == set(response.json()["error"])


def test_log_probabilities_are_numbers_and_tokens_are_told_apart() -> None:
    halves = (b"\xe5", b"\xe6", "é".encode())
    top = tuple((number, half, -math.inf if number else -0.1) for number, half in enumerate(halves))
    event = TokenEvent("1", "", (TokenLogprob(0, halves[0], math.nan, top), TokenLogprob(0, b"\xa5\xbd", -0.5, top)))
    choice = Choice(0)
    choice.add(event)
    piece = TextForm().piece(choice, event, True)["logprobs"]
    assert piece["tokens"] == ["bytes:\\xe5", "bytes:\\xa5\\xbd"]
    assert piece["top_logprobs"] == [{"bytes:\\xe5": -0.1, "bytes:\\xe6": -9999.0, "é": -9999.0}] * 2
    assert piece["token_logprobs"] == [-9999.0, -0.5]
    assert piece["text_offset"] == [0, 1]
    choice = dataclasses.replace(choice, done=None)
    json.dumps(Envelope(TextForm(), "x").chunk(TextForm().piece(choice, event, True), False), allow_nan=False)
