"""Fifty texts of daily life through the 1.5B: what its to-dos and its rewritten texts can be trusted for.

Skipped without the model. All fifty take half an hour, so a few stand for them unless they are asked for:
`DESKINFER_ALL_TEXTS=1 pytest -q -s tests/app/todos/test_fifty_texts.py`. The figures come last.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from app.actions.registry import ActionRegistry
from app.language import LANGUAGES, Languages
from app.text.checks import check
from app.todos.todo import parse_todos, to_json
from inference.engine.engine import Engine
from inference.engine.loader import open_engine
from inference.engine.options import EngineOptions
from inference.errors import ModelNotFoundError
from inference.request import DoneEvent, GenerationRequest, TokenEvent

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

TEXTS = [
    (each["language"], each["text"].strip("\n"))
    for each in tomllib.loads((Path(__file__).parents[2] / "data" / "fifty_texts.toml").read_text("utf-8"))["text"]
]
_FEW = [next(number for number, (code, _) in enumerate(TEXTS) if code == wanted) for wanted in ("en", "zh")]
CHOSEN = range(len(TEXTS)) if os.environ.get("DESKINFER_ALL_TEXTS") else _FEW
LANGUAGES_OF_USER = Languages(LANGUAGES["en"], LANGUAGES["zh"])
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_URL = re.compile(r"https?://[\x21-\x7e]*[A-Za-z0-9/=]")


@dataclass
class Bench:
    """An engine, and what has been counted."""

    engine: Engine
    counts: Counter[str] = field(default_factory=Counter)

    def answer(self, request: GenerationRequest) -> str:
        self.engine.add(request)
        text = ""
        while self.engine.has_work:
            for event in self.engine.step():
                if isinstance(event, TokenEvent):
                    text += event.text
                elif isinstance(event, DoneEvent):
                    assert event.finish_reason == "stop"
                    self.counts["tokens"] += event.usage.new_tokens
                    self.counts["ms"] += int(event.usage.time_to_first_token_ms + event.usage.decode_ms)
        return text


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    try:
        engine = open_engine("qwen2.5-coder-1.5b-instruct", EngineOptions(backend="cpu", context_tokens=4096))
    except ModelNotFoundError as error:
        pytest.skip(str(error))
    found = Bench(engine)
    yield found
    engine.close()
    sys.stdout.write(f"\n{dict(found.counts)}\n")


@pytest.mark.parametrize("number", CHOSEN)
def test_todos_parse_and_come_from_sentences_of_the_text(bench: Bench, number: int) -> None:
    _, text = TEXTS[number]
    answer = bench.answer(ActionRegistry().get("todos").request(text, LANGUAGES_OF_USER))
    rows = json.loads(answer)
    todos = parse_todos(answer, text)
    given = [one for row in rows for one in row.get("todos", ())]
    # The same said twice counts once.
    assert {todo.task for todo in todos} == {one["task"] for one in given}
    words = " ".join(text.split())
    for todo in todos:
        assert todo.source
        assert todo.source in text
        assert todo.owner in words
        assert todo.due in words
    for name in ("owner", "due"):
        bench.counts[f"{name}s"] += sum(bool(getattr(todo, name)) for todo in todos)
        named = {one["task"] for one in given if one[name]}
        bench.counts[f"{name}s_left_out"] += sum(todo.task in named and not getattr(todo, name) for todo in todos)
    dated = sum(each["due_date"] is not None for each in json.loads(to_json(todos)))
    bench.counts += Counter({"texts": 1, "todos": len(todos), "empty": not todos, "dated": dated})
    for todo in todos:
        sys.stdout.write(f"\n{number}: {todo.task} | {todo.owner} | {todo.due} | {' '.join(todo.source.split())[:60]}")


@pytest.mark.parametrize("number", CHOSEN)
def test_a_changed_number_or_address_is_flagged(bench: Bench, number: int) -> None:
    """Found here by the plainest of rules: what the source has more often than the answer."""
    language, text = TEXTS[number]
    answer = bench.answer(ActionRegistry().get("rewrite").request(text, LANGUAGES_OF_USER))
    flagged = [loss for loss in check(text, answer, languages=(language, language)) if loss.kind != "line_breaks"]
    spans = [loss.source_span for loss in flagged if loss.source_span is not None]
    bench.counts += Counter({"rewritten": 1, "flagged": len(flagged)})
    left = Counter(_values(answer))
    for pattern in (_URL, _NUMBER):
        for match in pattern.finditer(text):
            what = match[0] if pattern is _URL else _value(match[0])
            if what in answer if pattern is _URL else left[what] > 0:
                left[what] -= 1
                continue
            bench.counts["changed"] += 1
            is_flagged = any(start < match.end() and match.start() < end for start, end in spans)
            assert is_flagged, f"{match[0]!r} is not in {answer!r}"


def _values(text: str) -> Iterator[str]:
    for match in _NUMBER.finditer(text):
        yield _value(match[0])


def _value(number: str) -> str:
    """The number without separators of thousands."""
    return re.sub(r",(?=\d{3}(?!\d))", "", number)
