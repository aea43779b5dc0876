"""Schemas whose compilation would not come to an end: the grammar library has no limit for these, and no way to stop.

Two things make it go on for ever, and fill the memory: remainders of a division, each of which is a state, and texts
that must fit many patterns at once, which doubles the work with each of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

MOST_REMAINDERS = 5_000
"""All of a schema's multiples together; a hundredth of a second, and there may be many schemas of tools."""
MOST_PATTERNS = 12
"""That one text must fit; some milliseconds, and a second with twenty."""
_NO_SCHEMAS = frozenset(("allOf", "anyOf", "oneOf", "$ref", "$defs", "definitions", "enum", "const", "default"))


def endless_part(schema: dict[str, Any]) -> str:
    """What would take too long, in words for the client; "" where nothing would."""
    if _remainders(schema) > MOST_REMAINDERS:
        return "multipleOf of large numbers, or of many different ones"
    try:
        patterns = _Patterns(schema).most()
    except RecursionError:
        return "a chain of references that is very long"
    return f"texts that {patterns} patterns, formats and lengths hold at once" if patterns > MOST_PATTERNS else ""


def _remainders(schema: dict[str, Any]) -> int:
    """States of all divisions, as many for each as if all their numbers had to divide it."""
    common, count = 1, 0
    for node in _objects(schema):
        number = node.get("multipleOf")
        if isinstance(number, int | float) and not isinstance(number, bool) and number:
            # The digits without zeros around them: a power of ten is seen from the last digits alone.
            common = math.lcm(common, int(f"{Decimal(repr(abs(number))):f}".replace(".", "").strip("0")))
            count += 1
            if common > MOST_REMAINDERS:
                break
    return common * count


def _objects(schema: Any) -> Iterator[dict[str, Any]]:
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node


class _Patterns:
    """Counts, at least, what one text must fit at once. Local references are followed."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema
        self._counted: dict[int, int] = {}

    def most(self) -> int:
        """Of any text in the schema."""
        return self._count(self._schema)

    def _count(self, node: Any) -> int:
        if not isinstance(node, dict):
            return 0
        known = self._counted.get(id(node))
        if known is not None:
            return known
        self._counted[id(node)] = 0  # a circle adds nothing
        own = sum(("pattern" in node, "format" in node, "minLength" in node or "maxLength" in node))
        inside = max(map(self._count, _children(node)), default=0)
        # What holds for an object holds for its parts: those that are in several get what each of them asks for.
        count = max(own, inside) + sum(map(self._count, _listed(node, "allOf")))
        count += sum(max(map(self._count, _listed(node, name)), default=0) for name in ("anyOf", "oneOf"))
        reference = node.get("$ref")
        if isinstance(reference, str):
            count += self._count(self._target(reference))
        self._counted[id(node)] = count
        return count

    def _target(self, reference: str) -> Any:
        """What a reference leads to; the whole schema where that cannot be told."""
        place: Any = self._schema
        _, _, pointer = reference.partition("#")
        for part in unquote(pointer).split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(place, dict) and name in place:
                place = place[name]
            elif isinstance(place, list) and name.isdecimal() and int(name) < len(place):
                place = place[int(name)]
            else:
                return self._schema
        return place


def _listed(node: dict[str, Any], name: str) -> list[Any]:
    found = node.get(name)
    return found if isinstance(found, list) else []


def _children(node: dict[str, Any]) -> Iterator[Any]:
    for name, value in node.items():
        if name in ("properties", "patternProperties") and isinstance(value, dict):
            yield from value.values()
        elif isinstance(value, list) and name not in _NO_SCHEMAS:
            yield from value
        elif name not in _NO_SCHEMAS:
            yield value
