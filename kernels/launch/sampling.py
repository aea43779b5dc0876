"""Chooses tokens on the GPU: launches sampling.cu, and reads what it chose.

Everything that a step needs lies on the device, so that a captured launch stays valid: `set_row` changes numbers there,
in the order of the stream, while earlier steps may still run. Each run of the kernel is a step; steps are numbered from
0 in the order in which they were queued, and their tokens come to the host through a ring of pinned memory.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from ctypes import Structure, c_double, c_float, c_int32, c_uint64, sizeof
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from kernels.errors import ContractError, DeviceError

if TYPE_CHECKING:
    from kernels.device.driver import Device
    from kernels.device.stream import Event

LOGIT_IS_NAN, LOGIT_IS_INFINITE, ALL_MINUS_INFINITE, ROW_IS_IDLE = -1, -2, -3, -4
"""Read instead of a token; sampling.cuh has the same numbers."""

BROKEN_LOGITS = {LOGIT_IS_NAN: float("nan"), LOGIT_IS_INFINITE: float("inf"), ALL_MINUS_INFINITE: float("-inf")}
"""What the highest logit was where no token could be chosen."""

MAX_VOCABULARY = 1 << 20

_THREADS = 512
_MAX_BLOCKS = 256
_STRETCH = 1024
"""Logits that a block takes at least."""
_BINS = 2048
_HISTOGRAMS = 3
_WORKSPACE_BYTES = 64 + _MAX_BLOCKS * 20 + _HISTOGRAMS * _BINS * 16
_ALIGNMENT = 256
_PATIENCE_SECONDS = 2.0


class RowParams(Protocol):
    """How a row's tokens are chosen; inference.request.SamplingParams is one."""

    @property
    def temperature(self) -> float: ...
    @property
    def top_k(self) -> int: ...
    @property
    def top_p(self) -> float: ...
    @property
    def min_p(self) -> float: ...
    @property
    def repetition_penalty(self) -> float: ...


class SamplingRow(Structure):
    """Mirrors the struct of sampling.cu."""

    _fields_ = (
        ("temperature", c_double),
        ("top_p", c_double),
        ("min_p", c_double),
        ("seed", c_uint64),
        ("index", c_uint64),
        ("penalty", c_float),
        ("top_k", c_int32),
        ("live", c_int32),
        ("spare", c_int32),
    )


class SampleArguments(Structure):
    """Mirrors the struct of sampling.cu."""

    _fields_ = (
        ("logits", c_uint64),
        ("rows", c_uint64),
        ("seen", c_uint64),
        ("workspace", c_uint64),
        ("token_ids", c_uint64),
        ("positions", c_uint64),
        ("context_lengths", c_uint64),
        ("ring", c_uint64),
        ("unit", c_double),
        ("vocab_size", c_int32),
        ("seen_words", c_int32),
        ("first_row", c_int32),
        ("ring_slots", c_int32),
        ("ring_rows", c_int32),
    )


class UniformArguments(Structure):
    """Mirrors the struct of sampling.cu."""

    _fields_ = (("seeds", c_uint64), ("indices", c_uint64), ("numbers", c_uint64), ("count", c_int32))


def _aligned(nbytes: int) -> int:
    return -(-nbytes // _ALIGNMENT) * _ALIGNMENT


def _offsets(max_rows: int, vocab_size: int) -> tuple[int, int, int]:
    """Bytes before the bitmaps, before the parameters, and in all."""
    seen = _aligned(max_rows * _WORKSPACE_BYTES)
    rows = seen + _aligned(max_rows * 4 * -(-vocab_size // 32))
    return seen, rows, rows + _aligned(max_rows * sizeof(SamplingRow))


def planned_sampler_bytes(max_rows: int, vocab_size: int) -> int:
    """Device memory that a Sampler takes."""
    return _offsets(max_rows, vocab_size)[-1]


class Sampler:
    """Sampling for up to `max_rows` sequences. Made before graphs are captured, and kept as long as they are.

    A step of a row whose position is not negative, and that was set, writes its token to token_ids[row], adds 1 to
    positions[row] and context_lengths[row] and to the row's index, and counts the token as seen. Where the logits hold
    no number to choose by, nothing of the row changes and the host reads a key of BROKEN_LOGITS.
    """

    def __init__(self, device: Device, max_rows: int, vocab_size: int, ring_slots: int = 8) -> None:
        """Allocates.

        Args:
            ring_slots: steps that may be queued before the oldest one is read.

        Raises:
            ContractError: numbers that the kernel does not take.
            OutOfDeviceMemory: no room.
        """
        if not 1 <= vocab_size <= MAX_VOCABULARY or max_rows < 1 or ring_slots < 1:
            raise ContractError(
                f"{max_rows} rows of {vocab_size} logits in a ring of {ring_slots} slots cannot be sampled: at least 1"
                f" each, and at most {MAX_VOCABULARY} logits."
            )
        self.max_rows = max_rows
        self.vocab_size = vocab_size
        self.ring_slots = ring_slots
        self._device = device
        self._kernel = device.kernel("sampling.cu", "sample")
        self._resident = self._kernel.max_blocks_per_sm(_THREADS) * device.sm_count
        seen, rows, nbytes = _offsets(max_rows, vocab_size)
        self._memory = device.allocate(nbytes)
        self._memory.fill(0)
        self._seen = self._memory.pointer + seen
        self._rows = self._memory.pointer + rows
        self._seen_words = -(-vocab_size // 32)
        self._ring = device.host_buffer(8 * ring_slots * max_rows)
        self._ring.array[:] = 0
        self._words: NDArray[np.uint64] = self._ring.array.view(np.uint64).reshape(ring_slots, max_rows)
        self._next_step = 0
        self._steps_of_row = [0] * max_rows
        self._queued: dict[int, tuple[int, NDArray[np.int64]]] = {}
        self._staging = device.host_buffer(2 * max_rows * self._slot_bytes)
        self._copied: list[Event | None] = [None] * (2 * max_rows)
        self._next_slot = 0

    @property
    def _slot_bytes(self) -> int:
        return _aligned(sizeof(SamplingRow) + 4 * self._seen_words)

    def set_row(self, row: int, params: RowParams, seed: int, index: int, seen_token_ids: Sequence[int] = ()) -> None:
        """Gives a row to a request, from the next queued step on.

        Args:
            seed: the request's; as numpy's Philox takes it, modulo 2^64.
            index: how many tokens of the answer there are.
            seen_token_ids: prompt and answer so far, for the repetition penalty.
        """
        penalized = params.repetition_penalty != 1.0
        values = SamplingRow(
            temperature=params.temperature,
            top_p=params.top_p,
            min_p=params.min_p,
            seed=seed % 2**64,
            index=index,
            penalty=params.repetition_penalty,
            top_k=min(params.top_k, MAX_VOCABULARY),
            live=1,
        )
        seen = None
        if penalized:
            flags = np.zeros(32 * self._seen_words, dtype=np.bool_)
            flags[np.asarray(seen_token_ids, dtype=np.int64)] = True
            seen = np.packbits(flags, bitorder="little")
        self._upload(row, values, seen)

    def clear_row(self, row: int) -> None:
        """Takes a row out: later steps pass it over until it is set again."""
        self._upload(row, SamplingRow(), None)

    def _upload(self, row: int, values: SamplingRow, seen: NDArray[np.uint8] | None) -> None:
        if not 0 <= row < self.max_rows:
            raise ContractError(f"The row is {row}, but there are {self.max_rows}.")
        slot = self._next_slot
        self._next_slot = (slot + 1) % len(self._copied)
        copied = self._copied[slot]
        if copied is not None:
            copied.synchronize()  # reached long ago, unless rows change faster than steps run
        start, size = slot * self._slot_bytes, sizeof(SamplingRow)
        stream = self._device.stream
        self._staging.array[start : start + size] = np.frombuffer(bytes(values), dtype=np.uint8)
        stream.copy_to_device(self._rows + row * size, self._staging, size, start)
        if seen is not None:
            self._staging.array[start + size : start + size + seen.size] = seen
            stream.copy_to_device(self._seen + row * seen.size, self._staging, seen.size, start + size)
        self._copied[slot] = stream.record(copied)

    def launch(
        self,
        logits: int,
        rows: int,
        token_ids: int,
        positions: int,
        context_lengths: int,
        *,
        first_row: int = 0,
    ) -> None:
        """Queues a step, or captures it.

        Args:
            logits: float32 (rows, vocab_size); its row 0 belongs to row `first_row`.
            token_ids, positions, context_lengths: int32 (max_rows,), indexed by the row itself.
        """
        if rows < 1 or first_row < 0 or first_row + rows > self.max_rows:
            raise ContractError(f"Rows {first_row} to {first_row + rows} cannot be sampled: there are {self.max_rows}.")
        blocks = min(_MAX_BLOCKS, self._resident // rows, -(-self.vocab_size // _STRETCH))
        arguments = SampleArguments(
            logits=logits,
            rows=self._rows,
            seen=self._seen,
            workspace=self._memory.pointer,
            token_ids=token_ids,
            positions=positions,
            context_lengths=context_lengths,
            ring=self._ring.device_pointer,
            unit=2.0 ** (63 - (self.vocab_size - 1).bit_length()),
            vocab_size=self.vocab_size,
            seen_words=self._seen_words,
            first_row=first_row,
            ring_slots=self.ring_slots,
            ring_rows=self.max_rows,
        )
        self._kernel.launch(arguments, (max(1, blocks), rows), _THREADS)

    def begin_step(self, rows: int, first_row: int = 0) -> int:
        """Counts a step; called once for each launch, and once for each replay of a graph that holds one.

        Returns:
            The number by which `read` knows it.

        Raises:
            ContractError: the ring is full: an older step must be read first, or the GPU would write over it.
        """
        if self._queued and self._next_step - min(self._queued) >= self.ring_slots:
            raise ContractError(f"{len(self._queued)} steps are unread, but the ring has {self.ring_slots} slots.")
        step = self._next_step
        self._next_step += 1
        # Each row counts the steps that it has been through, as the kernel does.
        counts = self._steps_of_row[first_row : first_row + rows]
        self._steps_of_row[first_row : first_row + rows] = [count + 1 for count in counts]
        self._queued[step] = first_row, np.array(counts)
        return step

    def is_ready(self, step: int) -> bool:
        """Whether all tokens of a step that was begun and not read have arrived."""
        return self._tokens(step) is not None

    def read(self, step: int) -> list[int]:
        """The tokens of a step's rows, from its first row on; waits for them. Each step is read once.

        A negative number is ROW_IS_IDLE or a key of BROKEN_LOGITS.

        Raises:
            DeviceError: a kernel failed.
        """
        patience = time.monotonic() + _PATIENCE_SECONDS
        while (tokens := self._tokens(step)) is None:
            time.sleep(0)  # lets other threads have the interpreter
            if time.monotonic() > patience:
                self._device.stream.synchronize()  # raises where a kernel failed
                if not self.is_ready(step):
                    raise DeviceError(f"the tokens of step {step} never arrived: it was begun but not launched")
        del self._queued[step]
        return tokens

    def _tokens(self, step: int) -> list[int] | None:
        """What the ring holds of a step, None while it is not whole."""
        first_row, counts = self._queued[step]
        words = self._words[counts % self.ring_slots, np.arange(first_row, first_row + len(counts))]
        if np.any(words >> np.uint64(32) != (counts + 1 & 0xFFFFFFFF).astype(np.uint64)):
            return None
        tokens: list[int] = words.astype(np.uint32).view(np.int32).tolist()
        return tokens

    def close(self) -> None:
        """Gives the memory back; no graph that holds a launch may run afterwards."""
        self._device.stream.synchronize()
        self._memory.free()
        self._ring.free()
        self._staging.free()
