"""The requests of the API as pydantic models. A field that they do not name is refused: nothing is silently ignored."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    model_validator,
)

MAX_CHOICES = 8
MAX_TOOLS = 128
MAX_BIASES = 1024
MAX_STOPS = 15  # one less than the engine takes: the end of a tool's call may be another
MOST_TOP_K = 2**31 - 1


def _limit(number: int) -> int:
    if number == 0:
        raise ValueError("Input should be 1 or more, or -1 for no limit")
    return number


Limit = Annotated[int, Field(ge=-1), AfterValidator(_limit)]
"""Of an answer's tokens. Programs that were written for other local servers send -1 where they want none."""
TokenId = Annotated[str, StringConstraints(pattern=r"^(0|[1-9][0-9]{0,8})$")]
Bias = Annotated[float, Field(ge=-100, le=100)]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, data: Any) -> Any:
        """Many clients write out what they leave to the server, and send back each field of an answer."""
        if not isinstance(data, dict):
            return data
        return {name: value for name, value in data.items() if value is not None or name in cls.model_fields}


def _without_effect(default: Any = None) -> Any:
    return Field(default, description="Accepted, and without effect.")


class TextPart(_Model):
    """A part of a message; pictures and sounds are refused."""

    type: Literal["text"]
    text: str
    prompt_cache_breakpoint: dict[str, Any] | None = _without_effect()


class RefusalPart(_Model):
    """A part of an assistant's message in which it said that it would not answer."""

    type: Literal["refusal"]
    refusal: str

    @property
    def text(self) -> str:
        """What it said."""
        return self.refusal


def _kind(part: Any) -> str:
    return "RefusalPart" if isinstance(part, dict) and part.get("type") == "refusal" else "TextPart"


Part = Annotated[
    Annotated[TextPart, Tag("TextPart")] | Annotated[RefusalPart, Tag("RefusalPart")], Discriminator(_kind)
]


class CalledFunction(_Model):
    """What the model called; `arguments` is JSON."""

    name: Name
    arguments: str


class ToolCallPart(_Model):
    """A call in an assistant's message."""

    index: int | None = _without_effect()
    id: str
    type: Literal["function"] = "function"
    function: CalledFunction


class ChatMessage(_Model):
    """A message of a chat. Where several speak in one role, each one's name is put before what it says."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[Part] | None = None
    name: str | None = None
    refusal: str | None = None
    annotations: Annotated[list[Any], Field(max_length=0)] | None = _without_effect()
    tool_calls: list[ToolCallPart] | None = None
    tool_call_id: str | None = None

    @property
    def text(self) -> str:
        """The parts as one text; a refusal is what was said instead of any."""
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content)
        return self.content or self.refusal or ""


class FunctionSpec(_Model):
    """A function that the model may call."""

    name: Name
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class ToolSpec(_Model):
    """A tool; only functions exist."""

    type: Literal["function"]
    function: FunctionSpec


class NamedFunction(_Model):
    """The function that must be called."""

    name: Name


class NamedTool(_Model):
    """The tool that must be called."""

    type: Literal["function"]
    function: NamedFunction


class JsonSchemaSpec(_Model):
    """A schema that the answer follows."""

    name: Name = "answer"
    description: str | None = _without_effect()
    schema_: dict[str, Any] = Field(alias="schema")
    strict: bool | None = None


class ResponseFormat(_Model):
    """What the answer must be."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchemaSpec | None = None


class StreamOptions(_Model):
    """Of a streamed answer."""

    include_usage: bool | None = None
    include_obfuscation: Literal[False] | None = _without_effect()


class _Sampling(_Model):
    model: str
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: Limit | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=-1, le=MOST_TOP_K)] | None = Field(default=None, description="0 and -1 are off.")
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    repetition_penalty: Annotated[float, Field(ge=0.01, le=10)] | None = Field(
        default=None,
        validation_alias=AliasChoices("repetition_penalty", "repeat_penalty"),
        description="Also under llama.cpp's name, repeat_penalty.",
    )
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    logit_bias: Annotated[dict[TokenId, Bias], Field(max_length=MAX_BIASES)] | None = None
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] | None = None
    n: Annotated[int, Field(ge=1, le=MAX_CHOICES)] | None = None
    stop: str | Annotated[list[str], Field(max_length=MAX_STOPS)] | None = None
    user: str | None = _without_effect()

    @property
    def stops(self) -> tuple[str, ...]:
        """All stop strings."""
        stops = [self.stop] if isinstance(self.stop, str) else self.stop or []
        return tuple(text for text in stops if text)


class ChatRequest(_Sampling):
    """POST /v1/chat/completions."""

    messages: Annotated[list[ChatMessage], Field(min_length=1)]
    max_completion_tokens: Limit | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    response_format: ResponseFormat | None = None
    tools: Annotated[list[ToolSpec], Field(max_length=MAX_TOOLS)] | None = None
    tool_choice: Literal["none", "auto", "required"] | NamedTool | None = None
    parallel_tool_calls: bool | None = None
    store: Literal[False] | None = _without_effect()
    metadata: dict[str, str] | None = _without_effect()
    safety_identifier: str | None = _without_effect()
    prompt_cache_key: str | None = _without_effect()
    prompt_cache_retention: str | None = _without_effect()
    prompt_cache_options: dict[str, Any] | None = _without_effect()
    modalities: list[Literal["text"]] | None = _without_effect()
    service_tier: Literal["auto", "default"] | None = _without_effect()
    verbosity: Literal["medium"] | None = _without_effect()


class CompletionRequest(_Sampling):
    """POST /v1/completions: goes on with a text, without a chat."""

    prompt: str | Annotated[list[str], Field(min_length=1, max_length=MAX_CHOICES)]
    logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    echo: Literal[False] | None = _without_effect()
    best_of: Annotated[int, Field(ge=1)] | None = Field(default=None, description="As many as `n`, or 1.")
    suffix: Literal[""] | None = _without_effect()


class LoadRequest(_Model):
    """POST /v1/load: makes a model the resident one."""

    model: Annotated[str, Field(min_length=1)]


class UnloadRequest(_Model):
    """POST /v1/unload: gives the model's memory back. It has no fields."""
