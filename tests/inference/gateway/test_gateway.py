"""The gateway's answers and errors, through OpenAI's client."""

from __future__ import annotations

import dataclasses
from functools import partial
from pathlib import Path
from typing import Any, cast

import openai
import pytest

from inference.errors import (
    BackendUnavailableError,
    ContextOverflowError,
    InferenceError,
    InvalidRequestError,
    ModelFormatError,
    ModelNotFoundError,
    OutOfMemoryError,
)
from inference.request import EngineReading, Message, ModelState, Priority
from tests.inference.gateway.conftest import ScriptedEngine

HI: list[Any] = [{"role": "user", "content": "hi"}]
TOOL: dict[str, Any] = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"way": {"const": "north"}}, "required": ["way"]}


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


def test_prompts_are_counted_once_each(client: openai.OpenAI, engine: ScriptedEngine) -> None:
    answer = client.completions.create(model="one", prompt=["a", "b"], n=2, seed=1)
    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
    assert [(request.prompt, request.sampling.seed) for request in engine.submitted] == [
        ("a", 1), ("a", 2), ("b", 1), ("b", 2),
    ]  # fmt: skip
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (14, 8)
    assert answer.usage.prompt_tokens_details is not None
    assert answer.usage.prompt_tokens_details.cached_tokens == 6


def test_a_stream_of_several_answers_keeps_them_apart(client: openai.OpenAI) -> None:
    texts = ["", "", ""]
    reasons: list[str | None] = [None] * 3
    for chunk in client.chat.completions.create(model="one", messages=HI, n=3, stream=True):
        (choice,) = chunk.choices
        texts[choice.index] += choice.delta.content or ""
        reasons[choice.index] = choice.finish_reason or reasons[choice.index]
    assert (texts, reasons) == (["Hello there"] * 3, ["stop"] * 3)


def test_what_is_left_out_may_be_written_as_null(client: openai.OpenAI, engine: ScriptedEngine) -> None:
    body = {"model": "one", "messages": HI, "tools": None, "n": None, "stream": None, "audio": None, "store": False}
    client.post("/chat/completions", body=body, cast_to=object)
    assert len(engine.submitted) == 1


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
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, 400, "messages.0.content.0.type"),
        ({"messages": [{"role": "user", "content": "x", "function_call": {}}]}, 400, "messages.0.function_call"),
        ({"messages": [{"role": "assistant", "content": "x", "annotations": [{}]}]}, 422, "messages.0.annotations"),
        ({"reasoning_effort": "high"}, 400, "reasoning_effort"),
        ({"store": True}, 400, "store"),
        ({"modalities": ["audio"]}, 400, "modalities.0"),
        ({"stop": ["x"] * 16}, 422, "stop"),
        ({"logit_bias": {"1": 200}}, 422, "logit_bias.1"),
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
def test_what_cannot_be_done_is_named(steady: openai.OpenAI, change: dict[str, Any], status: int, param: str) -> None:
    body = {"model": "one", "messages": HI, **change}
    with pytest.raises(openai.APIStatusError) as caught:
        steady.post("/chat/completions", body=body, cast_to=object)
    assert caught.value.status_code == status
    assert str(caught.value.param or "").startswith(param)
    assert isinstance(caught.value.body, dict)
    assert caught.value.body["message"].endswith(".")


@pytest.mark.parametrize(
    "change",
    [
        {"user": "ann", "store": False, "metadata": {"a": "b"}, "service_tier": "auto", "safety_identifier": "x"},
        {"n": 1, "stop": None, "logprobs": False, "top_logprobs": 0, "tools": None, "seed": None, "logit_bias": {}},
        {"response_format": {"type": "text"}, "modalities": ["text"], "prompt_cache_key": "k", "stop": []},
        {"tools": [], "tool_choice": "auto", "parallel_tool_calls": True},
        {"tool_choice": "none", "reasoning_effort": None, "audio": None, "prediction": None, "functions": None},
        {"max_tokens": 5, "max_completion_tokens": 5, "stream": False, "stream_options": None},
        {"repeat_penalty": 1.1},
    ],
    ids=repr,
)
def test_what_programs_send_of_themselves_is_no_error(steady: openai.OpenAI, change: dict[str, Any]) -> None:
    steady.post("/chat/completions", body={"model": "one", "messages": HI, **change}, cast_to=object)


def test_an_answer_can_be_sent_back_as_it_came(client: openai.OpenAI, engine: ScriptedEngine) -> None:
    engine.pieces = ('<tool_call>{"name": "look", "arguments": {}}</tool_call>',)
    tools: list[Any] = [TOOL]
    answer = client.chat.completions.create(model="one", messages=HI, tools=tools)
    message = answer.choices[0].message.model_dump()  # with a null for each field that it has not
    assert None in message.values()
    message |= {"audio": None, "annotations": []}
    message["tool_calls"][0]["index"] = 0  # as it is in streams
    result: Any = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "name": "look", "content": "2"}
    client.chat.completions.create(model="one", messages=[*HI, message, result], tools=tools)
    assert [each.role for each in engine.submitted[1].messages] == ["user", "assistant", "tool"]


def test_a_penalty_has_two_names(client: openai.OpenAI, engine: ScriptedEngine) -> None:
    for name in ("repetition_penalty", "repeat_penalty"):
        client.chat.completions.create(model="one", messages=HI, extra_body={name: 1.5})
        assert engine.submitted[-1].sampling.repetition_penalty == 1.5
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(
            model="one", messages=HI, extra_body={"repetition_penalty": 1, "repeat_penalty": 2}
        )
    assert caught.value.param == "repeat_penalty"


def test_names_tell_apart_those_who_share_a_role(client: openai.OpenAI, engine: ScriptedEngine) -> None:
    def said(*names: str) -> list[str]:
        turns: list[Any] = [{"role": "user", "content": "hi", **({"name": name} if name else {})} for name in names]
        turns.insert(1, {"role": "assistant", "content": "yes", "name": "cat"})
        client.chat.completions.create(model="one", messages=turns)
        return [message.content for message in engine.submitted[-1].messages]

    assert said("ann", "ann", "") == ["hi", "yes", "hi", "hi"]
    assert said("ann", "ben", "") == ["ann: hi", "yes", "ben: hi", "hi"]


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


@pytest.mark.parametrize("state", [ModelState.EMPTY, ModelState.FAILED])
def test_with_no_model_in_memory_a_request_loads_the_one_that_it_names(
    client: openai.OpenAI, engine: ScriptedEngine, state: ModelState
) -> None:
    engine.state = EngineReading(state=state)
    assert client.chat.completions.create(model="two", messages=HI).choices[0].message.content == "Hello there"
    assert engine.state.model == "two"
    with pytest.raises(openai.NotFoundError, match=r"'one' is not resident; 'two' is. Load it with POST /v1/load"):
        client.chat.completions.create(model="one", messages=HI)
    engine.state = EngineReading(state=state)
    with pytest.raises(openai.NotFoundError, match=r"'three' is not on this machine. GET /v1/models lists"):
        client.chat.completions.create(model="three", messages=HI)
    assert engine.state.model == ""


def test_a_client_that_hangs_up_costs_nothing_more(client: openai.OpenAI, engine: ScriptedEngine) -> None:
    engine.holds = True
    stream = client.chat.completions.create(model="one", messages=HI, stream=True)
    next(iter(stream))
    stream.close()
    assert engine.cancelled_one.wait(5)
    assert engine.cancelled == [engine.submitted[0].request_id]


def test_a_call_of_a_tool_is_read_and_answered(client: openai.OpenAI, engine: ScriptedEngine) -> None:
    tools: list[Any] = [TOOL]
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


def test_one_call_at_most_ends_with_the_call(client: openai.OpenAI, engine: ScriptedEngine) -> None:
    engine.pieces = ('<tool_call>\n{"name": "look", "arguments": {}}\n',)
    tools: list[Any] = [TOOL]
    answer = client.chat.completions.create(model="one", messages=HI, tools=tools, parallel_tool_calls=False, stop="x")
    assert engine.submitted[0].sampling.stop == ("x", "</tool_call>")
    assert len(answer.choices[0].message.tool_calls or ()) == 1


def test_a_call_that_may_be_made_is_held_to_its_schema_where_that_is_strict(
    client: openai.OpenAI, engine: ScriptedEngine
) -> None:
    strict: Any = {"type": "function", "function": {"name": "look", "strict": True, "parameters": SCHEMA}}
    loose: Any = {"type": "function", "function": {"name": "see", "parameters": {"type": "strange"}}}
    ask = partial(client.chat.completions.create, model="one", messages=HI)
    ask(tools=[loose])
    ask(tools=[strict, loose])
    ask(tools=[strict, loose], parallel_tool_calls=False)
    grammars = [request.grammar.text if request.grammar else "" for request in engine.submitted]
    assert grammars[0] == ""
    assert '"const": "north"' in grammars[1]
    assert "strange" not in grammars[1]
    assert grammars[1] != grammars[2]
    assert engine.submitted[2].sampling.stop == ()


@pytest.mark.parametrize("choice", ["auto", "required", "none"])
def test_a_form_is_for_answers_that_call_nothing(client: openai.OpenAI, engine: ScriptedEngine, choice: Any) -> None:
    form: Any = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}
    client.chat.completions.create(
        model="one", messages=HI, tools=cast(Any, [TOOL]), tool_choice=choice, response_format=form
    )
    grammar = engine.submitted[0].grammar
    assert grammar is not None
    assert ("north" in grammar.text, "look" in grammar.text) == (choice != "required", choice != "none")


def test_a_tool_that_must_not_be_called_is_not_shown(client: openai.OpenAI, engine: ScriptedEngine) -> None:
    tools: list[Any] = [TOOL]
    engine.pieces = ('{"name": "look"}',)
    answer = client.chat.completions.create(model="one", messages=HI, tools=tools, tool_choice="none")
    assert engine.submitted[0].tools == ()
    assert (answer.choices[0].message.content, answer.choices[0].message.tool_calls) == ('{"name": "look"}', None)


def test_streamed_calls_come_before_the_end(client: openai.OpenAI, engine: ScriptedEngine) -> None:
    engine.pieces = ("Well. ", '<tool_call>{"name": "look", "arguments": {"x": "\\ud800"}}</tool_call>')
    tools: list[Any] = [TOOL]
    chunks = list(client.chat.completions.create(model="one", messages=HI, tools=tools, stream=True))
    deltas = [(chunk.choices[0].delta, chunk.choices[0].finish_reason) for chunk in chunks]
    assert "".join(delta.content or "" for delta, _ in deltas) == "Well. "
    called, last = deltas[-2:]
    assert called[0].tool_calls is not None
    assert called[0].tool_calls[0].function is not None
    assert called[0].tool_calls[0].function.arguments == '{"x": "?"}'
    assert (called[1], last[0].tool_calls, last[1]) == (None, None, "tool_calls")


def test_a_stream_that_is_refused_has_the_status_of_that(client: openai.OpenAI, engine: ScriptedEngine) -> None:
    engine.error = ContextOverflowError(900, 512)
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model="one", messages=HI, stream=True)
    assert caught.value.code == "context_length_exceeded"


def test_an_error_in_a_stream_ends_it(client: openai.OpenAI, engine: ScriptedEngine) -> None:
    engine.fails_late = True
    stream = client.chat.completions.create(model="one", messages=HI, stream=True)
    with pytest.raises(openai.APIError, match="the cable"):
        list(stream)
    assert engine.cancelled == []


def test_log_probabilities_say_where_they_stand(client: openai.OpenAI, engine: ScriptedEngine) -> None:
    engine.with_tokens = True
    answer = client.completions.create(model="one", prompt="a", logprobs=1)
    whole = answer.choices[0].logprobs
    assert whole is not None
    assert (whole.tokens, whole.text_offset) == (["Hello", " there"], [0, 5])
    chunks = client.completions.create(model="one", prompt="a", logprobs=1, stream=True)
    logprobs = [chunk.choices[0].logprobs for chunk in chunks]
    assert [each.text_offset for each in logprobs if each is not None] == [[0], [5]]
    chat = client.chat.completions.create(model="one", messages=HI, logprobs=True, top_logprobs=1)
    tokens = chat.choices[0].logprobs
    assert tokens is not None
    assert tokens.content is not None
    assert [(token.token, token.bytes, token.top_logprobs[0].token) for token in tokens.content] == [
        ("Hello", list(b"Hello"), "Hello"), (" there", list(b" there"), " there"),
    ]  # fmt: skip


def test_a_model_is_served_under_its_name_not_its_path(client: openai.OpenAI, engine: ScriptedEngine) -> None:
    engine.state = dataclasses.replace(engine.state, model="/mnt/someone/models/three.gguf")
    assert [model.id for model in client.models.list()] == ["three.gguf", "one", "two"]
    assert client.chat.completions.create(model="three.gguf", messages=HI).model == "three.gguf"
    with pytest.raises(openai.NotFoundError) as caught:
        client.chat.completions.create(model="one", messages=HI)
    assert "someone" not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "told", "shown"),
    [
        (ModelNotFoundError, "There is no model '/mnt/someone/models/a.gguf': fetch it.", "There is no model 'a.gguf'"),
        (ModelFormatError, "/mnt/someone/a/b.json cannot be read: no and/or yes.", "b.json cannot be read: no and/or"),
        (ModelFormatError, r"C:\someone\models\a.gguf is empty.", "a.gguf is empty."),
        (ModelNotFoundError, f"{Path.home()}/a.gguf is not here.", "a.gguf is not here."),
        (BackendUnavailableError, "Look at /dev/nvidia0.", "Look at /dev/nvidia0."),
    ],
)
def test_where_files_lie_is_told_to_no_program(
    client: openai.OpenAI, engine: ScriptedEngine, kind: type[InferenceError], told: str, shown: str
) -> None:
    engine.error = kind("cuda", told) if kind is BackendUnavailableError else kind(told)
    with pytest.raises(openai.APIStatusError) as caught:
        client.chat.completions.create(model="one", messages=HI)
    said = str(caught.value)
    assert shown in said
    assert "someone" not in said
    assert str(Path.home()) not in said


def test_a_load_that_another_one_follows_ends(client: openai.OpenAI, engine: ScriptedEngine) -> None:
    engine.loads_instead = "one"
    with pytest.raises(openai.ConflictError):
        client.post("/load", body={"model": "two"}, cast_to=object)


def test_a_closed_engine_is_told(client: openai.OpenAI, engine: ScriptedEngine) -> None:
    engine.closed = True
    with pytest.raises(openai.InternalServerError) as caught:
        client.chat.completions.create(model="one", messages=HI)
    assert (caught.value.status_code, caught.value.code) == (503, "engine_unavailable")


def test_what_nobody_foresaw_reaches_no_log_with_its_words(
    client: openai.OpenAI, engine: ScriptedEngine, caplog: pytest.LogCaptureFixture
) -> None:
    engine.breaks = True
    secret: list[Any] = [{"role": "user", "content": "a secret text"}]
    with pytest.raises(openai.InternalServerError) as caught:
        client.chat.completions.create(model="one", messages=secret)
    assert (caught.value.status_code, caught.value.code) == (503, "internal_error")
    assert "ZeroDivisionError" in caplog.text
    assert "a secret text" not in caplog.text
    engine.breaks = False
    assert client.chat.completions.create(model="one", messages=HI).choices[0].message.content == "Hello there"
