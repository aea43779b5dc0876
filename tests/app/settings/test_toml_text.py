"""The TOML that we write is the TOML that the standard library reads."""

from __future__ import annotations

import datetime
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.settings.toml_text import flatten, toml_text

_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_scalar = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    _text,
    st.dates(),
    st.datetimes(),
    st.times(),
)
_value = st.recursive(
    _scalar,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_text, inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(_text, _value, max_size=6))
def test_any_table_comes_back_flat(table: dict[str, Any]) -> None:
    flat = flatten(table)
    assert flatten(tomllib.loads(toml_text(flat, "A header\nof two lines"))) == flat


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({}, "\n"),
        ({"a.b": 1, "a.c.d": True, "z": 0.5}, 'z = 0.5\n\n[a]\nb = 1\n"c.d" = true\n'),
        ({"a": 1, "a.b": 2}, 'a = 1\n"a.b" = 2\n'),
        ({"a b.c": 'x\n"y"\\\x01'}, '["a b"]\nc = "x\\n\\"y\\"\\\\\\u0001"\n'),
        ({"n": float("inf"), "m": float("-inf")}, "n = inf\nm = -inf\n"),
        ({"d": datetime.date(2026, 11, 29), "l": [1, {"k": []}]}, "d = 2026-11-29\nl = [1, {k = []}]\n"),
    ],
)
def test_the_layout(values: dict[str, Any], text: str) -> None:
    assert toml_text(values) == text


def test_not_a_number_is_written_too() -> None:
    assert toml_text({"x": float("nan")}) == "x = nan\n"


def test_a_type_that_toml_does_not_have_is_a_mistake_of_ours() -> None:
    with pytest.raises(TypeError, match="NoneType"):
        toml_text({"x": None})
