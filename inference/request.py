"""The nouns that every part shares: messages, requests, events, readings. Pure data, no behaviour beyond checks."""

from __future__ import annotations

import enum
import uuid
from dataclasses import dataclass, field
from typing import Literal, get_args

from inference.errors import InferenceError, InvalidRequestError

Role = Literal["system", "user", "assistant", "tool"]
FinishReason = Literal["stop", "length", "cancelled"]
GrammarKind = Literal["json_schema", "regex", "lark"]


MAX_TOP_LOGPROBS = 20


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A function that the model has called; `arguments` is JSON."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that the model may call.

    Attributes:
        parameters: the JSON schema of its arguments, as JSON.
    """

    name: str
    description: str
    parameters: str


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat. `content` is plain text: no part of it ever becomes a control token.

    Attributes:
        tool_calls: of an assistant's message.
        tool_call_id: the call that a tool's message answers.
    """

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""


class Priority(enum.IntEnum):
    """Who goes first; lower values are served first."""

    ACTION = 0
    CHAT = 1
    API = 2


def _check(ok: bool, name: str, value: object, limit: str) -> None:
    if not ok:
        raise InvalidRequestError(f"{name} is {value!r}, but it must be {limit}.")


LEAST_TEMPERATURE = 1e-5
"""Of those above 0."""


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How the next token is chosen.

    Attributes:
        temperature: 0 is greedy.
        top_k: 0 is off.
        top_p: 1.0 is off.
        min_p: share of the best token's probability below which tokens are dropped; 0.0 is off.
        repetition_penalty: 1.0 is off; counts prompt and answer, as Hugging Face does.
        presence_penalty: taken off the logit of each token that the answer has; 0.0 is off.
        frequency_penalty: taken off the logit of a token for each time that the answer has it; 0.0 is off.
        logit_bias: (token id, number added to its logit).
        top_logprobs: None is off, else TokenEvent.tokens has the log-probability of each token and of so many others.
        seed: None draws one at random; the same seed and request give the same tokens.
        max_new_tokens: upper bound of the answer; None is "as many as the context still holds".
        stop: strings that end the answer and are not part of it.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: tuple[tuple[int, float], ...] = ()
    top_logprobs: int | None = None
    seed: int | None = None
    max_new_tokens: int | None = None
    stop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # Logits that are divided by less overflow.
        temperature, repetition = self.temperature, self.repetition_penalty
        _check(
            temperature == 0.0 or LEAST_TEMPERATURE <= temperature <= 10.0,
            "temperature",
            temperature,
            "0 or from 0.00001 to 10",
        )
        _check(self.top_k >= 0, "top_k", self.top_k, "0 (off) or more")
        _check(0.0 < self.top_p <= 1.0, "top_p", self.top_p, "above 0 and at most 1")
        _check(0.0 <= self.min_p <= 1.0, "min_p", self.min_p, "between 0 and 1")
        _check(0.01 <= repetition <= 10.0, "repetition_penalty", repetition, "between 0.01 and 10")
        _check(
            self.max_new_tokens is None or self.max_new_tokens >= 1,
            "max_new_tokens",
            self.max_new_tokens,
            "1 or more",
        )
        _check(all(self.stop) and len(self.stop) <= 16, "stop", self.stop, "at most 16 strings, none empty")
        for name in ("presence_penalty", "frequency_penalty"):
            _check(-2.0 <= getattr(self, name) <= 2.0, name, getattr(self, name), "between -2 and 2")
        _check(
            all(token >= 0 and -100.0 <= bias <= 100.0 for token, bias in self.logit_bias),
            "logit_bias",
            self.logit_bias,
            "pairs of a token id and a number between -100 and 100",
        )
        top = self.top_logprobs
        _check(top is None or 0 <= top <= MAX_TOP_LOGPROBS, "top_logprobs", top, f"0 to {MAX_TOP_LOGPROBS}")

    @property
    def needs_logits(self) -> bool:
        """Whether the plain sampler has to choose: what a device's own sampler has not."""
        return (
            self.presence_penalty != 0.0
            or self.frequency_penalty != 0.0
            or bool(self.logit_bias)
            or self.top_logprobs is not None
        )


@dataclass(frozen=True, slots=True)
class Grammar:
    """What an answer must be, from its first character to its last.

    Attributes:
        text: a JSON schema as JSON, a regular expression, or a grammar in Lark's notation.
        is_wish: an engine that cannot hold an answer to such a form answers without it.
        json_schema: much the same as a JSON schema, for servers, which know nothing else; "" for none.
    """

    kind: GrammarKind
    text: str
    is_wish: bool = False
    json_schema: str = ""

    def __post_init__(self) -> None:
        kinds = get_args(GrammarKind)
        _check(self.kind in kinds, "the grammar's kind", self.kind, f"one of {', '.join(kinds)}")
        _check(bool(self.text.strip()), "the grammar", self.text, "more than white space")


def new_request_id() -> str:
    """A fresh id, unique across processes."""
    return uuid.uuid4().hex


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """One answer to be generated. The worker answers with events that carry `request_id`.

    Attributes:
        grammar: holds the answer to a form; it may still end early, by `max_new_tokens` or a stop string.
        prompt: a bare text that the answer goes on with, in place of messages.
        tools: what the model may call; how it does so is its chat template's affair.
    """

    messages: tuple[Message, ...]
    sampling: SamplingParams = field(default_factory=SamplingParams)
    priority: Priority = Priority.CHAT
    request_id: str = field(default_factory=new_request_id)
    grammar: Grammar | None = None
    prompt: str = ""
    tools: tuple[Tool, ...] = ()

    def __post_init__(self) -> None:
        _check(bool(self.messages) != bool(self.prompt), "messages", self.messages, "some messages, or else a prompt")


@dataclass(frozen=True, slots=True)
class Usage:
    """What a request cost. Times are wall times in milliseconds, measured on the worker's clock.

    Attributes:
        prompt_tokens: tokens of the rendered prompt.
        cached_tokens: tokens of it whose KV was shared instead of computed.
        new_tokens: tokens generated, end token excluded.
        queue_ms: from submission to the first prefill step.
        time_to_first_token_ms: from submission to the first token.
        decode_ms: from the first token to the last.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    new_tokens: int = 0
    queue_ms: float = 0.0
    time_to_first_token_ms: float = 0.0
    decode_ms: float = 0.0

    @property
    def decode_tok_s(self) -> float:
        """Tokens per second after the first one; 0 where there is no second token."""
        return 1000.0 * (self.new_tokens - 1) / self.decode_ms if self.new_tokens > 1 and self.decode_ms > 0 else 0.0


@dataclass(frozen=True, slots=True)
class PrefillEvent:
    """`done_tokens` of `prompt_tokens` are in the KV cache."""

    request_id: str
    done_tokens: int
    prompt_tokens: int


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """A token of an answer and how likely the model found it, before any filter or penalty; natural logarithms.

    Attributes:
        text: its bytes, possibly a part of a character.
        logprob: 0.0 as well where a grammar left no choice.
        top: the likeliest tokens at its place, as (token id, bytes, log-probability), the likeliest first.
    """

    token_id: int
    text: bytes
    logprob: float
    top: tuple[tuple[int, bytes, float], ...] = ()


@dataclass(frozen=True, slots=True)
class TokenEvent:
    """New text: whole characters only, never a stop string, possibly of several tokens; never empty.

    Attributes:
        tokens: what the text was made of, where `top_logprobs` asks for it.
    """

    request_id: str
    text: str
    tokens: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, slots=True)
class DoneEvent:
    """The last event of a request that did not fail."""

    request_id: str
    finish_reason: FinishReason
    usage: Usage


@dataclass(frozen=True, slots=True)
class FailedEvent:
    """The last event of a request that failed."""

    request_id: str
    error: InferenceError


RequestEvent = PrefillEvent | TokenEvent | DoneEvent | FailedEvent


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """How long texts are for the resident model.

    Attributes:
        counts: tokens of each text, as plain text; a very long one is counted in slices, which may add one token each.
        context_tokens: what prompt and answer may have together.
        estimated: the counts are guesses, rather too high, of an engine that does not know the model's vocabulary.
    """

    counts: tuple[int, ...]
    context_tokens: int
    estimated: bool = False


class ModelState(enum.Enum):
    """Where the one resident model stands."""

    EMPTY = "empty"
    LOADING = "loading"
    READY = "ready"
    UNLOADING = "unloading"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ModelEvent:
    """The residency changed, or loading went on.

    Attributes:
        model: catalog id or path, "" where none is meant.
        progress: share of the load that is done, 0 to 1.
        error: set where state is FAILED.
    """

    state: ModelState
    model: str = ""
    progress: float = 0.0
    error: InferenceError | None = None


@dataclass(frozen=True, slots=True)
class ModelPlan:
    """What loading a model would take, computed before anything is allocated. Sizes in bytes.

    Attributes:
        context_tokens: that the plan is for, in whole pages and at most what the model was trained for.
        available_bytes: free now, and what leaves with the resident model.
        largest_context_tokens: the largest context that would fit; 0 where none would.
        reserve_bytes: needed beside.
        freed_bytes: the part of `available_bytes` that the resident model still holds.
        trained_context_tokens: the longest context that the model knows.
        device: what would hold it: "cpu", or a GPU.
        fallback_reason: why it would not run on the GPU, "" where it would or there is none.
        cure: why it does not fit and what would help, in English; "" where it fits.
    """

    model: str
    backend: str
    context_tokens: int
    weight_bytes: int
    kv_bytes: int
    workspace_bytes: int
    available_bytes: int
    largest_context_tokens: int
    reserve_bytes: int = 0
    freed_bytes: int = 0
    trained_context_tokens: int = 0
    device: str = "cpu"
    fallback_reason: str = ""
    cure: str = ""

    @property
    def needed_bytes(self) -> int:
        """All of it."""
        return self.weight_bytes + self.kv_bytes + self.workspace_bytes + self.reserve_bytes

    @property
    def fits(self) -> bool:
        """Whether a load would be let in."""
        return self.needed_bytes <= self.available_bytes


@dataclass(frozen=True, slots=True)
class EngineReading:
    """A snapshot for meters and the doctor; sizes in bytes, counts in pages and requests.

    Attributes:
        weight_bytes: on the device of the backend; a decoded token reads them once.
        workspace_bytes: activations, logits and workspace.
        peak_bytes: most memory of the device that was ever reserved, as its allocator counts; 0 where the backend works
            in main memory.
        used_at_s: when the last request ended, on the clock of `time.monotonic`; 0 where none has.
    """

    state: ModelState = ModelState.EMPTY
    model: str = ""
    backend: str = ""
    context_tokens: int = 0
    weight_bytes: int = 0
    kv_bytes: int = 0
    workspace_bytes: int = 0
    peak_bytes: int = 0
    pages_total: int = 0
    pages_free: int = 0
    running: int = 0
    waiting: int = 0
    used_at_s: float = 0.0
