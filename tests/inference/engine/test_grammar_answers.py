"""Answers that a grammar holds to a form, through the engine: over a model of random logits, and over a real one."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from inference.backends.backend import Batch
from inference.engine.engine import Engine, EngineSizes
from inference.engine.loader import open_engine
from inference.engine.options import EngineOptions
from inference.engine.runner import Choice, HostRunner, Row, ShouldStop
from inference.errors import InvalidRequestError
from inference.request import DoneEvent, FailedEvent, GenerationRequest, Grammar, Message, SamplingParams, TokenEvent
from tests.inference.engine.test_engine import VOCAB, ByteTokenizer, PagedModel, end_of, reason_of, run, text_of

ANYTHING = Grammar("lark", r"start: /(.|\n)*/")
WORDS = Grammar("regex", "[a-d]{3,30}( [x-z]+){2}\\.")


class NoisyModel(PagedModel):
    """Logits that all tokens so far decide, with letters ahead of other bytes."""

    def __init__(self, num_pages: int = 64) -> None:
        self._seen: list[list[int]] = []
        super().__init__(num_pages, lambda tokens: self._seen.append(tokens) or 0)  # type: ignore[func-returns-value]

    def forward(self, batch: Batch, should_stop: Callable[[], bool] | None = None) -> NDArray[np.float32] | None:
        self._seen.clear()
        logits = super().forward(batch, should_stop)
        for row, tokens in enumerate(self._seen):
            assert logits is not None
            logits[row] = np.random.default_rng(tokens).standard_normal(VOCAB)
            logits[row, 97:123] += 2
            logits[row, 128:256] -= 9  # a grammar allows whole characters only
        return logits


class AheadRunner(HostRunner):
    """Claims to look ahead, to see when it is not asked to."""

    looks_ahead = True

    def __init__(self, model: NoisyModel) -> None:
        super().__init__(model)
        self.ahead: list[bool] = []
        self._tokens: list[Choice] = []

    def launch(self, rows: Any, ahead: bool, should_stop: ShouldStop | None = None) -> Any:
        self.ahead.append(ahead)
        restore = []
        for row, token in zip(rows, self._tokens, strict=False) if ahead else ():
            row.chunk.sequence.token_ids.append(token.token_id)
            restore.append(row.chunk.sequence.token_ids)
        ticket = super().launch(rows, False, should_stop)
        assert ticket is not None
        self._tokens = super().collect(ticket)
        for tokens in restore:
            tokens.pop()
        return self._tokens

    def collect(self, ticket: Any) -> list[Choice]:
        return list(ticket)


def make_engine(runner: Callable[[NoisyModel], HostRunner] = HostRunner, num_pages: int = 64) -> Engine:
    model = NoisyModel(num_pages)
    sizes = EngineSizes(num_pages, 64 * min(num_pages, 16), prefill_chunk=64, vocab_size=VOCAB)
    return Engine(runner(model), model, ByteTokenizer(), sizes)


def ask(text: str, grammar: Grammar | None = WORDS, **sampling: Any) -> GenerationRequest:
    return GenerationRequest((Message("user", text),), SamplingParams(**sampling), grammar=grammar)


@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_answers_follow_their_grammar_and_end_with_it(temperature: float) -> None:
    for seed in range(8):
        request = ask(f"p{seed}", temperature=temperature, seed=seed)
        events = run(make_engine(), request)
        assert re.fullmatch(WORDS.text, text_of(events, request))
        assert reason_of(events, request) == "stop"


def test_a_grammar_that_allows_everything_changes_nothing() -> None:
    for sampling in ({}, {"temperature": 0.9, "seed": 4, "top_k": 40}, {"repetition_penalty": 1.4}):
        plain, held = (
            ask("hello", grammar, max_new_tokens=60, stop=("zz",), **sampling) for grammar in (None, ANYTHING)
        )
        first, second = run(make_engine(), plain), run(make_engine(), held)
        assert text_of(first, plain) == text_of(second, held).encode("utf-8", "replace").decode()
        assert reason_of(first, plain) == reason_of(second, held)


def test_the_length_may_end_an_answer_early_and_a_stop_string_too() -> None:
    short = ask("p", max_new_tokens=5)
    events = run(make_engine(), short)
    assert re.fullmatch("[a-d]{3,5}.{0,2}", text_of(events, short))
    assert reason_of(events, short) == "length"
    stopped = ask("p", grammar=Grammar("regex", "abc(def)+x"), stop=("d",))
    events = run(make_engine(), stopped)
    assert (text_of(events, stopped), reason_of(events, stopped)) == ("abc", "stop")


def test_what_is_certain_takes_no_step_of_its_own() -> None:
    """The model is asked at the beginning and where it has a choice; 70 tokens are two chunks."""
    engine = make_engine()
    request = ask("p" * 60, Grammar("regex", "abcd[x-z]efgh[x-z]" + "k" * 70 + "[x-z]{2}"))
    engine.add(request)
    events = []
    steps = 0
    while engine.has_work:
        events += engine.step()
        steps += 1
    assert re.fullmatch(request.grammar.text, text_of(events, request))  # type: ignore[union-attr]
    assert steps == 6
    assert isinstance(events[-1], DoneEvent)
    assert events[-1].usage.new_tokens == 82
    assert engine.reading().pages_free == engine.reading().pages_total


def test_certain_tokens_end_with_the_length_and_behind_a_stop_string() -> None:
    grammar = Grammar("regex", "abcdefgh")
    short, exact, stopped = (
        ask("p", grammar, max_new_tokens=5),
        ask("p", grammar, max_new_tokens=8),
        ask("p", grammar, stop=("de",)),
    )
    events = run(make_engine(), short, exact, stopped)
    found = [(text_of(events, request), reason_of(events, request)) for request in (short, exact, stopped)]
    assert found == [("abcde", "length"), ("abcdefgh", "stop"), ("abc", "stop")]


def test_certain_tokens_wait_for_pages_as_others_do() -> None:
    """Three answers that grow by a page at once, on fewer pages than they need together."""
    grammar = Grammar("regex", "[x-z]" + "k" * 100 + "[x-z]" + "m" * 100 + "[x-z]")
    requests = [ask(f"p{i}" * 20, grammar, temperature=1.0, seed=i) for i in range(3)]
    alone = [text_of(run(make_engine(), request), request) for request in requests]
    engine = make_engine(num_pages=8)
    together = run(engine, *requests)
    assert [text_of(together, request) for request in requests] == alone
    assert engine.reading().pages_free == 8


def test_neighbours_do_not_matter_on_either_side() -> None:
    held = [ask(f"p{i}", temperature=1.0, seed=i) for i in range(3)]
    free = [ask(f"q{i}", None, temperature=1.0, seed=i, max_new_tokens=40) for i in range(3)]
    alone = [text_of(run(make_engine(), request), request) for request in (*held, *free)]
    together = run(make_engine(), held[0], free[0], held[1], free[1], free[2], held[2])
    assert [text_of(together, request) for request in (*held, *free)] == alone


def test_cancelling_leaves_nothing_behind() -> None:
    engine = make_engine()
    requests = [ask(f"p{i}") for i in range(2)]
    for request in requests:
        engine.add(request)
    events = [event for _ in range(4) for event in engine.step()]
    assert isinstance(engine.cancel(requests[0].request_id), DoneEvent)
    while engine.has_work:
        events += engine.step()
    assert re.fullmatch(WORDS.text, text_of(events, requests[1]))
    assert engine.reading().pages_free == engine.reading().pages_total


def test_a_bad_grammar_is_refused_at_once_and_harms_nobody() -> None:
    engine = make_engine()
    good = ask("p")
    engine.add(good)
    with pytest.raises(InvalidRequestError, match="unclosed"):
        engine.add(ask("q", Grammar("regex", "(")))
    assert re.fullmatch(WORDS.text, text_of(run(engine), good))


def test_a_grammar_that_becomes_too_complex_fails_its_own_request(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = make_engine()
    requests = [ask("p"), ask("q")]
    for request in requests:
        engine.add(request)
    state = engine._requests[requests[0].request_id].grammar
    assert state is not None

    def fail(token_id: int) -> None:
        raise InvalidRequestError("too complex")

    monkeypatch.setattr(state, "accept", fail)
    events = run(engine)
    assert isinstance(end_of(events, requests[0]), FailedEvent)
    assert re.fullmatch(WORDS.text, text_of(events, requests[1]))


def test_only_answers_without_a_grammar_are_looked_ahead() -> None:
    engine = make_engine(AheadRunner)
    runner = engine._runner
    assert isinstance(runner, AheadRunner)
    free, held = ask("q", None, max_new_tokens=30), ask("p")
    wanted = [text_of(run(make_engine(), request), request) for request in (free, held)]
    assert text_of(run(engine, free), free) == wanted[0]
    assert sum(runner.ahead) > 25
    runner.ahead.clear()
    assert text_of(run(engine, held), held) == wanted[1]
    assert not any(runner.ahead)


def test_rows_with_a_grammar_ask_for_exact_logits() -> None:
    batches: list[Batch] = []

    class Watching(HostRunner):
        def launch(self, rows: Any, ahead: bool, should_stop: ShouldStop | None = None) -> Any:
            assert all(isinstance(row, Row) for row in rows)
            return super().launch(rows, ahead, should_stop)

    engine = make_engine(Watching)
    batches = engine._backend.batches  # type: ignore[attr-defined]
    run(engine, ask("q", None, max_new_tokens=3))
    assert all(batch.exact_rows is None for batch in batches)
    batches.clear()
    run(engine, ask("q", None, max_new_tokens=9), ask("p", max_new_tokens=9))
    asked = [batch.exact_rows for batch in batches if batch.exact_rows is not None]
    assert [False, True] in [rows.tolist() for rows in asked]


# Real models


@pytest.fixture(scope="module")
def smollm2() -> Iterator[Engine]:
    from inference.errors import ModelNotFoundError

    try:
        engine = open_engine("smollm2-135m-instruct", EngineOptions(backend="cpu", threads=2, context_tokens=2048))
    except ModelNotFoundError as error:
        pytest.skip(str(error))
    yield engine
    engine.close()


def random_schema(rng: random.Random, depth: int = 0) -> dict[str, Any]:
    kinds = ["string", "integer", "number", "boolean", "enum", "null", "pattern", "anyOf"]
    kind = rng.choice([*kinds, *(["object", "array"] * 3 if depth < 3 else [])])
    if kind == "object":
        names = rng.sample(["name", "größe", "task", "日期", "x-y", "a b", 'quo"te'], rng.randint(0, 4))
        return {
            "type": "object",
            "properties": {name: random_schema(rng, depth + 1) for name in names},
            "required": [name for name in names if rng.random() < 0.7],
            "additionalProperties": False,
        }
    if kind == "array":
        return {"type": "array", "items": random_schema(rng, depth + 1), "maxItems": rng.randint(1, 4)}
    if kind == "enum":
        return {"enum": rng.sample(["red", "好", 1, 2.5, None, True, 'a"b', ""], 3)}
    if kind == "anyOf":
        return {"anyOf": [random_schema(rng, 3), random_schema(rng, 3)]}
    if kind == "pattern":
        return {"type": "string", "pattern": "^[A-Z][a-z]{1,8}-[0-9]{2}$"}
    limits: dict[str, dict[str, Any]] = {
        "string": {"maxLength": rng.randint(0, 30)},
        "integer": {"minimum": rng.randint(-50, 0), "maximum": rng.randint(1, 5000)},
    }
    return {"type": kind, **limits.get(kind, {})}


def fits(value: Any, schema: dict[str, Any]) -> bool:
    """A small checker of the schemas above."""
    if "anyOf" in schema:
        return any(fits(value, one) for one in schema["anyOf"])
    if "enum" in schema:
        return any(type(value) is type(one) and value == one for one in schema["enum"])
    kind = schema["type"]
    if kind == "object":
        known = schema["properties"]
        return (
            isinstance(value, dict)
            and set(schema["required"]) <= set(value) <= set(known)
            and all(fits(value[name], known[name]) for name in value)
        )
    if kind == "array":
        return isinstance(value, list) and len(value) <= schema["maxItems"] and all(
            fits(one, schema["items"]) for one in value
        )  # fmt: skip
    if kind == "string":
        pattern = re.compile(schema.get("pattern", ""))
        return isinstance(value, str) and len(value) <= schema.get("maxLength", 99) and bool(pattern.search(value))
    if kind in ("integer", "number"):
        number = isinstance(value, int if kind == "integer" else (int, float)) and not isinstance(value, bool)
        return number and schema.get("minimum", value) <= value <= schema.get("maximum", value)
    return value is None if kind == "null" else isinstance(value, bool)


@pytest.mark.parametrize("count", [8, pytest.param(50, marks=pytest.mark.slow)])
def test_random_schemas_at_temperature_one_always_parse(smollm2: Engine, count: int) -> None:
    """Eight at a time; an answer that is cut by its length is a beginning of what would have parsed."""
    rng = random.Random(count)
    schemas = [random_schema(rng) for _ in range(count)]
    requests = [
        GenerationRequest(
            (Message("user", "Give me an example as JSON."),),
            SamplingParams(temperature=1.0, seed=seed, max_new_tokens=48),
            grammar=Grammar("json_schema", json.dumps(schema)),
        )
        for seed, schema in enumerate(schemas)
    ]
    events = run(smollm2, *requests)
    ends = {"stop": 0, "length": 0}
    for request, schema in zip(requests, schemas, strict=True):
        reason = reason_of(events, request)
        ends[reason] += 1
        if reason == "stop":
            assert fits(json.loads(text_of(events, request)), schema), (schema, text_of(events, request))
    assert ends["stop"] >= 0.7 * count


def test_a_real_model_answers_the_same_with_a_grammar_that_allows_everything(smollm2: Engine) -> None:
    free, held = (
        GenerationRequest(
            (Message("user", "What is the capital of France?"),), SamplingParams(max_new_tokens=24), grammar=grammar
        )
        for grammar in (None, ANYTHING)
    )
    events = [event for request in (free, held) for event in run(smollm2, request)]
    assert text_of(events, held) == text_of(events, free) != ""


def test_a_free_neighbour_keeps_its_tokens_bit_for_bit(smollm2: Engine) -> None:
    """Its unlikely logits are not exact, those beside it are: neither may change the other's."""

    def tell(seed: int, grammar: Grammar | None) -> GenerationRequest:
        sampling = SamplingParams(temperature=1.4, seed=seed, max_new_tokens=24)
        return GenerationRequest((Message("user", f"Tell me about {seed} cats."),), sampling, grammar=grammar)

    number = Grammar("regex", "[1-9][0-9]{5,20} cats")
    requests = [tell(1, None), tell(2, number), tell(3, None), tell(4, number)]
    alone = [text_of(run(smollm2, request), request) for request in requests]
    events = run(smollm2, *requests)
    assert [text_of(events, request) for request in requests] == alone
    assert re.fullmatch(number.text, alone[1])
    assert sum(isinstance(event, TokenEvent) for event in events) > 40


def test_the_library_is_imported_with_the_first_grammar() -> None:
    """llguidance is imported with the first grammar, not with the engine."""
    import subprocess
    import sys

    code = "import sys, inference.engine.worker, inference.engine.loader; assert 'llguidance' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
