"""Calls of tools: the grammar that makes a model call one, and its calls found in what it says.

Models write a call as JSON, between <tool_call> and </tool_call> (Qwen, Hermes) or as their whole answer (Llama 3).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from inference.request import Grammar, Tool, ToolCall, new_request_id

_BEGIN = "<tool_call>"
CALL_END = "</tool_call>"
_ARGUMENTS = ("arguments", "parameters")


def call_grammar(tools: Sequence[Tool]) -> Grammar:
    """An answer that calls one of the tools, in either form."""
    tagged, bare = (json.dumps(_call_schema(tools, key), ensure_ascii=False) for key in _ARGUMENTS)
    lines = [
        "start: tagged | bare",
        f'tagged: "{_BEGIN}\\n" call "\\n{CALL_END}"',
        f"call: %json {tagged}",
        f"bare: %json {bare}",
    ]
    return Grammar("lark", "\n".join(lines))


def _call_schema(tools: Sequence[Tool], arguments: str) -> dict[str, Any]:
    calls = [
        {
            "type": "object",
            "properties": {"name": {"const": tool.name}, arguments: json.loads(tool.parameters)},
            "required": ["name", arguments],
            "additionalProperties": False,
        }
        for tool in tools
    ]
    return calls[0] if len(calls) == 1 else {"anyOf": calls}


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
