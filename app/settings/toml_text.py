"""A flat dictionary as TOML text: tables one deep, strings, numbers, booleans, lists and inline tables.

The standard library reads TOML but does not write it; the settings need no more than this.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def toml_text(values: Mapping[str, Any], header: str = "") -> str:
    """Writes {"popup.font_size": 12} as a table [popup] with a key font_size.

    A key with more dots keeps them inside quotes, so that "hotkey.x" and "hotkey.x.clipboard" may stand side by side.
    A table that has the name of a key is written as quoted keys.

    Args:
        values: dotted keys; keys without a dot come first, outside of tables.
        header: comment lines for the top.
    """
    tables: dict[str, list[str]] = {}
    for key, value in values.items():
        table, dot, name = key.partition(".")
        if not dot or not table or table in values:
            table, name = "", key
        tables.setdefault(table, []).append(f"{_key(name)} = {_value(value)}")
    lines = [f"# {line}".rstrip() for line in header.splitlines()]
    for table in sorted(tables):
        if lines:
            lines.append("")
        if table:
            lines.append(f"[{_key(table)}]")
        lines += tables[table]
    return "\n".join(lines) + "\n"


def toml_line(key: str, value: Any) -> str:
    """One setting for the top of a file, where a dotted key needs no table header: hotkey."x.clipboard" = "F5"."""
    table, dot, name = key.partition(".")
    return f"{_key(table)}.{_key(name)} = {_value(value)}" if dot else f"{_key(key)} = {_value(value)}"


def flatten(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The reverse: nested tables of parsed TOML as dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict) and value:
            flat.update(flatten(value, f"{prefix}{key}."))
        else:
            flat[prefix + key] = value
    return flat


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _string(name)


def _string(text: str) -> str:
    escaped = "".join(
        _ESCAPES.get(char) or (char if char >= " " and char != "\x7f" else f"\\u{ord(char):04x}") for char in text
    )
    return f'"{escaped}"'


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value).replace("-nan", "nan")
    if isinstance(value, int):
        return str(value)
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_value(item) for item in value)}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items()) + "}"
    raise TypeError(f"TOML has no type for {type(value).__name__}.")
