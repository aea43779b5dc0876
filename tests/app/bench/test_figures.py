"""Medians and every repetition."""

from __future__ import annotations

from app.bench.figures import DECODE_TOK_S, TTFT_MS, Figures
from app.bench.protocol import CHAT, DECODE, Case


def test_median() -> None:
    figures, case = Figures(), Case(DECODE, 0)
    for value in (3.0, 1.0, 100.0):
        figures.add(case, {DECODE_TOK_S: value})
    assert figures.median(case, DECODE_TOK_S) == 3.0
    assert figures.median(case, TTFT_MS) is None
    assert figures.median(Case(DECODE, 1), DECODE_TOK_S) is None


def test_json_has_an_entry_a_case_with_every_value() -> None:
    figures = Figures()
    figures.add(Case(CHAT, 0), {TTFT_MS: 7.123456789, DECODE_TOK_S: 100.0})
    figures.add(Case(CHAT, 0), {TTFT_MS: 9.0, DECODE_TOK_S: 120.0})
    (entry,) = figures.as_json()
    assert (entry["what"], entry["n"]) == (CHAT, 0)
    assert entry[TTFT_MS] == {"median": 8.06173, "values": [7.12346, 9.0]}
    assert entry[DECODE_TOK_S] == {"median": 110.0, "values": [100.0, 120.0]}
