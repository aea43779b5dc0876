"""`deskinfer bench`: loads a model, lets the engine run the cases of a benchmark, and reports."""

from __future__ import annotations

import dataclasses
import gc
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol

import psutil

from app.benchmark import Case, Plan, Report, measure, read_bandwidth, run_peer
from app.doctor import cpu_name
from app.engine_setup import chosen_model, engine_options, load_settings
from app.terminal_errors import UsageError
from inference.request import (
    DoneEvent,
    EngineReading,
    FailedEvent,
    GenerationRequest,
    Message,
    RequestEvent,
    SamplingParams,
    Usage,
)

_SAMPLE_S = 0.02
# Ids of prompts are drawn below this; every model of the catalog has more.
_VOCAB_SIZE = 49_000


class SteppedEngine(Protocol):
    """What a benchmark needs of an engine."""

    def add(
        self, request: GenerationRequest, submitted_at: float | None = None, token_ids: list[int] | None = None
    ) -> None:
        """Queues a request with a prompt of token ids."""
        ...

    def step(self) -> list[RequestEvent]:
        """Computes one step."""
        ...

    def reading(self) -> EngineReading:
        """A snapshot."""
        ...

    def close(self) -> None:
        """Frees everything."""
        ...


def numbers(text: str) -> tuple[int, ...]:
    """Reads "58,512" or "58 512". Raises UsageError."""
    try:
        found = tuple(int(word) for word in text.replace(",", " ").split())
    except ValueError as error:
        raise UsageError(f'"{text}" is no list of whole numbers. Write it like 58,512.') from error
    if any(number < 0 for number in found):
        raise UsageError(f'"{text}" holds a negative number, but lengths are 0 or more.')
    return found


def run_bench(model: str, plan: Plan, *, backend: str, threads: int, peer_command: str) -> Report:
    """Loads the model, measures, and closes the engine.

    Raises:
        InferenceError: the model cannot be loaded.
        PeerError: the other engine failed.
    """
    from inference.engine.loader import open_engine
    from inference.formats.model_store import ModelStore

    settings = load_settings()
    name = chosen_model(settings, model)
    options = engine_options(settings)
    options = dataclasses.replace(
        options, backend=backend, threads=threads or options.threads, context_tokens=plan.context_tokens
    )
    path = ModelStore().resolve(name)
    _show_progress(f"loading {name}")
    with PeakMemory() as memory:
        start = time.perf_counter()
        engine = open_engine(name, options)
        load_s = time.perf_counter() - start
        try:
            run = partial(run_case, engine, plan)
            peer = partial(run_peer, peer_command) if peer_command else None
            ours, theirs = measure(plan, run, peer, _show_progress)
            reading = engine.reading()
        finally:
            engine.close()
    _show_progress("reading memory")
    counted = threads or options.threads or psutil.cpu_count(logical=False) or 1
    report = Report(
        model=name,
        backend=reading.backend,
        threads=counted,
        cpu=cpu_name(),
        load_s=load_s,
        file_bytes=_size(path),
        weight_bytes=reading.weight_bytes,
        peak_bytes=memory.peak_bytes,
        bandwidth=read_bandwidth(counted),
        plan=plan,
        ours=ours,
        theirs=theirs,
    )
    _show_progress("")
    return report


def run_case(engine: SteppedEngine, plan: Plan, case: Case, repeat: int) -> float:
    """Runs one case once; tokens per second as the engine's own clock counts them, sampling included."""
    length = case.n if case.what == "prefill" else max(case.n, 1)
    token_ids = plan.prompt_ids(length, seed=1000 * repeat + length, vocab_size=_VOCAB_SIZE)
    # The first token belongs to the prefill; decode_tokens more follow it.
    new_tokens = 1 if case.what == "prefill" else plan.decode_tokens + 1
    sampling = SamplingParams(temperature=0.0, max_new_tokens=new_tokens)
    request = GenerationRequest((Message("user", "token ids"),), sampling)
    gc.collect()
    engine.add(request, token_ids=token_ids)
    usage = _run_to_the_end(engine.step)
    return 1000.0 * length / usage.time_to_first_token_ms if case.what == "prefill" else usage.decode_tok_s


def _run_to_the_end(step: Callable[[], list[RequestEvent]]) -> Usage:
    while True:
        for event in step():
            if isinstance(event, FailedEvent):
                raise event.error
            if isinstance(event, DoneEvent):
                return event.usage


class PeakMemory:
    """Most memory that this process holds while the context is open: the system's own count where it has one.

    Attributes:
        peak_bytes: set when the context ends.
    """

    def __init__(self) -> None:
        self.peak_bytes = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="peak-memory", daemon=True)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self.peak_bytes = max(self.peak_bytes, _system_peak_bytes())

    def _watch(self) -> None:
        process = psutil.Process()
        while not self._ended.wait(_SAMPLE_S):
            self.peak_bytes = max(self.peak_bytes, process.memory_info().rss)


def _system_peak_bytes() -> int:
    """What the system saw as the largest resident size of this process; 0 where it does not say."""
    if sys.platform == "win32":
        return int(psutil.Process().memory_info().peak_wset)
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*")) if path.is_dir() else path.stat().st_size


def _show_progress(text: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()
