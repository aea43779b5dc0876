"""The order of a run: loads, cases in turns with a peer command, and what does not fit."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import ClassVar

import pytest

from app.bench.figures import DECODE_TOK_S, PREFILL_TOK_S, Figures
from app.bench.machine import Machine
from app.bench.peers import PeerResult
from app.bench.protocol import CHAT, DECODE, PREFILL, Case, Plan
from app.bench.report import Loaded, Report
from app.bench.roofline import Roofline
from app.bench.run import fitting, load, measure, run_bench, with_peers
from inference.engine.device_lock import DeviceLock
from inference.engine.options import EngineOptions
from inference.errors import ModelNotFoundError, ModelResidentError, OutOfMemoryError

PLAN = Plan(prompts=(5,), depths=(0, 7), decode_tokens=4, repeats=2, chat=False)
LENGTH, SHALLOW, DEEP = PLAN.cases
MACHINE = Machine("A CPU", (), "Linux", "3.11", {}, "2026-01-01T00:00:00+00:00", "deskinfer bench")
LOADED = Loaded("m", "cpu", 2, 4096, (1.5,), 10**9, 9 * 10**8, 10**6, 0, 0, 2 * 10**9)


def test_warm_up_does_not_count_and_peer_takes_turns() -> None:
    log: list[str] = []

    def run_case(case: Case, repeat: int) -> dict[str, float]:
        log.append(f"us {case.what} {case.n} {repeat}")
        return {DECODE_TOK_S: 100.0 * repeat + case.n}

    def peer() -> PeerResult:
        log.append("peer")
        return PeerResult("", Figures({(LENGTH, PREFILL_TOK_S): [50.0]}), note="version 1")

    ours, theirs = measure(PLAN, run_case, peer, lambda text: None)
    assert ours.values[DEEP, DECODE_TOK_S] == [107.0, 207.0]
    assert theirs.figures.values == {(LENGTH, PREFILL_TOK_S): [50.0, 50.0]}
    assert theirs.note == "version 1"
    assert [entry for entry in log if entry == "peer" or entry.startswith("us prefill")] == [
        "us prefill 5 0",
        "us prefill 5 1",
        "peer",
        "us prefill 5 2",
        "peer",
    ]


def test_without_a_peer_command_there_is_none() -> None:
    assert measure(PLAN, lambda case, repeat: {}, None, lambda text: None)[1] is None


class CountedEngine:
    def __init__(self, log: list[str]) -> None:
        self.log = log

    def close(self) -> None:
        self.log.append("close")


def test_every_load_is_timed_and_only_the_last_engine_stays_open() -> None:
    log: list[str] = []

    def open_engine(plan: Plan) -> CountedEngine:
        log.append("open")
        return CountedEngine(log)

    _, plan, times = load(open_engine, PLAN, 3)
    assert log == ["open", "close", "open", "close", "open"]
    assert len(times) == 3
    assert plan == PLAN


def test_depths_that_do_not_fit_the_memory_are_given_up() -> None:
    def open_engine(plan: Plan) -> CountedEngine:
        if plan.context_tokens > 100:
            raise OutOfMemoryError(2, 1, "")
        return CountedEngine([])

    deep = Plan(prompts=(5,), depths=(0, 50, 500, 5000), decode_tokens=4, chat=False)
    _, plan, times = load(open_engine, deep, 1)
    assert plan.depths == (0, 50)
    assert len(times) == 1


def test_a_model_that_never_fits_is_an_error() -> None:
    def open_engine(plan: Plan) -> CountedEngine:
        raise OutOfMemoryError(2, 1, "")

    with pytest.raises(OutOfMemoryError):
        load(open_engine, PLAN, 1)


def test_cases_beyond_the_models_context_are_left_out_with_their_reason() -> None:
    plan, skipped = fitting(Plan(prompts=(58, 4000), depths=(0, 2048), decode_tokens=4), 2048)
    assert plan.cases == [Case(CHAT, 0), Case(CHAT, 1), Case(PREFILL, 58), Case(DECODE, 0)]
    assert len(skipped) == 2
    assert "prefill 4,000" in skipped[0]
    assert "2,048" in skipped[1]


def test_a_whole_run_on_random_weights(tmp_path: Path) -> None:
    """A real engine of the smallest published shape, and a peer command beside it."""
    script = tmp_path / "peer.py"
    script.write_text('print(\'{"what": "prefill", "n": 5, "tok_s": 9}\')\n')
    plan = Plan(prompts=(5,), depths=(0,), decode_tokens=2, repeats=1)
    options = EngineOptions(backend="cpu", threads=1)
    report = run_bench("random:smollm2-135m:w4", options, plan, peer_command=f"'{sys.executable}' '{script}'", loads=1)
    read = json.loads(report.as_json())
    assert [(entry["what"], entry["n"]) for entry in read["ours"]] == [
        (CHAT, 0),
        (CHAT, 1),
        (PREFILL, 5),
        (DECODE, 0),
    ]
    assert read["peers"][0]["figures"][0]["prefill_tok_s"]["median"] == 9
    assert read["model"]["weight_bytes"] > 50e6
    assert read["roofline"]["depths"][0]["floor_tok_s"] > 0


def test_a_model_of_another_process_is_not_joined_by_a_second_one(tmp_path: Path) -> None:
    plan = Plan(prompts=(5,), depths=(0,), decode_tokens=2, repeats=1, chat=False)
    options = EngineOptions(backend="cpu", threads=1, lock_dir=tmp_path)
    other = DeviceLock(tmp_path)
    other.acquire("resident")
    with pytest.raises(ModelResidentError, match="holds the model resident on the cpu"):
        run_bench("random:smollm2-135m:w4", options, plan)
    other.release()
    with pytest.raises(ModelNotFoundError):
        run_bench("nothing", options, plan)
    other.acquire("resident")  # what failed gave the lock back
    other.release()


def test_peers_are_measured_with_the_plan_that_fitted() -> None:
    class Recording:
        name = "recording"
        plans: ClassVar[list[Plan]] = []

        def measure(self, plan: Plan, progress) -> PeerResult:
            self.plans.append(plan)
            return PeerResult(self.name)

    first = PeerResult("peer")
    report = Report(LOADED, MACHINE, PLAN, Roofline(1, 1.0, 1.0), Figures(), (first,))
    assert [peer.name for peer in with_peers(report, [Recording()]).peers] == ["peer", "recording"]
    assert Recording.plans == [PLAN]
