"""Calls of tools: grammars of answers that hold calls, and the calls found in what a model says.

Models write a call as JSON, between <tool_call> and </tool_call> (Qwen, Hermes) or as their whole answer (Llama 3), in
a fence where they like those (Qwen2.5-Coder).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from inference.request import GenerationRequest, Grammar, Tool, ToolCall, new_request_id

_BEGIN = "<tool_call>"
CALL_END = "</tool_call>"
_ARGUMENTS = ("arguments", "parameters")
_WS = r"[ \t\r\n]{0,4}"
_FENCE = f"(```(json)?{_WS})?"
_HEAD = _WS.join(("", _FENCE + r"\{", r'("type": "function", )?"name"', ":", '"(%s)"', ",", '"(%s)"', ":"))
"""How a call without marks begins, for the grammar and for the finder alike: what the one lets through as text, the
other must not take for a call."""
_MOST_HEAD_CHARS = 200
_MAY_BE_HEAD = re.compile(r"\s*(`{0,2}|```(j|js|jso)?|```(json)?\s*(\{.*)?|\{.*)", re.DOTALL)
_ONE_LINE = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
"""White space as models write it; free one would let a small model write line breaks for ever."""


@dataclass(frozen=True, slots=True)
class CallGrammar(Grammar):
    """Holds the calls of tools in an answer.

    Attributes:
        has_form: the answer may be JSON of another kind in place of calls.
    """

    has_form: bool = False


def call_grammar(tools: Sequence[Tool]) -> CallGrammar:
    """An answer that calls one of the tools, in either form."""
    return _lark("start: tagged | bare", f'begin: "{_BEGIN}"', *_tagged(tools), *_bare(tools), *_arguments(tools))


def text_or_call_grammar(tools: Sequence[Tool], may_repeat: bool) -> CallGrammar:
    """An answer that is any text, in which each call of a tool has arguments that follow the tool's schema.

    The mark begins a call wherever it stands. A call without marks is one where the answer, or what follows a call,
    begins like one; other JSON is text.

    Args:
        may_repeat: several calls may follow each other; else the first one ends the answer.
    """
    heads = [f"head_{place}[lazy]: /{_head([tool.name])}/" for place, tool in enumerate(tools)]
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


def form_or_call_grammar(tools: Sequence[Tool], schema: str, may_repeat: bool) -> CallGrammar:
    """An answer that is calls of tools, or JSON that follows a schema."""
    return _lark(
        "start: calls | form",
        f"calls: {'tagged (NEXT tagged)*' if may_repeat else 'tagged'} | bare",
        'NEXT: "\\n"',
        f"form: %json {_one_line(schema)}",
        f'begin: "{_BEGIN}"',
        *_tagged(tools),
        *_bare(tools),
        *_arguments(tools),
        has_form=True,
    )


def _lark(*rules: str, has_form: bool = False) -> CallGrammar:
    return CallGrammar("lark", "\n".join(rules), has_form=has_form)


def _any(rule: str, tools: Sequence[Tool]) -> str:
    return " | ".join(f"{rule}_{place}" for place in range(len(tools)))


def _tagged(tools: Sequence[Tool]) -> list[str]:
    """Rules of a call between marks, the first of which is the rule `begin`."""
    rules = [f'tagged: begin "\\n" ({_any("named", tools)}) "\\n{CALL_END}"']
    for place, tool in enumerate(tools):
        head = json.dumps(f'{{"name": "{tool.name}", "arguments": ')
        rules.append(f'named_{place}: {head} arguments_{place} "}}"')
    return rules


def _bare(tools: Sequence[Tool]) -> list[str]:
    """Rules of a call without marks, in the same pieces as other JSON, which may be possible beside it."""
    rules = [f"bare: {_any('bare', tools)}"]
    for place, tool in enumerate(tools):
        head = " ".join(map(json.dumps, ("{", '"name"', ": ", f'"{tool.name}"', ", ", '"parameters"', ": ")))
        rules.append(f'bare_{place}: {head} arguments_{place} "}}"')
    return rules


def _arguments(tools: Sequence[Tool]) -> list[str]:
    """A rule for each tool: its schema stands alone, so that references in it lead where they should."""
    return [f"arguments_{place}: %json {_one_line(tool.parameters)}" for place, tool in enumerate(tools)]


def _one_line(schema: str) -> str:
    data = json.loads(schema)
    own = data.get("x-guidance", {})
    return json.dumps({**data, "x-guidance": {**_ONE_LINE, **own} if isinstance(own, dict) else own})


def _head(names: Iterable[str]) -> str:
    return _HEAD % ("|".join(map(re.escape, names)), "|".join(_ARGUMENTS))


def call_finder(request: GenerationRequest) -> ToolCallFinder:
    """What finds the calls in a request's answer; where a grammar holds them, only what it has held is one."""
    held = request.grammar if isinstance(request.grammar, CallGrammar) else None
    return ToolCallFinder(request.tools, held is not None, held is not None and held.has_form)


class ToolCallFinder:
    """Takes an answer piece by piece and keeps calls apart from text. Text that may be the beginning of a call waits.

    Args:
        are_held: the answer follows one of the grammars above.
        only_first: an answer that does not begin with a call has none.

    Attributes:
        calls: found so far.
    """

    def __init__(self, tools: Sequence[Tool], are_held: bool = False, only_first: bool = False) -> None:
        self._names = {tool.name for tool in tools}
        self._head = re.compile(_head(sorted(self._names)) if are_held else rf"\s*{_FENCE}\{{")
        self._are_held, self._only_first = are_held, only_first
        self._held = ""
        self._has_text = False
        self._is_behind_call = False
        self.calls: list[ToolCall] = []

    def push(self, text: str) -> str:
        """The text that is certainly no call."""
        self._held += text
        if self._is_behind_call:
            self._held = self._held.lstrip("\n")
        return self._release(False)

    def finish(self) -> str:
        """What was held back and is no call."""
        return self._release(True)

    def _release(self, is_last: bool) -> str:
        if self._may_begin_bare():
            if not is_last:
                return ""
            self._take_bare()
        released = ""
        while (start := self._held.find(_BEGIN)) >= 0 and not self._is_form(start):
            found = self._tagged(start + len(_BEGIN), is_last)
            if found is None:
                return released + self._let(start)
            call, behind = found
            if call is None:
                released += self._let(behind)
                continue
            released += self._let(start)
            self._add(call, self._held[behind - start :])
        if self._is_behind_call and not self._held.strip():
            return released
        return released + self._let(len(self._held) - (0 if is_last else _overlap(self._held)))

    def _add(self, call: ToolCall, rest: str) -> None:
        self.calls.append(call)
        self._held = rest.lstrip("\n")
        self._is_behind_call = True

    def _may_begin_bare(self) -> bool:
        if self._has_text or self.calls:
            return False
        if self._are_held and len(self._held) > _MOST_HEAD_CHARS:
            return self._head.match(self._held) is not None
        return bool(self._held) and _MAY_BE_HEAD.fullmatch(self._held) is not None

    def _is_form(self, start: int) -> bool:
        """Whether a mark there is inside of the other thing that the answer may be."""
        return self._only_first and not self.calls and (self._has_text or bool(self._held[:start].strip()))

    def _tagged(self, start: int, is_last: bool) -> tuple[ToolCall | None, int] | None:
        """The call between marks and where it ends; None as long as its end is to come."""
        end = self._held.find(CALL_END, start)
        while end >= 0:
            try:
                return self._made(json.loads(self._held[start:end])), end + len(CALL_END)
            except (ValueError, RecursionError) as error:
                if not str(error).startswith("Unterminated string"):  # else the mark is a part of the string
                    return None, end + len(CALL_END)
            end = self._held.find(CALL_END, end + 1)
        if not is_last:
            return None
        try:
            return self._made(json.loads(self._held[start:])), len(self._held)
        except (ValueError, RecursionError):
            return None, len(self._held)

    def _let(self, count: int) -> str:
        text, self._held = self._held[:count], self._held[count:]
        self._is_behind_call = self._is_behind_call and not text
        self._has_text = self._has_text or bool(text.strip())
        return text

    def _take_bare(self) -> None:
        """Takes the calls that the answer begins with, where they stand there without marks."""
        while True:
            if not self._head.match(self._held):
                return
            fence = self._held[: self._held.index("{")]
            text = self._held[len(fence) :]
            try:
                data, end = json.JSONDecoder().raw_decode(text)
                call = self._made(data)
            except (ValueError, RecursionError):
                return
            if call is None:
                return
            self._add(call, text[end:].lstrip().removeprefix("```") if fence.strip() else text[end:])

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
