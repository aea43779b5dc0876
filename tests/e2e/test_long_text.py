"""Texts longer than the context with real models: nothing lost, a quick cancel, the same on the command line."""

from __future__ import annotations

import queue
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.actions.action import Action
from app.actions.registry import ActionRegistry
from app.actions.text_task import Coverage, PartEvent, TaskEvent, TextTask
from app.cli import app
from app.language import LANGUAGES, Languages
from app.terminal import ask
from app.todos.todo import parse_todos
from inference.engine.options import EngineOptions
from inference.engine.worker import Worker
from inference.errors import ModelNotFoundError
from inference.request import DoneEvent, FailedEvent, ModelState, TokenEvent
from inference.store.model_store import ModelStore

SMALL, ABLE = "smollm2-135m-instruct", "qwen2.5-coder-0.5b-instruct"
CODE_WORD = "BLUEHERON"
LANGUAGE_PAIR = Languages(LANGUAGES["en"], LANGUAGES["zh"])

pytestmark = [pytest.mark.timeout(900), pytest.mark.slow]


def report(chars: int) -> str:
    """A text about many things, with a code word in its first line."""
    lines = [f"To do before Friday: Anna Berg must write the code word {CODE_WORD} on the door of the office."]
    places = ("greenhouse", "old mill", "harbour", "market hall", "school garden")
    for number in range(1, 10_000):
        place = places[number % len(places)]
        lines.append(
            f"{number}. The report from the {place} is short. The pump there was repaired in March, and the costs"
            f" came to {number * 50} euros. About {number * 7} visitors were counted there, more than last year."
        )
        if sum(map(len, lines)) > chars:
            break
    return "\n\n".join(lines)


class Run:
    """A task that has run to its end."""

    def __init__(self, worker: Worker, action: Action, text: str, cancel_after: int | None = None) -> None:
        events: queue.SimpleQueue[TaskEvent] = queue.SimpleQueue()
        self.task = TextTask(worker, action, text, LANGUAGE_PAIR)
        self.tokens_after_cancel = 0
        tokens = 0

        def listener(event: TaskEvent) -> None:
            nonlocal tokens
            if isinstance(event, TokenEvent):
                tokens += 1
                self.tokens_after_cancel += cancel_after is not None and tokens > cancel_after
                if tokens == cancel_after:
                    self.task.cancel()
            events.put(event)

        self.task.run(listener)
        self.events: list[TaskEvent] = []
        while not isinstance(self.events[-1] if self.events else None, DoneEvent | FailedEvent):
            self.events.append(events.get(timeout=600))

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, TokenEvent))

    @property
    def parts(self) -> list[tuple[int, int]]:
        return [(event.number, event.of) for event in self.events if isinstance(event, PartEvent) and not event.joins]

    def assert_whole(self, worker: Worker, text: str) -> None:
        """Every token of the text went into a part."""
        assert isinstance(self.events[-1], DoneEvent), self.events[-1]
        assert isinstance(self.task.coverage, Coverage)
        assert self.task.coverage.is_complete
        assert self.task.coverage.parts > 1
        counts: queue.SimpleQueue[object] = queue.SimpleQueue()
        worker.count_tokens([text], counts.put)
        assert getattr(counts.get(timeout=60), "counts", None) == (self.task.coverage.tokens,)
        assert self.parts == [(number + 1, self.task.coverage.parts) for number in range(self.task.coverage.parts)]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str, int], Worker]]:
    workers: list[Worker] = []

    def begin(model: str, context_tokens: int) -> Worker:
        try:
            ModelStore().where(model)
        except ModelNotFoundError:
            pytest.skip(f"the model {model} is not on this machine: deskinfer models pull {model}")
        workers.append(Worker(EngineOptions(context_tokens=context_tokens, lock_dir=tmp_path), model))
        return workers[-1]

    yield begin
    for worker in workers:
        worker.close()


def action(name: str) -> Action:
    return ActionRegistry(user_dir=Path("no-such-folder")).get(name)


def test_a_long_text_is_summarized_in_parts(start: Callable[[str, int], Worker]) -> None:
    worker, text = start(SMALL, 1024), report(6000)
    run = Run(worker, action("summarize"), text)
    run.assert_whole(worker, text)
    assert 1 <= len(run.text.strip().splitlines()) <= 3


@pytest.mark.parametrize("name", ["translate", "todos"])
def test_the_code_word_of_the_first_line_is_found(start: Callable[[str, int], Worker], name: str) -> None:
    worker, text = start(ABLE, 2048), report(4000)
    run = Run(worker, action(name), text)
    run.assert_whole(worker, text)
    if name == "todos":
        found = [todo for todo in parse_todos(run.text) if CODE_WORD in todo.task]
        assert found
        assert found[0].source in text
    else:
        assert CODE_WORD in run.text
        assert len(re.findall(r"[\u4e00-\u9fff]", run.text)) > 200


def test_cancel_ends_a_part_within_two_tokens_and_the_next_run_goes_on(start: Callable[[str, int], Worker]) -> None:
    worker, text = start(SMALL, 1024), report(3000)
    run = Run(worker, action("rewrite"), text, cancel_after=20)
    assert run.events[-1] == DoneEvent(run.task.request_id, "cancelled", run.events[-1].usage)  # type: ignore[union-attr]
    assert run.tokens_after_cancel <= 2
    assert worker.reading().state is ModelState.READY
    assert (worker.reading().running, worker.reading().waiting) == (0, 0)


def test_the_command_line_does_the_same(start: Callable[[str, int], Worker], monkeypatch: pytest.MonkeyPatch) -> None:
    worker, text = start(SMALL, 1024), report(3000)
    run = Run(worker, action("summarize"), text)
    run.assert_whole(worker, text)
    monkeypatch.setattr(ask, "open_worker", lambda model: worker)
    result = CliRunner().invoke(app, ["ask", "--action", "summarize", "-"], input=text)
    assert result.exit_code == 0, result.output
    assert result.stdout.strip() == run.text.strip()
    assert run.task.coverage is not None
    assert f"all {run.task.coverage.tokens:,} tokens in {run.task.coverage.parts} parts" in result.stderr
