"""The state of a chat: what each event does, and what holds after any events in any order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from app.conversation import (
    MESSAGE_TOKENS,
    TEMPLATE_TOKENS,
    ChatMessage,
    Configured,
    Continued,
    ConversationError,
    ConversationState,
    Counted,
    Regenerated,
    Resent,
    Sent,
    Stored,
    title_of,
)
from app.history.history import History
from inference.errors import EngineStoppedError
from inference.request import (
    DoneEvent,
    FailedEvent,
    Message,
    PrefillEvent,
    Priority,
    SamplingParams,
    TokenEvent,
    Usage,
)

ERROR = EngineStoppedError("The engine has been closed.")


def chat(*texts: str, **values: object) -> ConversationState:
    """A chat of these messages, the user's first, each of one token for a character."""
    messages = tuple(
        ChatMessage("assistant", text, "stop", len(text)) if index % 2 else ChatMessage("user", text, tokens=len(text))
        for index, text in enumerate(texts)
    )
    return replace(ConversationState(messages), **values)  # type: ignore[arg-type]


def sent(state: ConversationState) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in state.request().messages]


def test_a_question_and_its_answer() -> None:
    state = ConversationState().apply(Sent("Hello?", "r1"))
    assert state.is_answering
    assert [(m.role, m.text) for m in state.messages] == [("user", "Hello?"), ("assistant", "")]
    request = state.request()
    assert (request.messages, request.request_id) == ((Message("user", "Hello?"),), "r1")
    assert request.priority is Priority.CHAT
    state = state.apply(PrefillEvent("r1", 3, 6)).apply(TokenEvent("r1", "Good ")).apply(TokenEvent("r1", "day"))
    assert state.messages[-1] == ChatMessage("assistant", "Good day")
    usage = Usage(prompt_tokens=6, new_tokens=2, time_to_first_token_ms=5.0, decode_ms=20.0)
    state = state.apply(DoneEvent("r1", "stop", usage))
    assert not state.is_answering
    answer = state.messages[-1]
    assert (answer.text, answer.ending, answer.tokens) == ("Good day", "stop", 2)
    assert answer.details == {"tokens": 2, "finish_reason": "stop", "duration_ms": 25.0}
    assert state.messages[0].details == {}


def test_the_request_has_system_prompt_sampling_and_the_whole_history() -> None:
    sampling = SamplingParams(temperature=0.8, max_new_tokens=50)
    state = chat("one", "two").apply(Configured("Be brief.", sampling, "qwen")).apply(Sent("three", "r"))
    assert sent(state) == [("system", "Be brief."), ("user", "one"), ("assistant", "two"), ("user", "three")]
    assert state.request().sampling == sampling
    assert state.model == "qwen"
    assert sent(state.apply(Configured(" \n", sampling))) == [("user", "one"), ("assistant", "two"), ("user", "three")]


def test_a_failed_answer_keeps_its_text_and_the_reason() -> None:
    state = ConversationState().apply(Sent("Hello?", "r1")).apply(TokenEvent("r1", "Half"))
    state = state.apply(FailedEvent("r1", ERROR))
    assert (state.is_answering, state.error) == (False, ERROR)
    assert (state.messages[-1].text, state.messages[-1].ending) == ("Half", "failed")
    state = state.apply(Sent("And now?", "r2"))
    assert state.error is None
    assert sent(state) == [("user", "Hello?"), ("assistant", "Half"), ("user", "And now?")]


def test_an_answer_that_never_began_does_not_leave_two_questions_in_a_row() -> None:
    state = ConversationState().apply(Sent("Hello?", "r1")).apply(DoneEvent("r1", "cancelled", Usage()))
    assert state.messages[-1] == ChatMessage("assistant", "", "cancelled", None, Usage())
    assert sent(state.apply(Sent("Anyone?", "r2"))) == [("user", "Hello?\n\nAnyone?")]


def test_events_of_another_request_change_nothing() -> None:
    state = ConversationState().apply(Sent("Hello?", "r1"))
    for event in (TokenEvent("r0", "old"), DoneEvent("r0", "cancelled", Usage()), FailedEvent("r0", ERROR)):
        assert state.apply(event) is state
    state = state.apply(DoneEvent("r1", "stop", Usage(new_tokens=1)))
    assert state.apply(TokenEvent("r1", "late")) is state


def test_regenerate_drops_the_last_answer() -> None:
    state = chat("one", "two", "three", "four").apply(Regenerated("r"))
    assert [message.text for message in state.messages] == ["one", "two", "three", ""]
    assert sent(state) == [("user", "one"), ("assistant", "two"), ("user", "three")]
    assert sent(chat("one").apply(Regenerated("r"))) == [("user", "one")], "after a crash there is no answer yet"


def test_resent_drops_everything_after_the_edited_message() -> None:
    state = chat("one", "two", "three", "four").apply(Resent(0, "ONE", "r"))
    assert [message.text for message in state.messages] == ["ONE", ""]
    assert sent(state) == [("user", "ONE")]


def test_the_answer_of_an_action_goes_on_as_a_chat() -> None:
    state = ConversationState().apply(Continued("Der Hafen", "The harbour")).apply(Sent("In Spanish?", "r"))
    assert sent(state) == [("user", "Der Hafen"), ("assistant", "The harbour"), ("user", "In Spanish?")]


@pytest.mark.parametrize(
    ("state", "event"),
    [
        (chat(), Sent(" \n")),
        (chat(), Regenerated()),
        (chat("one", "two"), Resent(1, "x")),
        (chat("one", "two"), Resent(-2, "x")),
        (chat("one", "two"), Resent(2, "x")),
        (chat("one", "two"), Resent(0, " ")),
        (chat(), Continued("text", " ")),
        (chat(), Stored(0, 1)),
        (chat(), Sent("x", "")),
        (chat("one").apply(Regenerated("r")), Sent("two")),
        (chat("one").apply(Regenerated("r")), Regenerated()),
        (chat("one").apply(Regenerated("r")), Resent(0, "x")),
        (chat("one").apply(Regenerated("r")), Continued("x", "y")),
    ],
)
def test_events_that_do_not_fit_are_refused(state: ConversationState, event: Sent) -> None:
    before = repr(state)
    with pytest.raises(ConversationError):
        state.apply(event)
    assert repr(state) == before


def test_there_is_no_request_without_a_question() -> None:
    with pytest.raises(ConversationError):
        chat("one", "two").request()


# --- the context ------------------------------------------------------------------------------------------------------


def test_texts_are_counted_once() -> None:
    state = ConversationState(system="S").apply(Sent("one", "r"))
    assert state.uncounted() == ("one", "S")
    assert state.fit().prompt_tokens is None
    state = state.apply(Counted(("one", "S", "elsewhere"), (10, 20, 30), 4096))
    assert state.uncounted() == ()
    assert state.fit().prompt_tokens == TEMPLATE_TOKENS + 2 * MESSAGE_TOKENS + 10 + 20
    assert state.context_tokens == 4096
    state = state.apply(TokenEvent("r", "grows"))
    assert state.uncounted() == (), "an answer that grows is counted by the engine when it ends"
    state = state.apply(DoneEvent("r", "cancelled", Usage()))
    assert state.uncounted() == ("grows",), "a cancelled one has no count"
    assert state.apply(Configured("S", SamplingParams())).uncounted() == ("grows",)
    assert state.apply(Configured("other", SamplingParams())).uncounted() == ("grows", "other")


def test_the_oldest_turns_are_left_out_and_told() -> None:
    texts = ["a" * 100, "b" * 100] * 5
    state = chat(*texts, context_tokens=1000).apply(Sent("c" * 100, "r")).apply(Counted(("c" * 100,), (100,), 1000))
    # Room for 1000 - 32 - 250 = 718 tokens; three quarters of it are 538: four messages of 108 tokens and the new one
    # would be 540, so the turn before goes as well.
    assert state.left_out == 8
    assert state.fit().prompt_tokens == TEMPLATE_TOKENS + 3 * 108
    assert [role for role, _ in sent(state)] == ["user", "assistant", "user"]
    assert chat(*texts, context_tokens=100_000).apply(Sent("c", "r")).left_out == 0
    assert chat(*texts, context_tokens=0).apply(Sent("c", "r")).left_out == 0, "without a context nothing is decided"


def test_what_was_left_out_stays_out_until_the_room_is_used_up_again() -> None:
    state = chat(context_tokens=2000)
    left_out = []
    for turn in range(30):
        state = state.apply(Sent(f"{turn:03}" * 30, "r")).apply(Counted((f"{turn:03}" * 30,), (90,), 2000))
        left_out.append(state.left_out)
        state = state.apply(TokenEvent("r", "answer")).apply(DoneEvent("r", "stop", Usage(new_tokens=90)))
    assert left_out == sorted(left_out)
    assert left_out[-1] > 0
    changes = sum(1 for before, after in pairwise(left_out) if before != after)
    assert changes <= 12, "most requests begin like the one before, so that the engine knows their beginning"


def test_the_last_turn_is_kept_where_it_fits_at_all() -> None:
    state = chat("a" * 300, "b" * 300, context_tokens=1000).apply(Sent("c", "r")).apply(Counted(("c",), (1,), 1000))
    assert state.left_out == 0, "617 of 718 tokens fit"
    state = chat("x" * 90, "y" * 90, "a" * 300, "b" * 300, context_tokens=1000).apply(Sent("c", "r"))
    assert state.apply(Counted(("c",), (1,), 1000)).left_out == 2


def test_a_message_that_is_too_long_alone_is_sent_for_the_engine_to_refuse() -> None:
    state = chat("a", "b", context_tokens=600).apply(Sent("c", "r")).apply(Counted(("c",), (5000,), 600))
    assert sent(state) == [("user", "c")]
    assert state.left_out == 2


def test_what_is_typed_counts() -> None:
    state = chat("a" * 100, "b" * 100, context_tokens=1000)
    assert state.fit().prompt_tokens == TEMPLATE_TOKENS + 2 * 108
    assert state.fit(50).prompt_tokens == TEMPLATE_TOKENS + 2 * 108 + 58
    assert state.fit(50).first == 0
    assert state.fit(605).first == 2
    assert state.fit(600).first == 1, "there is room for the answer that it is about"


def test_room_for_the_answer_follows_its_bound() -> None:
    for bound, turns, expected in ((50, 4, 0), (None, 4, 4), (None, 5, 4), (2000, 5, 6)):
        texts = ["a" * 100, "b" * 100] * turns
        state = chat(*texts, context_tokens=1000, sampling=SamplingParams(max_new_tokens=bound))
        state = state.apply(Sent("c", "r")).apply(Counted(("c",), (1,), 1000))
        assert state.left_out == expected, bound


def test_a_chat_comes_back_out_of_the_history(tmp_path: Path) -> None:
    history = History(tmp_path / "h" / "history.db")
    sampling = SamplingParams(temperature=0.5)
    conversation_id = history.new_conversation("t", system="S", model="m", sampling=sampling)
    state = ConversationState(system="S", sampling=sampling, model="m").apply(Sent("one", "r"))
    state = state.apply(Stored(0, history.append(conversation_id, "user", "one")))
    state = state.apply(TokenEvent("r", "two")).apply(DoneEvent("r", "length", Usage(new_tokens=7)))
    answer = state.messages[1]
    state = state.apply(Stored(1, history.append(conversation_id, "assistant", answer.text, **answer.details)))
    conversation = history.conversation(conversation_id)
    assert conversation is not None
    restored = ConversationState.restored(conversation, history.messages(conversation_id))
    history.close()
    expected = tuple(replace(message, usage=None) for message in state.messages)
    assert restored == replace(state, messages=expected)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("\n  Hello there  \nsecond line", "Hello there"),
        ("", ""),
        ("word " * 30, "word " * 11 + "word…"),
        ("好" * 80, "好" * 60 + "…"),
        ("a " + "x" * 80, "a " + "x" * 58 + "…"),
    ],
)
def test_titles(text: str, title: str) -> None:
    assert title_of(text) == title


# --- any events in any order ------------------------------------------------------------------------------------------

TEXTS = st.text(min_size=1, max_size=20).filter(lambda text: bool(text.strip()))


class ChatMachine(RuleBasedStateMachine):
    """Drives a state by events, beside the plainest model of it: a list of (role, text)."""

    def __init__(self) -> None:
        super().__init__()
        self.state = ConversationState()
        self.model: list[tuple[str, str]] = []
        self.number = 0

    def _next_id(self) -> str:
        self.number += 1
        return f"r{self.number}"

    def _refused(self, act: Callable[[], object]) -> bool:
        if self.state.is_answering:
            with pytest.raises(ConversationError):
                act()
        return self.state.is_answering

    @rule(text=TEXTS)
    def send(self, text: str) -> None:
        if not self._refused(lambda: self.state.apply(Sent(text))):
            self.state = self.state.apply(Sent(text, self._next_id()))
            self.model += [("user", text), ("assistant", "")]

    @rule(text=TEXTS, answer=TEXTS)
    def continue_answer(self, text: str, answer: str) -> None:
        if not self._refused(lambda: self.state.apply(Continued(text, answer))):
            self.state = self.state.apply(Continued(text, answer))
            self.model += [("user", text), ("assistant", answer)]

    @precondition(lambda self: self.model)
    @rule()
    def regenerate(self) -> None:
        if not self._refused(lambda: self.state.apply(Regenerated())):
            self.state = self.state.apply(Regenerated(self._next_id()))
            self.model[-1] = ("assistant", "")

    @precondition(lambda self: self.model)
    @rule(text=TEXTS, data=st.data())
    def resend(self, text: str, data: st.DataObject) -> None:
        index = 2 * data.draw(st.integers(0, len(self.model) // 2 - 1))
        if not self._refused(lambda: self.state.apply(Resent(index, text))):
            self.state = self.state.apply(Resent(index, text, self._next_id()))
            self.model = [*self.model[:index], ("user", text), ("assistant", "")]

    @rule(text=st.text(min_size=1, max_size=5), age=st.integers(0, 2))
    def token(self, text: str, age: int) -> None:
        request_id = f"r{self.number - age}"
        if self.state.is_answering and age == 0:
            self.model[-1] = ("assistant", self.model[-1][1] + text)
        self.state = self.state.apply(TokenEvent(request_id, text))

    @rule(reason=st.sampled_from(["stop", "length", "cancelled", "failed"]), tokens=st.integers(0, 50))
    def end(self, reason: str, tokens: int) -> None:
        request_id = f"r{self.number}"
        event = (
            FailedEvent(request_id, ERROR)
            if reason == "failed"
            else DoneEvent(request_id, reason, Usage(new_tokens=tokens))  # type: ignore[arg-type]
        )
        was_answering = self.state.is_answering
        self.state = self.state.apply(event)
        assert not self.state.is_answering
        if was_answering:
            assert self.state.messages[-1].ending == reason
            assert (self.state.error is ERROR) == (reason == "failed")

    @rule(context=st.sampled_from([0, 200, 600, 5000]))
    def count(self, context: int) -> None:
        texts = self.state.uncounted()
        self.state = self.state.apply(Counted(texts, [10 * len(text) for text in texts], context))
        assert self.state.uncounted() == ()

    @rule(system=st.sampled_from(["", "Be brief."]))
    def configure(self, system: str) -> None:
        self.state = self.state.apply(Configured(system, SamplingParams()))

    @invariant()
    def messages_are_those_of_the_model(self) -> None:
        assert [(message.role, message.text) for message in self.state.messages] == self.model

    @invariant()
    def request_is_a_chat_that_ends_with_the_question(self) -> None:
        fit = self.state.fit()
        assert 0 <= fit.first <= len(self.model)
        if not self.state.is_answering:
            return
        request = self.state.request()
        turns = [message for message in request.messages if message.role != "system"]
        assert (request.messages[0].role == "system") == bool(self.state.system)
        assert [turn.role for turn in turns] == ["user", "assistant"] * (len(turns) // 2) + ["user"]
        assert turns[-1].content.endswith(self.model[-2][1])
        assert fit.first % 2 == 0 or turns[0].content == "…", "whole turns, or the last answer without its question"
        kept_turns = len(self.model) - fit.first > 2
        if fit.prompt_tokens is not None and kept_turns and fit.context_tokens:
            assert fit.prompt_tokens + fit.context_tokens // 4 <= fit.context_tokens
        if fit.first:
            assert fit.context_tokens, "nothing is left out without a reason"


TestChatMachine = ChatMachine.TestCase
TestChatMachine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


@given(st.lists(st.integers(0, 300), min_size=1, max_size=20), st.integers(200, 3000))
@settings(deadline=None)
def test_only_what_has_to_go_is_left_out(sizes: list[int], context: int) -> None:
    state = chat(*("x" * max(1, size) for size in sizes[: len(sizes) // 2 * 2]), context_tokens=context)
    state = state.apply(Sent("q", "r")).apply(Counted(("q",), (1,), context))
    room = context - TEMPLATE_TOKENS - context // 4
    total = sum(MESSAGE_TOKENS + (message.tokens or 0) for message in state.messages[:-1])
    if total <= room * 3 // 4:
        assert state.left_out == 0
    if total > room:
        assert state.left_out > 0 or len(state.messages) == 2


def test_the_answer_to_a_text_that_is_too_long_is_what_the_next_question_is_about() -> None:
    state = chat("a" * 5000, "b" * 100, context_tokens=1000).apply(Sent("c", "r")).apply(Counted(("c",), (1,), 1000))
    assert state.left_out == 1
    assert sent(state) == [("user", "…"), ("assistant", "b" * 100), ("user", "c")]
    assert state.fit().prompt_tokens == TEMPLATE_TOKENS + 108 + MESSAGE_TOKENS + 1


def test_an_empty_answer_to_a_text_that_is_too_long_is_left_out_with_it() -> None:
    state = chat("a" * 5000, "", context_tokens=1000).apply(Sent("c", "r")).apply(Counted(("c",), (1,), 1000))
    assert state.left_out == 2
    assert sent(state) == [("user", "c")]
