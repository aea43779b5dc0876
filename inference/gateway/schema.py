"""The requests of the API as pydantic models. A field that they do not name is refused: nothing is silently ignored."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

MAX_CHOICES = 8
MAX_STOPS = 16
TokenId = Annotated[str, StringConstraints(pattern=r"^\d{1,9}$")]
Bias = Annotated[float, Field(ge=-100, le=100)]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class TextPart(_Model):
    """A part of a message; other types than text are refused."""

    type: Literal["text"]
    text: str


class CalledFunction(_Model):
    """What the model called; `arguments` is JSON."""

    name: Name
    arguments: str


class ToolCallPart(_Model):
    """A call in an assistant's message."""

    id: str
    type: Literal["function"] = "function"
    function: CalledFunction


class ChatMessage(_Model):
    """A message of a chat."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[TextPart] | None = None
    name: str | None = None
    tool_calls: list[ToolCallPart] | None = None
    tool_call_id: str | None = None

    @property
    def text(self) -> str:
        """The parts as one text."""
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content)
        return self.content or ""


class FunctionSpec(_Model):
    """A function that the model may call."""

    name: Name
    description: str = ""
    parameters: dict[str, Any] = Field(default_factory=lambda: {"type": "object", "properties": {}})
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
    description: str | None = None
    schema_: dict[str, Any] = Field(alias="schema")
    strict: bool | None = None


class ResponseFormat(_Model):
    """What the answer must be."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchemaSpec | None = None


class StreamOptions(_Model):
    """Of a streamed answer."""

    include_usage: bool = False


class _Sampling(_Model):
    model: str
    stream: bool = False
    stream_options: StreamOptions | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=0)] | None = None
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    repetition_penalty: Annotated[float, Field(gt=0, le=10)] | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    logit_bias: dict[TokenId, Bias] | None = None
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] | None = None
    n: Annotated[int, Field(ge=1, le=MAX_CHOICES)] | None = None
    stop: str | Annotated[list[str], Field(max_length=MAX_STOPS)] | None = None
    user: str | None = None

    @property
    def stops(self) -> tuple[str, ...]:
        """All stop strings."""
        stops = [self.stop] if isinstance(self.stop, str) else self.stop or []
        return tuple(text for text in stops if text)


class ChatRequest(_Sampling):
    """POST /v1/chat/completions."""

    messages: Annotated[list[ChatMessage], Field(min_length=1)]
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    response_format: ResponseFormat | None = None
    tools: list[ToolSpec] | None = None
    tool_choice: Literal["none", "auto", "required"] | NamedTool | None = None
    parallel_tool_calls: bool | None = None


class CompletionRequest(_Sampling):
    """POST /v1/completions: goes on with a text, without a chat."""

    prompt: str | Annotated[list[str], Field(min_length=1, max_length=MAX_CHOICES)]
    echo: bool | None = None
    logprobs: Annotated[int, Field(ge=0, le=20)] | None = None


class LoadRequest(_Model):
    """POST /v1/load: makes a model the resident one."""

    model: Annotated[str, Field(min_length=1)]
