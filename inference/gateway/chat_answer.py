"""The API's answers: JSON objects of chats and of completed texts, whole and in chunks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from inference.request import DoneEvent, TokenLogprob, ToolCall, Usage, new_request_id

Json = dict[str, Any]


@dataclass(slots=True)
class Choice:
    """One of the `n` answers of a request, as it grows."""

    index: int
    text: str = ""
    tokens: list[TokenLogprob] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    done: DoneEvent | None = None

    @property
    def finish_reason(self) -> str | None:
        """As the API has it."""
        if self.done is None:
            return None
        return "tool_calls" if self.calls and self.done.finish_reason == "stop" else self.done.finish_reason


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

    def piece(self, index: int, text: str, tokens: Sequence[TokenLogprob], with_logprobs: bool) -> Json:
        """Some text of an answer."""
        logprobs = {"content": [_chat_token(token) for token in tokens], "refusal": None}
        return {
            "index": index,
            "delta": {"content": text},
            "logprobs": logprobs if with_logprobs else None,
            "finish_reason": None,
        }

    def last(self, choice: Choice) -> Json:
        """The end of an answer, with what the model has called."""
        calls = [{"index": place, **_call(call)} for place, call in enumerate(choice.calls)]
        delta = {"tool_calls": calls} if calls else {}
        return {"index": choice.index, "delta": delta, "logprobs": None, "finish_reason": choice.finish_reason}


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

    def piece(self, index: int, text: str, tokens: Sequence[TokenLogprob], with_logprobs: bool) -> Json:
        """Some text of an answer."""
        logprobs = _text_tokens(tokens, 0) if with_logprobs else None
        return {"index": index, "text": text, "logprobs": logprobs, "finish_reason": None}

    def last(self, choice: Choice) -> Json:
        """The end of an answer."""
        return {"index": choice.index, "text": "", "logprobs": None, "finish_reason": choice.finish_reason}


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
    """Tokens of all answers; answers to the same prompt count it once."""
    used = [choice.done.usage for choice in choices if choice.done is not None]
    prompt = max((each.prompt_tokens for each in used), default=0)
    new = sum(each.new_tokens for each in used)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": new,
        "total_tokens": prompt + new,
        "prompt_tokens_details": {"cached_tokens": _cached(used)},
    }


def _cached(used: Sequence[Usage]) -> int:
    return min((each.cached_tokens for each in used), default=0)


def _call(call: ToolCall) -> Json:
    return {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _chat_token(token: TokenLogprob) -> Json:
    top = [_token(text, logprob) for _, text, logprob in token.top]
    return {**_token(token.text, token.logprob), "top_logprobs": top}


def _token(text: bytes, logprob: float) -> Json:
    return {"token": text.decode("utf-8", "replace"), "logprob": logprob, "bytes": list(text)}


def _text_tokens(tokens: Sequence[TokenLogprob], offset: int) -> Json:
    texts = [token.text.decode("utf-8", "replace") for token in tokens]
    offsets = [offset + sum(map(len, texts[:place])) for place in range(len(texts))]
    top = [{text.decode("utf-8", "replace"): value for _, text, value in token.top} for token in tokens]
    return {
        "tokens": texts,
        "token_logprobs": [token.logprob for token in tokens],
        "top_logprobs": top,
        "text_offset": offsets,
    }
