"""OpenAI's own client against a real model: what programs do with the API works as they know it."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import openai
import pytest

from tests.inference.gateway.real_gateway import QWEN, SMOLLM2, RealGateway, served

CAPITAL: list[Any] = [{"role": "user", "content": "What is the capital of France? Answer in one sentence."}]
COUNT: list[Any] = [{"role": "user", "content": "Write the numbers from one to ten, with commas between them."}]
WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city now.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "unit": {"enum": ["celsius", "fahrenheit"]}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}
SCHEMAS: list[dict[str, Any]] = [
    *({"type": kind} for kind in ("boolean", "null", "integer", "number")),
    *({"type": "string", "maxLength": length} for length in (1, 5, 20)),
    *(
        {"type": "string", "pattern": pattern}
        for pattern in ("^[a-z]{3}$", "^[0-9]{4}-[0-9]{2}$", "^(yes|no)$", "^é+$")
    ),
    *({"type": "integer", "minimum": low, "maximum": low + 9} for low in (-20, 0, 1990)),
    *({"enum": values} for values in (["red", "green"], [1, 2, 3], [True, None], ["a", 1, None])),
    *({"const": value} for value in ("fixed", 42, None, [1, 2])),
    *({"type": "array", "items": {"type": kind}, "maxItems": 3} for kind in ("integer", "boolean", "null")),
    {"type": "array", "items": {"enum": ["x", "y"]}, "minItems": 2, "maxItems": 2},
    {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "boolean"}], "items": False, "minItems": 2},
    *(
        {
            "type": "object",
            "properties": {name: {"type": "integer", "minimum": 0, "maximum": 99} for name in names},
            "required": names,
            "additionalProperties": False,
        }
        for names in (["a"], ["a", "b"], ["höhe", "breite"], ["first name", 'quo"te'], ["年", "月"], list("abcdef"))
    ),
    *({"anyOf": [{"type": "boolean"}, {"const": word}]} for word in ("maybe", "never", "")),
    *({"type": ["integer", "null"], "maximum": most} for most in (5, 500)),
    *(
        {
            "type": "object",
            "properties": {"kind": {"const": kind}, "items": {"type": "array", "items": inner, "maxItems": 2}},
            "required": ["kind", "items"],
            "additionalProperties": False,
        }
        for kind, inner in (
            ("n", {"type": "integer", "minimum": 0, "maximum": 9}),
            ("s", {"type": "string", "maxLength": 4}),
            ("o", {"type": "object", "properties": {"b": {"type": "boolean"}}, "additionalProperties": False}),
        )
    ),
    {
        "$defs": {"leaf": {"enum": [0, 1]}},
        "type": "object",
        "properties": {"left": {"$ref": "#/$defs/leaf"}, "right": {"$ref": "#/$defs/leaf"}},
        "required": ["left", "right"],
        "additionalProperties": False,
    },
    {"type": "string"},
    {"type": "object"},
    {"type": "array"},
    {"type": "string", "format": "date"},
    {"type": "string", "format": "uuid"},
    {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 2},
    {"type": "number", "minimum": 0, "exclusiveMaximum": 1},
    {"type": "integer", "multipleOf": 5, "minimum": 0, "maximum": 100},
]


@pytest.fixture(scope="module")
def smollm2(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealGateway]:
    with served(SMOLLM2, tmp_path_factory.mktemp("lock")) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealGateway]:
    with served(QWEN, tmp_path_factory.mktemp("lock"), context_tokens=4096) as gateway:
        yield gateway


@pytest.fixture
def client(smollm2: RealGateway) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=smollm2.url, api_key="none", max_retries=0, timeout=60) as made:
        yield made


def ask(client: openai.OpenAI, messages: list[Any] = CAPITAL, **more: Any) -> Any:
    """A chat of few tokens, greedy unless it says otherwise."""
    given = {"model": SMOLLM2, "messages": messages, "temperature": 0, "max_tokens": 12, **more}
    return client.chat.completions.create(**given)


def joined(stream: Any) -> tuple[str, str | None, list[Any]]:
    """Text, reason of the end and all pieces of a stream."""
    chunks = list(stream)
    choices = [choice for chunk in chunks for choice in chunk.choices]
    reasons = [choice.finish_reason for choice in choices if choice.finish_reason]
    return "".join(choice.delta.content or "" for choice in choices), reasons[-1] if reasons else None, chunks


def test_an_answer_and_its_usage(client: openai.OpenAI) -> None:
    answer = ask(client, max_tokens=24)
    assert "Paris" in answer.choices[0].message.content
    assert answer.choices[0].message.role == "assistant"
    assert (answer.object, answer.model) == ("chat.completion", SMOLLM2)
    usage = answer.usage
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert 0 < usage.completion_tokens <= 24
    with_parts = [{"role": "user", "content": [{"type": "text", "text": part} for part in ("What is ", "two?")]}]
    assert (
        ask(client, with_parts).usage.prompt_tokens
        == ask(client, [{"role": "user", "content": "What is two?"}]).usage.prompt_tokens
    )


def test_a_stream_says_what_a_whole_answer_says(client: openai.OpenAI) -> None:
    whole = ask(client)
    text, reason, chunks = joined(ask(client, stream=True))
    assert (text, reason) == (whole.choices[0].message.content, whole.choices[0].finish_reason)
    assert chunks[0].choices[0].delta.role == "assistant"
    assert all(chunk.usage is None for chunk in chunks)
    text, _, chunks = joined(ask(client, stream=True, stream_options={"include_usage": True}))
    assert (text, chunks[-1].choices) == (whole.choices[0].message.content, [])
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
    with client.chat.completions.stream(model=SMOLLM2, messages=CAPITAL, temperature=0, max_tokens=12) as stream:
        assert stream.get_final_completion().choices[0].message.content == text


def test_eight_at_once_answer_as_one_alone_does(smollm2: RealGateway, client: openai.OpenAI) -> None:
    topics = ["the sea", "a horse", "Paris", "glass", "rain", "salt", "a king", "bread"]
    prompts: list[Any] = [[{"role": "user", "content": f"Tell me about {topic}."}] for topic in topics]
    alone = [ask(client, prompt).choices[0].message.content for prompt in prompts]

    async def together() -> list[str | None]:
        async with openai.AsyncOpenAI(base_url=smollm2.url, api_key="none", max_retries=0) as many:
            made = [
                many.chat.completions.create(model=SMOLLM2, messages=prompt, temperature=0, max_tokens=12)
                for prompt in prompts
            ]
            return [answer.choices[0].message.content for answer in await asyncio.gather(*made)]

    assert asyncio.run(together()) == alone


def test_an_asynchronous_stream(smollm2: RealGateway) -> None:
    async def pieces() -> list[str]:
        async with openai.AsyncOpenAI(base_url=smollm2.url, api_key="none", max_retries=0) as many:
            stream = await many.chat.completions.create(
                model=SMOLLM2, messages=CAPITAL, temperature=0, max_tokens=12, stream=True
            )
            return [chunk.choices[0].delta.content or "" async for chunk in stream]

    assert len([piece for piece in asyncio.run(pieces()) if piece]) > 3


def test_a_seed_fixes_an_answer_and_each_of_several_has_its_own(client: openai.OpenAI) -> None:
    warm = {"temperature": 1.5, "top_p": 0.95}
    several = ask(client, n=3, seed=7, **warm)
    texts = [choice.message.content for choice in several.choices]
    assert [choice.index for choice in several.choices] == [0, 1, 2]
    assert len(set(texts)) == 3
    assert [choice.message.content for choice in ask(client, n=3, seed=7, **warm).choices] == texts
    assert ask(client, seed=8, **warm).choices[0].message.content == texts[1]


def test_log_probabilities(client: openai.OpenAI) -> None:
    answer = ask(client, logprobs=True, top_logprobs=3)
    tokens = answer.choices[0].logprobs.content
    assert b"".join(bytes(token.bytes) for token in tokens).decode() == answer.choices[0].message.content
    for token in tokens:
        assert len(token.top_logprobs) == 3
        assert token.top_logprobs[0].token == token.token  # greedy
        assert 0 >= token.logprob == token.top_logprobs[0].logprob >= token.top_logprobs[1].logprob
    plain = ask(client, logprobs=True)
    assert [token.logprob for token in plain.choices[0].logprobs.content] == pytest.approx([t.logprob for t in tokens])
    assert plain.choices[0].logprobs.content[0].top_logprobs == []
    _, _, chunks = joined(ask(client, logprobs=True, top_logprobs=1, stream=True))
    streamed = [token.token for c in chunks if c.choices[0].logprobs for token in c.choices[0].logprobs.content]
    assert streamed == [token.token for token in tokens]


def test_a_bias_forbids_a_token(client: openai.OpenAI) -> None:
    first = ask(client, max_tokens=1)
    candidates = client.completions.create(model=SMOLLM2, prompt="The capital of France is", max_tokens=1, logprobs=5)
    assert candidates.choices[0].logprobs is not None
    # Every id is barred but one, so whatever the model likes, that one comes.
    bias = {str(token): -100 for token in range(1000)}
    answer = ask(client, max_tokens=1, logit_bias=bias | {"1000": 100})
    assert answer.choices[0].message.content != first.choices[0].message.content


@pytest.mark.parametrize("stop", [",", ["two", "ten"], [",", "one"], "nowhere to be found"])
def test_stop_strings_end_an_answer_and_never_show(client: openai.OpenAI, stop: str | list[str]) -> None:
    whole = ask(client, COUNT, max_tokens=24).choices[0].message.content
    stops = [stop] if isinstance(stop, str) else stop
    ends = [whole.find(each) for each in stops if each in whole]
    expected = whole[: min(ends)] if ends else whole
    answer = ask(client, COUNT, max_tokens=24, stop=stop, logprobs=True)
    assert answer.choices[0].message.content == expected
    assert not ends or answer.choices[0].finish_reason == "stop"
    text, _, _ = joined(ask(client, COUNT, max_tokens=24, stop=stop, stream=True))
    assert text == expected


def test_penalties_and_lengths(client: openai.OpenAI) -> None:
    again: list[Any] = [{"role": "user", "content": "Repeat: la la la la la la la la"}]
    plain = ask(client, again, max_tokens=24)
    other = ask(client, again, max_tokens=24, frequency_penalty=2, presence_penalty=2)
    assert other.choices[0].message.content != plain.choices[0].message.content
    assert ask(client, max_tokens=None, max_completion_tokens=3).usage.completion_tokens == 3
    assert ask(client, COUNT, max_tokens=1).choices[0].finish_reason == "length"


def test_bare_texts(client: openai.OpenAI) -> None:
    one = client.completions.create(model=SMOLLM2, prompt="The capital of France is", max_tokens=4, temperature=0)
    assert "Paris" in one.choices[0].text
    two = client.completions.create(
        model=SMOLLM2, prompt=["The capital of France is", "One, two,"], max_tokens=4, temperature=0
    )
    assert two.choices[0].text == one.choices[0].text
    assert two.usage is not None
    assert one.usage is not None
    assert two.usage.prompt_tokens > one.usage.prompt_tokens
    stream = client.completions.create(
        model=SMOLLM2, prompt="The capital of France is", max_tokens=4, temperature=0, stream=True
    )
    assert "".join(chunk.choices[0].text for chunk in stream) == one.choices[0].text


def test_fifty_schemas_hold(smollm2: RealGateway) -> None:
    assert len(SCHEMAS) == 50

    async def all_of_them() -> list[Any]:
        async with openai.AsyncOpenAI(base_url=smollm2.url, api_key="none", max_retries=0, timeout=100) as many:
            gate = asyncio.Semaphore(8)

            async def one(schema: dict[str, Any]) -> Any:
                form: Any = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}
                async with gate:
                    return await many.chat.completions.create(
                        model=SMOLLM2, messages=CAPITAL, seed=3, max_tokens=40, response_format=form
                    )

            return await asyncio.gather(*map(one, SCHEMAS))

    answers = asyncio.run(all_of_them())
    for schema, answer in zip(SCHEMAS, answers, strict=True):
        choice = answer.choices[0]
        if choice.finish_reason == "length":
            continue
        assert choice.finish_reason == "stop", schema
        jsonschema_rs.validate(schema, json.loads(choice.message.content))
    assert sum(answer.choices[0].finish_reason == "stop" for answer in answers) >= 40


def test_any_object(client: openai.OpenAI) -> None:
    answer = ask(client, max_tokens=60, response_format={"type": "json_object"})
    content = answer.choices[0].message.content
    assert content.startswith("{")
    assert answer.choices[0].finish_reason == "length" or isinstance(json.loads(content), dict)


@pytest.mark.parametrize(
    ("change", "kind", "code"),
    [
        ({"model": "nobody"}, openai.NotFoundError, "model_not_found"),
        ({"temperature": 9}, openai.UnprocessableEntityError, "invalid_value"),
        ({"audio": {"voice": "x"}}, openai.BadRequestError, "unsupported_parameter"),
        (
            {"messages": [{"role": "user", "content": "word " * 4000}]},
            openai.BadRequestError,
            "context_length_exceeded",
        ),
        ({"logit_bias": {"99999999": 1}}, openai.BadRequestError, "invalid_value"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "strange"}}}},
            openai.BadRequestError,
            "invalid_value",
        ),
        ({"tools": [WEATHER]}, openai.BadRequestError, "invalid_value"),  # its template has no place for them
    ],
    ids=["model", "range", "field", "length", "token", "schema", "tools"],
)
def test_errors_have_their_types(
    client: openai.OpenAI, change: Any, kind: type[openai.APIStatusError], code: str
) -> None:
    for more in ({}, {"stream": True}):
        with pytest.raises(kind) as caught:
            ask(client, **change, **more)
        assert caught.value.code == code


def test_models(client: openai.OpenAI) -> None:
    (model,) = client.models.list()
    assert (model.id, client.models.retrieve(SMOLLM2).id) == (SMOLLM2, SMOLLM2)
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("nobody")


def test_tools_there_and_back(qwen: RealGateway) -> None:
    question: list[Any] = [{"role": "user", "content": "What is the weather in Paris now? Use the tool."}]
    with openai.OpenAI(base_url=qwen.url, api_key="none", max_retries=0, timeout=100) as client:
        common: dict[str, Any] = {"model": QWEN, "tools": [WEATHER], "temperature": 0, "max_tokens": 60}
        answer = client.chat.completions.create(messages=question, tool_choice="required", **common)
        assert answer.choices[0].finish_reason == "tool_calls"
        (call,) = answer.choices[0].message.tool_calls or ()
        assert call.type == "function"
        assert json.loads(call.function.arguments)["city"] == "Paris"
        streamed = joined(
            client.chat.completions.create(messages=question, tool_choice="required", stream=True, **common)
        )
        assert streamed[:2] == ("", "tool_calls")
        free = {**common, "tools": [{**WEATHER, "function": {**WEATHER["function"], "strict": True}}]}
        may: Any = client.chat.completions.create(messages=question, **free)
        assert json.loads(may.choices[0].message.tool_calls[0].function.arguments)["city"] == "Paris"
        greeting: list[Any] = [{"role": "user", "content": "Write a haiku about the sea."}]
        plain, held = (
            client.chat.completions.create(messages=greeting, **given).choices[0].message.content
            for given in (common, free)
        )
        assert plain == held
        assert plain
        turns = [
            *question,
            answer.choices[0].message.model_dump(exclude_none=True),
            {"role": "tool", "tool_call_id": call.id, "content": '{"celsius": 31, "sky": "clear"}'},
        ]
        last = client.chat.completions.create(messages=turns, **common)
        assert last.choices[0].message.tool_calls or last.choices[0].message.content  # it is a small model


def tool_for(schema: dict[str, Any]) -> dict[str, Any]:
    """A tool whose argument follows a schema."""
    inner = {name: value for name, value in schema.items() if name != "$defs"}
    parameters = {
        **{name: value for name, value in schema.items() if name == "$defs"},
        "type": "object",
        "properties": {"value": inner},
        "required": ["value"],
        "additionalProperties": False,
    }
    return {"type": "function", "function": {"name": "give", "strict": True, "parameters": parameters}}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
def test_tools_that_may_be_called_are_called_by_their_schemas(qwen: RealGateway, is_streamed: bool) -> None:
    schemas = SCHEMAS if os.environ.get("DESKINFER_ALL_SCHEMAS") else SCHEMAS[3 + 4 * is_streamed :: 10]
    question: list[Any] = [
        {"role": "user", "content": "Call the tool give with some value. Answer with the call only."}
    ]

    async def one(many: openai.AsyncOpenAI, gate: asyncio.Semaphore, schema: dict[str, Any]) -> Any:
        given: dict[str, Any] = {"model": QWEN, "tools": [tool_for(schema)], "temperature": 0, "max_tokens": 60}
        async with gate:
            if not is_streamed:
                return await many.chat.completions.create(messages=question, **given)
            async with many.chat.completions.stream(messages=question, **given) as stream:
                return await stream.get_final_completion()

    async def all_of_them(url: str) -> list[Any]:
        async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0, timeout=300) as many:
            gate = asyncio.Semaphore(8)
            return await asyncio.gather(*(one(many, gate, schema) for schema in schemas))

    choices = [answer.choices[0] for answer in asyncio.run(all_of_them(qwen.url))]
    for schema, choice in zip(schemas, choices, strict=True):
        for call in choice.message.tool_calls or ():
            jsonschema_rs.validate(tool_for(schema)["function"]["parameters"], json.loads(call.function.arguments))
    assert sum(choice.finish_reason == "tool_calls" for choice in choices) >= 0.9 * len(
        schemas
    )  # it may answer with text
