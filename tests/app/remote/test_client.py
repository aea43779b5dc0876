"""The remote engine against a local server that streams, cuts, fails and hangs."""

from __future__ import annotations

import queue
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from app.engine_client import EngineClient
from app.remote.address import RemoteAddress
from app.remote.client import RemoteClient, RemoteTimeouts
from app.remote.error import RemoteError, RemoteFault
from app.remote.wire import RemoteModel
from inference.engine.options import EngineOptions
from inference.errors import EngineStoppedError, InferenceError, InvalidRequestError
from inference.request import (
    DoneEvent,
    FailedEvent,
    GenerationRequest,
    Grammar,
    Message,
    ModelEvent,
    ModelState,
    PrefillEvent,
    RequestEvent,
    SamplingParams,
    TokenCounts,
    TokenEvent,
    Tool,
)
from tests.app.remote.remote_server import Exchange, Script, answer, chunk, event, serve

WAIT_S = 10.0


@pytest.fixture
def script() -> Iterator[Script]:
    with serve(Script()) as script:
        yield script


@pytest.fixture
def client(script: Script) -> Iterator[RemoteClient]:
    client = RemoteClient(lambda _url: "sk-secret", RemoteTimeouts(answer_s=WAIT_S))
    client.set_address(RemoteAddress(script.url, "small"))
    yield client
    client.close()


def request(text: str = "hi", **fields: Any) -> GenerationRequest:
    return GenerationRequest((Message("system", "Be brief."), Message("user", text)), **fields)


class Events:
    """The events of one request."""

    def __init__(self) -> None:
        self.all: list[RequestEvent] = []
        self.queue: queue.SimpleQueue[RequestEvent] = queue.SimpleQueue()

    def __call__(self, event: RequestEvent) -> None:
        self.all.append(event)
        self.queue.put(event)

    def wait_for(self, *kinds: type) -> RequestEvent:
        while not isinstance(found := self.queue.get(timeout=WAIT_S), kinds):
            pass
        return found

    def end(self) -> DoneEvent | FailedEvent:
        found = self.wait_for(DoneEvent, FailedEvent)
        assert isinstance(found, (DoneEvent, FailedEvent))
        return found

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.all if isinstance(event, TokenEvent))


def ask(client: RemoteClient, asked: GenerationRequest | None = None) -> Events:
    events = Events()
    client.submit(asked or request(), events)
    return events


def fault(client: RemoteClient) -> RemoteFault:
    end = ask(client).end()
    assert isinstance(end, FailedEvent)
    assert isinstance(end.error, RemoteError)
    assert end.error.text.source
    return end.error.fault


def replies(status: int, document: Any, kind: str = "application/json") -> Callable[[Exchange], None]:
    return lambda exchange: exchange.reply(status, document, kind)


def streams(*parts: bytes) -> Callable[[Exchange], None]:
    def handler(exchange: Exchange) -> None:
        exchange.begin()
        for part in parts:
            exchange.write(part)

    return handler


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


@pytest.mark.parametrize(
    "asked",
    [
        request(tools=(Tool("f", "", "{}"),)),
        request(sampling=SamplingParams(top_logprobs=0)),
        request(grammar=Grammar("regex", "a+")),
        GenerationRequest((), prompt="Once"),
    ],
)
def test_what_servers_have_not_in_common_is_refused_here(
    client: RemoteClient, script: Script, asked: GenerationRequest
) -> None:
    end = ask(client, asked).end()
    assert isinstance(end, FailedEvent)
    assert isinstance(end.error, RemoteError)
    assert end.error.fault is RemoteFault.LOCAL_ONLY
    assert not script.seen


SCHEMA = '{"type": "array"}'
FORM = {"type": "json_schema", "json_schema": {"name": "answer", "schema": {"type": "array"}, "strict": True}}
WISH = Grammar("lark", "start: /a+/", is_wish=True, json_schema=SCHEMA)


def without_forms(exchange: Exchange) -> None:
    """A server that knows no `response_format`, and no text with "long" in it."""
    if "response_format" in exchange.json or "long" in exchange.json["messages"][-1]["content"]:
        exchange.reply(400, {"error": {"message": "What is this?"}})
    else:
        exchange.begin()
        exchange.write(answer("Hello"))


def forms_of(script: Script) -> list[object]:
    return [seen.json.get("response_format") for seen in script.seen]


def test_a_wish_is_asked_for_as_a_schema(client: RemoteClient, script: Script) -> None:
    ask(client, request(grammar=WISH)).end()
    ask(client, request(grammar=Grammar("regex", "a+", is_wish=True))).end()
    assert forms_of(script) == [FORM, None]


def test_a_server_that_refuses_forms_answers_without_and_is_not_asked_for_them_again(
    client: RemoteClient, script: Script
) -> None:
    script.complete = without_forms
    for _ in range(2):
        events = ask(client, request(grammar=WISH))
        assert isinstance(events.end(), DoneEvent)
        assert events.text == "Hello"
        assert [type(event) for event in events.all] == [PrefillEvent, TokenEvent, DoneEvent]
    assert forms_of(script) == [FORM, None, None]
    with serve(Script()) as other:
        client.set_address(RemoteAddress(other.url, "small"))
        ask(client, request(grammar=WISH)).end()
        assert forms_of(other) == [FORM], "another server may know them"


def test_a_text_that_is_refused_says_nothing_of_forms(client: RemoteClient, script: Script) -> None:
    script.complete = without_forms
    end = ask(client, request("a long text", grammar=WISH)).end()
    assert isinstance(end, FailedEvent)
    assert isinstance(end.error, RemoteError)
    assert end.error.fault is RemoteFault.REFUSED
    script.complete = Script().complete
    ask(client, request(grammar=WISH)).end()
    assert forms_of(script) == [FORM, None, FORM]


@pytest.mark.parametrize(("status", "grammar"), [(400, Grammar("json_schema", SCHEMA)), (503, WISH), (401, WISH)])
def test_what_is_no_refusal_of_a_wish_is_told_at_once(
    client: RemoteClient, script: Script, status: int, grammar: Grammar
) -> None:
    script.complete = replies(status, {"error": {"message": "No."}})
    assert isinstance(ask(client, request(grammar=grammar)).end(), FailedEvent)
    assert forms_of(script) == [FORM]


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


def test_an_answer_that_breaks_off_keeps_its_text(client: RemoteClient, script: Script) -> None:
    script.complete = streams(event(chunk("half an ")))
    events = ask(client)
    end = events.end()
    assert isinstance(end, FailedEvent)
    assert isinstance(end.error, RemoteError)
    assert end.error.fault is RemoteFault.BROKEN_OFF
    assert events.text == "half an "


@pytest.mark.parametrize(
    ("status", "document", "expected"),
    [
        (401, {"error": {"message": "Invalid key"}}, RemoteFault.KEY),
        (403, "no", RemoteFault.KEY),
        (404, {"error": {"message": "model 'small' not found"}}, RemoteFault.MODEL),
        (404, {"object": "error", "message": "The model does not exist.", "code": 404}, RemoteFault.MODEL),
        (404, {"detail": "Not Found"}, RemoteFault.NOT_OPENAI),
        (404, "<html>", RemoteFault.NOT_OPENAI),
        (301, "", RemoteFault.NOT_OPENAI),
        (400, {"error": {"message": "too long"}}, RemoteFault.REFUSED),
        (429, {"error": {"message": "slow down"}}, RemoteFault.BUSY),
        (503, {"error": {"message": "Loading model"}}, RemoteFault.BUSY),
        (500, [], RemoteFault.SERVER),
    ],
)
def test_each_refusal_has_a_name(
    client: RemoteClient, script: Script, status: int, document: Any, expected: RemoteFault
) -> None:
    script.complete = replies(status, document)
    assert fault(client) is expected


@pytest.mark.parametrize(
    "handler",
    [
        replies(200, "<html>a router</html>", "text/html"),
        replies(200, "no JSON"),
        replies(200, {"hello": 1}),
        streams(b"data: nonsense\n\n"),
        streams(b'data: {"hello": 1}\n\n'),
        streams(b"data: 1\n\n"),
    ],
)
def test_what_is_no_such_server_is_named(client: RemoteClient, script: Script, handler: Any) -> None:
    script.complete = handler
    assert fault(client) is RemoteFault.NOT_OPENAI


def test_a_failure_in_the_stream_is_told_in_its_own_words(client: RemoteClient, script: Script) -> None:
    script.complete = streams(event(chunk("a")), event('{"error": {"message": "out of memory"}}'))
    end = ask(client).end()
    assert isinstance(end, FailedEvent)
    assert "out of memory" in str(end.error)


def test_nobody_listens() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    client = RemoteClient()
    client.set_address(RemoteAddress(f"http://127.0.0.1:{port}/v1", "small"))
    assert fault(client) is RemoteFault.UNREACHABLE
    client.close()


def test_nothing_is_set_up() -> None:
    client = RemoteClient()
    assert fault(client) is RemoteFault.NOT_SET_UP
    client.close()


@pytest.mark.parametrize("begins", [True, False])
def test_a_server_that_hangs_is_given_up(script: Script, begins: bool) -> None:
    def handler(exchange: Exchange) -> None:
        if begins:
            exchange.begin()
            exchange.write(event(chunk("one")))
        exchange.wait_until_gone()

    script.complete = handler
    client = RemoteClient(timeouts=RemoteTimeouts(answer_s=0.2))
    client.set_address(RemoteAddress(script.url, "small"))
    assert fault(client) is RemoteFault.TIMEOUT
    client.close()


def test_a_key_that_cannot_be_sent_is_refused_here(script: Script) -> None:
    for key in ("schlüssel", "two\nlines"):
        client = RemoteClient(lambda _url, key=key: key)
        client.set_address(RemoteAddress(script.url, "small"))
        assert fault(client) is RemoteFault.KEY
        client.close()
    assert not script.seen


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
