"""The engine over a model that is a function of the tokens on its pages, so that every answer is known beforehand."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from inference.backends.backend import PAGE_SIZE, Batch
from inference.engine.engine import Engine, EngineSizes
from inference.engine.runner import HostRunner
from inference.errors import ContextOverflowError, InferenceError, ModelFormatError
from inference.request import (
    DoneEvent,
    FailedEvent,
    GenerationRequest,
    Message,
    ModelState,
    PrefillEvent,
    Priority,
    RequestEvent,
    SamplingParams,
    TokenEvent,
    Tool,
)

END = 256
VOCAB = 257


class ByteTokenizer:
    """A token is a byte; the chat is its contents, one after the other."""

    end_token_ids = frozenset({END})

    def encode_chat(
        self, messages: Sequence[Message], add_generation_prompt: bool = True, tools: Sequence[Tool] = ()
    ) -> list[int]:
        return list("".join(message.content for message in messages).encode())

    def encode_prompt(self, text: str) -> list[int]:
        return self.encode_text(text)

    def encode_text(self, text: str) -> list[int]:
        return list(text.encode())

    def token_bytes(self, token_id: int) -> bytes:
        return b"" if token_id == END else bytes([token_id])


class PagedModel:
    """Keeps what it is given on pages and reads whole sequences back from there, as attention does.

    The next token is a hash of all tokens, or what `script` says.
    """

    name = "paged model"

    def __init__(self, num_pages: int, script: Callable[[list[int]], int] | None = None) -> None:
        self.pages = np.full((num_pages, PAGE_SIZE), -1)
        self.next_token = script or hashed
        self.computed_tokens = 0
        self.batches: list[Batch] = []
        self.closed = False

    def forward(self, batch: Batch, should_stop: Callable[[], bool] | None = None) -> NDArray[np.float32] | None:
        if should_stop is not None and should_stop():
            return None
        self.batches.append(batch)
        self.computed_tokens += len(batch.token_ids)
        rows = {}
        for index, length in enumerate(batch.context_lengths):
            for row in range(batch.query_starts[index], batch.query_starts[index + 1]):
                position = batch.positions[row]
                page = batch.page_tables[index, position // PAGE_SIZE]
                assert page >= 0
                self.pages[page, position % PAGE_SIZE] = batch.token_ids[row]
                rows[row] = (index, position)
            assert position == length - 1
        logits = np.full((len(batch.logit_rows), VOCAB), -5.0, dtype=np.float32)
        for place, row in enumerate(batch.logit_rows):
            index, position = rows[int(row)]
            whole = self.pages[batch.page_tables[index]].reshape(-1)[: position + 1].tolist()
            assert -1 not in whole
            logits[place, self.next_token(whole)] = 5.0
        return logits

    def close(self) -> None:
        self.closed = True


def hashed(tokens: list[int]) -> int:
    return 97 + hashlib.sha256(repr(tokens).encode()).digest()[0] % 26


def answer_of(prompt: str, count: int) -> str:
    tokens = list(prompt.encode())
    for _ in range(count):
        tokens.append(hashed(tokens))
    return bytes(tokens[-count:]).decode()


def scripted(prompt: str, answer: bytes) -> Callable[[list[int]], int]:
    """A model that answers so, and then ends."""
    answer_tokens = [*answer, END]
    return lambda tokens: answer_tokens[len(tokens) - len(prompt.encode())]


def make_engine(
    model: PagedModel | None = None, *, num_pages: int = 16, context_tokens: int = 1024, prefill_chunk: int = 64
) -> Engine:
    model = model or PagedModel(num_pages)
    sizes = EngineSizes(num_pages, context_tokens, prefill_chunk=prefill_chunk, weight_bytes=7, kv_bytes=9)
    ticks = iter(range(10**9))
    return Engine(HostRunner(model), model, ByteTokenizer(), sizes, name="tiny", clock=lambda: float(next(ticks)))


def ask(text: str, priority: Priority = Priority.CHAT, **sampling: object) -> GenerationRequest:
    return GenerationRequest((Message("user", text),), SamplingParams(**sampling), priority)  # type: ignore[arg-type]


def run(engine: Engine, *requests: GenerationRequest) -> list[RequestEvent]:
    for request in requests:
        engine.add(request)
    events: list[RequestEvent] = []
    for _ in range(10_000):
        if not engine.has_work:
            return events
        events += engine.step()
    raise AssertionError("the engine does not come to an end")


def text_of(events: Iterable[RequestEvent], request: GenerationRequest) -> str:
    return "".join(e.text for e in events if isinstance(e, TokenEvent) and e.request_id == request.request_id)


def end_of(events: Iterable[RequestEvent], request: GenerationRequest) -> RequestEvent:
    (end,) = (e for e in events if e.request_id == request.request_id and isinstance(e, DoneEvent | FailedEvent))
    return end


def reason_of(events: Iterable[RequestEvent], request: GenerationRequest) -> str:
    end = end_of(events, request)
    assert isinstance(end, DoneEvent)
    return end.finish_reason


@pytest.mark.parametrize("length", [1, 63, 64, 65, 200])
def test_a_prompt_of_any_length_is_answered(length: int) -> None:
    request = ask("x" * length, max_new_tokens=90)
    events = run(make_engine(), request)
    assert text_of(events, request) == answer_of("x" * length, 90)
    assert reason_of(events, request) == "length"
    prefill = [e.done_tokens for e in events if isinstance(e, PrefillEvent)]
    assert prefill[-1] == length
    assert prefill == sorted(set(prefill))


def test_interleaved_requests_get_the_answers_that_they_get_alone() -> None:
    requests = [ask(f"{i} " * (1 + 17 * i), max_new_tokens=20 + 9 * i) for i in range(6)]
    engine = make_engine(num_pages=20)
    events: list[RequestEvent] = []
    for request in requests:
        engine.add(request)
        events += engine.step()
    events += run(engine)
    for i, request in enumerate(requests):
        assert text_of(events, request) == answer_of(f"{i} " * (1 + 17 * i), 20 + 9 * i)
    assert engine.reading().pages_free == 20


def test_preemption_changes_no_answer() -> None:
    """Two requests are let in together, but the pages hold only one and a half of them."""
    requests = [ask(f"{i}" * 100, Priority(i % 3), max_new_tokens=600) for i in range(4)]
    model = PagedModel(16)
    events = run(make_engine(model), *requests)
    for i, request in enumerate(requests):
        assert text_of(events, request) == answer_of(f"{i}" * 100, 600)
        prefill = [e for e in events if isinstance(e, PrefillEvent) and e.request_id == request.request_id]
        assert [e.done_tokens for e in prefill] == sorted({e.done_tokens for e in prefill})
    assert model.computed_tokens > 4 * 699, "nothing was ever pushed out, so nothing was tested"


def test_sampled_tokens_depend_on_the_seed_and_not_on_neighbours() -> None:
    def flat(tokens: list[int]) -> int:
        return hashed(tokens)

    def sampled(seed: int) -> GenerationRequest:
        return ask("same", temperature=8.0, seed=seed, max_new_tokens=40)

    alone, again, other = sampled(5), sampled(5), sampled(6)
    crowd = [ask("y" * 70, temperature=3.0, max_new_tokens=30) for _ in range(3)]
    first = run(make_engine(PagedModel(16, flat)), alone)
    together = run(make_engine(PagedModel(16, flat)), crowd[0], again, *crowd[1:], other)
    assert text_of(first, alone) == text_of(together, again)
    assert text_of(first, alone) != text_of(together, other)


@pytest.mark.parametrize(
    ("answer", "stop", "text", "reason"),
    [
        (b"one two", (), "one two", "stop"),
        (b"one STOP two", ("STOP",), "one ", "stop"),
        (b"one ST", ("STOP",), "one ST", "stop"),
        (b"one STO", ("STOP",), "one STO", "stop"),
        (b"a STSTOP b", ("STOP", "never"), "a ST", "stop"),
        ("grüße 你好 👩‍👩‍👧".encode(), (), "grüße 你好 👩‍👩‍👧", "stop"),
        (b"cut \xf0\x9f\x91", (), "cut \ufffd", "stop"),
        (b"", (), "", "stop"),
    ],
)
def test_stop_strings_and_end_tokens(answer: bytes, stop: tuple[str, ...], text: str, reason: str) -> None:
    request = ask("p", stop=stop)
    events = run(make_engine(PagedModel(16, scripted("p", answer))), request)
    assert text_of(events, request) == text
    assert reason_of(events, request) == reason
    assert all(event.text for event in events if isinstance(event, TokenEvent))


def test_the_last_allowed_token_may_complete_a_stop_string() -> None:
    request = ask("p", stop=("END",), max_new_tokens=6)
    events = run(make_engine(PagedModel(16, scripted("p", b"ok END and more"))), request)
    assert (text_of(events, request), reason_of(events, request)) == ("ok ", "stop")


def test_text_held_back_for_a_stop_string_comes_when_the_length_ends_the_answer() -> None:
    request = ask("p", stop=("END",), max_new_tokens=5)
    events = run(make_engine(PagedModel(16, scripted("p", b"ok END"))), request)
    assert (text_of(events, request), reason_of(events, request)) == ("ok EN", "length")


def test_the_answer_ends_where_the_context_is_full() -> None:
    request = ask("x" * 100)
    events = run(make_engine(num_pages=2, context_tokens=128), request)
    assert text_of(events, request) == answer_of("x" * 100, 28)
    assert reason_of(events, request) == "length"


@pytest.mark.parametrize("length", [128, 5000])
def test_a_prompt_over_the_context_is_refused_with_both_numbers(length: int) -> None:
    engine = make_engine(num_pages=2, context_tokens=128)
    with pytest.raises(ContextOverflowError) as caught:
        engine.add(ask("x" * length))
    assert (caught.value.prompt_tokens, caught.value.context_tokens) == (length, 128)
    assert not engine.has_work


def test_of_a_text_that_is_far_too_long_only_the_beginning_is_read() -> None:
    class Reader(ByteTokenizer):
        read = 0

        def encode_text(self, text: str) -> list[int]:
            self.read += len(text)
            return super().encode_text(text)

    tokenizer, model = Reader(), PagedModel(2)
    engine = Engine(HostRunner(model), model, tokenizer, EngineSizes(2, 128))
    with pytest.raises(ContextOverflowError, match="about 1000000 tokens") as caught:
        engine.add(ask("x" * 1_000_000))
    assert caught.value.prompt_tokens == 1_000_000
    assert tokenizer.read < 50_000


def test_a_token_without_weights_never_reaches_the_model() -> None:
    model = PagedModel(16)
    engine = Engine(HostRunner(model), model, ByteTokenizer(), EngineSizes(16, 1024, vocab_size=ord("y")))
    for text in ("say yes", "xy"):
        with pytest.raises(ModelFormatError, match=r"tokens from \d+ to 121, but the model's weights know 0 to 120"):
            engine.add(ask(text))
    with pytest.raises(ModelFormatError, match="tokens from -1 to 5"):
        engine.add(ask("x"), token_ids=[5, -1])
    assert not engine.has_work
    engine.add(ask("ask x", max_new_tokens=1))
    assert isinstance(engine.step()[-1], DoneEvent)


def test_a_system_prompt_is_computed_once() -> None:
    system = "You translate. " * 20
    model = PagedModel(32)
    engine = make_engine(model, num_pages=32)
    usages = []
    for text in ("hello", "world", "hello"):
        request = ask(system + text, max_new_tokens=4)
        end = end_of(run(engine, request), request)
        assert isinstance(end, DoneEvent)
        usages.append(end.usage)
    shared = len(system) // PAGE_SIZE * PAGE_SIZE
    assert [usage.cached_tokens for usage in usages] == [0, shared, shared]
    assert model.computed_tokens == 3 * (len(system) + 5 + 3) - 2 * shared


def test_usage_counts_tokens_and_times() -> None:
    request = ask("x" * 130)
    events = run(make_engine(PagedModel(16, scripted("x" * 130, b"12345"))), request)
    end = end_of(events, request)
    assert isinstance(end, DoneEvent)
    usage = end.usage
    assert (usage.prompt_tokens, usage.new_tokens, usage.cached_tokens) == (130, 5, 0)
    # The clock ticks once a second and is read at submission, and before and after each step: 3 chunks, then 4 tokens.
    assert usage.queue_ms == 1000
    assert usage.time_to_first_token_ms == 6000
    assert usage.decode_ms == 8000
    assert usage.decode_tok_s == pytest.approx(0.5)


def test_cancelling_frees_pages_at_once_and_leaves_the_others_alone() -> None:
    engine = make_engine(num_pages=32)
    kept, ended = ask("a" * 90, max_new_tokens=30), ask("b" * 90, max_new_tokens=30)
    engine.add(kept)
    engine.add(ended)
    events = [event for _ in range(6) for event in engine.step()]
    free = engine.reading().pages_free
    done = engine.cancel(ended.request_id)
    assert done is not None
    assert done.finish_reason == "cancelled"
    assert engine.reading().pages_free > free
    assert engine.cancel(ended.request_id) is None
    assert engine.cancel("unknown") is None
    events += run(engine)
    assert text_of(events, kept) == answer_of("a" * 90, 30)
    assert engine.reading().pages_free == 32


def test_a_step_that_is_given_up_is_repeated() -> None:
    engine = make_engine()
    request = ask("x" * 100, max_new_tokens=10)
    engine.add(request)
    assert engine.step(lambda: True) == []
    events = engine.step()
    assert engine.step(lambda: True) == []
    events += run(engine)
    assert text_of(events, request) == answer_of("x" * 100, 10)


def test_a_failed_step_costs_only_its_own_requests() -> None:
    def broken(tokens: list[int]) -> int:
        if tokens[0] == ord("b") and len(tokens) > 95:
            raise RuntimeError("broken")
        return hashed(tokens)

    engine = make_engine(PagedModel(32, broken), num_pages=32)
    bad, waiting = ask("b" * 90, max_new_tokens=30), ask("c" * 2000, max_new_tokens=5)
    engine.add(bad)
    with pytest.raises(RuntimeError):
        run(engine)
    engine.add(ask("d"))
    error = InferenceError("broken")
    assert engine.fail_step(error) == [FailedEvent(bad.request_id, error)]
    assert engine.has_work
    engine.cancel_all()
    assert not engine.has_work
    assert engine.reading().pages_free == 32
    with pytest.raises(ContextOverflowError):
        engine.add(waiting)


def test_reading_shows_what_is_under_way() -> None:
    model = PagedModel(16)
    engine = make_engine(model)
    reading = engine.reading()
    assert (reading.state, reading.model, reading.backend) == (ModelState.READY, "tiny", "paged model")
    assert (reading.weight_bytes, reading.kv_bytes, reading.context_tokens) == (7, 9, 1024)
    assert (reading.pages_total, reading.pages_free, reading.running, reading.waiting) == (16, 16, 0, 0)
    engine.add(ask("x" * 100))
    assert engine.reading().waiting == 1
    engine.step()
    reading = engine.reading()
    assert (reading.running, reading.waiting, reading.pages_free) == (1, 0, 14)
    engine.close()
    assert model.closed


def test_log_probabilities_come_with_the_text_that_their_tokens_made() -> None:
    prompt, answer = "q", "añb".encode()
    engine = make_engine(PagedModel(16, scripted(prompt, answer)))
    events = run(engine, ask(prompt, top_logprobs=2, stop=("b",)))
    texts = [event for event in events if isinstance(event, TokenEvent)]
    assert [event.text for event in texts] == ["a", "ñ"]
    # A character of two tokens has both; the stop string's token made no text.
    assert [[token.text for token in event.tokens] for event in texts] == [[b"a"], [b"\xc3", b"\xb1"]]
    normalizer = np.log(np.exp(5.0) + (VOCAB - 1) * np.exp(-5.0))
    for token in (token for event in texts for token in event.tokens):
        assert token.logprob == pytest.approx(5.0 - normalizer)
        assert token.top[0] == (token.token_id, token.text, pytest.approx(token.logprob))
        assert len(token.top) == 2
        assert token.top[1][2] == pytest.approx(-5.0 - normalizer)


def test_nobody_pays_for_log_probabilities_that_nobody_asks_for() -> None:
    engine = make_engine(model := PagedModel(16))
    events = run(engine, ask("plain", max_new_tokens=3))
    assert all(event.tokens == () for event in events if isinstance(event, TokenEvent))
    assert all(batch.exact_rows is None for batch in model.batches)


def test_a_token_that_has_been_said_is_avoided_where_the_penalty_says_so() -> None:
    engine = make_engine(PagedModel(16, lambda tokens: 97))
    # The favourite is 10 ahead, and each time that it is said costs 2: after five times the lowest id is as good.
    events = run(engine, ask("x", max_new_tokens=8, frequency_penalty=2.0))
    text = "".join(event.text for event in events if isinstance(event, TokenEvent))
    assert text.startswith("aaaaa")
    assert text.count("a") < 8
