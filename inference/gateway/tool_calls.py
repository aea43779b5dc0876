"""Calls of tools: grammars of answers that hold calls, and the calls found in what a model says.

Models write a call as JSON, between <tool_call> and </tool_call> (Qwen, Hermes) or as their whole answer (Llama 3).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from inference.request import GenerationRequest, Grammar, Tool, ToolCall, new_request_id

_BEGIN = "<tool_call>"
CALL_END = "</tool_call>"
_ARGUMENTS = ("arguments", "parameters")
_HEAD = r'[ \t\r\n]*\{[ \t\r\n]*("type": "function", )?"name"[ \t\r\n]*:[ \t\r\n]*"(%s)"[ \t\r\n]*,[ \t\r\n]*"(%s)"[ \t\r\n]*:'
"""How a call without marks begins, for the grammar and for the finder alike: what the one lets through as text, the
other must not take for a call."""
_ONE_LINE = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
"""White space as models write it; free one would let a small model write line breaks for ever."""
_WITH_FORM = "start: calls | form"


def call_grammar(tools: Sequence[Tool]) -> Grammar:
    """An answer that calls one of the tools, in either form."""
    return _lark("start: tagged | bare", f'begin: "{_BEGIN}"', *_tagged(tools), *_bare(tools), *_arguments(tools))


def text_or_call_grammar(tools: Sequence[Tool], may_repeat: bool) -> Grammar:
    """An answer that is any text, in which each call of a tool has arguments that follow the tool's schema.

    The mark begins a call wherever it stands. A call without marks is one where the answer, or what follows a call,
    begins like one; other JSON is text.

    Args:
        may_repeat: several calls may follow each other; else the first one ends the answer.
    """
    heads = [f"head_{place}[lazy]: /{_head([tool])}/" for place, tool in enumerate(tools)]
    bare = [f'bare_{place}: head_{place} " " arguments_{place} "}}"' for place in range(len(tools))]
    return _lark(
        "start: call* TEXT?" if may_repeat else "start: call | TEXT?",
        "call: tagged | " + _any("bare", tools),
        "TEXT: /(?s:.+)/",
        # What is lazy is taken as soon as it matches: no text gets past the mark, or past a head.
        f"begin[lazy]: /(?s:.*){_BEGIN}/",
        *heads,
        *bare,
        *_tagged(tools),
        *_arguments(tools),
    )


def form_or_call_grammar(tools: Sequence[Tool], schema: str, may_repeat: bool) -> Grammar:
    """An answer that is calls of tools, or JSON that follows a schema."""
    return _lark(
        _WITH_FORM,
        f"calls: {'tagged (NEXT tagged)*' if may_repeat else 'tagged'} | bare",
        'NEXT: "\\n"',
        f"form: %json {_one_line(schema)}",
        f'begin: "{_BEGIN}"',
        *_tagged(tools),
        *_bare(tools),
        *_arguments(tools),
    )


def _lark(*rules: str) -> Grammar:
    return Grammar("lark", "\n".join(rules))


def _any(rule: str, tools: Sequence[Tool]) -> str:
    return " | ".join(f"{rule}_{place}" for place in range(len(tools)))


def _tagged(tools: Sequence[Tool]) -> list[str]:
    """Rules of a call between marks, the first of which is the rule `begin`."""
    named = [
        f"named_{place}: {_text(_name_part(tool, 'arguments'))} arguments_{place} {_text('}')}"
        for place, tool in enumerate(tools)
    ]
    return [f"tagged: begin {_text(chr(10))} ({_any('named', tools)}) {_text(chr(10) + CALL_END)}", *named]


def _bare(tools: Sequence[Tool]) -> list[str]:
    """Rules of a call without marks, in the same pieces as other JSON, which may be possible beside it."""
    called = [
        " ".join(map(_text, ("{", '"name"', ": ", json.dumps(tool.name), ", ", '"parameters"', ": ")))
        + f" arguments_{place} {_text('}')}"
        for place, tool in enumerate(tools)
    ]
    return [f"bare: {_any('bare', tools)}", *(f"bare_{place}: {rule}" for place, rule in enumerate(called))]


def _arguments(tools: Sequence[Tool]) -> list[str]:
    """A rule for each tool: its schema stands alone, so that references in it lead where they should."""
    return [f"arguments_{place}: %json {_one_line(tool.parameters)}" for place, tool in enumerate(tools)]


def _name_part(tool: Tool, arguments: str) -> str:
    return f'{{"name": {json.dumps(tool.name)}, "{arguments}": '


def _text(text: str) -> str:
    return json.dumps(text)


def _one_line(schema: str) -> str:
    return json.dumps({"x-guidance": _ONE_LINE, **json.loads(schema)})


def _head(tools: Sequence[Tool]) -> str:
    return _HEAD % ("|".join(re.escape(tool.name) for tool in tools), "|".join(_ARGUMENTS))


class ToolCallFinder:
    """Takes an answer piece by piece and keeps calls apart from text. Text that may be the beginning of a call waits.

    Attributes:
        calls: found so far.
    """

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._names = {tool.name for tool in tools}
        self._held = ""
        self._has_text = False
        self.calls: list[ToolCall] = []

    def push(self, text: str) -> str:
        """The text that is certainly no call."""
        self._held += text
        return self._release(False)

    def finish(self) -> str:
        """What was held back and is no call."""
        return self._release(True)

    def _release(self, is_last: bool) -> str:
        released = ""
        while True:
            start = self._held.find(_BEGIN)
            if start < 0:
                break
            end = self._held.find(CALL_END, start)
            if end < 0 and not is_last:
                return released + self._let(start)
            inner = self._held[start + len(_BEGIN) : end if end >= 0 else None]
            call = self._call(inner)
            behind = end + len(CALL_END) if end >= 0 else len(self._held)
            if call is None:
                released += self._let(behind)
                continue
            released += self._let(start)
            self._held = self._held[behind - start :].lstrip("\n")
            self.calls.append(call)
        return released + self._rest(is_last)

    def _rest(self, is_last: bool) -> str:
        if not self._has_text and not self.calls and self._held.lstrip()[:1] == "{":
            if not is_last:
                return ""
            self._take_bare()
        if is_last:
            rest = self._let(len(self._held))
            return "" if self.calls and not rest.strip() else rest
        return self._let(len(self._held) - _overlap(self._held))

    def _let(self, count: int) -> str:
        text, self._held = self._held[:count], self._held[count:]
        self._has_text = self._has_text or bool(text.strip())
        return text

    def _take_bare(self) -> None:
        """Takes the calls that the answer begins with, where they stand there without marks."""
        while True:
            text = self._held.lstrip()
            try:
                data, end = json.JSONDecoder().raw_decode(text)
                call = self._made(data)
            except (ValueError, RecursionError):
                return
            if call is None:
                return
            self.calls.append(call)
            self._held = text[end:]

    def _call(self, text: str) -> ToolCall | None:
        try:
            return self._made(json.loads(text))
        except (ValueError, RecursionError):
            return None

    def _made(self, data: object) -> ToolCall | None:
        name = data.get("name") if isinstance(data, dict) else None
        if not isinstance(data, dict) or not isinstance(name, str) or name not in self._names:
            return None
        arguments: Any = next((data[key] for key in _ARGUMENTS if key in data), {})
        written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        written = written.encode("utf-8", "replace").decode()  # a model may write half of a character
        return ToolCall(f"call_{new_request_id()[:24]}", name, written)


def _overlap(text: str) -> int:
    """How much of the text's end may be the beginning of a call."""
    return next((size for size in range(min(len(text), len(_BEGIN) - 1), 0, -1) if _BEGIN.startswith(text[-size:])), 0)
