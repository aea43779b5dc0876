"""The engine on the GPU: conversations beside each other, looking ahead, cancels, memory limits, fallbacks."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from inference.engine.decode_graph import DeviceRunner
from inference.engine.engine import Engine
from inference.engine.loader import PlannedModel, choose_backend
from inference.engine.options import EngineOptions
from inference.errors import OutOfMemoryError
from inference.request import DoneEvent, GenerationRequest, Grammar, Message, RequestEvent, SamplingParams, TokenEvent

MODEL = "random:smollm2-135m:mixed"
GIB = 1024**3
SAMPLED: dict[str, Any] = {"temperature": 0.9, "top_p": 0.95, "top_k": 50, "seed": 5, "repetition_penalty": 1.1}


@pytest.fixture(scope="module")
def opened(device: object) -> Iterator[Callable[..., Engine]]:
    """`opened(context_tokens=...)` is an engine with a model; engines of equal options are shared."""
    del device  # skips where there is none
    made: dict[int, Engine] = {}

    def make(context_tokens: int = 2048) -> Engine:
        if context_tokens not in made:
            options = EngineOptions(backend="cuda", context_tokens=context_tokens)
            made[context_tokens] = PlannedModel(MODEL, options).load()
        return made[context_tokens]

    yield make
    for engine in made.values():
        engine.close()


def ask(text: str, **sampling: Any) -> GenerationRequest:
    return GenerationRequest((Message("user", text),), SamplingParams(**sampling))


def runner_of(engine: Engine) -> DeviceRunner:
    runner = engine._runner
    assert isinstance(runner, DeviceRunner)
    return runner


def run(engine: Engine, arrivals: dict[int, GenerationRequest], cancels: dict[int, str] | None = None) -> list[str]:
    """Text and end of each request; they arrive and are cancelled at given steps."""
    events: list[RequestEvent] = []
    for step in range(5000):
        if step in arrivals:
            engine.add(arrivals[step])
        done = engine.cancel(cancels[step]) if cancels and step in cancels else None
        events += [done] if done is not None else []
        events += engine.step()
        if not engine.has_work and step >= max(arrivals):
            break
    found = []
    for request in arrivals.values():
        mine = [event for event in events if event.request_id == request.request_id]
        assert isinstance(mine[-1], DoneEvent)
        text = "".join(event.text for event in mine if isinstance(event, TokenEvent))
        found.append(f"{text} [{mine[-1].finish_reason} {mine[-1].usage.new_tokens}]")
    assert engine.reading().pages_free == engine.reading().pages_total
    return found


@pytest.mark.parametrize("sampling", [{}, SAMPLED], ids=["greedy", "sampled"])
def test_conversations_beside_each_other_are_those_of_each_alone(
    sampling: dict[str, Any], opened: Callable[..., Engine]
) -> None:
    """200 steps and more; the second and third come while others are under way, in the middle of a page."""
    engine = opened()
    requests = [
        (0, "What is a CUDA graph? " * 9, 220),
        (17, "One line of to-do.", 210),
        (90, "Summarize. " * 40, 64),
        (91, "x", 1),
    ]
    alone = [run(engine, {0: ask(text, max_new_tokens=count, **sampling)})[0] for _, text, count in requests]
    together = run(engine, {step: ask(text, max_new_tokens=count, **sampling) for step, text, count in requests})
    assert together == alone


def test_sixteen_at_once_get_the_answers_that_they_get_alone(opened: Callable[..., Engine]) -> None:
    engine = opened(8192)
    requests = [ask(f"Question {number}. " * (1 + number), max_new_tokens=40 + number) for number in range(20)]
    alone = [run(engine, {0: request})[0] for request in requests]
    assert run(engine, dict(enumerate(requests))) == alone


@pytest.mark.parametrize("sampling", [{}, SAMPLED], ids=["greedy", "sampled"])
def test_looking_ahead_and_graphs_change_no_token(sampling: dict[str, Any], opened: Callable[..., Engine]) -> None:
    engine = opened()
    runner = runner_of(engine)
    request = [ask(f"{text} tell me", max_new_tokens=130, **sampling) for text in ("first", "second " * 30)]

    def answers() -> list[str]:
        return run(engine, {0: ask(request[0].messages[0].content, max_new_tokens=130, **sampling), 9: request[1]})

    wanted = answers()
    graphs = dict(runner._graphs)
    try:
        runner.looks_ahead = False
        assert answers() == wanted
        runner._graphs.clear()
        assert answers() == wanted
        runner.looks_ahead = True
        assert answers() == wanted
    finally:
        runner.looks_ahead = True
        runner._graphs.update(graphs)


def test_answers_with_a_grammar_follow_it_beside_others_and_alone(opened: Callable[..., Engine]) -> None:
    engine = opened()
    grammar = Grammar("regex", r"[a-z]{4}: [0-9]{3,9}; [a-z]{12}")
    held = [
        GenerationRequest(
            (Message("user", f"Number {seed}."),), SamplingParams(temperature=1.0, seed=seed), grammar=grammar
        )
        for seed in range(3)
    ]
    free = ask("What is a CUDA graph?", max_new_tokens=60, **SAMPLED)
    alone = [
        run(engine, {0: dataclasses.replace(each, request_id=f"alone {i}")})[0] for i, each in enumerate([*held, free])
    ]
    assert run(engine, {0: held[0], 1: free, 2: held[1], 20: held[2]}) == [alone[0], alone[3], alone[1], alone[2]]
    assert all(re.fullmatch(grammar.text, text.rpartition(" [")[0]) for text in alone[:3])


def test_most_steps_are_launched_ahead(opened: Callable[..., Engine], monkeypatch: pytest.MonkeyPatch) -> None:
    engine = opened()
    runner = runner_of(engine)
    launch, ahead = runner.launch, []

    def noting(*arguments: Any) -> Any:
        ahead.append(arguments[1])
        return launch(*arguments)

    monkeypatch.setattr(runner, "launch", noting)
    run(engine, {0: ask("hello", max_new_tokens=100)})
    assert (ahead.count(True), ahead.count(False)) == (98, 2)


def test_a_cancel_in_the_middle_frees_the_pages_and_harms_nobody(opened: Callable[..., Engine]) -> None:
    engine = opened()
    alone = run(engine, {0: ask("stays " * 20, max_new_tokens=200)})[0]
    for step in (1, 30, 31, 64):
        leaving = ask("leaves " * 50, max_new_tokens=400)
        found = run(engine, {0: ask("stays " * 20, max_new_tokens=200), 1: leaving}, {step: leaving.request_id})
        assert found[0] == alone
        assert "[cancelled" in found[1]


def test_when_pages_run_out_everybody_is_answered_all_the_same(opened: Callable[..., Engine]) -> None:
    engine = opened(context_tokens=512)
    found = run(engine, {step: ask("word " * 12, max_new_tokens=150) for step in range(12)})
    assert all(text.endswith("[length 150]") for text in found)


def test_end_tokens_and_stop_strings_end_an_answer(opened: Callable[..., Engine]) -> None:
    engine = opened()
    text = run(engine, {0: ask("hello", max_new_tokens=60)})[0].rpartition(" [")[0]
    stop = text[len(text) // 2 : len(text) // 2 + 6]
    found = run(engine, {0: ask("hello", max_new_tokens=60, stop=(stop,))})[0]
    assert found.startswith(text.partition(stop)[0] + " [stop")


def test_auto_takes_the_gpu_and_says_why_not(device: object) -> None:
    del device
    chosen = choose_backend(EngineOptions())
    assert (chosen.backend.name, chosen.fallback_reason) == ("cuda", "")
    chosen.backend.close()
    planned = PlannedModel(MODEL, EngineOptions(vram_bytes=50 << 20, context_tokens=512))
    assert planned.memory.device == "cpu"
    assert "needs" in planned.fallback_reason
    assert "on the GPU" in planned.fallback_reason
    planned.close()


@pytest.mark.parametrize(("model", "context"), [("qwen2.5-3b:w4", 32_768), ("qwen2.5-7b:mixed", 8192)])
def test_models_that_fit_a_card_of_4_gb(model: str, context: int, device: object) -> None:
    del device
    options = EngineOptions(backend="cuda", vram_bytes=int(3.237 * GIB), context_tokens=context)
    planned = PlannedModel(f"random:{model}", options)
    assert planned.memory.context_tokens == context
    assert planned.memory.total_bytes <= 3.237 * GIB
    planned.close()


def test_a_7b_of_4_bits_is_refused_with_the_numbers(device: object) -> None:
    del device
    options = EngineOptions(backend="cuda", vram_bytes=int(3.237 * GIB), context_tokens=8192)
    with pytest.raises(OutOfMemoryError, match=r"needs 3\.9\d GB on the GPU, but 3\.24 GB are free"):
        PlannedModel("random:qwen2.5-7b:w4", options)
