"""One run of `deskinfer bench`: load, measure ours, put the report together; then each peer."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from app.bench.figures import Figures
from app.bench.host_peak import PeakMemory
from app.bench.machine import this_machine
from app.bench.our_engine import SteppedEngine, run_case
from app.bench.peers import Peer, PeerResult, Progress, measure_peers, run_command
from app.bench.protocol import CHAT, DECODE, PREFILL, Case, Plan
from app.bench.report import Loaded, Report
from app.bench.roofline import Roofline, read_rate
from inference.errors import InferenceError, OutOfMemoryError
from inference.request import EngineReading

if TYPE_CHECKING:
    from inference.engine.device_lock import DeviceLocks
    from inference.engine.options import EngineOptions

RANDOM = "random:"

OpenEngine = Callable[[Plan], SteppedEngine]


def run_bench(
    model: str,
    options: EngineOptions,
    plan: Plan,
    peer_command: str = "",
    loads: int = 1,
) -> Report:
    """Loads the model, measures, and closes the engine; the lock of the device that it lies on is held meanwhile.

    Args:
        peer_command: measured in turns with ours, so that what else the machine does falls on both.
        loads: how often the model is loaded; the last one is measured.

    Raises:
        InferenceError: the model cannot be loaded, or another process holds one.
        PeerError: the peer command failed.
    """
    from inference.engine.device_lock import DeviceLocks, default_lock_dir

    locks = DeviceLocks(options.lock_dir or default_lock_dir())
    locks.acquire(model)
    try:
        return _run_bench(model, options, plan, peer_command, loads, locks)
    finally:
        locks.release()


def _run_bench(
    model: str, options: EngineOptions, plan: Plan, peer_command: str, loads: int, locks: DeviceLocks
) -> Report:
    from inference.engine.loader import PlannedModel

    def open_for(plan: Plan) -> SteppedEngine:
        planned = PlannedModel(model, dataclasses.replace(options, context_tokens=plan.context_tokens))
        try:
            locks.settle(model, planned.memory.device)
        except InferenceError:
            planned.close()
            raise
        return planned.load()

    _show_progress(f"loading {model}")
    with PeakMemory() as memory:
        engine, plan, load_s = load(open_for, plan, loads)
        try:
            has_text = not model.startswith(RANDOM)
            plan, skipped = fitting(plan, engine.reading().context_tokens)
            run = partial(run_case, engine, plan, has_text=has_text)
            peer = partial(run_command, peer_command) if peer_command else None
            ours, result = measure(plan, run, peer, _show_progress)
            reading = engine.reading()
        finally:
            engine.close()
    _show_progress("reading memory")
    threads = options.threads or psutil.cpu_count(logical=False) or 1
    rate = read_rate(reading.backend, threads)
    _show_progress("")
    return Report(
        loaded=_loaded(model, reading, load_s, threads, memory.peak_bytes),
        machine=this_machine(),
        plan=plan,
        roofline=Roofline.of(reading, rate),
        ours=ours,
        peers=(result,) if result else (),
        skipped=tuple(skipped),
    )


def with_peers(report: Report, peers: Sequence[Peer]) -> Report:
    """The report with the figures of peers, which are measured now, for the same cases."""
    found = measure_peers(peers, report.plan, _show_progress)
    _show_progress("")
    return dataclasses.replace(report, peers=(*report.peers, *found))


def load(open_engine: OpenEngine, plan: Plan, loads: int) -> tuple[SteppedEngine, Plan, list[float]]:
    """Loads `loads` times; the engine, the plan that fitted and the seconds of each load.

    Depths that do not fit the memory are given up, deepest first, as long as one is left.
    """
    times: list[float] = []
    while True:
        start = time.perf_counter()
        try:
            engine = open_engine(plan)
        except OutOfMemoryError:
            if len(plan.depths) < 2:
                raise
            plan = dataclasses.replace(plan, depths=plan.depths[:-1])
            continue
        times.append(time.perf_counter() - start)
        if len(times) >= loads:
            return engine, plan, times
        engine.close()


def fitting(plan: Plan, context_tokens: int) -> tuple[Plan, list[str]]:
    """The plan without the cases that the model's context does not hold, and why each was left out."""
    too_long = [case for case in plan.cases if plan.context_of(case) > context_tokens]
    skipped = [
        f"{case.label}: needs a context of {plan.context_of(case):,} tokens; this one holds {context_tokens:,}"
        for case in too_long
    ]
    kept = dataclasses.replace(
        plan,
        prompts=tuple(n for n in plan.prompts if Case(PREFILL, n) not in too_long),
        depths=tuple(n for n in plan.depths if Case(DECODE, n) not in too_long),
        chat=plan.chat and not any(case.what == CHAT for case in too_long),
    )
    return kept, skipped


def measure(
    plan: Plan,
    run: Callable[[Case, int], Mapping[str, float]],
    peer: Callable[[], PeerResult] | None,
    progress: Progress,
) -> tuple[Figures, PeerResult | None]:
    """Measures us, and a peer command in turns with us.

    Args:
        run: measures a case once; the second argument varies the prompt.
        peer: measures all cases of the other engine once.

    Returns:
        Our figures, and the peer's.
    """
    ours, theirs = Figures(), PeerResult("peer") if peer is not None else None
    for repeat in range(plan.repeats + 1):
        for case in plan.cases:
            progress(f"{case.what} {case.n}, {'warm-up' if repeat == 0 else f'{repeat} of {plan.repeats}'}")
            measured = run(case, repeat)
            if repeat > 0:
                ours.add(case, measured)
        if peer is not None and theirs is not None and repeat > 0:
            progress(f"the other engine, {repeat} of {plan.repeats}")
            result = peer()
            theirs.note, theirs.peak_bytes = result.note, max(theirs.peak_bytes, result.peak_bytes)
            for (case, name), values in result.figures.values.items():
                theirs.figures.values.setdefault((case, name), []).extend(values)
    return ours, theirs


def _loaded(model: str, reading: EngineReading, load_s: list[float], threads: int, host_peak: int) -> Loaded:
    return Loaded(
        model=model,
        backend=reading.backend,
        threads=threads,
        context_tokens=reading.context_tokens,
        load_s=tuple(load_s),
        file_bytes=_file_bytes(model),
        weight_bytes=reading.weight_bytes,
        kv_bytes=reading.kv_bytes,
        workspace_bytes=reading.workspace_bytes,
        device_peak_bytes=reading.peak_bytes,
        host_peak_bytes=host_peak,
    )


def _file_bytes(model: str) -> int:
    from inference.store.model_store import ModelStore

    if model.startswith(RANDOM):
        return 0
    path: Path = ModelStore().resolve(model)
    return sum(file.stat().st_size for file in path.rglob("*")) if path.is_dir() else path.stat().st_size


def _show_progress(text: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()
