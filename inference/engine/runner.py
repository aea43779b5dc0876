"""The seam between the engine and what computes its steps: rows in, chosen tokens out, in two halves.

`launch` begins a step and `collect` waits for its tokens. On the CPU the first half does everything. A GPU computes
while the engine works on the tokens of the step before: a runner that looks ahead takes a step whose rows are those of
the last one, each with one token more that only the device knows yet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from inference.backends.backend import Batch
from inference.engine.sampler import choose, log_probabilities
from inference.engine.scheduler import Chunk
from inference.request import SamplingParams

Ticket = Any
"""A step under way, meaningful to the runner that launched it. One that nobody needs any more is simply dropped."""

ShouldStop = Callable[[], bool]


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """One sequence's part of a step.

    Attributes:
        wants_token: after its chunk all tokens are computed, so the next one is to be chosen.
        seed: of the request's random numbers.
        allowed: bool (vocab_size,), tokens that the answer's grammar allows next; None where it has none.
    """

    chunk: Chunk
    wants_token: bool
    sampling: SamplingParams
    seed: int
    allowed: NDArray[np.bool_] | None = None

    @property
    def on_host(self) -> bool:
        """The plain sampler chooses its token, from exact logits, and the one after it cannot be computed before."""
        return self.allowed is not None or self.sampling.needs_logits

    @property
    def index(self) -> int:
        """Tokens of the answer before the one that is to be chosen."""
        return self.chunk.start + self.chunk.count - self.chunk.sequence.prompt_tokens

    @property
    def is_decode(self) -> bool:
        """One token of an answer. A prompt's last token alone is prefill, however its chunks were cut."""
        return self.chunk.is_decode


@dataclass(frozen=True, slots=True)
class Choice:
    """A token that was chosen.

    Attributes:
        logprob: its log-probability; None where nobody asked for it.
        top: the likeliest tokens at its place and their log-probabilities.
    """

    token_id: int
    logprob: float | None = None
    top: Sequence[tuple[int, float]] = ()


class Runner(Protocol):
    """What the engine needs of a decoder and a sampler together.

    Attributes:
        looks_ahead: it takes steps before the tokens of the last one are known.
    """

    looks_ahead: bool

    def launch(self, rows: Sequence[Row], ahead: bool, should_stop: ShouldStop | None = None) -> Ticket | None:
        """Begins a step; answers come first, then prompts.

        Args:
            ahead: the rows continue those of the last launch, whose tokens nobody has collected yet.
            should_stop: asked before each layer of a long step; None is returned where it said so. Nothing has changed
                then, and the same step may be launched again.
        """
        ...

    def collect(self, ticket: Ticket) -> list[Choice]:
        """Waits for the tokens of the rows that want one, in their order.

        Raises:
            InferenceError: the model's output holds no number to choose by.
        """
        ...

    def spare_s(self) -> float:
        """Seconds for which the step under way will go on for certain: the one after it need not be launched before."""
        ...


class Forward(Protocol):
    """What a runner needs of a decoder."""

    def forward(self, batch: Batch, should_stop: ShouldStop | None = None) -> NDArray[np.float32] | None:
        """Logits of the batch's `logit_rows`, None where `should_stop` ended the step."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class _Computed:
    """Logits (L, vocab_size) of the rows that want a token."""

    rows: Sequence[Row]
    logits: NDArray[np.float32]


class HostRunner:
    """Computes a step at once and chooses tokens with the plain sampler."""

    looks_ahead = False

    def __init__(self, decoder: Forward) -> None:
        self._decoder = decoder

    def launch(self, rows: Sequence[Row], ahead: bool, should_stop: ShouldStop | None = None) -> _Computed | None:
        """See Runner."""
        assert not ahead, "this runner does not look ahead"
        logits = self._decoder.forward(step_batch(rows), should_stop)
        return None if logits is None else _Computed(rows, logits)

    def collect(self, ticket: _Computed) -> list[Choice]:
        """See Runner."""
        wanting = [row for row in ticket.rows if row.wants_token]
        return [choose_token(row, logits) for row, logits in zip(wanting, ticket.logits, strict=True)]

    def spare_s(self) -> float:
        """See Runner. No step is under way between two calls."""
        return 0.0


def step_batch(rows: Sequence[Row]) -> Batch:
    """The arrays of a step whose tokens are all known, in the order of its rows."""
    chunks = [row.chunk for row in rows]
    counts = np.array([chunk.count for chunk in chunks])
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    tables = np.full((len(chunks), max(len(chunk.sequence.table.pages) for chunk in chunks)), -1, dtype=np.int32)
    for place, chunk in enumerate(chunks):
        tables[place, : len(chunk.sequence.table.pages)] = chunk.sequence.table.pages
    wanting = [row for row in rows if row.wants_token]
    spans = [(chunk.sequence.token_ids, chunk.start, chunk.start + chunk.count) for chunk in chunks]
    return Batch(
        token_ids=np.concatenate([np.array(tokens[start:end], dtype=np.int32) for tokens, start, end in spans]),
        positions=np.concatenate([np.arange(start, end, dtype=np.int32) for _, start, end in spans]),
        query_starts=starts,
        context_lengths=np.array([end for _, _, end in spans], dtype=np.int32),
        page_tables=tables,
        logit_rows=np.array([starts[i + 1] - 1 for i, row in enumerate(rows) if row.wants_token], dtype=np.int32),
        exact_rows=np.array([row.on_host for row in wanting]) if any(row.on_host for row in wanting) else None,
    )


def choose_token(row: Row, logits: NDArray[np.float32]) -> Choice:
    """The row's next token by the plain sampler.

    Args:
        logits: (vocab_size,) after the row's last token.
    """
    token = choose(logits, row.chunk.sequence.token_ids, row.sampling, row.seed, row.index, row.allowed)
    if row.sampling.top_logprobs is None:
        return Choice(token)
    return Choice(token, *log_probabilities(logits, token, row.sampling.top_logprobs))
