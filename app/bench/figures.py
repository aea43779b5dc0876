"""Figures of a run: every repetition of every case, and the medians that a page shows."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field

from app.bench.protocol import Case

PREFILL_TOK_S, DECODE_TOK_S = "prefill_tok_s", "decode_tok_s"
TTFT_MS, WALL_MS = "ttft_ms", "wall_ms"
PROMPT_TOKENS, NEW_TOKENS = "prompt_tokens", "new_tokens"
CACHED_TOKENS = "cached_tokens"
"""Of the prompt, found in a cache instead of computed; absent where none was."""
NAMES = (PREFILL_TOK_S, TTFT_MS, DECODE_TOK_S, WALL_MS, PROMPT_TOKENS, NEW_TOKENS)
"""Speeds in tokens per second; times in milliseconds: to the first token, and until the answer was whole."""


@dataclass
class Figures:
    """Measured values by case and name, in the order in which they came."""

    values: dict[tuple[Case, str], list[float]] = field(default_factory=dict)

    def add(self, case: Case, measured: Mapping[str, float]) -> None:
        """One more measurement of a case: {name: value}."""
        for name, value in measured.items():
            self.values.setdefault((case, name), []).append(value)

    def median(self, case: Case, name: str) -> float | None:
        """The middle value; None where nothing was measured."""
        found = self.values.get((case, name))
        return statistics.median(found) if found else None

    def as_json(self) -> list[dict[str, object]]:
        """One entry a case: {"what", "n", name: {"median", "values"}}."""
        entries: dict[Case, dict[str, object]] = {}
        for (case, name), values in self.values.items():
            entry = entries.setdefault(case, {"what": case.what, "n": case.n})
            entry[name] = {"median": _rounded(statistics.median(values)), "values": [_rounded(v) for v in values]}
        return list(entries.values())


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
