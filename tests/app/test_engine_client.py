"""The scripted engine behaves as the protocol says."""

from __future__ import annotations

import pytest

from app.engine_client import EngineClient, FakeClient, ScriptedAnswer
from inference.engine.options import EngineOptions
from inference.errors import EngineStoppedError, InferenceError, OutOfMemoryError
from inference.request import (
    DoneEvent,
    FailedEvent,
    GenerationRequest,
    Message,
    ModelEvent,
    ModelPlan,
    ModelState,
    PrefillEvent,
    Priority,
    RequestEvent,
    TokenCounts,
    TokenEvent,
)


def request(text: str = "one two", priority: Priority = Priority.ACTION) -> GenerationRequest:
    return GenerationRequest((Message("user", text),), priority=priority)


def ready(*answers: ScriptedAnswer) -> FakeClient:
    client = FakeClient(*answers)
    client.load("fake")
    client.play()
    return client


def test_it_is_an_engine_client() -> None:
    client: EngineClient = FakeClient()
    assert client.reading().state is ModelState.EMPTY


def test_it_notes_the_options() -> None:
    client = FakeClient()
    assert client.options is None
    client.set_options(EngineOptions(threads=3))
    assert client.options == EngineOptions(threads=3)


def test_nothing_is_delivered_before_the_test_says_so() -> None:
    client = ready(ScriptedAnswer("a", "b"))
    events: list[RequestEvent] = []
    client.submit(request(), events.append)
    assert events == []
    assert client.step()
    assert [type(event) for event in events] == [PrefillEvent]
    client.play()
    assert [type(event) for event in events] == [PrefillEvent, TokenEvent, TokenEvent, DoneEvent]
    assert not client.step()


def test_answers_come_in_order_and_the_last_repeats() -> None:
    client = ready(ScriptedAnswer("first"), ScriptedAnswer("second", finish_reason="length"))
    texts = []
    for _ in range(3):
        events: list[RequestEvent] = []
        client.submit(request(), events.append)
        client.play()
        texts.append((events[1].text, events[-1].finish_reason))  # type: ignore[union-attr]
    assert texts == [("first", "stop"), ("second", "length"), ("second", "length")]


def test_without_a_script_the_answer_is_the_message() -> None:
    client = ready()
    events: list[RequestEvent] = []
    client.submit(request("  Hello  big\nworld "), events.append)
    client.play()
    text = "".join(event.text for event in events if isinstance(event, TokenEvent))
    assert text == "  Hello  big\nworld "
    done = events[-1]
    assert isinstance(done, DoneEvent)
    assert done.usage.new_tokens == 3
    assert done.usage.decode_tok_s > 0


def test_the_default_model_is_loaded_first() -> None:
    client = FakeClient(model="small")
    seen: list[object] = []
    remove = client.listen(lambda event: seen.append((event.state, event.model, event.progress)))
    client.submit(request(), seen.append)
    client.play()
    assert seen[:3] == [
        (ModelState.LOADING, "small", 0.0),
        (ModelState.LOADING, "small", 0.5),
        (ModelState.READY, "small", 1.0),
    ]
    assert isinstance(seen[3], PrefillEvent)
    assert client.reading().model == "small"
    remove()
    remove()
    client.unload()
    client.play()
    assert len(seen) == 7


def test_a_load_that_fails_fails_the_request() -> None:
    client = FakeClient()
    client.load_error = OutOfMemoryError(2, 1, "Close something.")
    events: list[RequestEvent] = []
    states: list[ModelEvent] = []
    client.listen(states.append)
    client.submit(request(), events.append)
    client.play()
    assert states[-1].state is ModelState.FAILED
    assert isinstance(events[-1], FailedEvent)
    assert events[-1].error is client.load_error


def test_an_answer_may_fail_after_some_text() -> None:
    error = EngineStoppedError("x")
    client = ready(ScriptedAnswer("a", error=error))
    events: list[RequestEvent] = []
    client.submit(request(), events.append)
    client.play()
    assert [type(event) for event in events] == [PrefillEvent, TokenEvent, FailedEvent]


def test_cancel_ends_with_the_next_event() -> None:
    client = ready(ScriptedAnswer(*"abcdef"))
    events: list[RequestEvent] = []
    made = request()
    client.submit(made, events.append)
    client.step()
    client.step()
    client.cancel(made.request_id)
    client.cancel("unknown")
    client.play()
    assert isinstance(events[-1], DoneEvent)
    assert events[-1].finish_reason == "cancelled"
    assert len(events) == 3
    assert client.cancelled == [made.request_id, "unknown"]
    client.cancel(made.request_id)
    assert not client.step()


def test_actions_go_before_jobs() -> None:
    client = ready()
    order: list[str] = []
    client.submit(request("x", Priority.API), lambda event: order.append("api"))
    client.submit(request("x", Priority.ACTION), lambda event: order.append("action"))
    client.play()
    assert order == ["action"] * 3 + ["api"] * 3


def test_unload_cancels_what_runs() -> None:
    client = ready()
    events: list[RequestEvent] = []
    client.submit(request(), events.append)
    client.unload()
    client.play()
    assert isinstance(events[-1], DoneEvent)
    assert events[-1].finish_reason == "cancelled"
    assert client.reading().state is ModelState.EMPTY


def test_a_listener_may_submit_again() -> None:
    client = ready()
    ends: list[str] = []

    def again(event: RequestEvent) -> None:
        if isinstance(event, DoneEvent):
            ends.append(event.request_id)
            if len(ends) < 3:
                client.submit(request(), again)

    client.submit(request(), again)
    client.play()
    assert len(set(ends)) == 3


def test_after_close_every_request_has_ended_and_calls_are_refused() -> None:
    client = ready()
    events: list[RequestEvent] = []
    client.submit(request(), events.append)
    client.close()
    client.close()
    assert isinstance(events[-1], DoneEvent)
    for call in (lambda: client.submit(request(), events.append), lambda: client.load("x"), lambda: client.cancel("x")):
        with pytest.raises(EngineStoppedError, match="Start the app again"):
            call()


def test_plans_are_told_when_the_engine_is_played() -> None:
    client = FakeClient()
    refused = ModelPlan("big", "cpu", 4096, 9, 0, 0, 5, 0, cure="Too big.")
    client.plans["big"] = refused
    told: list[object] = []
    client.plan("big", 1024, told.append)
    client.plan("other", None, told.append)
    assert not told
    client.play()
    assert [plan.context_tokens for plan in told if isinstance(plan, ModelPlan)] == [1024, 4096]
    assert [plan.fits for plan in told if isinstance(plan, ModelPlan)] == [False, True]


def test_tokens_are_words() -> None:
    client = FakeClient()
    answers: list[TokenCounts | InferenceError] = []
    client.count_tokens(["two words", "三个字。", ""], answers.append)
    assert answers == []
    client.play()
    assert answers == [TokenCounts((2, 4, 0), 4096)]
    assert client.reading().state is ModelState.READY


def test_counting_fails_where_loading_does() -> None:
    client = FakeClient()
    client.load_error = OutOfMemoryError(2, 1, "Close something.")
    answers: list[TokenCounts | InferenceError] = []
    client.count_tokens(["two words"], answers.append)
    client.play()
    assert answers == [client.load_error]
