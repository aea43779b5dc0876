"""The benchmark's order, its peer, and what its table says. Speeds themselves are no matter for a test."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from app.benchmark import (
    Case,
    PeerError,
    Plan,
    Report,
    Speeds,
    measure,
    memory_limit_bytes,
    read_bandwidth,
    read_figures,
    run_peer,
)

PLAN = Plan(prompts=(5,), depths=(0, 7), decode_tokens=4, repeats=2)
PREFILL, SHALLOW, DEEP = PLAN.cases


def test_cases_and_context() -> None:
    assert PLAN.cases == [Case("prefill", 5), Case("decode@depth", 0), Case("decode@depth", 7)]
    assert PLAN.context_tokens >= 7 + 4
    assert Plan(prompts=(512,), depths=()).context_tokens >= 512


def test_prompts_differ_and_stay_in_the_vocabulary() -> None:
    first, second = PLAN.prompt_ids(600, 0, 2000), PLAN.prompt_ids(600, 1, 2000)
    assert first != second
    assert first == PLAN.prompt_ids(600, 0, 2000)
    assert 0 <= min(first)
    assert max(first) < 2000


def test_warm_up_does_not_count_and_peer_takes_turns() -> None:
    log: list[str] = []

    def run_case(case: Case, repeat: int) -> float:
        log.append(f"us {case.what} {case.n} {repeat}")
        return 100.0 * repeat + case.n

    def peer() -> dict[Case, float]:
        log.append("peer")
        return {PREFILL: 50.0}

    ours, theirs = measure(PLAN, run_case, peer, lambda text: None)
    assert ours.values[DEEP] == [107.0, 207.0]
    assert theirs.values == {PREFILL: [50.0, 50.0]}
    assert [entry for entry in log if entry == "peer" or entry.startswith("us prefill")] == [
        "us prefill 5 0",
        "us prefill 5 1",
        "peer",
        "us prefill 5 2",
        "peer",
    ]


def test_median() -> None:
    speeds = Speeds()
    for value in (3.0, 1.0, 100.0):
        speeds.add(PREFILL, value)
    assert speeds.median(PREFILL) == 3.0
    assert speeds.median(DEEP) is None


def test_figures_among_other_lines() -> None:
    lines = ["loading", '{"what": "prefill", "n": 5, "tok_s": 12.5, "min_s": 1}', '{"what": "x"}', "[1]", "3"]
    assert read_figures(lines) == {PREFILL: 12.5}


def test_peer_command(tmp_path: Path) -> None:
    script = tmp_path / "peer with space.py"
    script.write_text("import json\nprint(json.dumps({'what': 'decode@depth', 'n': 0, 'tok_s': 9}))\n")
    assert run_peer(f"'{sys.executable}' '{script}'") == {SHALLOW: 9.0}


@pytest.mark.parametrize(
    ("code", "message"),
    [("raise SystemExit('no model')", "status 1: no model"), ("print('hello')", "printed no line")],
)
def test_peer_that_fails(tmp_path: Path, code: str, message: str) -> None:
    script = tmp_path / "peer.py"
    script.write_text(code)
    with pytest.raises(PeerError, match=message):
        run_peer(f"'{sys.executable}' '{script}'")


def test_peer_that_cannot_start(tmp_path: Path) -> None:
    with pytest.raises(PeerError, match="cannot start"):
        run_peer(str(tmp_path / "none"))


def report(peak_bytes: int, theirs: Speeds) -> Report:
    ours = Speeds({PREFILL: [120.0], SHALLOW: [10.0], DEEP: [8.0]})
    sizes = {"file_bytes": 1_000_000_000, "weight_bytes": 900_000_000, "peak_bytes": peak_bytes}
    names = {"model": "m", "backend": "cpu", "threads": 2, "cpu": "A CPU"}
    return Report(**names, **sizes, load_s=1.5, bandwidth=18e9, plan=PLAN, ours=ours, theirs=theirs)


def test_report_has_ratios_memory_and_bandwidth() -> None:
    lines = report(2_100_000_000, Speeds({PREFILL: [100.0]})).lines()
    row = next(line for line in lines if line.startswith("prefill 5"))
    assert row.split() == ["prefill", "5", "120.0", "100.0", "1.20"]
    assert next(line for line in lines if line.startswith("decode@depth 7")).split()[-2:] == ["-", "-"]
    assert any("within the limit of 2,200 MB" in line for line in lines)
    assert "9.0 GB/s, 50% of the 18.0 GB/s" in lines[-1]


def test_report_without_a_peer_has_no_ratio_and_names_an_overrun() -> None:
    lines = report(2_300_000_000, Speeds()).lines()
    assert not any("ratio" in line for line in lines)
    assert any("ABOVE the limit" in line for line in lines)


def test_report_as_json() -> None:
    read = json.loads(report(1, Speeds()).as_json())
    assert read["ours"][0] == {"what": "prefill", "n": 5, "tok_s": [120.0]}


def test_memory_limit() -> None:
    assert memory_limit_bytes(1_117_320_768) == 2_387_713_228


def test_bandwidth_is_a_rate() -> None:
    assert 1e8 < read_bandwidth(1) < 1e12
