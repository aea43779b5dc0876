"""The gateway's answers and errors, through OpenAI's client."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from inference.errors import ContextOverflowError, InvalidRequestError, OutOfMemoryError
from inference.request import EngineReading, Message, ModelState, Priority
from tests.inference.gateway.conftest import ScriptedEngine

HI: list[Any] = [{"role": "user", "content": "hi"}]


def test_a_chat_is_answered(client: openai.OpenAI, engine: ScriptedEngine) -> None:
    answer = client.chat.completions.create(model="one", messages=HI, temperature=0.5, seed=4, stop=["END"])
    assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == ("Hello there", "stop")
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (7, 2, 9)
    assert answer.usage.prompt_tokens_details is not None
    assert answer.usage.prompt_tokens_details.cached_tokens == 3
    (request,) = engine.submitted
    assert request.messages == (Message("user", "hi"),)
    assert request.priority is Priority.API
    assert (request.sampling.temperature, request.sampling.seed, request.sampling.stop) == (0.5, 4, ("END",))


def test_a_stream_says_the_same(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(
        model="one", messages=HI, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "Hello there"
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == 9
    assert len({chunk.id for chunk in chunks}) == 1


def test_several_answers_differ_in_their_seeds(client: openai.OpenAI, engine: ScriptedEngine) -> None:
    answer = client.chat.completions.create(model="one", messages=HI, n=3, seed=10)
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert [request.sampling.seed for request in engine.submitted] == [10, 11, 12]
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (7, 6)


def test_a_text_is_gone_on_with(client: openai.OpenAI, engine: ScriptedEngine) -> None:
    answer = client.completions.create(model="one", prompt="Once", max_tokens=5)
    assert answer.choices[0].text == "Hello there"
    assert (engine.submitted[0].prompt, engine.submitted[0].messages) == ("Once", ())


@pytest.mark.parametrize(
    ("change", "status", "param"),
    [
        ({"temperature": 3}, 422, "temperature"),
        ({"temperature": "warm"}, 422, "temperature"),
        ({"n": 99}, 422, "n"),
        ({"messages": []}, 422, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, 422, "messages.0.content"),
        ({"messages": [{"role": "tool", "content": "x"}]}, 400, "messages.0.tool_call_id"),
        ({"audio": {}}, 400, "audio"),
        ({"top_logprobs": 2}, 400, "top_logprobs"),
        ({"max_tokens": 1, "max_completion_tokens": 2}, 400, "max_completion_tokens"),
        ({"stream_options": {}}, 400, "stream_options"),
        ({"tool_choice": "required"}, 400, "tool_choice"),
        ({"response_format": {"type": "json_schema"}}, 400, "response_format.json_schema"),
        ({"model": "nobody"}, 404, "model"),
        ({"model": "two"}, 404, "model"),
    ],
    ids=repr,
)
def test_what_cannot_be_done_is_named(client: openai.OpenAI, change: dict[str, Any], status: int, param: str) -> None:
    body = {"model": "one", "messages": HI, **change}
    with pytest.raises(openai.APIStatusError) as caught:
        client.post("/chat/completions", body=body, cast_to=object)
    assert caught.value.status_code == status
    assert str(caught.value.param or "").startswith(param)
    assert isinstance(caught.value.body, dict)
    assert caught.value.body["message"].endswith(".")


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (ContextOverflowError(900, 512), 400, "context_length_exceeded"),
        (InvalidRequestError("The grammar has a fault. Correct it."), 400, "invalid_value"),
        (OutOfMemoryError(9 << 30, 1 << 30, "Close something."), 503, "insufficient_memory"),
    ],
)
def test_errors_of_the_engine_keep_their_words(
    client: openai.OpenAI, engine: ScriptedEngine, error: Exception, status: int, code: str
) -> None:
    engine.error = error  # type: ignore[assignment]
    with pytest.raises(openai.APIStatusError) as caught:
        client.chat.completions.create(model="one", messages=HI)
    assert (caught.value.status_code, caught.value.code) == (status, code)
    assert str(error) in str(caught.value)


def test_while_a_model_is_loaded_clients_are_told_to_come_again(client: openai.OpenAI, engine: ScriptedEngine) -> None:
    engine.state = EngineReading(state=ModelState.LOADING, model="one")
    with pytest.raises(openai.InternalServerError) as caught:
        client.chat.completions.create(model="one", messages=HI)
    assert caught.value.status_code == 503
    assert caught.value.response.headers["retry-after"] == "2"


def test_models_are_listed_loaded_and_unloaded(client: openai.OpenAI, engine: ScriptedEngine) -> None:
    assert [model.id for model in client.models.list()] == ["one", "two"]
    client.post("/load", body={"model": "two"}, cast_to=object)
    assert engine.state.model == "two"
    assert client.chat.completions.create(model="two", messages=HI).choices[0].message.content == "Hello there"
    client.post("/unload", body={}, cast_to=object)
    assert engine.state.state is ModelState.EMPTY
    with pytest.raises(openai.NotFoundError):
        client.post("/load", body={"model": "/etc/passwd"}, cast_to=object)
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("three")


def test_a_client_that_hangs_up_costs_nothing_more(client: openai.OpenAI, engine: ScriptedEngine) -> None:
    engine.holds = True
    stream = client.chat.completions.create(model="one", messages=HI, stream=True)
    next(iter(stream))
    stream.close()
    assert engine.cancelled_one.wait(5)
    assert engine.cancelled == [engine.submitted[0].request_id]


def test_a_call_of_a_tool_is_read_and_answered(client: openai.OpenAI, engine: ScriptedEngine) -> None:
    tools: list[Any] = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
    engine.pieces = ("<tool_", 'call>\n{"name": "look", ', '"arguments": {"at": 1}}\n</tool_call>')
    answer = client.chat.completions.create(model="one", messages=HI, tools=tools, tool_choice="required")
    (choice,) = answer.choices
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content is None
    assert choice.message.tool_calls is not None
    (call,) = choice.message.tool_calls
    assert call.type == "function"
    assert (call.function.name, call.function.arguments) == ("look", '{"at": 1}')
    assert engine.submitted[0].grammar is not None
    assert [tool.name for tool in engine.submitted[0].tools] == ["look"]
    turns: list[Any] = [
        *HI,
        {"role": "assistant", "tool_calls": [call.model_dump()]},
        {"role": "tool", "tool_call_id": call.id, "content": "42"},
    ]
    client.chat.completions.create(model="one", messages=turns, tools=tools)
    assert engine.submitted[1].messages[1].tool_calls[0].arguments == '{"at": 1}'
    assert engine.submitted[1].messages[2] == Message("tool", "42", (), call.id)
