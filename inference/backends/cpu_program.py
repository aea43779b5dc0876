"""Decode steps as programs: the operations of a step are noted once and later run in one call of the kernels.

A step of few tokens is a chain of some hundred operations of microseconds each, so the interpreter's share would show.
The first step of a shape runs operation by operation and is noted on the way; in later ones each call of the backend
only compares itself with the note and hands out the same array, and the last call runs everything. It is what a graph
is on a GPU.
"""

from __future__ import annotations

import ctypes
from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels.cpu.library import OpStruct

MAX_TOKENS = 8
"""Larger steps take so long that noting them would gain nothing."""


class Program:
    """The noted operations of one shape of step.

    Attributes:
        token_ids, logit_rows: int32, read by the operations; filled before each run.
        exact_rows: uint8, likewise.
        calls: for each call of the backend, what identifies it and the array that it returned.
    """

    def __init__(self, tokens: int, rows: int) -> None:
        self.token_ids = np.zeros(tokens, np.int32)
        self.logit_rows = np.zeros(rows, np.int32)
        self.exact_rows = np.zeros(rows, np.uint8)
        self.calls: list[tuple[tuple[Hashable, ...], NDArray[np.float32]]] = []
        self._ops: list[OpStruct] = []
        self._held: list[Any] = []
        self._packed: ctypes.Array[OpStruct] | None = None
        self._ends: list[int] = []

    def note(self, op: OpStruct) -> None:
        """Adds an operation to the call that is under way."""
        self._ops.append(op)

    def end_call(self, key: tuple[Hashable, ...], out: NDArray[np.float32], *held: Any) -> None:
        """Ends a call; `held` are the arguments that `key` knows by their id, so they must live as long as it."""
        self.calls.append((key, out))
        self._ends.append(len(self._ops))
        self._held.extend(held)

    def operations(self, calls: int) -> tuple[ctypes.Array[OpStruct], int]:
        """All operations, and how many of them belong to the first `calls` calls."""
        if self._packed is None:
            self._packed = (OpStruct * len(self._ops))(*self._ops)
        return self._packed, self._ends[calls - 1] if calls else 0


class ProgramNotes:
    """The programs of a backend, and the one that is being noted or replayed."""

    def __init__(self) -> None:
        self._complete: dict[tuple[int, int], Program] = {}
        self._shape = (0, 0)
        self.noting: Program | None = None
        self.replaying: Program | None = None
        self.at = 0

    def begin(self, tokens: int, rows: int) -> None:
        """A step begins: what was under way is dropped."""
        self.noting = self.replaying = None
        self.at = 0
        if not 0 < rows <= tokens <= MAX_TOKENS:
            return
        self._shape = (tokens, rows)
        self.replaying = self._complete.get(self._shape)
        if self.replaying is None:
            self.noting = Program(tokens, rows)

    def replayed(self, key: tuple[Hashable, ...]) -> NDArray[np.float32] | None:
        """The array of the next noted call if it is this one; None says that the replay must be left."""
        assert self.replaying is not None, "asked only while a program is replayed"
        calls = self.replaying.calls
        if self.at < len(calls) and calls[self.at][0] == key:
            self.at += 1
            return calls[self.at - 1][1]
        return None

    def end(self) -> None:
        """The step's logits are there."""
        if self.noting is not None:
            self._complete[self._shape] = self.noting
        self.noting = self.replaying = None

    def clear(self) -> None:
        """Forgets all programs: their arrays are gone."""
        self._complete.clear()
        self.noting = self.replaying = None
