"""Texts whose tokens are to be counted, a slice at a time, so that answers under way do not wait for a long text."""

from __future__ import annotations

import re
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from inference.engine.unforeseen import log_error, unforeseen
from inference.errors import InferenceError
from inference.request import TokenCounts

CountListener = Callable[[TokenCounts | InferenceError], None]
Answer = tuple[CountListener, TokenCounts | InferenceError]

SLICE_CHARS = 16_384
"""Tokenized in at most 40 ms on one slow core, whatever the text."""
_LOOK_BACK_CHARS = 1024
# Tokens never reach across these places: a space and a letter behind a word, or the beginning of a line.
_BORDER = re.compile(r"(?<=\S)(?= [^\W_])|(?<=\n)(?=\S)")


def slices(text: str) -> Iterator[str]:
    """Pieces of at most SLICE_CHARS, cut where a token ends if such a place is near; joined they are the text."""
    start = 0
    while len(text) - start > SLICE_CHARS:
        end = start + SLICE_CHARS
        for match in _BORDER.finditer(text, end - _LOOK_BACK_CHARS, end):
            end = match.start()
        yield text[start:end]
        start = end
    yield text[start:]


class CountingEngine(Protocol):
    """What the queue needs of an engine."""

    @property
    def context_tokens(self) -> int:
        """Tokens that prompt and answer may have together."""
        ...

    def count_tokens(self, text: str) -> int:
        """Tokens of a plain text."""
        ...


@dataclass(slots=True, eq=False)
class _Job:
    """Texts of one call and how far they are counted, by which engine: another one begins anew."""

    texts: tuple[str, ...]
    listener: CountListener
    counts: list[int] = field(default_factory=list)
    slices: Iterator[str] | None = None
    engine: weakref.ref[CountingEngine] | None = None


class CountQueue:
    """Counts in the order of the calls. For one thread."""

    def __init__(self) -> None:
        self._jobs: deque[_Job] = deque()

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def put(self, texts: Sequence[str], listener: CountListener) -> None:
        """Queues texts; the sequence is copied."""
        self._jobs.append(_Job(tuple(texts), listener))

    def work(
        self, engine: CountingEngine, budget_s: float, clock: Callable[[], float] = time.perf_counter
    ) -> Answer | None:
        """Goes on with the first call for about `budget_s` seconds, at least a slice; the answer where it is done."""
        job = self._jobs[0]
        try:
            counts: TokenCounts | InferenceError | None = _advance(job, engine, clock, clock() + budget_s)
        except Exception as error:  # noqa: BLE001 - a part of the worker's loop: a text harms no request
            log_error("Counting tokens", error)
            counts = unforeseen("counting the tokens of this text", error)
        return None if counts is None else (self._jobs.popleft().listener, counts)

    def drop(self, error: InferenceError) -> list[Answer]:
        """Ends all calls; the answers are the error."""
        answers: list[Answer] = [(job.listener, error) for job in self._jobs]
        self._jobs.clear()
        return answers


def _advance(job: _Job, engine: CountingEngine, clock: Callable[[], float], until: float) -> TokenCounts | None:
    """Counts a slice and on until the time is over; None where more is to be done."""
    if job.engine is None or job.engine() is not engine:
        job.engine, job.counts, job.slices = weakref.ref(engine), [], None
    while job.slices is not None or len(job.counts) < len(job.texts):
        if job.slices is None:
            job.slices = slices(job.texts[len(job.counts)])
            job.counts.append(0)
        for piece in job.slices:
            job.counts[-1] += engine.count_tokens(piece)
            if clock() >= until:
                return None
        job.slices = None
    return TokenCounts(tuple(job.counts), engine.context_tokens)
