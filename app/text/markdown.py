"""Markdown as a flat row of blocks, whole or while it streams in. Pure: knows no window.

What is nested in Markdown (lists in quotations in lists) is told by each block itself, in `containers`. So a row of
blocks can be compared with the row before, and only what differs has to be shown anew. HTML is text here, and a link
leads to http, https or mailto or is text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

BlockKind = Literal["paragraph", "heading", "code", "table", "rule"]
Alignment = Literal["", "left", "center", "right"]

LINK_SCHEMES = ("http", "https", "mailto")
BULLETS = "•◦▪"
TASK_BOXES = {"[ ] ": "☐", "[x] ": "☑", "[X] ": "☑"}
QUOTE, LIST = "q", "l"
# What a bare link ends before: Chinese and Japanese put no space behind it.
_CJK = re.compile(
    r"[\u2014\u2018-\u201f\u2026\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef"
    r"\U00020000-\U0003ffff]"
)
_MARKER = re.compile(r"(?P<indent>\s*)(?P<number>\d*)(?P<sign>[-+*.)])")


@dataclass(frozen=True, slots=True)
class Run:
    """Text in one style. A line break in it is one that is shown.

    Attributes:
        href: where a link leads, "" for no link.
    """

    text: str
    bold: bool = False
    italic: bool = False
    strike: bool = False
    code: bool = False
    href: str = ""


Cell = tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, a heading, a block of code, a table or a rule.

    Attributes:
        runs: of a paragraph or heading.
        level: of a heading, 1 to 6.
        code: the lines of a block of code, without the last line break.
        language: the first word behind its fence.
        rows: of a table, the heading first.
        alignments: of a table's columns.
        containers: what it stands in, from outside: "q" a quotation, "l" an item of a list.
        marker: bullet, number or box of the item that begins with it.
    """

    kind: BlockKind
    runs: Cell = ()
    level: int = 0
    code: str = ""
    language: str = ""
    rows: tuple[tuple[Cell, ...], ...] = ()
    alignments: tuple[Alignment, ...] = ()
    containers: str = ""
    marker: str = ""

    @property
    def text(self) -> str:
        """Its words without their style."""
        if self.kind == "code":
            return self.code
        rows = self.rows if self.kind == "table" else ((self.runs,),)
        return "\n".join("\t".join("".join(run.text for run in cell) for cell in row) for row in rows)


@dataclass(frozen=True, slots=True)
class Change:
    """What an appended text changed: everything from block number `start` on is now `blocks`."""

    start: int
    blocks: tuple[Block, ...]


class _BareLinks:
    """How long a bare link is, of one scheme."""

    def __init__(self, validate: Callable[[str, int], int]) -> None:
        self._validate = validate

    def length(self, text: str, start: int) -> int:
        """Characters behind the scheme, which ends at `start`; 0 where they are no link."""
        end = _CJK.search(text, start)
        return self._validate(text[start : end.start() if end else None], 0)


class _Parser(MarkdownIt):
    def validateLink(self, url: str) -> bool:
        """Only what a browser or a mail program opens; all else stays visible as it was written."""
        try:
            return urlsplit(url).scheme.lower() in LINK_SCHEMES
        except ValueError:
            return False


@cache
def _parser() -> MarkdownIt:
    """CommonMark with tables and bare links.

    Without definitions of links: one that comes last would change blocks that stand finished on the screen.
    """
    parser = _Parser("commonmark", {"html": False, "linkify": True}).enable(["table", "strikethrough", "linkify"])
    parser.disable("reference")
    assert parser.linkify is not None
    # "readme.md" is a file and not a site in Moldova.
    parser.linkify.set({"fuzzy_link": False, "fuzzy_email": False})
    for scheme in ("http:", "mailto:"):  # "https:" is as "http:"
        validate = parser.linkify.default_schemas[scheme]["validate"]
        parser.linkify.add(scheme, {"validate": _BareLinks(validate).length})
    return parser


def parse(text: str) -> tuple[Block, ...]:
    """The blocks of a whole text."""
    return tuple(_Flattener().run(_parser().parse(text)))


class MarkdownStream:
    """Markdown of which more and more arrives.

    A block is finished once complete lines have begun the next one; an item of a list, once they have begun the next
    item. What is finished is never parsed again. However the text is cut, the blocks are in the end those of `parse`.
    """

    def __init__(self) -> None:
        self._finished = 0
        self._open = ""
        # Within a list a line may mean something else than at its start: a short item stands in for the finished ones.
        self._item_before = ""
        self._ends_with_return = False

    def append(self, text: str) -> Change:
        """Takes more text; tells what that changed since the last call, at most the blocks that were not finished."""
        start = self._finished
        is_break = self._ends_with_return and text.startswith("\n")
        self._ends_with_return = text.endswith("\r") if text else self._ends_with_return
        text = (text[1:] if is_break else text).replace("\r\n", "\n").replace("\r", "\n")
        self._open += text
        finished = self._finish() if "\n" in text else ()
        return Change(start, finished + self._parse(self._open))

    def _parse(self, text: str) -> tuple[Block, ...]:
        blocks = parse(self._item_before + text)
        return blocks[1:] if self._item_before else blocks

    def _finish(self) -> tuple[Block, ...]:
        """Cuts off what later lines cannot change any more."""
        lines = (self._item_before + self._open).split("\n")
        line, item_before = _last_start(_parser().parse("\n".join(lines[:-1])), lines)
        cut = line - (1 if self._item_before else 0)
        if cut <= 0:
            return ()
        open_lines = self._open.split("\n")
        finished = self._parse("\n".join(open_lines[:cut]))
        self._finished += len(finished)
        self._open, self._item_before = "\n".join(open_lines[cut:]), item_before
        return finished


def _last_start(tokens: Sequence[Token], lines: Sequence[str]) -> tuple[int, str]:
    """The line at which the last block or item begins, and a line that can stand for the item before that."""
    top = next(
        (place for place in reversed(range(len(tokens))) if tokens[place].level == 0 and tokens[place].map), None
    )
    if top is None:
        return 0, ""
    items = [
        token.map[0] for token in tokens[top:] if token.type == "list_item_open" and token.level == 1 and token.map
    ]
    if len(items) < 2:
        return (tokens[top].map or [0])[0], ""
    marker = _MARKER.match(lines[items[0]])
    assert marker is not None
    number = str(int(marker["number"]) + len(items) - 2) if marker["number"] else ""
    return items[-1], f"{marker['indent']}{number}{marker['sign']} x\n"


class _Flattener:
    def __init__(self) -> None:
        self._containers: list[str] = []
        # For each open list the number of its next item; None for bullets.
        self._numbers: list[int | None] = []
        self._marker = ""
        self._result: list[Block] = []

    def run(self, tokens: Sequence[Token]) -> list[Block]:
        at = 0
        while at < len(tokens):
            token = tokens[at]
            if token.type in ("paragraph_open", "heading_open"):
                self._add_text(token, tokens[at + 1])
            elif token.type in ("fence", "code_block"):
                language = token.info.split(maxsplit=1)[0] if token.info.strip() else ""
                self._add(Block("code", code=token.content.removesuffix("\n"), language=language))
            elif token.type == "hr":
                self._add(Block("rule"))
            elif token.type == "table_open":
                end = next(place for place in range(at, len(tokens)) if tokens[place].type == "table_close")
                self._add(_table(tokens[at:end]))
                at = end
            else:
                self._enter_or_leave(token)
            at += 1
        return self._result

    def _enter_or_leave(self, token: Token) -> None:
        if token.type in ("bullet_list_open", "ordered_list_open"):
            self._place_marker()
            self._numbers.append(int(token.attrs.get("start", 1)) if token.type == "ordered_list_open" else None)
        elif token.type in ("bullet_list_close", "ordered_list_close"):
            self._numbers.pop()
        elif token.type == "list_item_open":
            self._containers.append(LIST)
            number = self._numbers[-1]
            if number is None:
                self._marker = BULLETS[min(len(self._numbers), len(BULLETS)) - 1]
            else:
                self._marker, self._numbers[-1] = f"{number}{token.markup}", number + 1
        elif token.type == "list_item_close":
            self._place_marker()
            self._containers.pop()
        elif token.type == "blockquote_open":
            self._place_marker()
            self._containers.append(QUOTE)
        elif token.type == "blockquote_close":
            self._containers.pop()

    def _place_marker(self) -> None:
        """An item that does not begin with words gets an empty line to hold its marker."""
        if self._marker:
            self._append(Block("paragraph"))

    def _add_text(self, opening: Token, inline: Token) -> None:
        runs = _runs(inline.children or [])
        box = TASK_BOXES.get(runs[0].text[:4]) if runs and self._marker in tuple(BULLETS) else None
        if box is not None:
            first = replace(runs[0], text=runs[0].text[4:])
            runs, self._marker = ((first,) if first.text else ()) + runs[1:], box
        if opening.type == "heading_open":
            self._append(Block("heading", runs, level=int(opening.tag[1:])))
        else:
            self._append(Block("paragraph", runs))

    def _add(self, block: Block) -> None:
        self._place_marker()
        self._append(block)

    def _append(self, block: Block) -> None:
        self._result.append(replace(block, containers="".join(self._containers), marker=self._marker))
        self._marker = ""


def _table(tokens: Sequence[Token]) -> Block:
    rows: list[list[Cell]] = []
    alignments: list[Alignment] = []
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            rows[-1].append(_runs(token.children or []))
        elif token.type == "th_open":
            style = str(token.attrs.get("style", ""))
            known: tuple[Alignment, ...] = ("left", "center", "right")
            alignments.append(next((name for name in known if style.endswith(name)), ""))
    return Block("table", rows=tuple(tuple(row) for row in rows), alignments=tuple(alignments))


def _runs(tokens: Sequence[Token]) -> tuple[Run, ...]:
    """Joins neighbours of one style, so that equal text gives equal runs."""
    runs: list[Run] = []
    depth = {"strong": 0, "em": 0, "s": 0}
    href = ""
    for token in tokens:
        name = token.type.rpartition("_")[0]
        if name in depth:
            depth[name] += token.nesting
        elif token.type == "link_open":
            href = str(token.attrs.get("href", ""))
        elif token.type == "link_close":
            href = ""
        else:
            target = str(token.attrs.get("src", "")) if token.type == "image" else href
            text = _TEXTS.get(token.type, _content)(token)
            style = Run("", depth["strong"] > 0, depth["em"] > 0, depth["s"] > 0, token.type == "code_inline", target)
            _join(runs, text, style)
    return tuple(runs)


def _join(runs: list[Run], text: str, style: Run) -> None:
    if not text:
        return
    if runs and replace(runs[-1], text="") == style:
        runs[-1] = replace(style, text=runs[-1].text + text)
    else:
        runs.append(replace(style, text=text))


def _content(token: Token) -> str:
    return token.content


def _line_break(_token: Token) -> str:
    return "\n"


def _image(token: Token) -> str:
    """A picture is never loaded: its words stand for it, and lead to it."""
    return f"[{token.content or token.attrs.get('src', '')}]"


_TEXTS: dict[str, Callable[[Token], str]] = {"softbreak": _line_break, "hardbreak": _line_break, "image": _image}
