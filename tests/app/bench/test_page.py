"""The page: figures side by side, ratios the right way round, memory, the floor; and that it fits 100 columns."""

from __future__ import annotations

import dataclasses
import io

from rich.console import Console

from app.bench.figures import DECODE_TOK_S, PREFILL_TOK_S, TTFT_MS, WALL_MS, Figures
from app.bench.machine import Machine
from app.bench.page import print_page
from app.bench.peers import PeerResult
from app.bench.protocol import CHAT, DECODE, PREFILL, Case, Plan
from app.bench.report import Loaded, Report
from app.bench.roofline import Roofline

GPU = "NVIDIA H200, SM90, 139.8 GiB, driver 580.159"
MACHINE = Machine("A CPU", (GPU,), "Linux", "3.12", {}, "2026-01-01T00:00:00+00:00", "deskinfer bench -m m")
ON_GPU = Loaded("random:qwen2.5-3b:w4", "cuda", 8, 33024, (3.2, 0.9, 0.8), 0, 1591 * 10**6, 1207 * 10**6, 80 * 10**6,
                2900 * 10**6, 1200 * 10**6)  # fmt: skip
ON_CPU = Loaded("m", "cpu", 2, 4096, (1.5,), 10**9, 9 * 10**8, 10**8, 0, 0, 2_100_000_000)
PLAN = Plan(prompts=(58,), depths=(0, 8192), decode_tokens=128)


def figures(factor: float) -> Figures:
    found = Figures()
    for i in range(2):
        found.add(Case(CHAT, i), {TTFT_MS: 7.3 / factor, DECODE_TOK_S: 1600 * factor, WALL_MS: 47.0 / factor})
    found.add(Case(PREFILL, 58), {PREFILL_TOK_S: 7900 * factor, TTFT_MS: 7.3 / factor})
    found.add(Case(DECODE, 0), {DECODE_TOK_S: 1610 * factor})
    found.add(Case(DECODE, 8192), {DECODE_TOK_S: 1400 * factor})
    return found


def text_of(report: Report, width: int = 100) -> str:
    stream = io.StringIO()
    print_page(report, Console(file=stream, width=width, highlight=False))
    return stream.getvalue()


def report(loaded: Loaded, *peers: PeerResult, skipped: tuple[str, ...] = ()) -> Report:
    return Report(loaded, MACHINE, PLAN, Roofline(loaded.weight_bytes, 36864.0, 4.3e12), figures(1), peers, skipped)


def row(text: str, *words: str) -> list[str]:
    return next(line.split() for line in text.splitlines() if line.split()[: len(words)] == list(words))


def test_ratios_say_how_many_times_faster_we_are() -> None:
    text = text_of(report(ON_GPU, PeerResult("llama.cpp", figures(0.5))))
    assert row(text, "prefill", "58") == ["prefill", "58", "tok/s", "7,900", "3,950", "2.00x"]
    assert row(text, "prompt", "1") == ["prompt", "1", "TTFT", "ms", "7.30", "14.60", "2.00x"]
    assert row(text, "total", "ms") == ["total", "ms", "47.0", "94.0", "2.00x"]
    assert row(text, "decode", "at", "8,192") == ["decode", "at", "8,192", "tok/s", "1,400", "700.0", "2.00x"]


def test_a_faster_peer_has_a_ratio_below_one() -> None:
    assert row(text_of(report(ON_GPU, PeerResult("p", figures(2)))), "decode", "at", "0")[-1] == "0.50x"


def test_four_peers_fit_100_columns() -> None:
    names = ("llama.cpp", "localhost:11434", "HF 16 bits", "HF NF4")
    many = report(ON_GPU, *(PeerResult(name, figures(0.4)) for name in names))
    text = text_of(many)
    assert max(map(len, text.splitlines())) <= 100
    assert all(name in text for name in names)
    # No cell takes a second line.
    assert len(text.splitlines()) == len(text_of(many, width=160).splitlines())
    assert "…" not in text


def test_skipped_peers_and_cases_are_told() -> None:
    peers = (PeerResult("HF NF4", skipped="bitsandbytes is missing"), PeerResult("torch int4", linears_ms={1: 1.25}))
    text = text_of(report(ON_GPU, *peers, skipped=("decode at 32,512: too long",)))
    assert "HF NF4 skipped: bitsandbytes is missing" in text
    assert "1.25 ms for 1 token; at most 800 tok/s" in text
    assert "left out: decode at 32,512: too long" in text


def test_memory_of_a_gpu_is_compared_with_the_plan() -> None:
    text = text_of(report(ON_GPU))
    assert "weights 1,591 MB, KV 1,207 MB, workspace 80 MB" in text
    assert "on the GPU at most 2,900 MB (2.701 GiB) reserved, +0.8% to the plan" in text
    assert "load 3.20 s, again 0.80 s at best" in text
    assert GPU in text


def test_memory_on_the_cpu_is_compared_with_its_limit() -> None:
    assert "2,100 MB at most, within the limit of 2,200 MB for a file of 1,000 MB" in text_of(report(ON_CPU))
    above = dataclasses.replace(ON_CPU, host_peak_bytes=2_300_000_000)
    assert "ABOVE the limit" in text_of(report(above))
    assert "A CPU, 2 threads" in text_of(report(ON_CPU))


def test_the_floor_of_each_depth() -> None:
    text = text_of(report(ON_GPU))
    assert "this device reads 4,300.0 GB/s" in text
    # 1,591 MB and 64 tokens of 36,864 bytes.
    assert row(text, "64") == ["64", "1,593.4", "2,699", "1,610", "60%", "2,565.3"]


def test_an_unknown_rate_leaves_the_share_open() -> None:
    unknown = dataclasses.replace(report(ON_GPU), roofline=Roofline(10**9, 0.0, 0.0))
    assert row(text_of(unknown), "64") == ["64", "1,000.0", "-", "1,610", "-", "1,610.0"]
