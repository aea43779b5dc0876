"""The answer without what a model says about it, and only where that is certain."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.text.payload import payload

SOURCE = "hi bob, the meeting is at three"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("Sure, here is the rewritten text:\n\nHello Bob.", "Hello Bob."),
        ("Certainly! Here's a more polite version of your message:\nHello Bob.\nBye", "Hello Bob.\nBye"),
        ("Here is the translation:\n\nHello", "Hello"),
        ("The corrected text is:\nHello", "Hello"),
        ("Corrected text: Hello", "Hello"),
        ("**Translation:** Hello", "Hello"),
        ("当然可以，以下是改写后的文字：\n\n你好。", "你好。"),
        ("以下是翻译后的文本：\n你好", "你好"),
        ("改写后的文字如下：\n你好", "你好"),
        ("译文：你好", "你好"),
        ("Hello Bob.\n\nLet me know if you need any further changes!", "Hello Bob."),
        ("Hello Bob.\n\nI hope this helps!", "Hello Bob."),
        ("你好。\n\n希望这对您有帮助！", "你好。"),
        ("```text\nHello\nBob\n```", "Hello\nBob"),
        ('Here is the text:\n\n"Hello Bob."', "Hello Bob."),
        ("“你好。”", "你好。"),
        ("Sure! Here it is:\n\n```\nHello\n```\n\nLet me know if you want any edits.", "Hello"),
    ],
)
def test_what_is_said_about_the_answer_is_left_out(answer: str, text: str):
    found = payload(answer, SOURCE)
    assert found.text == text
    assert found.before + found.text + found.after == answer
    assert not found.is_whole


@pytest.mark.parametrize(
    "answer",
    [
        "Hello Bob.",
        "Here is the plan: we meet at three.",
        "Sure, here is fine.\nSee you there.",
        "Hello Bob,\n\nPlease let me know if you have any questions.",
        "Hello Bob.\n\nFeel free to call me.",
        '"Hello", said Bob, "you are late."',
        "Here is the rewritten text:\n",
        "Run this:\n```\nls\n```\nthen that:\n```\nrm\n```",
        "Here is the plan:\n\nWe meet at three.",
        "Dear Bob:\n\nWe meet at three.",
        "",
    ],
)
def test_what_may_belong_to_the_text_stays(answer: str):
    found = payload(answer, SOURCE)
    assert (found.text, found.is_whole) == (answer, True)


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ("here is the translation:\nhello", "Here is the translation:\nHello"),
        ("hey, here's the text:\nhello", "Here is the text:\nHello"),
        ("Summary: it is good", "Summary: it is very good"),
        ('"hello bob"', '"Hello Bob"'),
        ("```\nx\n```", "```\ny\n```"),
        ("hi\n\nlet me know if you need any changes", "Hi\n\nLet me know if you need any changes."),
    ],
)
def test_what_the_source_has_too_stays(source: str, answer: str):
    assert payload(answer, source).text == answer


@given(st.text(max_size=60), st.text(max_size=20))
def test_nothing_is_ever_lost(answer: str, source: str):
    found = payload(answer, source)
    assert found.before + found.text + found.after == answer
    assert found.text.strip() or not answer.strip()
