"""The colours of source code: which letters are what, and what that looks like on a light and on a dark ground."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Token
from pygments.util import ClassNotFound
from PySide6.QtGui import QColor, QTextCharFormat

from app.qt.look.theme import Colors, legible

# Longer blocks stay plain: reading one takes the time in which a window must answer, and nobody reads so much of it.
LONGEST_CHARS = 20_000

# The first that a token belongs to counts.
_ROLES = (
    (Token.Comment, "comment"),
    (Token.Literal.String.Doc, "comment"),
    (Token.Literal.String, "string"),
    (Token.Literal.Number, "number"),
    (Token.Keyword.Type, "type"),
    (Token.Keyword, "keyword"),
    (Token.Operator.Word, "keyword"),
    (Token.Name.Function, "function"),
    (Token.Name.Class, "type"),
    (Token.Name.Builtin, "type"),
    (Token.Name.Tag, "keyword"),
    (Token.Name.Attribute, "function"),
    (Token.Name.Decorator, "function"),
    (Token.Generic.Inserted, "string"),
    (Token.Generic.Deleted, "keyword"),
)
_LIGHT = {
    "keyword": "#8a2fa8",
    "string": "#1f7a3d",
    "number": "#a85b00",
    "comment": "#6c727c",
    "function": "#2459b8",
    "type": "#0b7285",
}
_DARK = {
    "keyword": "#d79bf0",
    "string": "#9ad48a",
    "number": "#e5b577",
    "comment": "#8b919c",
    "function": "#86b3f7",
    "type": "#74ccd4",
}


class Span(NamedTuple):
    """Some letters of one line, counted in UTF-16 units as Qt counts."""

    start: int
    length: int
    role: str


def utf16_length(text: str) -> int:
    """The length of a text as Qt counts it."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


@lru_cache(maxsize=64)
def _lexer(language: str) -> Lexer | None:
    try:
        return get_lexer_by_name(language)
    except ClassNotFound:
        return None


@lru_cache(maxsize=256)
def _role(kind: object) -> str:
    return next((role for group, role in _ROLES if kind in group), "")


def line_spans(code: str, language: str) -> list[tuple[Span, ...]]:
    """What is coloured in each line; nothing where the language is unknown or the code too long."""
    lines: list[list[Span]] = [[] for _ in range(code.count("\n") + 1)]
    lexer = _lexer(language.lower()) if language and code and len(code) <= LONGEST_CHARS else None
    if lexer is not None:
        row = column = 0
        for _, kind, value in lexer.get_tokens_unprocessed(code):
            role = _role(kind)
            for number, part in enumerate(value.split("\n")):
                if number:
                    row, column = row + 1, 0
                length = utf16_length(part)
                if role and length and row < len(lines):
                    lines[row].append(Span(column, length, role))
                column += length
    return [tuple(spans) for spans in lines]


def role_formats(colors: Colors, ground: QColor) -> dict[str, QTextCharFormat]:
    """How each role is written on a ground."""
    formats = {}
    for role, name in (_DARK if colors.is_dark else _LIGHT).items():
        formats[role] = QTextCharFormat()
        formats[role].setForeground(legible(QColor(name), ground))
        formats[role].setFontItalic(role == "comment")
    return formats
