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
