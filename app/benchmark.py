"""What `deskinfer bench` measures, beside another engine in the same run, and the table that it prints."""

from __future__ import annotations

import json
import shlex
import statistics
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields

import numpy as np

from app.terminal_errors import UsageError

MEMORY_FACTOR = 1.6
MEMORY_EXTRA_BYTES = 600 * 1000 * 1000
_BANDWIDTH_BYTES = 256 << 20
_BANDWIDTH_REPEATS = 5


class PeerError(UsageError):
    """The other engine's command failed or printed no figure; the message says how."""


@dataclass(frozen=True, slots=True)
class Case:
    """One thing to measure: "prefill" of n tokens, or "decode@depth" n."""

    what: str
    n: int


@dataclass(frozen=True)
class Plan:
    """What to measure and how often.

    Attributes:
        prompts: lengths of the prompts, tokens.
        depths: tokens in the cache before decoding starts.
        decode_tokens: tokens decoded at each depth.
        repeats: measurements of each case, after one that does not count.
    """

    prompts: tuple[int, ...] = (58, 512)
    depths: tuple[int, ...] = (0, 2048)
    decode_tokens: int = 64
    repeats: int = 3

    @property
    def cases(self) -> list[Case]:
        """Every case, prompts first."""
        return [*(Case("prefill", n) for n in self.prompts), *(Case("decode@depth", n) for n in self.depths)]

    @property
    def context_tokens(self) -> int:
        """Context that the longest case needs."""
        longest_decode = max((n + self.decode_tokens for n in self.depths), default=0)
        return max(*self.prompts, longest_decode, 1) + 8

    def prompt_ids(self, length: int, seed: int, vocab_size: int) -> list[int]:
        """Token ids without a pattern that a cache could share; ids at the ends of the vocabulary are left out."""
        rng = np.random.default_rng(seed)
        return [int(i) for i in rng.integers(256, vocab_size - 1024, length)]


@dataclass
class Speeds:
    """Measured tokens per second, by case."""

    values: dict[Case, list[float]] = field(default_factory=dict)

    def add(self, case: Case, tok_s: float) -> None:
        """One more measurement."""
        self.values.setdefault(case, []).append(tok_s)

    def median(self, case: Case) -> float | None:
        """The middle one; None where nothing was measured."""
        found = self.values.get(case)
        return statistics.median(found) if found else None


def measure(
    plan: Plan,
    run_case: Callable[[Case, int], float],
    peer: Callable[[], Mapping[Case, float]] | None,
    progress: Callable[[str], None],
) -> tuple[Speeds, Speeds]:
    """Measures us and the peer in turns, so that what else the machine does falls on both.

    Args:
        run_case: measures a case once, in tokens per second; the second argument varies the prompt.
        peer: measures all cases of the other engine.

    Returns:
        Our speeds and the peer's.
    """
    ours, theirs = Speeds(), Speeds()
    for repeat in range(plan.repeats + 1):
        for case in plan.cases:
            progress(f"{case.what} {case.n}, {'warm-up' if repeat == 0 else f'{repeat} of {plan.repeats}'}")
            tok_s = run_case(case, repeat)
            if repeat > 0:
                ours.add(case, tok_s)
        if peer is not None and repeat > 0:
            progress(f"the other engine, {repeat} of {plan.repeats}")
            for case, tok_s in peer().items():
                theirs.add(case, tok_s)
    return ours, theirs


def run_peer(command: str) -> dict[Case, float]:
    """Runs another engine's command and reads its JSON lines {"what": ..., "n": ..., "tok_s": ...}.

    Raises:
        PeerError: it cannot start, fails, or prints no figure.
    """
    try:
        done = subprocess.run(shlex.split(command), stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except (OSError, ValueError) as error:
        raise PeerError(f"The peer's command cannot start: {error}. Check its path.") from error
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
        raise PeerError(f"The peer's command ended with status {done.returncode}: {lines[-1]}")
    figures = read_figures(done.stdout.decode(errors="replace").splitlines())
    if not figures:
        raise PeerError('The peer printed no line like {"what": "prefill", "n": 512, "tok_s": 100.0}.')
    return figures


def read_figures(lines: Iterable[str]) -> dict[Case, float]:
    """The figures among lines of output; other lines are passed over."""
    figures = {}
    for line in lines:
        try:
            entry = json.loads(line)
            figures[Case(str(entry["what"]), int(entry["n"]))] = float(entry["tok_s"])
        except (ValueError, KeyError, TypeError):
            continue
    return figures


def read_bandwidth(threads: int) -> float:
    """Bytes per second at which `threads` threads read memory that no cache holds: the best of a few passes."""
    words = np.ones(_BANDWIDTH_BYTES // 8, dtype=np.uint64)
    parts = np.array_split(words, threads)
    best = 0.0
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(_BANDWIDTH_REPEATS):
            start = time.perf_counter()
            list(pool.map(np.bitwise_or.reduce, parts))
            best = max(best, words.nbytes / (time.perf_counter() - start))
    return best


def memory_limit_bytes(file_bytes: int) -> int:
    """Most memory that the process may take for a model file of this size."""
    return int(file_bytes * MEMORY_FACTOR) + MEMORY_EXTRA_BYTES


@dataclass(frozen=True)
class Report:
    """All figures of one run. Sizes in bytes, speeds in tokens per second, bandwidth in bytes per second."""

    model: str
    backend: str
    threads: int
    cpu: str
    load_s: float
    file_bytes: int
    weight_bytes: int
    peak_bytes: int
    bandwidth: float
    plan: Plan
    ours: Speeds
    theirs: Speeds

    def lines(self) -> list[str]:
        """The report as text, with ratios where there is a peer."""
        limit = memory_limit_bytes(self.file_bytes)
        fits = "within" if self.peak_bytes <= limit else "ABOVE"
        head = [
            f"{self.model} on {self.cpu}, backend {self.backend}, {self.threads} threads",
            f"load {self.load_s:.2f} s",
            f"peak memory {_mb(self.peak_bytes)} MB, {fits} the limit of {_mb(limit)} MB "
            f"(the file of {_mb(self.file_bytes)} MB times {MEMORY_FACTOR} and {_mb(MEMORY_EXTRA_BYTES)} MB)",
            "",
        ]
        return [*head, *self._table(), *self._bandwidth_lines()]

    def _table(self) -> list[str]:
        has_peer = bool(self.theirs.values)
        rows = [["", "tok/s", *(["peer tok/s", "ratio"] if has_peer else [])]]
        for case in self.plan.cases:
            ours, theirs = self.ours.median(case), self.theirs.median(case)
            row = [f"{case.what} {case.n}", _number(ours)]
            if has_peer:
                row += [_number(theirs), f"{ours / theirs:.2f}" if ours and theirs else "-"]
            rows.append(row)
        return _aligned(rows)

    def _bandwidth_lines(self) -> list[str]:
        decode = self.ours.median(Case("decode@depth", min(self.plan.depths))) if self.plan.depths else None
        if decode is None:
            return []
        used = decode * self.weight_bytes
        return [
            "",
            f"weights {_mb(self.weight_bytes)} MB: read once a token that is {used / 1e9:.1f} GB/s, "
            f"{used / self.bandwidth:.0%} of the {self.bandwidth / 1e9:.1f} GB/s that these threads can read",
        ]

    def as_json(self) -> str:
        """All measurements, for a program."""

        def by_case(speeds: Speeds) -> list[dict[str, object]]:
            return [
                {"what": case.what, "n": case.n, "tok_s": [round(v, 2) for v in values]}
                for case, values in speeds.values.items()
            ]

        speeds = ("plan", "ours", "theirs")
        plain = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in speeds}
        return json.dumps({**plain, "ours": by_case(self.ours), "peer": by_case(self.theirs)}, indent=1)


def _mb(size: int) -> str:
    return f"{size / 1e6:,.0f}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join([row[0].ljust(widths[0]), *cells]))
    return lines
