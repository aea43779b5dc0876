"""From the API's requests to the engine's."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.datastructures import Headers
from starlette.requests import Request

from inference.errors import InvalidRequestError
from inference.gateway.errors import ApiError, api_error, unsupported
from inference.gateway.schema import ChatMessage, ChatRequest, CompletionRequest, NamedTool, ResponseFormat
from inference.gateway.schema_cost import endless_part
from inference.gateway.tool_calls import CALL_END, call_grammar, form_or_call_grammar, text_or_call_grammar
from inference.request import (
    LEAST_TEMPERATURE,
    GenerationRequest,
    Grammar,
    Message,
    Priority,
    Role,
    SamplingParams,
    Tool,
    ToolCall,
)

_Body = TypeVar("_Body", bound=BaseModel)
_ROLES: dict[str, Role] = {
    "developer": "system",
    "system": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
_DEFAULT_TEMPERATURE = 1.0
_LEAST_TOP_P = 1e-6
_MOST_DIGITS = 400
_MOST_FIELD_CHARS = 200
MAX_SCHEMA_CHARS = 32 << 10
_NO_PARAMETERS = {"type": "object", "properties": {}}
_ANY_OBJECT = '{"type": "object"}'
_LENIENT = {"lenient": True, "coerce_one_of": True}


async def read_body(request: Request, model: type[_Body]) -> _Body:
    """The checked body.

    Raises:
        ApiError: not JSON (400, 415), a field that is not known (400), or a value out of its range (422).
    """
    content = await request.body()
    if content:
        _check_media(request.headers)
    try:
        data = json.loads(content or b"{}", parse_constant=_no_constant, parse_float=_finite, parse_int=_whole)
    except (ValueError, RecursionError) as error:
        raise ApiError(400, f"The body is not JSON: {str(error)[:200]}.", "invalid_json") from error
    if not isinstance(data, dict):
        raise ApiError(400, f"The body is a JSON {type(data).__name__}, but it must be an object.", "invalid_json")
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise _refusal(error, data) from error


def _check_media(headers: Headers) -> None:
    kind, coding = headers.get("content-type", "nothing"), headers.get("content-encoding", "identity")
    if kind.split(";")[0].strip().lower() != "application/json":
        raise ApiError(415, f"Content-Type is {kind[:100]}, but it must be application/json.", "unsupported_media_type")
    if coding.strip().lower() != "identity":
        raise ApiError(
            415, f"Content-Encoding is {coding[:100]}. Send the body as it is.", "unsupported_content_encoding"
        )


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:50]} is too large a number")
    return number


def _whole(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"{text[:50]}... is too large a number")
    return int(text)


def _refusal(error: ValidationError, data: object) -> ApiError:
    # Of a value that may be one thing or another, what went deepest is what was meant, and what has the right type.
    found = max(
        error.errors(include_url=False, include_input=False, include_context=False),
        key=lambda e: (len(e["loc"]), not e["type"].endswith("_type")),
    )
    parts = _path(found["loc"], data, found["type"] == "missing")
    field = ".".join(parts)[:_MOST_FIELD_CHARS]
    if found["type"] == "extra_forbidden":
        return unsupported(field)
    if found["type"] == "literal_error":
        return unsupported(field, f"{field}: {found['msg']}; this server has nothing else.")
    if parts[:1] == ["prompt"] and len(parts) > 1:
        return unsupported("prompt", "prompt holds token ids or something else, but this server takes texts.")
    said = found["msg"].removeprefix("Value error, ")
    return ApiError(422, f"{field or 'A name'}: {said}.", "invalid_value", field)


def _path(location: Sequence[int | str], data: object, is_missing: bool) -> list[str]:
    """Where in the body something is; between the fields pydantic names the types that it has tried."""
    path: list[str] = []
    for place, part in enumerate(location):
        if isinstance(data, dict) and part in data:
            data = data[part]
        elif isinstance(data, list) and isinstance(part, int):
            data = data[part]
        elif not is_missing or place < len(location) - 1:
            continue
        path.append(str(part))
    return path


def chat_requests(body: ChatRequest) -> list[GenerationRequest]:
    """One for each of the `n` answers.

    Raises:
        ApiError: what is asked for does not go together, or is out of its range.
    """
    most = {limit for limit in (body.max_tokens, body.max_completion_tokens) if limit is not None}
    if len(most) > 1:
        raise ApiError(
            400, "Give max_tokens or max_completion_tokens, not both.", "invalid_value", "max_completion_tokens"
        )
    if body.top_logprobs and not body.logprobs:
        raise ApiError(400, "top_logprobs needs logprobs to be true.", "invalid_value", "top_logprobs")
    top = (body.top_logprobs or 0) if body.logprobs else None
    speakers = _speakers(body.messages)
    messages = tuple(_message(index, message, speakers) for index, message in enumerate(body.messages))
    tools, grammar = _tools(body, _grammar(body.response_format))
    # With one call at most, its end is the answer's end.
    stops = (CALL_END,) if tools and grammar is None and body.parallel_tool_calls is False else ()
    return _requests(body, messages, next(iter(most), None), top, grammar, tools=tools, stops=stops)


def completion_requests(body: CompletionRequest) -> list[GenerationRequest]:
    """For each prompt, one for each of the `n` answers.

    Raises:
        ApiError: a value is out of its range.
    """
    if body.best_of not in (None, 1, body.n or 1):
        raise unsupported("best_of", "best_of is another number than n, but no answer is thrown away here.")
    prompts = [body.prompt] if isinstance(body.prompt, str) else body.prompt
    if any(not prompt for prompt in prompts):
        raise ApiError(400, "A prompt is empty, but it must have some text.", "invalid_value", "prompt")
    most = 16 if body.max_tokens is None else body.max_tokens  # OpenAI's default
    return [request for prompt in prompts for request in _requests(body, (), most, body.logprobs, None, prompt)]


def _requests(
    body: ChatRequest | CompletionRequest,
    messages: tuple[Message, ...],
    max_tokens: int | None,
    top_logprobs: int | None,
    grammar: Grammar | None,
    prompt: str = "",
    tools: tuple[Tool, ...] = (),
    stops: tuple[str, ...] = (),
) -> list[GenerationRequest]:
    given: dict[str, Any] = {
        name: value
        for name in ("min_p", "repetition_penalty", "presence_penalty", "frequency_penalty")
        if (value := getattr(body, name)) is not None
    }
    bias = tuple((int(token), number) for token, number in (body.logit_bias or {}).items())
    try:
        return [
            GenerationRequest(
                messages,
                SamplingParams(
                    temperature=_temperature(body.temperature),
                    seed=None if body.seed is None else (body.seed + choice) % 2**63,
                    top_k=max(body.top_k or 0, 0),
                    top_p=1.0 if body.top_p is None else max(body.top_p, _LEAST_TOP_P),
                    max_new_tokens=None if max_tokens == -1 else max_tokens,
                    stop=(*body.stops, *stops),
                    logit_bias=bias,
                    top_logprobs=top_logprobs,
                    **given,
                ),
                Priority.API,
                grammar=grammar,
                prompt=prompt,
                tools=tools,
            )
            for choice in range(body.n or 1)
        ]
    except InvalidRequestError as error:
        raise api_error(error) from error


def _temperature(given: float | None) -> float:
    number = _DEFAULT_TEMPERATURE if given is None else given
    return number if number >= LEAST_TEMPERATURE else 0.0


def _speakers(messages: Sequence[ChatMessage]) -> dict[str, set[str]]:
    """The names in each role."""
    found: dict[str, set[str]] = {}
    for message in messages:
        if message.name and message.role != "tool":  # a tool's adds nothing to the call's id
            found.setdefault(_ROLES[message.role], set()).add(message.name)
    return found


def _message(index: int, message: ChatMessage, speakers: Mapping[str, set[str]]) -> Message:
    field = f"messages.{index}"
    if message.role == "tool" and not message.tool_call_id:
        raise ApiError(400, f"{field}.tool_call_id is missing.", "invalid_value", f"{field}.tool_call_id")
    if message.tool_calls and message.role != "assistant":
        raise ApiError(
            400, f"{field}.tool_calls belongs to the assistant only.", "invalid_value", f"{field}.tool_calls"
        )
    if message.content is None and not message.tool_calls and message.refusal is None:
        raise ApiError(400, f"{field}.content is missing.", "invalid_value", f"{field}.content")
    calls = tuple(ToolCall(call.id, call.function.name, call.function.arguments) for call in message.tool_calls or ())
    role, text = _ROLES[message.role], message.text
    # A chat template has no place for names. One name alone tells nothing that the role does not.
    if message.name and len(speakers.get(role, ())) > 1:
        text = f"{message.name}: {text}"
    return Message(role, text, calls, message.tool_call_id or "")


def _tools(body: ChatRequest, form: Grammar | None) -> tuple[tuple[Tool, ...], Grammar | None]:
    """What the model may call, and what its answer is held to.

    Args:
        form: of an answer that calls nothing.
    """
    choice = body.tool_choice
    if not body.tools:
        if choice not in (None, "none", "auto"):
            raise ApiError(400, "tool_choice needs tools.", "invalid_value", "tool_choice")
        return (), form
    if choice == "none":
        return (), form
    are_strict = [bool(tool.function.strict) for tool in body.tools]
    must_call = isinstance(choice, NamedTool) or choice == "required"
    tools = tuple(
        Tool(
            tool.function.name,
            tool.function.description or "",
            _schema(
                tool.function.parameters or _NO_PARAMETERS,
                f"tools.{index}.function.parameters",
                must_call or are_strict[index],
            ),
        )
        for index, tool in enumerate(body.tools)
    )
    held = tuple(
        tool
        if strict
        else dataclasses.replace(tool, parameters=_leniently(tool.parameters) if must_call else _ANY_OBJECT)
        for tool, strict in zip(tools, are_strict, strict=True)
    )
    if isinstance(choice, NamedTool):
        named = tuple(tool for tool in held if tool.name == choice.function.name)
        if not named:
            raise ApiError(400, f"tool_choice names {choice.function.name}, which is none of the tools.",
                           "invalid_value", "tool_choice")  # fmt: skip
        return tools, call_grammar(named)
    if must_call:
        return tools, call_grammar(held)
    may_repeat = body.parallel_tool_calls is not False
    if form is not None:
        return tools, form_or_call_grammar(held, form.text, may_repeat)
    return tools, text_or_call_grammar(held, may_repeat) if any(are_strict) else None


def _grammar(form: ResponseFormat | None) -> Grammar | None:
    if form is None or form.type == "text":
        return None
    if form.type == "json_object":
        return Grammar("json_schema", _ANY_OBJECT)
    if form.json_schema is None:
        raise ApiError(400, "response_format.json_schema is missing.", "invalid_value", "response_format.json_schema")
    schema = _schema(form.json_schema.schema_, "response_format.json_schema.schema")
    return Grammar("json_schema", schema if form.json_schema.strict else _leniently(schema))


def _leniently(schema: str) -> str:
    """Without the keywords that no grammar can hold, such as uniqueItems: only `strict` asks for all of a schema."""
    return json.dumps({"x-guidance": _LENIENT, **json.loads(schema)})


def _schema(schema: dict[str, Any], field: str, is_held: bool = True) -> str:
    """A schema as JSON. A huge one would take seconds to compile, in which nobody gets a token.

    Args:
        is_held: an answer will be held to it.
    """
    text = json.dumps(schema)
    if len(text) > MAX_SCHEMA_CHARS:
        raise ApiError(
            400, f"{field} is {len(text)} characters long, but {MAX_SCHEMA_CHARS} is the limit.", "invalid_value", field
        )
    if is_held and (part := endless_part(schema)):
        raise ApiError(
            400, f"{field} would take too long to follow: it has {part}. Simplify it.", "invalid_value", field
        )
    return text
