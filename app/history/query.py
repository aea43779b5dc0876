"""A user's search words as a condition in SQL.

The index knows every three characters in a row, so that it finds parts of words and texts without spaces, like Chinese;
words that are shorter are looked for in the texts themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

# Three characters in a row are what the index holds.
INDEXED_CHARS = 3


@dataclass(frozen=True, slots=True)
class Condition:
    """What comes after WHERE, and the values of its question marks."""

    sql: str
    values: tuple[str, ...] = ()


def contains(query: str, column: str, index: str = "", rowid: str = "id") -> Condition:
    """The condition that a column has all the words of a query; true for a query without words.

    Args:
        column: an expression of text.
        index: FTS5 table over it, "" where it has none.
        rowid: column whose values the index knows its rows by.
    """
    words = query.split()
    indexed = [word for word in words if index and len(word) >= INDEXED_CHARS]
    parts: list[str] = []
    values: list[str] = []
    if indexed:
        parts.append(f"{rowid} IN (SELECT rowid FROM {index} WHERE {index} MATCH ?)")
        values.append(" AND ".join('"' + word.replace('"', '""') + '"' for word in indexed))
    for word in words:
        if word not in indexed:
            parts.append(f"{column} LIKE ? ESCAPE '\\'")
            values.append(f"%{_escaped(word)}%")
    return Condition(" AND ".join(parts) or "TRUE", tuple(values))


def _escaped(word: str) -> str:
    return word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
