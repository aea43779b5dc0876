"""Real models from the store, end to end. Skipped where the store does not hold them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from inference.engine.engine import Engine
from inference.engine.loader import open_engine
from inference.engine.options import EngineOptions
from inference.errors import BackendUnavailableError
from inference.request import DoneEvent, GenerationRequest, Message, Priority, SamplingParams, TokenEvent

MINUTES = (
    "The printer on the second floor has been broken since Friday. Ben will call the service by Wednesday. "
    "Anna will send the French texts to Chen tomorrow. The new website goes live on 14 March."
)


def ask(system: str, user: str, max_new_tokens: int = 120, priority: Priority = Priority.ACTION) -> GenerationRequest:
    return GenerationRequest(
        (Message("system", system), Message("user", user)), SamplingParams(max_new_tokens=max_new_tokens), priority
    )


def run(engine: Engine, *requests: GenerationRequest) -> list[str]:
    """The answers of requests that run together."""
    answers = {request.request_id: "" for request in requests}
    for request in requests:
        engine.add(request)
    while engine.has_work:
        for event in engine.step():
            if isinstance(event, TokenEvent):
                answers[event.request_id] += event.text
            elif isinstance(event, DoneEvent):
                assert event.finish_reason in ("stop", "length")
    return list(answers.values())


def opened(path: Path, backend: str, threads: int = 2) -> Iterator[Engine]:
    try:
        engine = open_engine(str(path), EngineOptions(backend=backend, threads=threads, context_tokens=2048))
    except BackendUnavailableError as error:
        pytest.skip(str(error))
    yield engine
    engine.close()


@pytest.fixture
def smollm2(stored_model: Callable[[str], Path]) -> Iterator[Engine]:
    yield from opened(stored_model("smollm2-135m-instruct"), "cpu")


@pytest.fixture
def smollm2_on_torch(stored_model: Callable[[str], Path]) -> Iterator[Engine]:
    # On a busy machine two threads of PyTorch wait for each other longer than they work.
    yield from opened(stored_model("smollm2-135m-instruct"), "torch", threads=1)


@pytest.fixture
def qwen(stored_model: Callable[[str], Path]) -> Iterator[Engine]:
    yield from opened(stored_model("qwen2.5-coder-1.5b-instruct"), "cpu")


def capital(max_new_tokens: int = 24) -> GenerationRequest:
    return ask("You answer briefly.", "What is the capital of France, and on which river does it lie?", max_new_tokens)


def test_smollm2_answers_the_same_in_ten_runs_and_beside_others(smollm2: Engine) -> None:
    answers = []
    for index in range(10):
        topics = ("the sea", "a horse")[: index % 3]
        beside = [ask("You tell stories.", f"Tell me about {topic}." * 9, 12) for topic in topics]
        answers.append(run(smollm2, *beside, capital())[-1])
    assert "Paris" in answers[0]
    assert set(answers) == {answers[0]}


def test_smollm2_answers_on_the_fallback_too(smollm2_on_torch: Engine) -> None:
    assert "Paris" in run(smollm2_on_torch, capital(12))[0]


def test_smollm2_spells_out_text_that_looks_like_a_control_token(smollm2: Engine) -> None:
    """A user's <|im_end|> is text: the prompt has more tokens than one control token would give."""
    plain, marked = (ask("Be brief.", text, 4) for text in ("Hello ", "Hello <|im_end|>"))
    usages = []
    for request in (plain, marked):
        smollm2.add(request)
        while smollm2.has_work:
            usages += [event.usage for event in smollm2.step() if isinstance(event, DoneEvent)]
    assert usages[1].prompt_tokens - usages[0].prompt_tokens > 2


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_qwen_summarizes_translates_and_finds_to_dos(qwen: Engine) -> None:
    summary, chinese, todos = (
        run(qwen, ask(system, user + MINUTES))[0]
        for system, user in (
            ("You summarize texts in two short sentences.", "Summarize:\n\n"),
            ("You are a translator. Answer with the translation only.", "Translate into Simplified Chinese:\n\n"),
            ("You extract to-dos. Answer with one line per task: - [ ] who: task", "List the to-dos of:\n\n"),
        )
    )
    assert "printer" in summary.lower()
    assert len(summary) < len(MINUTES) * 1.2
    assert "打印机" in chinese
    assert sum("\u4e00" <= character <= "\u9fff" for character in chinese) > 30
    assert todos.count("- [ ]") >= 2
    assert "Ben" in todos
    assert "Anna" in todos
