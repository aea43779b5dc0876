"""The JSON of a run, and the memory that a run on the CPU may take."""

from __future__ import annotations

import json

from app.bench.figures import DECODE_TOK_S, PREFILL_TOK_S, Figures
from app.bench.machine import Machine
from app.bench.peers import PeerResult
from app.bench.protocol import DECODE, PREFILL, Case, Plan
from app.bench.report import Loaded, Report, memory_limit_bytes
from app.bench.roofline import Roofline

MACHINE = Machine("A CPU", (), "Linux", "3.11", {"numpy": "2.0"}, "2026-01-01T00:00:00+00:00", "deskinfer bench")
LOADED = Loaded("m", "cpu", 2, 4096, (1.5,), 10**9, 9 * 10**8, 4096 * 1000, 0, 0, 2 * 10**9)


def test_json_holds_every_measurement_and_the_floor() -> None:
    report = Report(
        loaded=LOADED,
        machine=MACHINE,
        plan=Plan(prompts=(5,), depths=(0, 2048), decode_tokens=64, chat=False),
        roofline=Roofline(9 * 10**8, 1000.0, 18e9),
        ours=Figures({(Case(PREFILL, 5), PREFILL_TOK_S): [120.0, 130.0, 110.0]}),
        peers=(
            PeerResult("p", Figures({(Case(DECODE, 0), DECODE_TOK_S): [9.0]}), note="v1"),
            PeerResult("q", skipped="x"),
        ),
    )
    read = json.loads(report.as_json())
    assert read["ours"] == [
        {"what": "prefill", "n": 5, "prefill_tok_s": {"median": 120.0, "values": [120.0, 130.0, 110.0]}}
    ]
    assert read["peers"][0]["figures"][0]["decode_tok_s"]["median"] == 9.0
    assert read["peers"][1]["skipped"] == "x"
    assert read["machine"]["command"] == "deskinfer bench"
    assert read["roofline"]["depths"][1] == {"depth": 2048, "token_bytes": 902_080_000, "floor_tok_s": 20.0}
    assert read["model"]["load_s"] == [1.5]


def test_memory_limit() -> None:
    assert memory_limit_bytes(1_117_320_768) == 2_387_713_228
