"""How a model is asked for to-dos: the text as numbered sentences, and the grammar of the answer.

The answer is JSON whose form is certain, whatever the model is like. It names a sentence by its number instead of
copying it, which a small model cannot get wrong and which takes no time; owners and dates are words of the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from app.text_parts import Border, units
from inference.request import Grammar

SENTENCE_KEY = "n"
_TASKS_A_SENTENCE = 3
_TASK_CHARS = 160
_ORDERED_SENTENCES = 150
"""Beyond that the grammar would be large, and only says that a number is one of a sentence."""
_CHUNK = re.compile(r"[^\W\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]+|.", re.DOTALL)


def sentences(text: str) -> list[str]:
    """The sentences of a text, or the lines of a list; each is a piece of the text as it stands."""
    found = []
    start = end = 0
    for unit in units(text):
        end += len(unit.text)
        # A heading or the line before a list belongs to what follows; here it is one of its own.
        if unit.border >= Border.ITEM or unit.text.endswith("\n") and unit.text.rstrip().endswith((":", "：")):
            found.append(text[start:end].strip())
            start = end
    found.append(text[start:].strip())
    return [sentence for sentence in found if sentence]


def numbered(text: str) -> str:
    """One sentence a line, with its number."""
    return "\n".join(f"{number}: {_one_line(sentence)}" for number, sentence in enumerate(sentences(text), 1))


def todo_grammar(text: str) -> Grammar:
    """An array of to-dos of the text, possibly empty, in the order of its sentences."""
    count = len(sentences(text))
    first = "from_1" if count else ""
    words = json.dumps(list(_chunks(" ".join(map(_one_line, sentences(text))))), ensure_ascii=False)
    rules = [
        f'start: "[" ({first} | "]")' if count else 'start: "[]"',
        r'rest: ", \"task\": \"" TASK "\", \"owner\": \"" words "\", \"due\": \"" words "\"}"',
        rf"TASK: /([^\"\\\x00-\x20\x7f]|\\[\"\\])([^\"\\\x00-\x1f\x7f]|\\[\"\\]){{0,{_TASK_CHARS}}}/",
        f'words: %regex {{ "substring_chunks": {words} }}',
        *_numbers(count),
    ]
    return Grammar("lark", "\n".join(rules))


def _numbers(count: int) -> Iterator[str]:
    """Rules from_1, from_2, ...: an object of that sentence or a later one, and all that follows."""
    opening = rf'"{{\"{SENTENCE_KEY}\": '
    if count > _ORDERED_SENTENCES:
        yield 'from_1: object (", " object)* "]"'
        yield f'object: {opening}" number rest'
        yield f'number: %json {{"type": "integer", "minimum": 1, "maximum": {count}}}'
        return
    for number in range(1, count + 1):
        following = f" | from_{number + 1}" if number < count else ""
        yield f"from_{number}: of_{number}_1{following}"
        for index in range(1, _TASKS_A_SENTENCE + 1):
            again = f"of_{number}_{index + 1} | " if index < _TASKS_A_SENTENCE else ""
            more = (
                f'", " ({again}from_{number + 1}) | ' if number < count else f'", " ({again[:-3]}) | ' if again else ""
            )
            yield f'of_{number}_{index}: {opening}{number}" rest ({more}"]")'


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _chunks(text: str) -> Iterator[str]:
    """Words, and characters of scripts without spaces, as they stand in a JSON string."""
    for match in _CHUNK.finditer(text):
        yield json.dumps(match[0], ensure_ascii=False)[1:-1]
