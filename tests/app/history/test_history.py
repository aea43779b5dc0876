"""The history: conversations and answers of actions are kept at once, listed, changed and found."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.history.file import HistoryError
from app.history.history import History
from inference.request import SamplingParams


def test_a_conversation_comes_back(history: History, path: Path) -> None:
    sampling = SamplingParams(temperature=0.7, top_p=0.9, seed=3, stop=("###", "终"))
    first = history.new_conversation("A title", system="Be brief.", model="qwen", sampling=sampling)
    asked = history.append(first, "user", "Hello?")
    answered = history.append(first, "assistant", "你好 🙂\n", tokens=4, duration_ms=12.5, finish_reason="stop")
    history.close()

    again = History(path)
    (conversation,) = again.conversations()
    assert (conversation.id, conversation.title, conversation.system) == (first, "A title", "Be brief.")
    assert (conversation.model, conversation.sampling) == ("qwen", sampling)
    assert conversation.created_s == 1_800_000_001.0
    assert conversation.updated_s == 1_800_000_003.0
    one, two = again.messages(first)
    assert (one.id, one.role, one.text, one.details) == (asked, "user", "Hello?", {})
    assert (two.id, two.role, two.text) == (answered, "assistant", "你好 🙂\n")
    assert two.details == {"tokens": 4, "duration_ms": 12.5, "finish_reason": "stop"}
    again.close()


def test_conversations_are_listed_by_their_last_change(history: History) -> None:
    one, two, three = (history.new_conversation(title) for title in ("one", "two", "three"))
    history.append(one, "user", "again")
    assert [each.id for each in history.conversations()] == [one, three, two]
    assert [each.id for each in history.conversations(limit=1, offset=1)] == [three]
    history.rename(two, "renamed")
    history.configure(three, "New.", SamplingParams(temperature=1.0), "other")
    changed, renamed, _ = history.conversations()
    assert renamed.title == "renamed"
    assert (changed.system, changed.sampling.temperature, changed.model) == ("New.", 1.0, "other")


def test_delete_takes_the_messages_along_and_no_other(history: History) -> None:
    one, two = history.new_conversation("one"), history.new_conversation("two")
    history.append(one, "user", "goes away")
    history.append(two, "user", "stays here")
    history.delete(one)
    history.delete(4711)
    assert [each.id for each in history.conversations()] == [two]
    assert history.conversation(one) is None
    assert history.messages(one) == []
    assert history.search("goes away") == []
    assert [hit.text for hit in history.search("stays")] == ["stays here"]


def test_truncate_from_drops_a_message_and_all_after_it(history: History) -> None:
    one, two = history.new_conversation(), history.new_conversation()
    history.append(one, "user", "first")
    other = history.append(two, "user", "of another one")
    edited = history.append(one, "assistant", "second")
    history.append(one, "user", "third")
    history.truncate_from(edited)
    history.truncate_from(4711)
    assert [message.text for message in history.messages(one)] == ["first"]
    assert [message.id for message in history.messages(two)] == [other]
    assert history.search("third") == []
    assert history.append(one, "assistant", "anew") > edited, "an id is never given twice"


def test_rewrite_gives_a_message_another_text_in_its_place(history: History) -> None:
    chat = history.new_conversation("a")
    first = history.append(chat, "user", "question")
    answer = history.append(chat, "assistant", "pelican", finish_reason="cancelled")
    told: list[int] = []
    history.listen(lambda: told.append(1))
    history.rewrite(answer, "pelican and cormorant", finish_reason="stop")
    history.rewrite(999, "of nobody")
    assert [(each.id, each.text) for each in history.messages(chat)] == [
        (first, "question"),
        (answer, "pelican and cormorant"),
    ]
    assert history.messages(chat)[1].details == {"finish_reason": "stop"}
    assert [hit.id for hit in history.search("cormorant")] == [answer]
    history.rewrite(answer, "heron")
    assert history.search("pelican") == []
    assert told == []


def test_a_conversation_that_is_gone_says_so(history: History) -> None:
    gone = history.new_conversation()
    history.delete(gone)
    for use in (
        lambda: history.append(gone, "user", "x"),
        lambda: history.rename(gone, "x"),
        lambda: history.export_markdown(gone),
        lambda: history.export_json(gone),
    ):
        with pytest.raises(HistoryError, match="no longer in the history"):
            use()
    assert history.search("x") == []


def test_results_of_actions_are_kept_and_found(history: History) -> None:
    conversation = history.new_conversation("talk")
    history.append(conversation, "user", "about the harbour")
    result = history.add_result("translate", "Der Hafen", "The harbour", "qwen", tokens=3)
    (found,) = history.results("hafen")
    assert (found.id, found.action_id, found.source_text, found.answer) == (
        result,
        "translate",
        "Der Hafen",
        "The harbour",
    )
    assert (found.model, found.details) == ("qwen", {"tokens": 3})
    assert [hit.kind for hit in history.search("harbour")] == ["result", "message"], "newest first"
    assert history.results("hafen harbour") == [found], "words may be spread over both"
    assert history.results("Ha") == [found]
    history.delete_result(result)
    assert history.results() == []
    assert [hit.kind for hit in history.search("harbour")] == ["message"]


def test_sampling_of_another_version_is_read_as_far_as_it_is_known(history: History) -> None:
    conversation = history.new_conversation()
    for stored, expected in (
        ('{"temperature": 0.5, "of_later": 1}', SamplingParams(temperature=0.5)),
        ('{"temperature": 99}', SamplingParams()),
    ):
        history._connection.execute("UPDATE conversations SET sampling = ?", (stored,))
        found = history.conversation(conversation)
        assert found is not None
        assert found.sampling == expected


def test_halves_of_characters_are_kept_as_far_as_they_go(history: History) -> None:
    conversation = history.new_conversation("\udc00")
    history.append(conversation, "assistant", "a \ud83d\ude42 b \ud83d")
    assert [message.text for message in history.messages(conversation)] == ["a 🙂 b \ufffd"]
    history.add_result("own", "\ud83d", "x")
    assert history.results()[0].source_text == "\ufffd"


def test_changes_that_belong_together_are_made_together(history: History) -> None:
    conversation = history.new_conversation("one")
    first = history.append(conversation, "user", "before")

    def replace_in(conversation: int) -> None:
        with history.together():
            history.truncate_from(first)
            history.append(conversation, "user", "after")

    with pytest.raises(HistoryError):
        replace_in(conversation + 1)
    assert [message.text for message in history.messages(conversation)] == ["before"]
    replace_in(conversation)
    assert [message.text for message in history.messages(conversation)] == ["after"]
