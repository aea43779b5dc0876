"""The remote engine against a local server: answers, cancelling, models, and its end."""

from __future__ import annotations

import queue
import threading

import pytest

from app.engine_client import EngineClient
from app.remote.address import RemoteAddress
from app.remote.client import RemoteClient
from app.remote.error import RemoteError, RemoteFault
from app.remote.wire import RemoteModel
from inference.engine.options import EngineOptions
from inference.errors import EngineStoppedError, InferenceError, InvalidRequestError
from inference.request import (
    DoneEvent,
    FailedEvent,
    Grammar,
    ModelEvent,
    ModelState,
    PrefillEvent,
    RequestEvent,
    SamplingParams,
    TokenCounts,
    TokenEvent,
)
from tests.app.remote.client_rig import WAIT_S, ask, replies, request, streams
from tests.app.remote.remote_server import Exchange, Script, answer, chunk, event


def test_it_is_an_engine_client_that_starts_no_thread_before_its_first_use() -> None:
    client: EngineClient = RemoteClient()
    assert client.reading().state is ModelState.EMPTY
    client.set_options(EngineOptions())
    client.close()


def test_an_answer_streams(client: RemoteClient, script: Script) -> None:
    usage = {"prompt_tokens": 12, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 5}}
    script.complete = streams(answer("Good ", "morning", usage=usage))
    events = ask(client)
    end = events.end()
    assert isinstance(end, DoneEvent)
    assert (events.text, end.finish_reason) == ("Good morning", "stop")
    assert (end.usage.prompt_tokens, end.usage.cached_tokens, end.usage.new_tokens) == (12, 5, 2)
    assert isinstance(events.all[0], PrefillEvent)
    seen = script.seen[-1]
    assert seen.path == "/v1/chat/completions"
    assert seen.headers["Authorization"] == "Bearer sk-secret"
    assert seen.json["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}]
    assert (seen.json["model"], seen.json["stream"]) == ("small", True)


def test_what_is_off_is_not_sent_and_what_is_on_is(client: RemoteClient, script: Script) -> None:
    ask(client).end()
    assert not {"top_k", "top_p", "min_p", "seed", "stop", "max_tokens"} & set(script.seen[-1].json)
    sampling = SamplingParams(
        temperature=0.5, top_k=3, seed=7, max_new_tokens=9, stop=("END",), presence_penalty=1.0, logit_bias=((5, -100),)
    )
    schema = Grammar("json_schema", '{"type": "object"}')
    ask(client, request(sampling=sampling, grammar=schema)).end()
    sent = script.seen[-1].json
    assert (sent["temperature"], sent["top_k"], sent["seed"], sent["max_tokens"]) == (0.5, 3, 7, 9)
    assert sent["stop"] == ["END"]
    assert (sent["presence_penalty"], sent["logit_bias"]) == (1.0, {"5": -100})
    assert sent["response_format"]["json_schema"]["schema"] == {"type": "object"}


def test_cuts_in_characters_and_events_do_no_harm(client: RemoteClient, script: Script) -> None:
    text = "Grüße, 你好 👋\u2028 end"
    whole = b": ping\r\n\r\n" + answer(text[:8], text[8:]).replace(b"\n", b"\r\n")
    for size in (1, 7):
        script.complete = streams(*(whole[at : at + size] for at in range(0, len(whole), size)))
        events = ask(client)
        assert isinstance(events.end(), DoneEvent)
        assert events.text == text


def test_a_length_limit_is_told(client: RemoteClient, script: Script) -> None:
    script.complete = streams(answer("Once", finish="length"))
    end = ask(client).end()
    assert isinstance(end, DoneEvent)
    assert end.finish_reason == "length"


def test_a_server_that_does_not_stream_is_understood(client: RemoteClient, script: Script) -> None:
    choice = {"message": {"role": "assistant", "content": "All at once"}, "finish_reason": "stop"}
    script.complete = replies(200, {"choices": [choice], "usage": {"prompt_tokens": 3, "completion_tokens": 4}})
    events = ask(client)
    assert isinstance(events.end(), DoneEvent)
    assert events.text == "All at once"


def test_cancel_closes_the_connection(client: RemoteClient, script: Script) -> None:
    def handler(exchange: Exchange) -> None:
        exchange.begin()
        exchange.write(event(chunk("one")))
        script.gone.put(exchange.wait_until_gone())

    script.complete = handler
    asked = request()
    events = ask(client, asked)
    events.wait_for(TokenEvent)
    client.cancel(asked.request_id)
    end = events.end()
    assert isinstance(end, DoneEvent)
    assert end.finish_reason == "cancelled"
    assert script.gone.get(timeout=WAIT_S)
    assert events.text == "one"
    client.cancel("unknown")


def test_a_request_that_is_cancelled_at_once_ends(client: RemoteClient) -> None:
    asked = request()
    events = ask(client, asked)
    client.cancel(asked.request_id)
    assert isinstance(events.end(), DoneEvent)


def test_requests_run_side_by_side_and_an_id_is_taken_once(client: RemoteClient, script: Script) -> None:
    both = threading.Barrier(2)

    def handler(exchange: Exchange) -> None:
        both.wait(WAIT_S)
        exchange.begin()
        exchange.write(answer("done"))

    script.complete = handler
    first = request()
    events = [ask(client, first), ask(client, request())]
    double = ask(client, first).end()
    assert isinstance(double, FailedEvent)
    assert isinstance(double.error, InvalidRequestError)
    assert all(isinstance(each.end(), DoneEvent) for each in events)


def load(client: RemoteClient) -> ModelEvent:
    states: queue.SimpleQueue[ModelEvent] = queue.SimpleQueue()
    remove = client.listen(states.put)
    assert client.address is not None
    client.load(client.address.id)
    assert states.get(timeout=WAIT_S).state is ModelState.LOADING
    last = states.get(timeout=WAIT_S)
    remove()
    return last


def test_loading_asks_for_the_model(client: RemoteClient, script: Script) -> None:
    ready = load(client)
    assert ready.state is ModelState.READY
    assert ready.model.startswith("remote:127.0.0.1:")
    assert ready.model.endswith("/small")
    reading = client.reading()
    assert (reading.backend, reading.context_tokens, reading.weight_bytes) == ("remote", 2048, 0)
    client.set_address(RemoteAddress(script.url, "missing"))
    failed = load(client)
    assert failed.state is ModelState.FAILED
    assert "small, large" in str(failed.error)


def test_the_models_are_listed(client: RemoteClient, script: Script) -> None:
    lists: queue.SimpleQueue[tuple[RemoteModel, ...] | InferenceError] = queue.SimpleQueue()
    client.list_models(lists.put)
    assert lists.get(timeout=WAIT_S) == (RemoteModel("small", 2048), RemoteModel("large"))
    script.models = replies(200, {"object": "list", "data": None})
    client.list_models(lists.put)
    assert 'has no model "small"' in str(lists.get(timeout=WAIT_S))
    script.models = replies(200, [1])
    client.list_models(lists.put)
    assert isinstance(lists.get(timeout=WAIT_S), RemoteError)


def test_counts_are_estimates_and_say_so(client: RemoteClient) -> None:
    counts: queue.SimpleQueue[TokenCounts | InferenceError] = queue.SimpleQueue()
    client.count_tokens(["a" * 35, "你好", ""], counts.put)
    found = counts.get(timeout=WAIT_S)
    assert found == TokenCounts((10, 2, 0), 2048, estimated=True)


def test_a_plan_does_not_apply(client: RemoteClient) -> None:
    told: queue.SimpleQueue[object] = queue.SimpleQueue()
    client.plan("remote:x/y", None, told.put)
    error = told.get(timeout=WAIT_S)
    assert isinstance(error, RemoteError)
    assert error.fault is RemoteFault.LOCAL_ONLY


def one_word_and_no_end(exchange: Exchange) -> None:
    exchange.begin()
    exchange.write(event(chunk("one")))
    exchange.wait_until_gone()


def test_unload_cancels(client: RemoteClient, script: Script) -> None:
    script.complete = one_word_and_no_end
    events = ask(client)
    events.wait_for(TokenEvent)
    client.unload()
    assert isinstance(events.end(), DoneEvent)
    assert client.reading().state is ModelState.EMPTY


def test_close_ends_all_and_later_calls_fail(client: RemoteClient, script: Script) -> None:
    script.complete = one_word_and_no_end
    events = ask(client)
    events.wait_for(TokenEvent)
    client.close()
    end = events.end()
    assert isinstance(end, DoneEvent)
    assert end.finish_reason == "cancelled"
    with pytest.raises(EngineStoppedError):
        client.submit(request(), events)
    client.close()


def test_a_listener_that_fails_harms_nobody(client: RemoteClient, caplog: pytest.LogCaptureFixture) -> None:
    words = " ".join(("what", "a", "user", "wrote"))

    def fails(_event: RequestEvent) -> None:
        raise ValueError(words)

    client.submit(request(), fails)
    assert isinstance(ask(client).end(), DoneEvent)
    assert "ValueError" in caplog.text
    assert words not in caplog.text
