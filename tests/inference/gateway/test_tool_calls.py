"""Calls of tools, found in answers that come in pieces."""

from __future__ import annotations

import json
import random

import jsonschema_rs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.gateway.tool_calls import (
    ToolCallFinder,
    call_finder,
    call_grammar,
    form_or_call_grammar,
    text_or_call_grammar,
)
from inference.request import GenerationRequest, Grammar, Message, Tool
from inference.text.grammar import GrammarCompiler
from tests.inference.gateway.test_openai_client import SCHEMAS, tool_for

WEATHER = Tool("get_weather", "", '{"type": "object", "properties": {"city": {"type": "string"}}}')
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
BARE = '{"name": "get_weather", "parameters": {"city": "Paris"}}'


def found(*pieces: str) -> tuple[str, list[tuple[str, object]]]:
    """Text and calls of an answer."""
    finder = ToolCallFinder((WEATHER,))
    text = "".join([finder.push(piece) for piece in pieces] + [finder.finish()])
    return text, [(call.name, json.loads(call.arguments)) for call in finder.calls]


PARIS = ("get_weather", {"city": "Paris"})


@pytest.mark.parametrize(
    ("answer", "text", "calls"),
    [
        (CALL, "", [PARIS]),
        (BARE, "", [PARIS]),
        (f"{BARE}\n{BARE}", "", [PARIS, PARIS]),
        (BARE + '\n{"sky": "clear"}', '{"sky": "clear"}', [PARIS]),
        ('{"name": ["get_weather"]}', '{"name": ["get_weather"]}', []),
        (f"I will look.\n{CALL}", "I will look.\n", [PARIS]),
        (f"{CALL}\n{CALL}", "", [PARIS, PARIS]),
        ("<tool_call>\n{broken}\n</tool_call>", "<tool_call>\n{broken}\n</tool_call>", []),
        ('<tool_call>{"name": "other", "arguments": {}}</tool_call>',) * 2 + ([],),
        (CALL.removesuffix("</tool_call>"), "", [PARIS]),
        ('{"city": "Paris"}', '{"city": "Paris"}', []),
        (f"A text, then {BARE}", f"A text, then {BARE}", []),
        (f"```json\n{BARE}\n```\n", "", [PARIS]),
        (f"```\n{BARE}\n```\nI have asked.", "I have asked.", [PARIS]),
        ('```json\n{"sky": "clear"}\n```', '```json\n{"sky": "clear"}\n```', []),
        ("```python\nx = {}\n```", "```python\nx = {}\n```", []),
        ("1 < 2 <tool", "1 < 2 <tool", []),
        (CALL.replace("Paris", "</tool_call>"), "", [("get_weather", {"city": "</tool_call>"})]),
        (BARE.replace("Paris", "<tool_call>"), "", [("get_weather", {"city": "<tool_call>"})]),
        ("", "", []),
    ],
)
def test_text_and_calls_are_kept_apart(answer: str, text: str, calls: list[tuple[str, object]]) -> None:
    assert found(answer) == (text, calls)


@given(
    st.lists(
        st.sampled_from([CALL, BARE, "```json\n", "```", "text ", "<tool", "_call>", "</tool_call>", "{", "\n", "é"]),
        max_size=6,
    ),
    st.data(),
)
def test_the_cut_into_pieces_does_not_matter(parts: list[str], data: st.DataObject) -> None:
    answer = "".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(answer)), max_size=8)))
    pieces = [answer[start:end] for start, end in zip([0, *cuts], [*cuts, len(answer)], strict=True)]
    assert found(*pieces) == found(answer)


def test_what_cannot_be_a_call_is_not_held_back() -> None:
    assert ToolCallFinder((WEATHER,)).push("```python\n{") == "```python\n{"
    assert ToolCallFinder((WEATHER,), are_held=True).push("{" + "x" * 300) == "{" + "x" * 300
    finder = ToolCallFinder((WEATHER,))
    assert finder.push("Let me see") == "Let me see"
    assert finder.push(" <tool_") == " "
    assert finder.push("box>") == "<tool_box>"


def test_each_call_has_an_id_of_its_own() -> None:
    finder = ToolCallFinder((WEATHER,))
    finder.push(f"{CALL}\n{CALL}")
    first, second = finder.calls
    assert first.call_id != second.call_id


# -- grammars ---------------------------------------------------------------------------------------------------------

SAY = Tool(
    "say.it",
    "",
    json.dumps(
        {
            "$defs": {"tone": {"enum": ["loud", "low"]}},
            "type": "object",
            "properties": {"tone": {"$ref": "#/$defs/tone"}, "text": {"type": "string", "maxLength": 30}},
            "required": ["tone"],
            "additionalProperties": False,
        }
    ),
)
TOOLS = (Tool("get_weather", "", WEATHER.parameters.replace("}}}", '}}, "additionalProperties": false}')), SAY)
FORM = '{"type": "object", "properties": {"name": {"type": "string"}, "n": {"type": "integer"}}, "required": ["n"]}'
SAID = '<tool_call>\n{"name": "say.it", "arguments": {"tone": "low"}}\n</tool_call>'


class Bytes:
    """A token is a byte; 256 ends an answer."""

    end_token_ids = frozenset({256})

    def encode_text(self, text: str) -> list[int]:
        return list(text.encode())

    def token_bytes(self, token_id: int) -> bytes:
        return bytes([token_id]) if token_id < 256 else b""


COMPILER = GrammarCompiler(Bytes(), 257)


def is_let_through(grammar: Grammar, answer: str) -> bool:
    """Whether an answer may be this one."""
    state, rest = COMPILER.start(grammar), answer.encode()
    while rest:
        if not state.allowed[rest[0]]:
            return False
        certain = bytes(state.accept(rest[0]))
        if not rest[1:].startswith(certain):
            return False
        rest = rest[1 + len(certain) :]
    return bool(state.allowed[256])


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "Hello, 1 < 2 <tool",
        '{"name": "get_weather"}',
        '{"name": "somebody", "parameters": {"x": 1}}',
        "See {" + BARE,
        CALL,
        f"I look.\n{CALL}\n{SAID}\nDone.",
        '{"name": "get_weather", "arguments": {"city": "Oslo"}}',
        f"{BARE}\n{BARE} and so on",
        '{\n "name" : "say.it",\n "arguments": {"tone": "low"}}',
        '```json\n{\n  "name": "say.it",\n  "arguments": {"tone": "low"}}\n```',
    ],
)
def test_text_stays_free_beside_calls_that_follow_their_schemas(answer: str) -> None:
    assert is_let_through(text_or_call_grammar(TOOLS, True), answer)


@pytest.mark.parametrize(
    "answer",
    [
        CALL.replace('"city": "Paris"', '"town": "Paris"'),
        SAID.replace("low", "high"),
        "As <tool_call> says",
        BARE.replace('"Paris"', "7"),
        "```json\n" + BARE.replace('"Paris"', "7"),
        '{"name": "say.it", "parameters": {}}',
        SAID + BARE.replace('"Paris"', "7"),
    ],
)
def test_a_call_that_does_not_follow_its_schema_cannot_be_written(answer: str) -> None:
    assert not is_let_through(text_or_call_grammar(TOOLS, True), answer)


def test_where_one_call_at_most_is_wanted_the_answer_ends_with_it() -> None:
    for answer in (CALL, BARE, f"I look.\n{CALL}"):
        assert is_let_through(text_or_call_grammar(TOOLS, False), answer)
        assert not is_let_through(text_or_call_grammar(TOOLS, False), answer + " ")
    assert not is_let_through(form_or_call_grammar(TOOLS, FORM, False), CALL + "\n")


@pytest.mark.parametrize(
    ("answer", "text", "names"),
    [
        ('{"n": 1}', '{"n": 1}', []),
        ('{"name": "get_weather", "n": 1}', '{"name": "get_weather", "n": 1}', []),
        ('{"name": "<tool_call>{}</tool_call>", "n": 1}', '{"name": "<tool_call>{}</tool_call>", "n": 1}', []),
        (f"{CALL}\n{SAID}", "", ["get_weather", "say.it"]),
        (BARE, "", ["get_weather"]),
    ],
)
def test_an_answer_in_a_form_or_a_call(answer: str, text: str, names: list[str]) -> None:
    grammar = form_or_call_grammar(TOOLS, FORM, True)
    assert is_let_through(grammar, answer)
    assert not is_let_through(grammar, "Hello")
    finder = call_finder(GenerationRequest((Message("user", "x"),), grammar=grammar, tools=TOOLS))
    assert ("".join(map(finder.push, answer)) + finder.finish(), [call.name for call in finder.calls]) == (text, names)


def test_a_form_that_allows_the_mark_is_not_read_as_a_call() -> None:
    answer = json.dumps({"name": CALL, "n": 1})
    finder = ToolCallFinder(TOOLS, are_held=True, only_first=True)
    assert ("".join(map(finder.push, answer)) + finder.finish(), finder.calls) == (answer, [])


PIECES = (
    "<tool_call>", "\n", "</tool_call>", '{"name": "', "get_weather", "say.it", '", "parameters": {',
    '", "arguments": {', '"city": "', '"tone": "low', '"text": "', '"n": ', '"', "}", ", ", " ", "{", "x", '{ "name"',
    "7", "<", "", "```json",
)  # fmt: skip
PRINTABLE = np.isin(np.arange(257), [10, *range(32, 127)])


def scribbled(grammar: Grammar, choose: random.Random, beginning: str = "") -> str:
    """An answer of a model that knows no more than pieces of calls; it writes them as far as the grammar lets it."""
    state, answer = COMPILER.start(grammar), beginning.encode()
    for byte in answer:
        answer += bytes(state.accept(byte))
    for _ in range(300):
        if state.is_complete or len(answer) > 300:
            break
        for byte in choose.choice(PIECES).encode():
            if not state.allowed[byte] or state.is_complete:
                break
            answer += bytes([byte, *state.accept(byte)])
        others = np.flatnonzero(state.allowed & PRINTABLE)
        if not len(others):
            others = np.flatnonzero(state.allowed[:256])
        if 0 < len(others) < 4 and not state.is_complete:
            byte = int(choose.choice(others))
            answer += bytes([byte, *state.accept(byte)])
    return answer.decode("utf-8", "replace")


@pytest.mark.parametrize(
    "grammar",
    [text_or_call_grammar(TOOLS, True), form_or_call_grammar(TOOLS, FORM, True), call_grammar(TOOLS)],
    ids=["text", "form", "call"],
)
def test_whatever_a_model_writes_each_call_that_is_found_follows_its_schema(grammar: Grammar) -> None:
    schemas = {tool.name: json.loads(tool.parameters) for tool in TOOLS}
    called = set()
    for seed in range(150):
        finder = call_finder(GenerationRequest((Message("user", "x"),), grammar=grammar, tools=TOOLS))
        finder.push(scribbled(grammar, random.Random(seed)))
        finder.finish()
        for call in finder.calls:
            jsonschema_rs.validate(schemas[call.name], json.loads(call.arguments))
            called.add(call.name)
    assert called == set(schemas)  # else nothing was tried


def test_fifty_schemas_hold_calls_that_may_be_made() -> None:
    finished = 0
    for schema in SCHEMAS:
        parameters = tool_for(schema)["function"]["parameters"]
        tool = Tool("give", "", json.dumps(parameters))
        grammar = text_or_call_grammar([tool], False)
        finder = call_finder(GenerationRequest((Message("user", "x"),), grammar=grammar, tools=(tool,)))
        finder.push(scribbled(grammar, random.Random(1), "<tool_call>"))
        finder.finish()
        for call in finder.calls:
            jsonschema_rs.validate(parameters, json.loads(call.arguments))
            finished += 1
    assert finished >= 40  # the others are so free that scribbling does not come to an end
