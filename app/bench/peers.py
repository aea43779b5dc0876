"""Other engines in the same run: what a peer is, and peers that are commands which print JSON lines.

A line is {"what": "prefill", "n": 512, "tok_s": 90.3}: `what` and `n` name a case, and any name of app.bench.figures
may stand beside or instead of tok_s. Other lines: {"note": "version"}, {"skip": "reason"}, {"peak_bytes": 1}, and
{"linears": 1, "ms": 0.5}, the time of all linear layers for so many tokens.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from app.bench.figures import DECODE_TOK_S, NAMES, PREFILL_TOK_S, Figures
from app.bench.protocol import PREFILL, Case, Plan
from app.terminal.errors import UsageError

Progress = Callable[[str], None]
_TIMEOUT_S = 3600.0


class PeerError(UsageError):
    """The other engine cannot run, failed or printed no figure; the message says how."""


@dataclass
class PeerResult:
    """What one peer measured.

    Attributes:
        note: its version and settings.
        skipped: why there is no figure, "" where there are some.
        peak_bytes: most memory it reserved on its device; 0 where it does not tell.
        linears_ms: {tokens: milliseconds of all linear layers}.
    """

    name: str
    figures: Figures = field(default_factory=Figures)
    note: str = ""
    skipped: str = ""
    peak_bytes: int = 0
    linears_ms: dict[int, float] = field(default_factory=dict)


class Peer(Protocol):
    """Another engine, measured after ours has gone, so that each has the device to itself."""

    @property
    def name(self) -> str:
        """What the table calls it, short."""
        ...

    def measure(self, plan: Plan, progress: Progress) -> PeerResult:
        """Measures the cases that it can. Raises PeerError."""
        ...


def measure_peers(peers: Iterable[Peer], plan: Plan, progress: Progress) -> list[PeerResult]:
    """All peers in turn; one that cannot run is skipped with its reason."""
    results = []
    for peer in peers:
        progress(peer.name)
        try:
            results.append(peer.measure(plan, progress))
        except PeerError as error:
            results.append(PeerResult(peer.name, skipped=str(error)))
    return results


def run_program(command: Sequence[str]) -> str:
    """Standard output of a program. Raises PeerError where it cannot start or fails."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_TIMEOUT_S)
    except (OSError, ValueError) as error:
        raise PeerError(f"{command[0]} cannot start: {error}. Check its path.") from error
    except subprocess.TimeoutExpired as error:
        raise PeerError(f"{command[0]} did not end within {_TIMEOUT_S:.0f} s.") from error
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
        raise PeerError(f"{command[0]} ended with status {done.returncode}: {lines[-1]}")
    return done.stdout.decode(errors="replace")


def run_command(command: str) -> PeerResult:
    """Runs a user's command once and reads its JSON lines.

    Raises:
        PeerError: it cannot start, fails, or prints no figure.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise PeerError(f"The peer's command cannot be read: {error}.") from error
    if not words:
        raise PeerError("The peer's command cannot be read: it is empty.")
    result = read_lines("peer", run_program(words).splitlines())
    if not result.figures.values:
        raise PeerError('The peer printed no line like {"what": "prefill", "n": 512, "tok_s": 100.0}.')
    return result


def read_lines(name: str, lines: Iterable[str]) -> PeerResult:
    """The figures among lines of output; other lines are passed over."""
    result = PeerResult(name)
    for line in lines:
        try:
            entry = json.loads(line)
            if "what" in entry:
                case = Case(str(entry["what"]), int(entry["n"]))
                result.figures.add(case, _named(case, entry))
            elif "linears" in entry:
                result.linears_ms[int(entry["linears"])] = float(entry["ms"])
            else:
                result.note = str(entry.get("note", result.note))
                result.skipped = str(entry.get("skip", result.skipped))
                result.peak_bytes = int(entry.get("peak_bytes", result.peak_bytes))
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
    return result


def _named(case: Case, entry: dict[str, object]) -> dict[str, float]:
    found = {key: float(str(entry[key])) for key in NAMES if key in entry}
    if "tok_s" in entry:
        found[PREFILL_TOK_S if case.what == PREFILL else DECODE_TOK_S] = float(str(entry["tok_s"]))
    if not found:
        raise KeyError("tok_s")
    return found


@dataclass(frozen=True)
class ModulePeer:
    """A peer that is a Python module of ours, run in a process of its own: its libraries and memory end with it."""

    name: str
    module: str
    arguments: tuple[str, ...]

    def measure(self, plan: Plan, progress: Progress) -> PeerResult:
        """See Peer."""
        return read_lines(self.name, self._output(plan).splitlines())

    def _output(self, plan: Plan) -> str:
        lengths = {"--prompt": plan.prompts, "--depth": plan.depths}
        words = [f"{option}={','.join(map(str, numbers))}" for option, numbers in lengths.items()]
        words += [f"--decode={plan.decode_tokens}", f"--repeat={plan.repeats}", *(["--chat"] if plan.chat else [])]
        return run_program([sys.executable, "-m", self.module, *self.arguments, *words])
