"""Which schemas are refused before they are compiled; each of those that are not compiles at once."""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any

import openai
import pytest

from inference.errors import InvalidRequestError
from inference.gateway.schema_cost import MOST_PATTERNS, endless_part
from inference.request import Grammar
from tests.inference.gateway.test_openai_client import SCHEMAS
from tests.inference.gateway.test_tool_calls import COMPILER

LONG_S = 2.0


def patterns(count: int) -> list[dict[str, Any]]:
    """Texts that end alike."""
    return [{"type": "string", "pattern": f"a{number}"} for number in range(count)]


def inside(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """An object with a property."""
    return {"type": "object", "properties": {name: schema}}


CHAIN = {f"d{number}": {"pattern": f"a{number}", "$ref": f"#/$defs/d{number + 1}"} for number in range(40)}
ENDLESS: list[dict[str, Any]] = [
    {"type": "integer", "multipleOf": 1_999_993},
    {"multipleOf": 1234.567},
    {"allOf": [{"type": "integer", "multipleOf": number} for number in (97, 89, 83, 79)]},
    {"$ref": "#/$defs/a", "multipleOf": 83, "$defs": {"a": {"multipleOf": 97, "allOf": [{"multipleOf": 89}]}}},
    {"type": "object", "properties": {f"a{n}": {"type": "integer", "multipleOf": 10_007 + n} for n in range(100)}},
    {"type": "integer", "multipleOf": 10**40 + 1},
    {"allOf": patterns(40)},
    {"$defs": {**CHAIN, "d40": {"type": "string"}}, "$ref": "#/$defs/d0"},
    {"allOf": [inside("a", each) for each in patterns(40)]},
    {"allOf": [inside("a", {"allOf": patterns(6)}) for _ in range(6)]},
    {"items": {"allOf": [{"anyOf": patterns(2)} for _ in range(40)]}},
    {"$defs": {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(2000)}},
    {"$defs": {"a": {"allOf": [{"$ref": "#/$defs/b/0"}] * 20}, "b": patterns(1)}, "$ref": "#/$defs/a"},
]
ENDLESS[-2]["$ref"] = "#/$defs/d0"
QUICK: list[dict[str, Any]] = [
    *SCHEMAS,
    {"type": "object", "properties": {f"p{n}": each | {"maxLength": 9} for n, each in enumerate(patterns(60))}},
    {"type": "object", "properties": {f"p{n}": {"type": "number", "multipleOf": 0.01} for n in range(60)}},
    {"type": "object", "properties": {f"p{n}": {"type": "number", "multipleOf": n} for n in (5, 10, 15, 60, 1000)}},
    {"anyOf": patterns(60)},
    {"allOf": patterns(MOST_PATTERNS)},
    {"$defs": {"t": {"properties": {"kids": {"items": {"$ref": "#/$defs/t"}}, "n": patterns(1)[0]}}},
     "$ref": "#/$defs/t"},
    {"$defs": {"t": patterns(1)[0]}, **inside("a", {"$ref": "#/$defs/t"}), "items": [{"$ref": "#/$defs/t"}] * 60},
    {"multipleOf": True, "allOf": 5, "$ref": 7, "properties": 8},
    {"enum": [{"multipleOf": 0}, {"allOf": patterns(40)}]},
]  # fmt: skip


@pytest.mark.parametrize("schema", ENDLESS, ids=range(len(ENDLESS)))
def test_what_would_not_come_to_an_end_is_refused(steady: openai.OpenAI, schema: dict[str, Any]) -> None:
    assert endless_part(schema)
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    tool = {"type": "function", "function": {"name": "x", "parameters": schema}}
    for more in ({"response_format": form}, {"tools": [tool], "tool_choice": "required"}):
        body = {"model": "one", "messages": [{"role": "user", "content": "hi"}], **more}
        with pytest.raises(openai.BadRequestError, match=r"take too long|characters long"):
            steady.post("/chat/completions", body=body, cast_to=object)


def test_what_no_answer_is_held_to_may_be_anything(steady: openai.OpenAI) -> None:
    tool = {"type": "function", "function": {"name": "x", "parameters": ENDLESS[0]}}
    body = {"model": "one", "messages": [{"role": "user", "content": "hi"}], "tools": [tool]}
    steady.post("/chat/completions", body=body, cast_to=object)
    tool["function"]["strict"] = True  # type: ignore[index]
    with pytest.raises(openai.BadRequestError) as caught:
        steady.post("/chat/completions", body=body, cast_to=object)
    assert caught.value.param == "tools.0.function.parameters"


@pytest.mark.parametrize("schema", QUICK, ids=range(len(QUICK)))
def test_what_is_let_through_is_compiled_or_refused_at_once(schema: dict[str, Any]) -> None:
    assert endless_part(schema) == ""
    start = time.monotonic()
    with contextlib.suppress(InvalidRequestError):
        COMPILER.start(Grammar("json_schema", json.dumps(schema)))
    assert time.monotonic() - start < LONG_S
