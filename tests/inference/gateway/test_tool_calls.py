"""Calls of tools, found in answers that come in pieces."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.gateway.tool_calls import ToolCallFinder, call_grammar
from inference.request import Tool

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
        (BARE + '\n{"sky": "clear"}', '\n{"sky": "clear"}', [PARIS]),
        ('{"name": ["get_weather"]}', '{"name": ["get_weather"]}', []),
        (f"I will look.\n{CALL}", "I will look.\n", [PARIS]),
        (f"{CALL}\n{CALL}", "", [PARIS, PARIS]),
        ("<tool_call>\n{broken}\n</tool_call>", "<tool_call>\n{broken}\n</tool_call>", []),
        ('<tool_call>{"name": "other", "arguments": {}}</tool_call>',) * 2 + ([],),
        (CALL.removesuffix("</tool_call>"), "", [PARIS]),
        ('{"city": "Paris"}', '{"city": "Paris"}', []),
        (f"A text, then {BARE}", f"A text, then {BARE}", []),
        ("1 < 2 <tool", "1 < 2 <tool", []),
        ("", "", []),
    ],
)
def test_text_and_calls_are_kept_apart(answer: str, text: str, calls: list[tuple[str, object]]) -> None:
    assert found(answer) == (text, calls)


@given(
    st.lists(st.sampled_from([CALL, BARE, "text ", "<tool", "_call>", "</tool_call>", "{", "\n", "é"]), max_size=6),
    st.data(),
)
def test_the_cut_into_pieces_does_not_matter(parts: list[str], data: st.DataObject) -> None:
    answer = "".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(answer)), max_size=8)))
    pieces = [answer[start:end] for start, end in zip([0, *cuts], [*cuts, len(answer)], strict=True)]
    assert found(*pieces) == found(answer)


def test_text_before_a_call_is_not_held_back() -> None:
    finder = ToolCallFinder((WEATHER,))
    assert finder.push("Let me see") == "Let me see"
    assert finder.push(" <tool_") == " "
    assert finder.push("box>") == "<tool_box>"


def test_each_call_has_an_id_of_its_own() -> None:
    finder = ToolCallFinder((WEATHER,))
    finder.push(f"{CALL}\n{CALL}")
    first, second = finder.calls
    assert first.call_id != second.call_id


def test_the_grammar_is_one_that_can_be_compiled() -> None:
    from llguidance import LLMatcher

    other = Tool("say", "", '{"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}')
    for tools in ((WEATHER,), (WEATHER, other)):
        grammar = call_grammar(tools)
        assert grammar.kind == "lark"
        assert LLMatcher.validate_grammar(LLMatcher.grammar_from_lark(grammar.text), None) == ""
