"""llama-bench, played by a script that prints what the real one does."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from app.bench.figures import DECODE_TOK_S, PREFILL_TOK_S, TTFT_MS
from app.bench.llama_bench import LlamaBench
from app.bench.peers import PeerError
from app.bench.protocol import DECODE, PREFILL, Case, Plan

PLAN = Plan(prompts=(58, 512), depths=(0, 2048), decode_tokens=128, repeats=2)

FAKE = '''#!{python}
"""Answers as llama-bench -o json does; appends its arguments to a file."""
import json, pathlib, sys
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
with pathlib.Path(__file__).with_suffix(".log").open("a") as log:
    log.write(" ".join(sys.argv[1:]) + "\\n")
found = []
for prompt in (int(n) for n in given["-p"].split(",")):
    for new in (int(n) for n in given["-n"].split(",")):
        for depth in (int(n) for n in given.get("-d", "0").split(",")):
            if prompt or new:
                found.append(dict(build_commit="abc", model_type="qwen2 3B Q4_K - Medium", model_size=1928000000,
                                  n_prompt=prompt, n_gen=new, n_depth=depth, avg_ts=0.0,
                                  samples_ts=[1000.0 * (prompt or new), 1000.0 * (prompt or new) + depth]))
print(json.dumps(found))
'''


@pytest.fixture
def program(tmp_path: Path) -> Path:
    if os.name != "posix":
        pytest.skip("a script with a first line that names its interpreter")
    path = tmp_path / "llama-bench.py"
    path.write_text(FAKE.replace("{python}", sys.executable))
    path.chmod(0o755)
    return path


def test_prompts_and_depths_are_measured_in_two_runs(program: Path) -> None:
    result = LlamaBench(str(program), "3b.gguf").measure(PLAN, lambda text: None)
    values = result.figures.values
    assert values[Case(PREFILL, 58), PREFILL_TOK_S] == [58000.0, 58000.0]
    assert values[Case(PREFILL, 512), TTFT_MS] == [1.0, 1.0]
    assert values[Case(DECODE, 2048), DECODE_TOK_S] == [128000.0, 130048.0]
    assert {case for case, _ in values} == {Case(PREFILL, 58), Case(PREFILL, 512), Case(DECODE, 0), Case(DECODE, 2048)}
    assert result.note == "build abc, qwen2 3B Q4_K - Medium, 1,928 MB"
    prefill, decode = program.with_suffix(".log").read_text().splitlines()
    assert "-m 3b.gguf -ngl 99 -fa 1 -r 2 -o json -p 58,512 -n 0" in prefill
    assert "-p 0 -n 128 -d 0,2048" in decode


def test_on_the_cpu_it_gets_threads(program: Path) -> None:
    LlamaBench(str(program), "3b.gguf", threads=2).measure(PLAN, lambda text: None)
    assert "-ngl 0 -t 2" in program.with_suffix(".log").read_text()


def test_nothing_is_run_for_lengths_that_nobody_wants(program: Path) -> None:
    LlamaBench(str(program), "3b.gguf").measure(Plan(prompts=(), depths=(0,)), lambda text: None)
    assert len(program.with_suffix(".log").read_text().splitlines()) == 1


@pytest.mark.parametrize("text", ["no JSON", '{"error": 1}', "[{}]", '[{"samples_ts": 3, "n_prompt": 1, "n_gen": 0}]'])
def test_an_output_that_is_no_result_is_named(program: Path, text: str) -> None:
    program.write_text(f"#!{sys.executable}\nprint({text!r})\n")
    with pytest.raises(PeerError, match="no list of its results"):
        LlamaBench(str(program), "3b.gguf").measure(PLAN, lambda text: None)


def test_without_a_model_it_says_which_option_is_missing() -> None:
    with pytest.raises(PeerError, match="--gguf"):
        LlamaBench("llama-bench", "").measure(PLAN, lambda text: None)
