"""How a model is asked for to-dos, and the grammar of its answer.

The answer goes through the text sentence by sentence: it quotes how each one begins, says whether it is a task, and
for tasks what is to be done, by whom, until when. Small models decide that well with the sentence before their eyes;
asked for a list alone, the 1.5B made tasks of facts and took the sentence before or after. The quotes are certain, so
they are read like a prompt and not written token by token. Owners and dates are words of the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from app.text.parts import Border, units
from inference.request import Grammar

TODO_KEYS = ("task", "owner", "due")
_INFO, _DONE, _TASK = "info", "done", "task"
_TASKS_A_SENTENCE = 4
_TASK_CHARS = 160
_QUOTE_CHARS = 60
_SCHEMA_CHARS = 24_000
"""A hundred sentences. Servers have limits of their own, and compile a schema before they answer."""
CHUNK = re.compile(r"[^\W\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]+|.", re.DOTALL)
"""A word, or a character of a script without spaces."""


_TURN = re.compile(r"\s*+(?:\[[^\]\n]{1,24}\]|[^\s:：]{1,24}(?: [^\s:：]{1,24})?[:：](?!/))")


def sentences(text: str) -> list[str]:
    """The sentences of a text, or the lines of a list; each is a piece of the text as it stands."""
    found = []
    start = end = 0
    for unit in units(text):
        end += len(unit.text)
        if unit.border >= Border.ITEM or (unit.text.endswith("\n") and _is_line(unit.text, text, end)):
            found.append(text[start:end].strip())
            start = end
    found.append(text[start:].strip())
    return [sentence for sentence in found if sentence]


def _is_line(line: str, text: str, end: int) -> bool:
    """Whether a line stands for itself: a heading, or what somebody says in a chat; else it was only wrapped."""
    return line.rstrip().endswith((":", "：")) or _TURN.match(text, end) is not None


def todo_grammar(text: str) -> Grammar:
    """The answer to a text; with `todo_answer` it is what a model is shown and held to."""
    pieces = sentences(text)
    words = [json.dumps(match[0], ensure_ascii=False)[1:-1] for match in CHUNK.finditer(" ".join(map(_line, pieces)))]
    rows = r' ",\n" '.join(f"{json.dumps(_opening(sentence), ensure_ascii=False)} kind" for sentence in pieces)
    fields = r'"{\"task\": \"" TASK "\", \"owner\": \"" words "\", \"due\": \"" words "\"}"'
    rules = [
        f'start: "[" {rows} "]"',
        rf'kind: "{_INFO}\"}}" | "{_DONE}\"}}" | "{_TASK}\", \"todos\": [" todo more "]}}"',
        f'more: (", " todo){{0,{_TASKS_A_SENTENCE - 1}}}',
        f"todo: {fields}",
        rf"TASK: /([^\"\\\x00-\x20\x7f]|\\[\"\\])([^\"\\\x00-\x1f\x7f]|\\[\"\\]){{0,{_TASK_CHARS}}}/",
        f'words: %regex {{ "substring_chunks": {json.dumps(words, ensure_ascii=False)} }}',
    ]
    # Large models on servers keep to the form of the examples by themselves.
    return Grammar(
        "lark", "\n".join(rules if pieces else ['start: "[]"']), is_wish=True, json_schema=_todo_schema(pieces)
    )


def _todo_schema(pieces: Sequence[str]) -> str:
    """The same form for servers, but that a schema cannot say which words a text has; "" where it gets too long."""
    words = {"type": "string", "maxLength": _QUOTE_CHARS}
    task = {"type": "string", "minLength": 1, "maxLength": _TASK_CHARS}
    todo = _object_schema({"task": task, "owner": words, "due": words})
    shared = {
        "kind": {"enum": [_TASK, _DONE, _INFO]},
        "todos": {"type": "array", "items": todo, "minItems": 1, "maxItems": _TASKS_A_SENTENCE},
    }
    references = {name: {"$ref": f"#/$defs/{name}"} for name in shared}
    rows = [_object_schema({"sentence": {"const": quote(piece)}, **references}, optional="todos") for piece in pieces]
    schema = {"type": "array", "prefixItems": rows, "items": False, "minItems": len(rows), "maxItems": len(rows)}
    text = json.dumps({**schema, "$defs": shared}, ensure_ascii=False)
    return text if pieces and len(text) <= _SCHEMA_CHARS else ""


def _object_schema(properties: Mapping[str, Any], optional: str = "") -> dict[str, Any]:
    required = [name for name in properties if name != optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def todo_answer(text: str, todos: Mapping[int, Sequence[Mapping[str, Any]]]) -> str:
    """The answer that says this, for examples.

    Args:
        todos: by the number of their sentence, from 1; one without a task says that something is done already.
    """
    rows = []
    for number, sentence in enumerate(sentences(text), 1):
        told = todos.get(number, ())
        found = [{key: todo.get(key, "") for key in TODO_KEYS} for todo in told if "task" in todo]
        if found:
            kind = f'{_TASK}", "todos": {json.dumps(found, ensure_ascii=False)}}}'
        else:
            kind = f'{_DONE if told else _INFO}"}}'
        rows.append(_opening(sentence) + kind)
    return "[" + ",\n".join(rows) + "]"


def example_answer(text: str, answer: str) -> str:
    """The answer of an action's example, which is written as a list of to-dos with "n", the number of the sentence."""
    try:
        todos = json.loads(answer)
        by_sentence: dict[int, list[Mapping[str, Any]]] = {}
        for todo in todos:
            by_sentence.setdefault(todo["n"], []).append(todo)
    except (ValueError, TypeError, KeyError):
        return answer
    return todo_answer(text, by_sentence)


def _opening(sentence: str) -> str:
    """What the answer says of a sentence before the model decides."""
    return f'{{"sentence": {json.dumps(quote(sentence), ensure_ascii=False)}, "kind": "'


def quote(sentence: str) -> str:
    """How a sentence begins, on one line."""
    line = _line(sentence)
    if len(line) <= _QUOTE_CHARS:
        return line
    cut = line[:_QUOTE_CHARS]
    return cut[: cut.rfind(" ")] + " …" if " " in cut[_QUOTE_CHARS // 2 :] else cut + "…"


def _line(text: str) -> str:
    return " ".join(text.split())
