"""Peers that are commands: their lines, and what happens when they fail."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from app.bench.figures import DECODE_TOK_S, PREFILL_TOK_S, TTFT_MS, Figures
from app.bench.peers import ModulePeer, PeerError, PeerResult, measure_peers, read_lines, run_command
from app.bench.protocol import CHAT, DECODE, PREFILL, Case, Plan

PLAN = Plan(prompts=(5, 9), depths=(0, 7), decode_tokens=4, repeats=2)


def test_figures_among_other_lines() -> None:
    lines = ["loading", '{"what": "prefill", "n": 5, "tok_s": 12.5, "min_s": 1}', '{"what": "x"}', "[1]", "3"]
    assert read_lines("p", lines).figures.values == {(Case(PREFILL, 5), PREFILL_TOK_S): [12.5]}


def test_every_kind_of_line() -> None:
    result = read_lines(
        "p",
        [
            '{"note": "version 2"}',
            '{"what": "chat", "n": 0, "ttft_ms": 8, "decode_tok_s": 100}',
            '{"what": "chat", "n": 0, "ttft_ms": 9, "decode_tok_s": 110}',
            '{"what": "decode@depth", "n": 7, "tok_s": 60}',
            '{"linears": 8, "ms": 1.5}',
            '{"peak_bytes": 1000}',
        ],
    )
    assert result.figures.values == {
        (Case(CHAT, 0), TTFT_MS): [8.0, 9.0],
        (Case(CHAT, 0), DECODE_TOK_S): [100.0, 110.0],
        (Case(DECODE, 7), DECODE_TOK_S): [60.0],
    }
    assert (result.note, result.peak_bytes, result.linears_ms, result.skipped) == ("version 2", 1000, {8: 1.5}, "")


def test_a_peer_tells_why_it_was_skipped() -> None:
    assert read_lines("p", ['{"skip": "no GPU"}']).skipped == "no GPU"


def test_command(tmp_path: Path) -> None:
    script = tmp_path / "peer with space.py"
    script.write_text("import json\nprint(json.dumps({'what': 'decode@depth', 'n': 0, 'tok_s': 9}))\n")
    result = run_command(f"'{sys.executable}' '{script}'")
    assert result.figures.values == {(Case(DECODE, 0), DECODE_TOK_S): [9.0]}


@pytest.mark.parametrize(
    ("code", "message"),
    [("raise SystemExit('no model')", "status 1: no model"), ("print('hello')", "printed no line")],
)
def test_command_that_fails(tmp_path: Path, code: str, message: str) -> None:
    script = tmp_path / "peer.py"
    script.write_text(code)
    with pytest.raises(PeerError, match=message):
        run_command(f"'{sys.executable}' '{script}'")


@pytest.mark.parametrize("command", ["{none}", "'", ""])
def test_command_that_cannot_start(tmp_path: Path, command: str) -> None:
    with pytest.raises(PeerError, match=r"cannot (start|be read)"):
        run_command(command.format(none=tmp_path / "none"))


class Broken:
    name = "broken"

    def measure(self, plan: Plan, progress) -> PeerResult:
        raise PeerError("no such file")


class Working:
    name = "working"

    def measure(self, plan: Plan, progress) -> PeerResult:
        return PeerResult(self.name, Figures({(Case(DECODE, 0), DECODE_TOK_S): [1.0]}))


def test_a_peer_that_fails_is_skipped_and_the_next_one_measured() -> None:
    told: list[str] = []
    broken, working = measure_peers([Broken(), Working()], PLAN, told.append)
    assert broken.skipped == "no such file"
    assert working.figures.values
    assert told == ["broken", "working"]


def test_a_module_gets_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "echo_peer.py").write_text("import json, sys\nprint(json.dumps({'note': ' '.join(sys.argv[1:])}))\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    result = ModulePeer("echo", "echo_peer", ("DIR",)).measure(PLAN, lambda text: None)
    assert result.note == "DIR --prompt=5,9 --depth=0,7 --decode=4 --repeat=2 --chat"
