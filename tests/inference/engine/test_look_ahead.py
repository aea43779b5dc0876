"""The engine over a runner that looks ahead, as a GPU's does: the same answers as without, whatever ends meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from inference.backends.backend import PAGE_SIZE
from inference.engine.engine import Engine, EngineSizes
from inference.engine.runner import Choice, HostRunner, Row, ShouldStop
from inference.errors import InferenceError
from inference.request import (
    DoneEvent,
    FailedEvent,
    GenerationRequest,
    Message,
    Priority,
    RequestEvent,
    SamplingParams,
    TokenEvent,
    Tool,
)

END = 256


class ByteTokenizer:
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


def next_letter(tokens: list[int]) -> int:
    """Depends on all tokens; END now and then."""
    value = hash(tuple(tokens)) & 0xFFFF
    return END if value % 97 == 0 else 97 + value % 26


@dataclass
class Device:
    """Pages that keep what was written to them, and a log of the launches.

    Attributes:
        failing: launches whose tokens cannot be collected.
    """

    num_pages: int
    ahead: list[bool] = field(default_factory=list)
    failing: set[int] = field(default_factory=set)
    name: str = "device"

    def __post_init__(self) -> None:
        self.pages = np.full((self.num_pages, PAGE_SIZE), -1)

    def close(self) -> None:
        pass


class AheadRunner:
    """Computes at launch, as a stream does: in order, and before anybody has looked at the tokens."""

    looks_ahead = True

    def __init__(self, device: Device) -> None:
        self.device = device
        self.last: list[int] = []

    def launch(self, rows: Sequence[Row], ahead: bool, should_stop: ShouldStop | None = None) -> tuple[int, list[int]]:
        tokens = []
        for place, row in enumerate(rows):
            chunk = row.chunk
            known = chunk.sequence.token_ids[chunk.start : chunk.start + chunk.count]
            if ahead:
                assert known == [], "the engine knows the token already, so there was nothing to look ahead for"
                known = [self.last[place]]
            for position, token in enumerate(known, chunk.start):
                self.device.pages[chunk.sequence.table.pages[position // PAGE_SIZE], position % PAGE_SIZE] = token
            if row.wants_token:
                length = chunk.start + chunk.count
                whole = self.device.pages[chunk.sequence.table.pages].reshape(-1)[:length].tolist()
                assert -1 not in whole
                tokens.append(next_letter(whole))
        self.device.ahead.append(ahead)
        self.last = tokens
        return len(self.device.ahead) - 1, tokens

    def spare_s(self) -> float:
        return 0.5

    def collect(self, ticket: tuple[int, list[int]]) -> list[Choice]:
        number, tokens = ticket
        if number in self.device.failing:
            raise InferenceError("not a number")
        return [Choice(token) for token in tokens]


class PlainRunner(AheadRunner):
    looks_ahead = False


def make_engine(device: Device, runner: Callable[[Device], AheadRunner] = AheadRunner) -> Engine:
    return Engine(runner(device), device, ByteTokenizer(), EngineSizes(device.num_pages, 1024, prefill_chunk=64))


def ask(text: str, **sampling: object) -> GenerationRequest:
    return GenerationRequest((Message("user", text),), SamplingParams(**sampling))  # type: ignore[arg-type]


def run(
    engine: Engine, arrivals: dict[int, GenerationRequest], cancels: dict[int, str] | None = None
) -> dict[str, str]:
    """Texts and ends by the requests' own texts; requests arrive and are cancelled at given steps."""
    events: list[RequestEvent] = []
    for step in range(3000):
        if step in arrivals:
            engine.add(arrivals[step])
        if cancels and step in cancels:
            done = engine.cancel(cancels[step])
            events += [done] if done is not None else []
        events += engine.step()
        if not engine.has_work and step > max(arrivals):
            break
    found = {}
    for request in arrivals.values():
        mine = [event for event in events if event.request_id == request.request_id]
        text = "".join(event.text for event in mine if isinstance(event, TokenEvent))
        end = mine[-1]
        assert isinstance(end, DoneEvent | FailedEvent)
        found[request.messages[0].content] = f"{text} {end.finish_reason if isinstance(end, DoneEvent) else 'failed'}"
    return found


def arrivals() -> dict[int, GenerationRequest]:
    return {
        0: ask("a" * 70, max_new_tokens=150),
        5: ask("b" * 10, max_new_tokens=200),
        40: ask("c" * 130, max_new_tokens=64),
        41: ask("d", max_new_tokens=1),
        42: ask("e" * 64, max_new_tokens=2, stop=("q",)),
        200: ask("f" * 63, stop=("xy", "z")),
    }


@pytest.mark.parametrize("num_pages", [16, 9])
def test_answers_are_those_of_an_engine_that_does_not_look_ahead(num_pages: int) -> None:
    device = Device(num_pages)
    found = run(make_engine(device), arrivals())
    assert found == run(make_engine(Device(num_pages), PlainRunner), arrivals())
    assert sum(device.ahead) > len(device.ahead) / 3, "many steps are launched before the last one's tokens are known"


def test_those_who_wait_for_a_place_do_not_keep_it_from_looking_ahead() -> None:
    requests = {step: ask(chr(97 + step) * 9, max_new_tokens=60) for step in range(20)}
    device = Device(64)
    found = run(make_engine(device), requests)
    assert found == run(make_engine(Device(64), PlainRunner), requests)
    assert sum(device.ahead) > len(device.ahead) / 2


def test_a_single_answer_waits_for_the_host_twice_only() -> None:
    device = Device(16)
    engine = make_engine(device)
    engine.add(ask("h" * 5, max_new_tokens=20), token_ids=[1, 2, 3])
    while engine.has_work:
        engine.step()
    # Prefill and the first decode step; the 20th token is not computed beyond.
    assert device.ahead == [False, False, *[True] * 18]


def test_a_cancel_frees_the_pages_and_harms_nobody() -> None:
    requests = arrivals()
    for step in (45, 90, 91, 92):
        device = Device(16)
        engine = make_engine(device)
        alone = run(make_engine(Device(16)), {0: ask("a" * 70, max_new_tokens=150)})
        found = run(engine, requests, {step: requests[5].request_id})
        assert found["b" * 10].endswith("cancelled")
        assert found["a" * 70] == alone["a" * 70]
        assert engine.reading().pages_free == 16
        requests = arrivals()


def test_a_failure_of_a_step_ends_its_requests_and_the_next_ones_are_answered() -> None:
    device = Device(16, failing={10})
    engine = make_engine(device)
    engine.add(ask("x" * 5, max_new_tokens=100), token_ids=[1, 2, 3])
    events: list[RequestEvent] = []
    while engine.has_work:
        try:
            events += engine.step()
        except InferenceError as error:
            events += engine.fail_step(error)
    assert isinstance(events[-1], FailedEvent)
    assert engine.reading().pages_free == 16
    fresh = run(engine, {0: ask("y" * 9, max_new_tokens=30)})
    assert fresh == run(make_engine(Device(16)), {0: ask("y" * 9, max_new_tokens=30)})


def test_a_request_id_that_comes_again_gets_its_own_tokens_only() -> None:
    device = Device(16)
    engine = make_engine(device)
    first = ask("x" * 5, max_new_tokens=100)
    engine.add(first)
    for _ in range(10):
        engine.step()
    engine.cancel(first.request_id)
    again = GenerationRequest(
        (Message("user", "other"),), SamplingParams(max_new_tokens=9), request_id=first.request_id
    )
    engine.add(again)
    events: list[RequestEvent] = []
    while engine.has_work:
        events += engine.step()
    text = "".join(event.text for event in events if isinstance(event, TokenEvent))
    assert run(make_engine(Device(16)), {0: ask("other", max_new_tokens=9)})["other"].split()[0] == text


@pytest.mark.parametrize(("priority", "spare_s"), [(Priority.API, 0.5), (Priority.CHAT, 0.0), (Priority.ACTION, 0.0)])
def test_only_answers_that_nobody_looks_at_are_launched_late(priority: Priority, spare_s: float) -> None:
    engine = make_engine(Device(16))
    assert engine.spare_s == 0.0
    engine.add(GenerationRequest((Message("user", "abc"),), SamplingParams(max_new_tokens=20), priority))
    engine.step()
    assert engine.spare_s == 0.0, "nothing is computed: the prompt's token was waited for"
    engine.step()
    assert engine.spare_s == spare_s
    while engine.has_work:
        engine.step()
    assert engine.spare_s == 0.0


def test_one_person_who_looks_on_is_enough() -> None:
    engine = make_engine(Device(16))
    for priority in (Priority.API, Priority.CHAT):
        engine.add(GenerationRequest((Message("user", "abc"),), SamplingParams(max_new_tokens=20), priority))
    for _ in range(3):
        engine.step()
    assert engine._flight is not None
    assert engine.spare_s == 0.0


def test_a_host_runner_is_never_asked_to_look_ahead() -> None:
    assert not HostRunner.looks_ahead
