"""From what a client asks for to what the engine is asked for."""

from __future__ import annotations

import json
from functools import partial
from typing import Any, cast

import openai
import pytest

from inference.errors import InvalidRequestError
from tests.inference.gateway.conftest import ScriptedEngine
from tests.inference.gateway.test_tool_calls import COMPILER, is_let_through

HI: list[Any] = [{"role": "user", "content": "hi"}]
LOOSE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": True, "minItems": 1},
        "way": {"oneOf": [{"type": "integer"}, {"type": "number"}], "not": {"const": 3}},
        "file": {"type": "string", "format": "binary"},
    },
    "required": ["tags", "way", "file"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("is_strict", [None, False, True])
@pytest.mark.parametrize("choice", ["auto", "required", {"type": "function", "function": {"name": "look"}}])
def test_only_what_is_strict_is_refused_for_a_keyword_that_no_grammar_holds(
    client: openai.OpenAI, engine: ScriptedEngine, is_strict: bool | None, choice: Any
) -> None:
    tool = {"type": "function", "function": {"name": "look", "strict": is_strict, "parameters": LOOSE}}
    form: Any = {"type": "json_schema", "json_schema": {"name": "x", "strict": is_strict, "schema": LOOSE}}
    ask = partial(client.chat.completions.create, model="one", messages=HI)
    ask(response_format=form)
    ask(tools=cast(Any, [tool]), tool_choice=choice)
    ask(tools=cast(Any, [tool]), tool_choice=choice, response_format=form)
    answer = '{"tags": ["a", "a"], "way": 3, "file": "x"}'
    call = f'<tool_call>\n{{"name": "look", "arguments": {answer}}}\n</tool_call>'
    for request in engine.submitted:
        assert [tool.parameters for tool in request.tools] in ([], [json.dumps(LOOSE)])  # as the model is shown them
        if request.grammar is None:
            assert not is_strict
            continue
        if is_strict:
            with pytest.raises(InvalidRequestError, match=r"uniqueItems|oneOf|not|format"):
                COMPILER.start(request.grammar)
            continue
        assert is_let_through(request.grammar, call if request.tools else answer)
        assert not is_let_through(request.grammar, answer.replace('"a"', '"c"'))
        assert not is_let_through(request.grammar, call.replace('{"tags', '{ "tags'))  # on one line


def tools(**function: Any) -> dict[str, Any]:
    """A body with a tool."""
    return {"tools": [{"type": "function", "function": {"name": "x", **function}}]}


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"maxTokens": 5}, "maxTokens"),
        ({"str": 5}, "str"),
        ({"a[b]": 5}, "a[b]"),
        (tools(inputSchema={}), "tools.0.function.inputSchema"),
        ({"messages": [{"role": "user", "content": "x", "toolCallId": "y"}]}, "messages.0.toolCallId"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "x", "TextPart": 1}]}]},
         "messages.0.content.0.TextPart"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "text"}]}]},
         "messages.0.content.1.text"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages.0.content"),
        ({"tool_choice": {"type": "function", "function": {"Name": "x", "name": "x"}}}, "tool_choice.function.Name"),
        ({"metadata": {"Key": 5}}, "metadata.Key"),
        ({"logit_bias": {"A": 1}}, "logit_bias.A"),
        ({"stop": ["x", 5]}, "stop.1"),
        ({"stop": 5}, "stop"),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}},
         "response_format.json_schema.schema"),
        ({"repeat_penalty": "x"}, "repeat_penalty"),
    ],
    ids=[f"{number}" for number in range(15)],
)  # fmt: skip
def test_what_is_wrong_is_named_as_the_client_wrote_it(steady: openai.OpenAI, more: dict[str, Any], field: str) -> None:
    with pytest.raises(openai.APIStatusError) as caught:
        steady.post("/chat/completions", body={"model": "one", "messages": HI, **more}, cast_to=object)
    assert caught.value.status_code in (400, 422)
    assert caught.value.param == field
    assert isinstance(caught.value.body, dict)
    assert caught.value.body["message"].startswith(field)
