"""What is written out of the history, as Markdown and as JSON."""

from __future__ import annotations

import json

from app.history.history import History


def test_export_markdown(history: History) -> None:
    conversation = history.new_conversation("港口 & more", system="Be brief.")
    history.append(conversation, "user", "Show code")
    history.append(conversation, "assistant", "```python\nprint(1)\n```\n")
    head, _, rest = history.export_markdown(conversation).partition("\n\n*")
    assert head == "# 港口 & more"
    assert rest.split("*\n\n", 1)[1] == (
        "## System prompt\n\nBe brief.\n\n## You\n\nShow code\n\n## Assistant\n\n```python\nprint(1)\n```\n"
    )
    chinese = {"system": "系统提示", "user": "我", "assistant": "助手"}
    assert "## 我\n\nShow code" in history.export_markdown(conversation, chinese)  # type: ignore[arg-type]


def test_export_json(history: History) -> None:
    one, two = history.new_conversation("one", model="m"), history.new_conversation("two")
    history.append(one, "user", "你好", tokens=2)
    history.add_result("summarize", "long", "short", "m")
    document = json.loads(history.export_json())
    assert (document["format"], document["version"]) == ("deskinfer-history", 1)
    assert [each["title"] for each in document["conversations"]] == ["one", "two"], "last changed first"
    assert document["conversations"][0]["messages"] == [
        {"role": "user", "text": "你好", "details": {"tokens": 2}, "created": "2027-01-15T08:00:03.000+00:00"}
    ]
    assert document["results"][0]["answer"] == "short"
    (only,) = json.loads(history.export_json(two))["conversations"]
    assert only["title"] == "two"
    assert only["sampling"]["temperature"] == 0.0
