"""The state of a chat as a value: events make new states of it, and each state knows its request.

Nothing here reads a clock, a file or an engine, so every order of events can be tried. What is longer than the context
loses its oldest turns, and the state says how many messages that are. So before a request is made, the texts that are
`uncounted` are counted by the engine and applied as `Counted`; where that fails nothing is left out, and the engine
says what is too long.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Literal

from app.history.entry import Conversation, Detail, StoredMessage
from inference.errors import InferenceError
from inference.request import (
    DoneEvent,
    FailedEvent,
    FinishReason,
    GenerationRequest,
    Message,
    PrefillEvent,
    Priority,
    RequestEvent,
    SamplingParams,
    TokenEvent,
    Usage,
    new_request_id,
)

# What a chat template writes around each message, and what some add of their own; rather too much than too little.
MESSAGE_TOKENS = 8
TEMPLATE_TOKENS = 32
# The share of the context that is kept for an answer without a bound of its own.
ANSWER_SHARE = 4
TITLE_CHARS = 60

Ending = Literal["", "failed"] | FinishReason


class ConversationError(ValueError):
    """An event does not fit the state: a fault of the caller, who knows `is_answering` and the messages."""


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of the chat.

    Attributes:
        ending: of an answer: how it ended, "" while it is being written; of the user's messages "".
        tokens: of the text, None where they have not been counted.
        usage: of an answer that is complete.
        message_id: in the history, None where it is not kept (yet).
    """

    role: Literal["user", "assistant"]
    text: str
    ending: Ending = ""
    tokens: int | None = None
    usage: Usage | None = None
    message_id: int | None = None

    @property
    def details(self) -> dict[str, Detail]:
        """What the history keeps beside the text."""
        details: dict[str, Detail] = {}
        if self.tokens is not None:
            details["tokens"] = self.tokens
        if self.ending:
            details["finish_reason"] = self.ending
        if self.usage is not None:
            details["duration_ms"] = self.usage.time_to_first_token_ms + self.usage.decode_ms
        return details


@dataclass(frozen=True, slots=True)
class Sent:
    """The user says something; an answer is wanted."""

    text: str
    request_id: str = field(default_factory=new_request_id)


@dataclass(frozen=True, slots=True)
class Regenerated:
    """The last answer is dropped, and another one is wanted. Without an answer, as after a crash, one is wanted."""

    request_id: str = field(default_factory=new_request_id)


@dataclass(frozen=True, slots=True)
class Resent:
    """The user's message at `index` is replaced, everything after it dropped, and an answer is wanted."""

    index: int
    text: str
    request_id: str = field(default_factory=new_request_id)


@dataclass(frozen=True, slots=True)
class Continued:
    """The answer of an action becomes part of the chat, as if it had been given here."""

    source_text: str
    answer: str


@dataclass(frozen=True, slots=True)
class Configured:
    """System prompt, sampling and model of the next answers."""

    system: str
    sampling: SamplingParams
    model: str = ""


@dataclass(frozen=True, slots=True)
class Counted:
    """The engine counted texts, out of `uncounted`, of a model with this context."""

    texts: Sequence[str]
    counts: Sequence[int]
    context_tokens: int


@dataclass(frozen=True, slots=True)
class Stored:
    """The history keeps the message at `index`."""

    index: int
    message_id: int


ConversationEvent = Sent | Regenerated | Resent | Continued | Configured | Counted | Stored | RequestEvent


@dataclass(frozen=True, slots=True)
class Fit:
    """What of a chat goes into the next request.

    Attributes:
        first: index of the first message that does.
        prompt_tokens: of it all, None where some text has not been counted.
        context_tokens: 0 where the context is not known.
    """

    first: int
    prompt_tokens: int | None
    context_tokens: int


@dataclass(frozen=True, slots=True)
class ConversationState:
    """A chat at one moment.

    Attributes:
        request_id: of the answer that is being written, "" without.
        error: why the last answer failed, None where it did not.
        system_tokens: of the system prompt, None where they have not been counted.
        context_tokens: of the model, 0 where it is not known: then nothing is left out.
    """

    messages: tuple[ChatMessage, ...] = ()
    system: str = ""
    sampling: SamplingParams = field(default_factory=SamplingParams)
    model: str = ""
    request_id: str = ""
    error: InferenceError | None = None
    system_tokens: int | None = None
    context_tokens: int = 0

    @classmethod
    def restored(cls, conversation: Conversation, messages: Iterable[StoredMessage]) -> ConversationState:
        """Out of the history. A last message without an answer gets one by `Regenerated`."""
        return cls(
            messages=tuple(_restored(message) for message in messages if message.role != "system"),
            system=conversation.system,
            sampling=conversation.sampling,
            model=conversation.model,
        )

    # --- events -------------------------------------------------------------------------------------------------

    def apply(self, event: ConversationEvent) -> ConversationState:
        """The state after an event. Events of requests that are not this chat's (any more) change nothing.

        Raises:
            ConversationError: the event does not fit: no text, no such message, or an answer is being written.
        """
        match event:
            case PrefillEvent() | TokenEvent() | DoneEvent() | FailedEvent():
                return self._apply_answer(event) if self.is_answering and event.request_id == self.request_id else self
            case Configured():
                is_same = event.system == self.system
                tokens = self.system_tokens if is_same else None
                return replace(
                    self, system=event.system, sampling=event.sampling, model=event.model, system_tokens=tokens
                )
            case Counted():
                return self._apply_counts(event)
            case Stored():
                self._check(0 <= event.index < len(self.messages), f"there is no message {event.index}")
                return self._with_message(event.index, message_id=event.message_id)
        self._check(not self.is_answering, "an answer is being written; cancel it first")
        return self._apply_user(event)

    def _apply_user(self, event: Sent | Regenerated | Resent | Continued) -> ConversationState:
        match event:
            case Sent():
                self._check(bool(event.text.strip()), "there is no text")
                return self._asking((*self.messages, ChatMessage("user", event.text)), event.request_id)
            case Regenerated():
                kept = self.messages[:-1] if self.messages and self.messages[-1].role == "assistant" else self.messages
                self._check(bool(kept) and kept[-1].role == "user", "there is nothing to answer")
                return self._asking(kept, event.request_id)
            case Resent():
                self._check(bool(event.text.strip()), "there is no text")
                is_users = 0 <= event.index < len(self.messages) and self.messages[event.index].role == "user"
                self._check(is_users, f"message {event.index} is not the user's")
                return self._asking((*self.messages[: event.index], ChatMessage("user", event.text)), event.request_id)
            case Continued():
                self._check(bool(event.source_text.strip() and event.answer.strip()), "there is no text")
                added = (ChatMessage("user", event.source_text), ChatMessage("assistant", event.answer, "stop"))
                return replace(self, messages=(*self.messages, *added), error=None)

    def _apply_answer(self, event: RequestEvent) -> ConversationState:
        last = len(self.messages) - 1
        match event:
            case TokenEvent():
                return self._with_message(last, text=self.messages[last].text + event.text)
            case DoneEvent():
                # A cancelled request knows no usage.
                tokens = event.usage.new_tokens or None
                done = self._with_message(last, ending=event.finish_reason, usage=event.usage, tokens=tokens)
                return replace(done, request_id="")
            case FailedEvent():
                return replace(self._with_message(last, ending="failed"), request_id="", error=event.error)
        return self

    def _apply_counts(self, event: Counted) -> ConversationState:
        counts = dict(zip(event.texts, event.counts, strict=True))
        messages = tuple(
            replace(message, tokens=counts[message.text])
            if message.tokens is None and message.text in counts and not self._is_open(index)
            else message
            for index, message in enumerate(self.messages)
        )
        return replace(
            self,
            messages=messages,
            system_tokens=counts.get(self.system, self.system_tokens),
            context_tokens=event.context_tokens,
        )

    def _asking(self, messages: tuple[ChatMessage, ...], request_id: str) -> ConversationState:
        self._check(bool(request_id), "the request has no id")
        return replace(self, messages=(*messages, ChatMessage("assistant", "")), request_id=request_id, error=None)

    def _with_message(self, index: int, **changes: object) -> ConversationState:
        messages = list(self.messages)
        messages[index] = replace(messages[index], **changes)  # type: ignore[arg-type]
        return replace(self, messages=tuple(messages))

    def _check(self, ok: bool, reason: str) -> None:
        if not ok:
            raise ConversationError(f"This does not fit the conversation: {reason}.")

    # --- what the state says --------------------------------------------------------------------------------------

    @property
    def is_answering(self) -> bool:
        """Whether an answer is being written."""
        return bool(self.request_id)

    @property
    def left_out(self) -> int:
        """How many of the oldest messages do not go into the request, because the context cannot hold them."""
        return self.fit().first

    def uncounted(self) -> tuple[str, ...]:
        """The texts that the engine should count, so that `fit` knows what the context holds."""
        texts = [message.text for index, message in enumerate(self.messages) if self._needs_count(index, message)]
        if self.system.strip() and self.system_tokens is None:
            texts.append(self.system)
        return tuple(dict.fromkeys(texts))

    def fit(self, draft_tokens: int | None = None) -> Fit:
        """What goes into the request that is being answered, or into the next one.

        Args:
            draft_tokens: of the text that the user is about to send, None for no such text.
        """
        sizes = [_size(message) for message in self.messages]
        points = [index for index, message in enumerate(self.messages) if message.role == "user"]
        if draft_tokens is not None:
            points.append(len(sizes))
            sizes.append(MESSAGE_TOKENS + draft_tokens)
        has_system = bool(self.system.strip())
        known = [size for size in sizes if size is not None]
        if len(known) < len(sizes) or (has_system and self.system_tokens is None):
            return Fit(0, None, self.context_tokens)
        fixed = TEMPLATE_TOKENS + (MESSAGE_TOKENS + (self.system_tokens or 0) if has_system else 0)
        first = 0
        if self.context_tokens:
            first = _first_kept(known, points, self.context_tokens - fixed - self._answer_tokens())
        return Fit(first, fixed + sum(known[first:]), self.context_tokens)

    def request(self) -> GenerationRequest:
        """The request for the answer that is being written. Raises ConversationError where none is."""
        self._check(self.is_answering, "no answer is wanted")
        turns = _joined(self.messages[self.left_out : -1])
        system = (Message("system", self.system),) if self.system.strip() else ()
        return GenerationRequest((*system, *turns), self.sampling, Priority.CHAT, self.request_id)

    def _answer_tokens(self) -> int:
        share = self.context_tokens // ANSWER_SHARE
        return share if self.sampling.max_new_tokens is None else min(self.sampling.max_new_tokens, 2 * share)

    def _is_open(self, index: int) -> bool:
        return self.is_answering and index == len(self.messages) - 1

    def _needs_count(self, index: int, message: ChatMessage) -> bool:
        return message.tokens is None and bool(message.text) and not self._is_open(index)


def title_of(text: str) -> str:
    """A title for a conversation, out of its first message: the first line, cut at a word where it has words."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    if len(line) <= TITLE_CHARS:
        return line
    cut = line[:TITLE_CHARS]
    head, _, tail = cut.rpartition(" ")
    return f"{(head if len(tail) < TITLE_CHARS // 2 and head else cut).rstrip()}…"


def _restored(stored: StoredMessage) -> ChatMessage:
    tokens = stored.details.get("tokens")
    role: Literal["user", "assistant"] = "assistant" if stored.role == "assistant" else "user"
    return ChatMessage(
        role,
        stored.text,
        _ending(stored.details.get("finish_reason")) if role == "assistant" else "",
        tokens if isinstance(tokens, int) else None,
        message_id=stored.id,
    )


def _ending(value: Detail) -> Ending:
    return value if value in ("stop", "length", "cancelled", "failed") else "stop"  # type: ignore[return-value]


def _size(message: ChatMessage) -> int | None:
    if not message.text:
        return 0
    return None if message.tokens is None else MESSAGE_TOKENS + message.tokens


def _first_kept(sizes: Sequence[int], points: Iterable[int], room: int) -> int:
    """Where the request begins that ends at the last point.

    Looks at the requests in their order, as they were made: what was left out stays out, and when the room is used up a
    quarter of it is freed. So most requests begin like the one before, and its keys and values are there already.

    Args:
        sizes: tokens of every message.
        points: indices of the user's messages, with which requests begin.
    """
    before = list(accumulate(sizes, initial=0))
    starts: list[int] = []
    first = 0
    for point in points:
        end = before[point + 1]
        if end - before[first] > room:
            spacious = [start for start in starts if start > first and end - before[start] <= room * 3 // 4]
            fitting = [start for start in starts if start > first and end - before[start] <= room]
            first = next(iter((*spacious, *fitting)), point)
        starts.append(point)
    # An answer to a text that is too long is what the next question is about.
    has_answer = first > 0 and first == starts[-1] and sizes[first - 1] > 0
    return first - 1 if has_answer and before[first + 1] - before[first - 1] <= room else first


def _joined(messages: Iterable[ChatMessage]) -> list[Message]:
    """Messages in turns, as templates demand it: without empty answers, the user's first, never two of one role."""
    turns: list[Message] = []
    for message in messages:
        if not message.text:
            continue
        if turns and turns[-1].role == message.role:
            turns[-1] = Message(message.role, f"{turns[-1].content}\n\n{message.text}")
        else:
            turns.append(Message(message.role, message.text))
    return [Message("user", "…"), *turns] if turns and turns[0].role == "assistant" else turns
