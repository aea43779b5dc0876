"""How to-dos are asked for: sentences, the grammar of the answer, and examples in its form."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.actions.registry import ActionRegistry
from app.language import LANGUAGES, Languages
from app.todos.prompt import example_answer, quote, sentences, todo_answer, todo_grammar
from app.todos.todo import parse_todos
from inference.gateway.translation import MAX_SCHEMA_CHARS
from inference.request import Grammar
from inference.text.grammar import GrammarCompiler, GrammarState

END = 256
CHAT = "[09:12] Ben: did the invoice for Halvorsen in Oslo go out to them\n[09:13] Maya: not yet, later\nBen: ok"
TEXTS = [
    'Bob calls "Ann" on Friday. It rained.',
    "To do:\n- call Bob\n- 请小王周五前交报告。谢谢！",
    "C:\\temp\\x is full, {braces} and <|im_end|> stay. " + "A very long sentence with many words " * 5 + ".",
    CHAT,
]


class Bytes:
    """A token is a byte."""

    end_token_ids = frozenset({END})

    def encode_text(self, text: str) -> list[int]:
        return list(text.encode())

    def token_bytes(self, token_id: int) -> bytes:
        return b"" if token_id == END else bytes([token_id])


def state_of(text: str) -> GrammarState:
    return GrammarCompiler(Bytes(), END + 1).start(todo_grammar(text))


def accepted(text: str, answer: str) -> bool:
    """Whether the grammar of a text lets a model write this answer to its end."""
    return accepted_by(todo_grammar(text), answer)


def accepted_by(grammar: Grammar, answer: str) -> bool:
    state, rest = GrammarCompiler(Bytes(), END + 1).start(grammar), answer.encode()
    while rest:
        if not state.allowed[rest[0]]:
            return False
        certain = bytes(state.accept(rest[0]))
        if not rest[1:].startswith(certain):
            return False
        rest = rest[1 + len(certain) :]
    return bool(state.allowed[END])


@given(st.text(max_size=300))
def test_sentences_are_pieces_of_the_text_and_leave_nothing_out(text: str) -> None:
    rest = text
    for sentence in sentences(text):
        before, found, rest = rest.partition(sentence)
        assert found
        assert not before.strip()
    assert not rest.strip()


def test_lines_of_a_list_and_of_a_chat_are_sentences() -> None:
    assert sentences(TEXTS[1]) == ["To do:", "- call Bob", "- 请小王周五前交报告。谢谢！"]
    assert sentences(CHAT) == CHAT.splitlines()


@pytest.mark.parametrize("text", TEXTS)
def test_the_grammar_takes_what_examples_show(text: str) -> None:
    todo = {"task": 'Do "it" \\ now', "owner": "Bob" if "Bob" in text else "", "due": ""}
    count = len(sentences(text))
    for todos in ({}, {1: [todo]}, {count: [todo, todo]}, {number: [todo] * 4 for number in range(1, count + 1)}):
        answer = todo_answer(text, todos)
        assert accepted(text, answer)
        found = parse_todos(answer, text)
        # What is said again of the same sentence counts once.
        assert [each.source for each in found] == [sentences(text)[number - 1] for number in todos]


@pytest.mark.parametrize("text", TEXTS)
def test_the_schema_for_servers_takes_what_examples_show(text: str) -> None:
    schema = Grammar("json_schema", todo_grammar(text).json_schema)
    todo = {"task": 'Do "it" \\ now', "owner": "", "due": ""}
    count = len(sentences(text))
    for todos in ({}, {1: [todo]}, {number: [todo] * 4 for number in range(1, count + 1)}):
        answer = json.loads(todo_answer(text, todos))
        assert accepted_by(schema, json.dumps(answer, ensure_ascii=False))
    assert not accepted_by(schema, "[]")
    assert not accepted_by(schema, json.dumps(json.loads(todo_answer("Another text.", {}))))
    assert not accepted_by(schema, json.dumps(json.loads(todo_answer(text, {1: [todo] * 5}))))


def test_a_schema_that_servers_would_refuse_for_its_length_is_left_out() -> None:
    assert len(todo_grammar("Somebody does something. " * 80).json_schema) <= MAX_SCHEMA_CHARS
    assert todo_grammar("Somebody does something. " * 400).json_schema == ""
    assert todo_grammar(" \n").json_schema == ""


def test_owners_and_dates_are_words_of_the_text() -> None:
    text = TEXTS[0]

    def with_todo(**todo: str) -> bool:
        return accepted(text, todo_answer(text, {1: [{"task": "Call", **todo}]}))

    assert with_todo(owner="Bob", due="on Friday")
    assert with_todo(owner='Bob calls "Ann"')
    assert not with_todo(owner="Tom")
    assert not with_todo(owner="Bo")
    assert not with_todo(due="by Monday")
    assert accepted(TEXTS[1], todo_answer(TEXTS[1], {3: [{"task": "交报告", "owner": "小王", "due": "周五前"}]}))


def test_what_is_no_answer_is_barred() -> None:
    text = TEXTS[0]
    for answer in (
        "[]", "Sure, here is", todo_answer("Another text.", {}),
        todo_answer(text, {1: [{"task": ""}]}), todo_answer(text, {1: [{"task": "x" * 200}]}),
        todo_answer(text, {1: [{"task": "x"}] * 5}),
    ):  # fmt: skip
        assert not accepted(text, answer)
    assert accepted(" \n", "[]")


def test_a_text_of_many_sentences_is_compiled_in_time() -> None:
    text = "Somebody does something. " * 400
    assert state_of(text).allowed[ord("[")]


def test_quotes_are_short_and_whole_words() -> None:
    assert quote("A\n short  one.") == "A short one."
    assert quote("word " * 30) == "word " * 12 + "…"
    assert quote("好" * 90) == "好" * 60 + "…"


def test_examples_that_are_no_lists_of_todos_stay_as_they_are() -> None:
    assert example_answer("Some text.", "- [ ] Something") == "- [ ] Something"
    assert example_answer("Some text.", '{"n": 1}') == '{"n": 1}'
    assert json.loads(example_answer("It rained.", '[{"n": 1, "done": true}]'))[0]["kind"] == "done"


@pytest.mark.parametrize("code", ["en", "zh"])
def test_the_built_in_examples_are_what_the_grammar_takes(code: str) -> None:
    prompt = ActionRegistry().get("todos").prompts[code]
    found = []
    for example in prompt.examples:
        answer = example_answer(example.text, example.answer)
        assert accepted(example.text, answer)
        found.append(len(parse_todos(answer, example.text)))
    assert found == [3, 3, 0]


def test_the_action_asks_with_the_grammar_of_its_text() -> None:
    action = ActionRegistry().get("todos")
    languages = Languages(LANGUAGES["en"], LANGUAGES["zh"])
    request = action.request(TEXTS[0], languages)
    assert request.grammar == todo_grammar(TEXTS[0])
    assert request.messages[2].content == example_answer(
        action.prompts["en"].examples[0].text, action.prompts["en"].examples[0].answer
    )
    assert ActionRegistry().get("translate").request(TEXTS[0], languages).grammar is None
