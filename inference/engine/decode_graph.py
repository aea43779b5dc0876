"""Steps on a GPU: rows that decode through one CUDA graph for each width, sampling included; prompts eagerly.

A graph holds a whole decode step, from the embedding of the last tokens to the choice of the next ones. The sampler
writes each row's token, position and length for the step after, so a step that continues the last one needs nothing
from the host but the launch; only token ids come back, through pinned memory. Rows of a width that no sequence has are
padding: their position is -1, and nothing is written for them.

A prompt never shares a launch with an answer, so that an answer does not depend on what runs beside it. Launching its
kernels takes the host longer than a fast GPU needs for a short one; so a short prompt, or the end of a long one, is
padded to one of a few lengths, each of which becomes a graph when it has been used once.

A row that asks for what the device's sampler has not, a grammar, penalties, log-probabilities, takes part in all this,
but its token is chosen on the host, from its logits, by the plain sampler; the engine does not look ahead then, so what
the device chose is never used.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from inference.backends.backend import Batch
from inference.backends.cuda_backend import CudaBackend
from inference.backends.cuda_plan import MAX_ROWS, SAMPLER_ROWS, WIDTHS
from inference.engine.decoder import Decoder
from inference.engine.runner import Choice, Row, ShouldStop, choose_token, step_batch
from inference.errors import DeviceFailedError, InferenceError
from kernels.device.driver import Event, Graph
from kernels.errors import DeviceError
from kernels.launch.sampling import BROKEN_LOGITS

_PROMPT_ROW = MAX_ROWS
"""Of the sampler: prompts that end take the rows behind those that decode."""
_SHORT_PROMPTS = (32, 64, 96, 128)
"""Lengths of the graphs of prompts; longer ones keep a GPU busy while the host launches."""

_SLEPT_SHARE = 0.7
"""Of the time between two steps; what is slept too long is made up for in the next step."""
_OUT_OF_MEMORY = 2
"""The driver's number."""
_LEAST_SLEEP_S, _MOST_SLEEP_S = 0.001, 0.1
_SPARE_SHARE, _LEAST_SPARE_S = 0.5, 0.0002
"""Of the time between two steps: the rest is for the host to launch the next one, however busy it is."""


@dataclass(frozen=True, slots=True, eq=False)
class _Launched:
    """Where the tokens of a step will be: the sampler's steps, and of each of its tokens the place among the rows.

    `done` tells when a step without any has been computed. One `ahead` was queued while the one before it ran.
    `chosen` are the tokens that the host has chosen, by their place.
    """

    samples: list[tuple[int, list[int]]]
    chosen: dict[int, Choice]
    done: Event | None
    ahead: bool


class DeviceRunner:
    """A Runner over the cuda backend.

    Args:
        graphs: False launches the same kernels one by one, for tests.
    """

    looks_ahead = True

    def __init__(self, decoder: Decoder, backend: CudaBackend, graphs: bool = True) -> None:
        """Runs every kernel of a decode step once, on padding, and captures the graphs."""
        self._decoder, self._backend = decoder, backend
        self._sampler = backend.sampler
        self._captures_prompts = graphs
        self._graphs: dict[int, Graph] = {}
        self._prompt_graphs: dict[int, Graph] = {}
        self._chunk: Event | None = None
        self._interval_s, self._collected_at = 0.0, time.perf_counter()
        # A length of prompts whose kernels have run, so that they can be captured.
        self._captures_next = 0
        self._pages: list[int] = []
        # Steps of the sampler whose tokens nobody has read.
        self._unread: set[int] = set()
        self._upload_rows([])
        for width in WIDTHS:
            self._launch_width(width)
            self._forget_unread()
        for width in WIDTHS if graphs else ():
            with backend.gpu.stream.capture() as graph:
                self._decode(width, in_graph=True)
            self._graphs[width] = graph

    def launch(self, rows: Sequence[Row], ahead: bool, should_stop: ShouldStop | None = None) -> _Launched | None:
        """See Runner.

        Raises:
            DeviceFailedError: the GPU failed.
        """
        with _failures():
            return self._launch(rows, ahead, should_stop)

    def _launch(self, rows: Sequence[Row], ahead: bool, should_stop: ShouldStop | None) -> _Launched | None:
        if not ahead:
            self._forget_unread()
        # The places count the rows that want a token.
        wanting = [row for row in rows if row.wants_token]
        answers = [(row, place) for place, row in enumerate(wanting) if row.is_decode]
        prompts = [row for row in rows if not row.is_decode]
        samples = []
        chosen: dict[int, Choice] = {}
        if prompts:
            ended = [(row, place) for place, row in enumerate(wanting) if not row.is_decode]
            if should_stop is not None and should_stop():
                return None
            step = self._launch_prompts(prompts, [row for row, _ in ended], should_stop)
            if step is None:
                return None
            if ended:
                samples.append((step, [place for _, place in ended]))
                chosen |= self._choose(ended)
        if answers:
            samples.append((self._launch_answers([row for row, _ in answers], ahead), [place for _, place in answers]))
            chosen |= self._choose(answers)
        return _Launched(samples, chosen, None if samples else self._backend.gpu.stream.record(), ahead)

    def collect(self, ticket: _Launched) -> list[Choice]:
        """See Runner.

        Raises:
            DeviceFailedError: the GPU failed.
        """
        with _failures():
            return self._collect(ticket)

    def _collect(self, ticket: _Launched) -> list[Choice]:
        if ticket.done is not None:
            # One chunk of a long prompt may wait behind the one that is computed, no more: a cancel cannot stop them.
            before, self._chunk = self._chunk, ticket.done
            if before is not None:
                before.synchronize()
        tokens = [Choice(0)] * sum(len(places) for _, places in ticket.samples)
        for step, places in ticket.samples:
            self._unread.discard(step)
            self._sleep(step)
            for place, token in zip(places, self._sampler.read(step), strict=False):
                if token < 0 and place not in ticket.chosen:
                    raise InferenceError(
                        f"The model's output for the next token is {BROKEN_LOGITS.get(token)}, not a number to choose"
                        " by. Its file may be damaged: verify the model or fetch it again."
                    )
                tokens[place] = ticket.chosen.get(place, Choice(token))
        if self._captures_next:
            self._capture_prompt(self._captures_next)
        now = time.perf_counter()
        # Before any other step lies a pause or a prompt, which tells nothing of how long the next one takes.
        self._interval_s, self._collected_at = now - self._collected_at if ticket.ahead else 0.0, now
        return tokens

    def spare_s(self) -> float:
        """See Runner. As long as it took between the two steps before, but for a share."""
        spare_s = _SPARE_SHARE * self._interval_s - (time.perf_counter() - self._collected_at)
        return min(spare_s, _MOST_SLEEP_S) if spare_s > _LEAST_SPARE_S else 0.0

    def _choose(self, rows: Sequence[tuple[Row, int]]) -> dict[int, Choice]:
        """Tokens of the rows that the host chooses, by their place; waits for the logits that were queued last."""
        return {
            place: choose_token(row, self._backend.read_logits(index))
            for index, (row, place) in enumerate(rows)
            if row.on_host
        }

    def _sleep(self, step: int) -> None:
        """Sleeps for most of what a step takes on a slow GPU, instead of asking for its tokens all the time."""
        rest = _SLEPT_SHARE * self._interval_s - (time.perf_counter() - self._collected_at)
        if _LEAST_SLEEP_S < rest < _MOST_SLEEP_S and not self._sampler.is_ready(step):
            time.sleep(rest)

    def _forget_unread(self) -> None:
        """Steps whose requests have ended, or that failed: their tokens are nobody's."""
        for step in sorted(self._unread):
            self._sampler.read(step)
        self._unread.clear()

    def _begin_step(self, rows: int, first_row: int = 0) -> int:
        step = self._sampler.begin_step(rows, first_row)
        self._unread.add(step)
        return step

    def _launch_prompts(
        self, prompts: Sequence[Row], ended: Sequence[Row], should_stop: ShouldStop | None
    ) -> int | None:
        """Queues the chunks of prompts, and the choice of a token for those that end.

        Returns:
            The sampler's number of the step, 0 where none ends; None where `should_stop` ended it.
        """
        batch = step_batch(prompts)
        length = self._short_length(batch) if self._captures_prompts and len(prompts) == len(ended) == 1 else 0
        if length:
            batch = _padded(batch, length)
        self._backend.prepare_prefill(batch)
        for place, row in enumerate(ended):
            self._set_row(_PROMPT_ROW + place, row)
        graph = self._prompt_graphs.get(length)
        if graph is not None:
            graph.launch()
        elif self._decoder.forward(batch, should_stop) is None:
            return None
        elif ended:
            self._sample(len(ended), _PROMPT_ROW)
            self._captures_next = length
        return self._begin_step(len(ended), _PROMPT_ROW) if ended else 0

    def _short_length(self, batch: Batch) -> int:
        """The length of a graph that a prompt fits, 0 where it is too long."""
        most = self._backend.memory.max_tokens
        fitting = (length for length in _SHORT_PROMPTS if len(batch.token_ids) <= length <= most)
        return next(fitting, 0)

    def _capture_prompt(self, length: int) -> None:
        """Makes a graph of prompts up to this length, of which one has just run."""
        none, zero = np.full(length, -1, np.int32), np.zeros(1, np.int32)
        batch = Batch(none, none, np.array([0, length], np.int32), zero, zero[:, None], zero)
        self._captures_next = 0
        try:
            with self._backend.gpu.stream.capture() as graph:
                self._decoder.forward(batch)
                self._sample(1, _PROMPT_ROW)
        except DeviceError as error:
            if error.code != _OUT_OF_MEMORY:
                raise
            # A graph takes some memory of its own. Without it a prompt takes a few milliseconds longer.
            self._captures_prompts = False
        else:
            self._prompt_graphs[length] = graph

    def _set_row(self, place: int, row: Row) -> None:
        self._sampler.set_row(place, row.sampling, row.seed, row.index, row.chunk.sequence.token_ids)

    def _sample(self, rows: int, first_row: int) -> None:
        memory = self._backend.memory
        at, offsets = memory.at["rows"], memory.decode.offsets
        self._sampler.launch(
            memory.at["logits"],
            rows,
            at + offsets["token_ids"],
            at + offsets["positions"],
            at + offsets["context_lengths"],
            first_row=first_row,
        )

    def _launch_answers(self, rows: Sequence[Row], ahead: bool) -> int:
        pages = [page for row in rows for page in row.chunk.sequence.table.pages]
        if not ahead:
            self._upload_rows(rows)
            for place, row in enumerate(rows):
                self._set_row(place, row)
        elif pages != self._pages:
            self._upload_rows(rows, only_tables=True)
        self._pages = pages
        return self._launch_width(next(width for width in WIDTHS if width >= len(rows)))

    def _upload_rows(self, rows: Sequence[Row], only_tables: bool = False) -> None:
        """Tokens, positions and lengths of the rows that decode, and their page tables."""
        memory = self._backend.memory
        staging, offsets = memory.rows.take(), memory.decode.offsets
        words = staging.view(np.int32)
        tables = words[offsets["page_tables"] // 4 :][: MAX_ROWS * memory.pages].reshape(MAX_ROWS, -1)
        for place, row in enumerate(rows):
            pages = row.chunk.sequence.table.pages
            tables[place, : len(pages)] = pages
        if only_tables:
            memory.rows.send(memory.at["rows"], offsets["page_tables"], memory.decode.nbytes)
            return
        token_ids, positions, lengths = (
            words[offsets[name] // 4 :][:SAMPLER_ROWS] for name in ("token_ids", "positions", "context_lengths")
        )
        # Prompts that end are sampled at any position; rows without a sequence have none.
        token_ids[:], positions[:], lengths[:] = 0, 0, 0
        positions[:MAX_ROWS] = -1
        for place, row in enumerate(rows):
            token_ids[place] = row.chunk.sequence.token_ids[row.chunk.start]
            positions[place], lengths[place] = row.chunk.start, row.chunk.start + 1
        memory.rows.send(memory.at["rows"], 0, memory.decode.nbytes)

    def _launch_width(self, width: int) -> int:
        """Queues a decode step; the sampler's number of it."""
        graph = self._graphs.get(width)
        if graph is None:
            self._decode(width, in_graph=False)
        else:
            graph.launch()
        return self._begin_step(width)

    def _decode(self, width: int, in_graph: bool) -> None:
        """Queues or captures the launches of a decode step."""
        every = np.arange(width, dtype=np.int32)
        self._backend.prepare_decode(width, in_graph)
        # Only the sizes are looked at: the arrays lie on the device.
        self._decoder.forward(Batch(every, every, np.append(every, width), every, every[:, None], every))
        self._sample(width, 0)


@contextlib.contextmanager
def _failures() -> Iterator[None]:
    """A failure of the GPU in the engine's words."""
    try:
        yield
    except DeviceError as error:
        raise DeviceFailedError(f"The GPU failed: {error}") from error


def _padded(batch: Batch, length: int) -> Batch:
    """The batch of one prompt with tokens that are none behind it: nothing is written for them."""
    missing = length - len(batch.token_ids)
    token_ids, positions = (
        np.append(array, np.full(missing, -1, np.int32)) for array in (batch.token_ids, batch.positions)
    )
    return dataclasses.replace(batch, token_ids=token_ids, positions=positions)
