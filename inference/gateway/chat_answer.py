"""The API's answers: JSON objects of chats and of completed texts, whole and in chunks."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from inference.request import DoneEvent, TokenEvent, TokenLogprob, ToolCall, Usage, new_request_id

Json = dict[str, Any]
_IMPOSSIBLE = -9999.0


@dataclass(slots=True)
class Choice:
    """One of the answers of a request, as it grows.

    Attributes:
        prompt: which of the request's prompts it is for.
        token_chars: length of all tokens that log-probabilities were told of.
    """

    index: int
    prompt: int = 0
    text: str = ""
    token_chars: int = 0
    tokens: list[TokenLogprob] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    done: DoneEvent | None = None

    @property
    def finish_reason(self) -> str | None:
        """As the API has it."""
        if self.done is None:
            return None
        return "tool_calls" if self.calls and self.done.finish_reason == "stop" else self.done.finish_reason

    def add(self, event: TokenEvent) -> None:
        """Takes what has been generated."""
        self.text += event.text
        self.tokens += event.tokens
        self.token_chars += sum(len(_shown(token.text)) for token in event.tokens)


class ChatForm:
    """The objects of /v1/chat/completions."""

    prefix, whole, chunk = "chatcmpl-", "chat.completion", "chat.completion.chunk"

    def choice(self, choice: Choice, with_logprobs: bool) -> Json:
        """A whole answer."""
        message: Json = {"role": "assistant", "content": choice.text, "refusal": None}
        if choice.calls:
            message |= {"content": choice.text or None, "tool_calls": [_call(call) for call in choice.calls]}
        logprobs = {"content": [_chat_token(token) for token in choice.tokens], "refusal": None}
        return {
            "index": choice.index,
            "message": message,
            "logprobs": logprobs if with_logprobs else None,
            "finish_reason": choice.finish_reason,
        }

    def first(self, index: int) -> Json | None:
        """What comes before the first text."""
        return {"index": index, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}

    def piece(self, choice: Choice, event: TokenEvent, with_logprobs: bool) -> Json:
        """What an answer has got."""
        logprobs = {"content": [_chat_token(token) for token in event.tokens], "refusal": None}
        return {
            "index": choice.index,
            "delta": {"content": event.text},
            "logprobs": logprobs if with_logprobs else None,
            "finish_reason": None,
        }

    def last(self, choice: Choice) -> list[Json]:
        """The end of an answer, behind what the model has called."""
        calls = [{"index": place, **_call(call)} for place, call in enumerate(choice.calls)]
        deltas: list[tuple[Json, str | None]] = [({"tool_calls": calls}, None)] if calls else []
        return [
            {"index": choice.index, "delta": delta, "logprobs": None, "finish_reason": reason}
            for delta, reason in [*deltas, ({}, choice.finish_reason)]
        ]


class TextForm:
    """The objects of /v1/completions."""

    prefix, whole, chunk = "cmpl-", "text_completion", "text_completion"

    def choice(self, choice: Choice, with_logprobs: bool) -> Json:
        """A whole answer."""
        return {
            "index": choice.index,
            "text": choice.text,
            "logprobs": _text_tokens(choice.tokens, 0) if with_logprobs else None,
            "finish_reason": choice.finish_reason,
        }

    def first(self, index: int) -> Json | None:
        """Nothing."""
        del index
        return None

    def piece(self, choice: Choice, event: TokenEvent, with_logprobs: bool) -> Json:
        """What an answer has got."""
        before = choice.token_chars - sum(len(_shown(token.text)) for token in event.tokens)
        logprobs = _text_tokens(event.tokens, before) if with_logprobs else None
        return {"index": choice.index, "text": event.text, "logprobs": logprobs, "finish_reason": None}

    def last(self, choice: Choice) -> list[Json]:
        """The end of an answer."""
        return [{"index": choice.index, "text": "", "logprobs": None, "finish_reason": choice.finish_reason}]


Form = ChatForm | TextForm


class Envelope:
    """What all objects of one answer share.

    Args:
        model: as the client named it.
    """

    def __init__(self, form: Form, model: str) -> None:
        self.form = form
        self._common = {"id": f"{form.prefix}{new_request_id()}", "created": int(time.time()), "model": model}

    def whole(self, choices: Sequence[Choice], with_logprobs: bool) -> Json:
        """The answer as one object."""
        entries = [self.form.choice(choice, with_logprobs) for choice in choices]
        return {**self._common, "object": self.form.whole, "choices": entries, "usage": usage(choices)}

    def chunk(self, choice: Json, with_usage: bool) -> Json:
        """A piece of a stream; `usage` is null until the last one, where the client wants it at all."""
        last = {"usage": None} if with_usage else {}
        return {**self._common, "object": self.form.chunk, "choices": [choice], **last}

    def usage_chunk(self, choices: Sequence[Choice]) -> Json:
        """The last piece of a stream."""
        return {**self._common, "object": self.form.chunk, "choices": [], "usage": usage(choices)}


def usage(choices: Sequence[Choice]) -> Json:
    """Tokens of all answers; several answers to one prompt count it once."""
    used = [(choice.prompt, choice.done.usage) for choice in choices if choice.done is not None]
    first: dict[int, Usage] = {}
    for place, each in used:
        first.setdefault(place, each)
    prompt = sum(each.prompt_tokens for each in first.values())
    new = sum(each.new_tokens for _, each in used)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": new,
        "total_tokens": prompt + new,
        "prompt_tokens_details": {"cached_tokens": sum(each.cached_tokens for each in first.values())},
    }


def _shown(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def _call(call: ToolCall) -> Json:
    return {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _chat_token(token: TokenLogprob) -> Json:
    top = [_token(text, logprob) for _, text, logprob in token.top]
    return {**_token(token.text, token.logprob), "top_logprobs": top}


def _token(text: bytes, logprob: float) -> Json:
    return {"token": _shown(text), "logprob": _number(logprob), "bytes": list(text)}


def _text_tokens(tokens: Sequence[TokenLogprob], offset: int) -> Json:
    lengths = [len(_shown(token.text)) for token in tokens]
    return {
        "tokens": [_named(token.text) for token in tokens],
        "token_logprobs": [_number(token.logprob) for token in tokens],
        "top_logprobs": [{_named(text): _number(value) for _, text, value in token.top} for token in tokens],
        "text_offset": [offset + before for before in accumulate(lengths[:-1], initial=0)] if tokens else [],
    }


def _named(text: bytes) -> str:
    """A token as a key, which parts of characters, all shown alike, are not; as OpenAI writes it."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in text)


def _number(logprob: float) -> float:
    """JSON has no infinity: as OpenAI writes what is next to impossible."""
    return logprob if math.isfinite(logprob) else _IMPOSSIBLE
