"""Searching the history: any part of a text, in any script."""

from __future__ import annotations

import pytest

from app.history.history import History


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("weather", "The weather in Zürich"),
        ("EATHE", "The weather in Zürich"),
        ("zürich the", "The weather in Zürich"),
        ("ZÜRICH", "The weather in Zürich"),
        ("in Zü", "The weather in Zürich"),
        ("今天的天气", "今天的天气很好，我们去公园吧"),
        ("天气", "今天的天气很好，我们去公园吧"),
        ("园", "今天的天气很好，我们去公园吧"),
        ("天气 去公园", "今天的天气很好，我们去公园吧"),
        ("100 %_", "It is 100 %_ sure"),
        ('say "no', 'They say "no" AND (NOT) maybe*'),
        ("(NOT) maybe*", 'They say "no" AND (NOT) maybe*'),
        ("x\\y", "A path x\\y"),
        ("погода", "Сегодня ПОГОДА"),
    ],
)
def test_search_finds_any_part_in_any_script(history: History, query: str, found: str) -> None:
    texts = [
        "The weather in Zürich",
        "今天的天气很好，我们去公园吧",
        "It is 100 %_ sure",
        "Nothing at all, 100 xyz",
        'They say "no" AND (NOT) maybe*',
        "A path x\\y",
        "Сегодня ПОГОДА",
    ]
    conversation = history.new_conversation("talk")
    for text in texts:
        history.append(conversation, "user", text)
    other = history.new_conversation("other")
    history.append(other, "user", "unrelated")
    (hit,) = history.search(query)
    assert (hit.kind, hit.text, hit.conversation_id, hit.title) == ("message", found, conversation, "talk")
    assert [each.id for each in history.conversations(query)] == [conversation]


def test_search_needs_all_words_and_something_to_search_for(history: History) -> None:
    conversation = history.new_conversation("Plans")
    history.append(conversation, "user", "alpha beta")
    assert history.search("alpha gamma") == []
    assert history.search("  ") == []
    assert history.conversations("Plan")[0].id == conversation, "a title is found too"
    assert history.conversations("nowhere") == []
