"""The CPU kernels as Python sees them: the library's functions and structures, memory for weights, the thread pool.

Every ctypes signature of the project's kernels is in this file; the structures mirror weights.h, workspace.h, step.h,
head.c and program.c field for field.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import sys
from collections.abc import Sequence
from ctypes import POINTER, c_double, c_float, c_int32, c_int64, c_void_p
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels.cpu import compiler as cpu_compiler
from kernels.cpu import layouts
from kernels.errors import CompileError, ContractError


class PartStruct(ctypes.Structure):
    """struct part: one matrix in tiles."""

    _fields_ = (
        ("kind", c_int32), ("n", c_int32), ("k", c_int32), ("column", c_int32),
        ("q", c_void_p), ("hi", c_void_p), ("sc", c_void_p),
        ("q_tile", c_int64), ("q_block", c_int64), ("hi_tile", c_int64), ("hi_block", c_int64),
        ("sc_tile", c_int64), ("sc_block", c_int64), ("bias", c_void_p),
    )  # fmt: skip


class LinearStruct(ctypes.Structure):
    """struct linear: parts that write column slices of one output."""

    _fields_ = (
        ("parts", c_int32), ("k", c_int32), ("columns", c_int32), ("reserved", c_int32), ("part", POINTER(PartStruct)),
    )  # fmt: skip


class HeadStruct(ctypes.Structure):
    """struct head: a split matrix and what its first pass needs."""

    _fields_ = (
        ("split", PartStruct), ("top", PartStruct), ("spread", c_void_p), ("channel", c_void_p), ("upper", c_void_p),
        ("list", c_void_p), ("sums", c_void_p), ("depth", c_float),
    )  # fmt: skip


class WorkspaceStruct(ctypes.Structure):
    """struct workspace."""

    _fields_ = (
        ("pool", c_void_p), ("max_tokens", c_int32), ("max_k", c_int32),
        ("act_q", c_void_p), ("act_scale", c_void_p), ("act_sum", c_void_p), ("act_neg", c_void_p),
        ("act_neg16", c_void_p), ("scratch", c_void_p), ("scratch_stride", c_int64),
        ("partials", c_void_p), ("partial_floats", c_int64),
    )  # fmt: skip


class StepStruct(ctypes.Structure):
    """struct step: what the operations of one step share."""

    _fields_ = (
        ("m", c_int32), ("sequences", c_int32), ("max_pages", c_int32), ("page_size", c_int32),
        ("q_heads", c_int32), ("kv_heads", c_int32), ("head_dim", c_int32), ("value_dim", c_int32),
        ("norm_eps", c_float), ("scale", c_float),
        ("positions", c_void_p), ("query_starts", c_void_p), ("context_lengths", c_void_p), ("page_tables", c_void_p),
        ("inv_freq", c_void_p), ("cosines", c_void_p), ("sines", c_void_p),
    )  # fmt: skip


class OpStruct(ctypes.Structure):
    """struct op: one operation of a program."""

    _fields_ = (
        ("kind", c_int32), ("m", c_int32), ("k", c_int32), ("mode", c_int32),
        ("a", c_void_p), ("b", c_void_p), ("c", c_void_p), ("d", c_void_p), ("out", c_void_p),
        ("stride", c_int64), ("out_stride", c_int64), ("value", c_double),
    )  # fmt: skip


class RoundingStruct(ctypes.Structure):
    """struct rounding of round_groups.c."""

    _fields_ = (
        ("weights", c_void_p), ("importance", c_void_p), ("candidates", c_void_p), ("codes", c_void_p),
        ("scales", c_void_p), ("minima", c_void_p),
        ("n", c_int32), ("k", c_int32), ("bits", c_int32), ("group", c_int32), ("num_candidates", c_int32),
    )  # fmt: skip


OP_EMBED, OP_RMS_NORM, OP_LINEAR, OP_ROPE_ANGLES, OP_ROPE_APPEND, OP_ATTENTION, OP_TAKE_ROWS, OP_LOGITS = range(8)
LINEAR_STORE, LINEAR_ADD, LINEAR_GATED = range(3)

_SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "pool_create": (c_void_p, (c_int32,)),
    "pool_destroy": (None, (c_void_p,)),
    "pool_threads": (c_int32, (c_void_p,)),
    "pool_count": (None, (c_void_p, c_void_p, c_int32, c_int32)),
    "pack_part": (None, (c_void_p, POINTER(PartStruct), c_void_p, c_int64)),
    "head_prepare": (None, (c_void_p, POINTER(HeadStruct), c_void_p)),
    "quantize": (None, (POINTER(WorkspaceStruct), c_void_p, c_int64, c_int32, c_int32)),
    "round_groups": (None, (c_void_p, POINTER(RoundingStruct))),
    "run_ops": (None, (POINTER(WorkspaceStruct), POINTER(StepStruct), POINTER(OpStruct), c_int32)),
}


def load_library(variant: cpu_compiler.CpuVariant | None = None) -> ctypes.CDLL:
    """Builds where needed and loads a variant; calls into it release the interpreter's lock.

    Raises:
        CompileError: it could not be built or loaded.
    """
    return _load_once(variant or cpu_compiler.best_variant())


@functools.cache
def _load_once(variant: cpu_compiler.CpuVariant) -> ctypes.CDLL:
    path = cpu_compiler.build(variant)
    try:
        library = ctypes.CDLL(str(path))
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(library, name)
            function.restype = result
            function.argtypes = arguments
    except (OSError, AttributeError) as error:
        raise CompileError(f"The built kernels at {path} could not be loaded: {error}. Delete that file.") from error
    return library


def physical_cores() -> int:
    """Cores that this process may use, hyper-threads of a core counted once."""
    usable = os.sched_getaffinity(0) if sys.platform == "linux" else set(range(os.cpu_count() or 1))
    if sys.platform != "linux":
        return max(1, len(usable) // 2) if len(usable) > 2 else 1
    cores = set()
    for cpu in usable:
        try:
            with open(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list", encoding="ascii") as siblings:
                cores.add(siblings.read().strip())
        except OSError:
            return max(1, len(usable))
    return max(1, len(cores))


class Arena:
    """Memory for weights, taken in large mappings that the system may back with huge pages.

    Huge pages matter: reading a gigabyte through 4 KiB pages costs a tenth of the speed.
    """

    _CHUNK_BYTES = 64 << 20

    def __init__(self) -> None:
        self.used_bytes = 0
        self._chunk: NDArray[np.uint8] = np.empty(0, np.uint8)
        self._at = 0

    def take(self, num_bytes: int) -> NDArray[np.uint8]:
        """A fresh array of zeros, aligned to 64 bytes; it keeps its mapping alive."""
        size = layouts.round_up(num_bytes, layouts.ALIGNMENT)
        if self._at + size > self._chunk.size:
            self._chunk = _map_zeros(max(size, self._CHUNK_BYTES))
            self._at = 0
        taken = self._chunk[self._at : self._at + num_bytes]
        self._at += size
        self.used_bytes += size
        return taken


def _map_zeros(num_bytes: int) -> NDArray[np.uint8]:
    # Private: the default of the module, shared memory, never gets huge pages.
    private = {} if sys.platform == "win32" else {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS}
    mapping = mmap.mmap(-1, num_bytes, **private)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        try:
            mapping.madvise(mmap.MADV_HUGEPAGE)
        except OSError:  # a kernel without huge pages is slower, not wrong
            return np.frombuffer(mapping, np.uint8)
    return np.frombuffer(mapping, np.uint8)


@dataclass(slots=True, eq=False)
class PackedLinear:
    """A weight of one or more parts, ready for OP_LINEAR. Keeps all of its memory alive.

    Attributes:
        columns: outputs of all parts together.
        num_bytes: of the packed parts, biases not counted.
    """

    struct: LinearStruct
    parts: Any
    columns: int
    k: int
    num_bytes: int
    memory: list[NDArray[Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class FileMatrix:
    """A matrix as it lies in a file: `data` (n, row_bytes) uint8 of `kind`."""

    kind: str
    n: int
    k: int
    data: NDArray[np.uint8]

    def __post_init__(self) -> None:
        kind = layouts.KINDS.get(self.kind)
        if kind is None:
            raise ContractError(
                f"The kind of a weight is {self.kind!r}, but it must be one of {', '.join(layouts.KINDS)}."
            )
        if self.k % kind.block or (not kind.dense and self.k % 32):
            raise ContractError(f"The width of a {self.kind} weight is {self.k}, but it must divide by {kind.block}.")
        needed = self.n * layouts.row_bytes(self.kind, self.k)
        if self.data.nbytes != needed or not self.data.flags.c_contiguous:
            raise ContractError(
                f"A {self.kind} weight of ({self.n}, {self.k}) has {self.data.nbytes} bytes, not {needed}."
            )


def _pack(
    library: ctypes.CDLL, pool: int, arena: Arena, matrix: FileMatrix, part: PartStruct, split: bool
) -> list[NDArray[np.uint8]]:
    """Fills `part` and packs the matrix into fresh memory, which is returned."""
    kind, (n, k) = layouts.KINDS[matrix.kind], (matrix.n, matrix.k)
    blocks = k // kind.block
    part.n, part.k = n, k
    if split:
        of_split = layouts.SPLIT_KINDS[matrix.kind]
        upper, lower = (arena.take(size) for size in layouts.packed_split_bytes(matrix.kind, n, k))
        memory = [upper, lower]
        part.kind = of_split.code
        part.sc, part.hi, part.q = upper.ctypes.data, upper.ctypes.data + kind.scale_bytes, lower.ctypes.data
        part.hi_block = part.sc_block = kind.scale_bytes + of_split.high_bytes
        part.q_block = of_split.low_bytes
    else:
        memory = [arena.take(layouts.packed_bytes(matrix.kind, n, k))]
        part.kind = kind.code
        part.sc = memory[0].ctypes.data
        part.hi = memory[0].ctypes.data + kind.scale_bytes
        part.q = part.hi + kind.high_bytes // kind.groups
        part.q_block = part.hi_block = part.sc_block = kind.tile_block_bytes
    part.q_tile, part.hi_tile, part.sc_tile = blocks * part.q_block, blocks * part.hi_block, blocks * part.sc_block
    library.pack_part(pool, ctypes.byref(part), matrix.data.ctypes.data, layouts.row_bytes(matrix.kind, k))
    return memory


def pack_linear(
    library: ctypes.CDLL,
    pool: int,
    arena: Arena,
    matrices: Sequence[FileMatrix],
    biases: Sequence[NDArray[np.float32]] = (),
) -> PackedLinear:
    """Packs matrices of equal width into one weight. `biases`: none, or one float32 vector for each matrix."""
    k = matrices[0].k
    parts = (PartStruct * len(matrices))()
    packed = PackedLinear(LinearStruct(), parts, 0, k, 0)
    for index, matrix in enumerate(matrices):
        if matrix.k != k:
            raise ContractError(f"Parts of one weight have widths {k} and {matrix.k}, but they must be equal.")
        parts[index].column = packed.columns
        packed.memory.extend(_pack(library, pool, arena, matrix, parts[index], split=False))
        if biases:
            bias = np.ascontiguousarray(biases[index], np.float32)
            if bias.shape != (matrix.n,):
                raise ContractError(f"A bias has shape {bias.shape}, but its weight has {matrix.n} rows.")
            parts[index].bias = bias.ctypes.data
            packed.memory.append(bias)
        packed.columns += matrix.n
        packed.num_bytes += layouts.packed_bytes(matrix.kind, matrix.n, k)
    packed.struct = LinearStruct(len(matrices), k, packed.columns, 0, parts)
    return packed


@dataclass(slots=True, eq=False)
class PackedTable:
    """One matrix for rows (OP_EMBED) and, where its kind splits, for logits (OP_LOGITS)."""

    kind: str
    part: PartStruct
    memory: list[NDArray[np.uint8]]


def pack_table(library: ctypes.CDLL, pool: int, arena: Arena, matrix: FileMatrix) -> PackedTable:
    """Packs a matrix, split where its kind allows it."""
    table = PackedTable(matrix.kind, PartStruct(), [])
    table.memory = _pack(library, pool, arena, matrix, table.part, split=matrix.kind in layouts.SPLIT_KINDS)
    return table


@dataclass(slots=True, eq=False)
class PackedHead:
    """A table with what OP_LOGITS needs."""

    struct: HeadStruct
    table: PackedTable
    memory: NDArray[np.uint8]

    @property
    def columns(self) -> int:
        """Height of the matrix."""
        return int(self.table.part.n)

    @property
    def k(self) -> int:
        """Width of the matrix."""
        return int(self.table.part.k)


def prepare_head(library: ctypes.CDLL, pool: int, table: PackedTable, depth: float) -> PackedHead:
    """A head over a split table; every logit whose probability is more than e^-depth is exact."""
    if table.kind not in layouts.SPLIT_KINDS:
        raise ContractError(f"A head of kind {table.kind} has no upper bits of its own; use it as a linear weight.")
    part, (n, k) = table.part, (int(table.part.n), int(table.part.k))
    top = PartStruct.from_buffer_copy(part)
    top.kind = layouts.SPLIT_KINDS[table.kind].top_code
    memory = _map_zeros(layouts.head_bytes(n, k))
    addresses = [memory.ctypes.data]
    for size in layouts.head_sizes(n, k)[:-1]:
        addresses.append(addresses[-1] + size)
    struct = HeadStruct(part, top, *addresses, depth)
    sums = np.empty(k)
    library.head_prepare(pool, ctypes.byref(struct), sums.ctypes.data)
    return PackedHead(struct, table, memory)


def table_as_linear(table: PackedTable) -> PackedLinear:
    """The same memory as a weight for OP_LINEAR; not for split kinds."""
    parts = (PartStruct * 1)(table.part)
    n, k = int(table.part.n), int(table.part.k)
    struct = LinearStruct(1, k, n, 0, parts)
    return PackedLinear(struct, parts, n, k, layouts.packed_bytes(table.kind, n, k), list(table.memory))


class Workspace:
    """struct workspace with the memory behind it."""

    def __init__(self, pool: int, threads: int, max_tokens: int, max_k: int, num_kv_heads: int, head_dim: int) -> None:
        sizes = layouts.workspace_sizes(max_tokens, max_k, num_kv_heads, head_dim)
        self.max_tokens = max_tokens
        self.max_k = layouts.round_up(max_k, 32)
        self._memory = _map_zeros(sizes.total(threads))
        at = self._memory.ctypes.data
        self.struct = WorkspaceStruct(pool=pool, max_tokens=max_tokens, max_k=self.max_k)
        for name in ("act_q", "act_scale", "act_sum", "act_neg", "act_neg16"):
            setattr(self.struct, name, at)
            at += getattr(sizes, name)
        self.struct.partials, self.struct.partial_floats = at, sizes.partials // 4
        self.struct.scratch, self.struct.scratch_stride = at + sizes.partials, sizes.scratch
