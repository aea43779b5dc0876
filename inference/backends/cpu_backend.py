"""Our own C kernels on the CPU, over numpy arrays: the default backend.

Weights keep the bits of the file, activations are int8 in groups of 32 with float32 scales, KV is float16, all sums are
float32. A token's result is bitwise the same alone and in a batch, in one chunk or in several, and for any number of
threads.

Arrays that a method returns are views of memory that the same method uses again at its next call, and in a decode step
they are filled when its logits are asked for (cpu_program.py).
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.backends import cpu_memory, cpu_self_check
from inference.backends.backend import HOST_MAX_RUNNING, HOST_PREFILL_CHUNK, Batch, sum_of_weights
from inference.backends.cpu_memory import FloatArray, StepMemory, float_vector
from inference.backends.cpu_program import ProgramNotes
from inference.errors import BackendUnavailableError
from inference.formats.mapped_file import drop_file_pages
from inference.formats.model_source import WeightTensor
from inference.models.model_spec import ModelSpec
from kernels.cpu import layouts
from kernels.cpu import library as lib
from kernels.errors import ContractError, KernelError
from kernels.weights.quant_format import is_quant_format
from kernels.weights.tile_blocks import ggml_kind, to_ggml

_EXACT_DEPTH = {"q6_k": 5.3, "q8_0": 7.6}
"""By the kind of the head: logits are exact where the token's probability is more than e^-depth (0.5 % and 0.05 %) for
certain, and in practice down to a fiftieth of that. The best one always is."""


def _file_matrix(tensor: WeightTensor) -> lib.FileMatrix:
    kind, data = tensor.kind, tensor.data
    if is_quant_format(kind):
        kind, data = to_ggml(kind, data, tensor.shape)
    return lib.FileMatrix(kind, tensor.shape[0], tensor.shape[1], data)


class CpuBackend:
    """Backend of the registry's name "cpu".

    Args:
        threads: the caller counted; None is one for each physical core.
        exact_logits: compute every logit from all bits of the head.

    Raises:
        BackendUnavailableError: the kernels cannot be built, or do not compute here what they should.
    """

    name = "cpu"
    device = "cpu"
    prefill_chunk = HOST_PREFILL_CHUNK
    max_running = HOST_MAX_RUNNING
    peak_bytes = 0

    def __init__(self, threads: int | None = None, exact_logits: bool = False) -> None:
        try:
            self._library = lib.load_library()
        except KernelError as error:
            raise BackendUnavailableError(self.name, str(error)) from error
        pool = self._library.pool_create(threads or lib.physical_cores())
        if not pool:
            raise BackendUnavailableError(self.name, "there is no memory for a thread pool.")
        self._pool: int = pool
        self._closed = False
        self._exact_logits = exact_logits
        self._threads: int = self._library.pool_threads(self._pool)
        self._arena = lib.Arena()
        self._memory = StepMemory(self._pool, self._threads)
        self._notes = ProgramNotes()
        self._exact_rows: NDArray[np.uint8] | None = None
        reason = cpu_self_check.fault(self)
        if reason:
            self.close()
            raise BackendUnavailableError(self.name, reason)

    @property
    def threads(self) -> int:
        """Threads that compute, the caller counted."""
        return self._threads

    # Plans

    def device_memory(self, freed_bytes: int) -> None:
        """See Backend: models lie in the host's memory."""

    def planned_model_bytes(self, spec: ModelSpec, tensors: Mapping[str, tuple[str, tuple[int, ...]]]) -> int:
        """See Backend."""
        return sum_of_weights(self, tensors)

    def begin_load(self, spec: ModelSpec, weight_bytes: int) -> None:
        """See Backend: nothing to prepare."""

    def planned_weight_bytes(self, kind: str, shape: tuple[int, ...]) -> int:
        """See Backend. Vectors are float32."""
        stored = ggml_kind(kind) if is_quant_format(kind) else kind
        return 4 * shape[0] if len(shape) == 1 else layouts.packed_bytes(stored, shape[0], shape[1])

    def planned_kv_page_bytes(self, spec: ModelSpec) -> int:
        """See Backend. float16."""
        return cpu_memory.kv_page_bytes(spec)

    def planned_workspace_bytes(self, spec: ModelSpec, max_batch_tokens: int) -> int:
        """See Backend."""
        return cpu_memory.workspace_bytes(spec, max_batch_tokens, self._threads)

    # Weights

    def vector(self, tensor: WeightTensor) -> FloatArray:
        """See Backend."""
        return float_vector(tensor)

    def linear_weight(self, parts: Sequence[WeightTensor], biases: Sequence[WeightTensor] = ()) -> lib.PackedLinear:
        """See Backend."""
        matrices, vectors = [_file_matrix(part) for part in parts], [float_vector(bias) for bias in biases]
        packed = lib.pack_linear(self._library, self._pool, self._arena, matrices, vectors)
        for part in parts:
            drop_file_pages(part.data)
        return packed

    def embedding_weight(self, tensor: WeightTensor) -> lib.PackedTable:
        """See Backend."""
        table = lib.pack_table(self._library, self._pool, self._arena, _file_matrix(tensor))
        drop_file_pages(tensor.data)
        return table

    def head_weight(self, tensor: WeightTensor, tied: lib.PackedTable | None) -> lib.PackedHead | lib.PackedLinear:
        """See Backend. A tied head takes no memory for its weights."""
        if self._exact_logits and tied is None:
            return self.linear_weight([tensor])
        table = tied or self.embedding_weight(tensor)
        if table.kind in layouts.SPLIT_KINDS:
            depth = math.inf if self._exact_logits else _EXACT_DEPTH[table.kind]
            return lib.prepare_head(self._library, self._pool, table, depth)
        return lib.table_as_linear(table)

    # Running

    def allocate(self, spec: ModelSpec, inv_freq: NDArray[np.float64], num_pages: int, max_batch_tokens: int) -> None:
        """See Backend."""
        self._memory.allocate(spec, inv_freq, num_pages, max_batch_tokens)
        self._notes.clear()

    def _check_open(self) -> None:
        if self._closed:
            raise ContractError("The backend has been closed.")

    def _execute(self, ops: Any, count: int) -> None:
        self._check_open()
        memory = self._memory
        self._library.run_ops(ctypes.byref(memory.workspace.struct), ctypes.byref(memory.step), ops, count)

    def _run(self, op: lib.OpStruct) -> None:
        self._execute(ctypes.byref(op), 1)
        if self._notes.noting is not None:
            self._notes.noting.note(op)

    def _replayed(self, *key: Hashable) -> FloatArray | None:
        """The array of a noted call; None where the call has to be made."""
        program = self._notes.replaying
        if program is None:
            return None
        out = self._notes.replayed(key)
        if out is None:
            # Another chain of calls than the noted one: catch up, and go on call by call.
            self._notes.replaying = None
            self._execute(*program.operations(self._notes.at))
        return out

    def _noted(self, key: tuple[Hashable, ...], out: FloatArray, *held: Any) -> FloatArray:
        if self._notes.noting is not None:
            self._notes.noting.end_call(key, out, *held)
        return out

    def _take_batch(self, batch: Batch) -> None:
        memory = self._memory
        if memory.take_batch(batch) and memory.allocated and self._notes.replaying is None:
            memory.reserve(len(memory.token_ids), 1)
            self._run(lib.OpStruct(kind=lib.OP_ROPE_ANGLES))

    # Operations

    def embed(self, table: lib.PackedTable, batch: Batch) -> FloatArray:
        """See Backend. Begins a step."""
        self._memory.forget_batch()
        if self._memory.allocated:
            self._notes.begin(len(batch.token_ids), len(batch.logit_rows))
        self._take_batch(batch)
        ids = self._memory.token_ids
        exact = batch.exact_rows
        self._exact_rows = None if exact is None else exact.astype(np.uint8)
        program = self._notes.replaying or self._notes.noting
        if program is not None:
            program.token_ids[:] = ids
            program.logit_rows[:] = batch.logit_rows
            program.exact_rows[:] = 0 if exact is None else exact
            ids, self._exact_rows = program.token_ids, program.exact_rows
        key = (lib.OP_EMBED, id(table))
        out = self._replayed(*key)
        if out is None:
            out = self._memory.out("embed", len(ids), int(table.part.k))
            self._run(
                lib.OpStruct(
                    kind=lib.OP_EMBED,
                    m=len(ids),
                    a=ids.ctypes.data,
                    b=ctypes.addressof(table.part),
                    out=out.ctypes.data,
                )
            )
        return self._noted(key, out, table)

    def rms_norm(self, x: FloatArray, weight: FloatArray, eps: float) -> FloatArray:
        """See Backend."""
        key = (lib.OP_RMS_NORM, id(x), id(weight), eps)
        out = self._replayed(*key)
        if out is not None:
            return out
        m, k = x.shape
        out = self._memory.out("rms_norm", m, k)
        self._run(
            lib.OpStruct(
                kind=lib.OP_RMS_NORM, m=m, k=k, a=x.ctypes.data, b=weight.ctypes.data, out=out.ctypes.data, value=eps
            )
        )
        return self._noted(key, out, x, weight)

    def _linear(self, x: FloatArray, weight: lib.PackedLinear, out: FloatArray, mode: int) -> FloatArray:
        self._check_open()
        m, k = x.shape
        if k != weight.k or x.dtype != np.float32 or x.strides[1] != 4:
            raise ContractError(f"The input of a linear has width {k} and type {x.dtype}, its weight takes {weight.k}.")
        self._memory.reserve(m, k)
        self._run(
            lib.OpStruct(
                kind=lib.OP_LINEAR,
                m=m,
                mode=mode,
                a=x.ctypes.data,
                b=ctypes.addressof(weight.struct),
                out=out.ctypes.data,
                stride=x.strides[0] // 4,
                out_stride=out.strides[0] // 4,
            )
        )
        return out

    def linear(self, x: FloatArray, weight: lib.PackedLinear) -> FloatArray:
        """See Backend."""
        key = (lib.OP_LINEAR, lib.LINEAR_STORE, id(x), id(weight))
        out = self._replayed(*key)
        if out is not None:
            return out
        out = self._linear(x, weight, self._memory.out("linear", len(x), weight.columns), lib.LINEAR_STORE)
        return self._noted(key, out, x, weight)

    def add_linear(self, residual: FloatArray, x: FloatArray, weight: lib.PackedLinear) -> FloatArray:
        """See Backend. Overwrites `residual`."""
        key = (lib.OP_LINEAR, lib.LINEAR_ADD, id(residual), id(x), id(weight))
        out = self._replayed(*key)
        if out is not None:
            return out
        out = self._linear(x, weight, residual, lib.LINEAR_ADD)
        return self._noted(key, out, residual, x, weight)

    def gated_linear(self, x: FloatArray, gate_up: lib.PackedLinear) -> FloatArray:
        """See Backend."""
        key = (lib.OP_LINEAR, lib.LINEAR_GATED, id(x), id(gate_up))
        out = self._replayed(*key)
        if out is not None:
            return out
        if gate_up.struct.parts != 2 or gate_up.parts[0].n != gate_up.parts[1].n:
            raise ContractError("A gated weight must have two parts of equal height: gate and up.")
        out = self._linear(x, gate_up, self._memory.out("gated_linear", len(x), gate_up.parts[0].n), lib.LINEAR_GATED)
        return self._noted(key, out, x, gate_up)

    def rope_append(
        self, qkv: FloatArray, layer: int, q_norm: FloatArray | None, k_norm: FloatArray | None, batch: Batch
    ) -> FloatArray:
        """See Backend. Q is a view of `qkv`, rotated in place."""
        self._take_batch(batch)
        key = (lib.OP_ROPE_APPEND, id(qkv), layer, id(q_norm), id(k_norm))
        out = self._replayed(*key)
        if out is not None:
            return out
        self._run(
            lib.OpStruct(
                kind=lib.OP_ROPE_APPEND,
                m=len(qkv),
                a=None if q_norm is None else q_norm.ctypes.data,
                b=None if k_norm is None else k_norm.ctypes.data,
                c=self._memory.keys[layer],
                d=self._memory.values[layer],
                out=qkv.ctypes.data,
                out_stride=qkv.strides[0] // 4,
            )
        )
        return self._noted(key, qkv[:, : self._memory.step.q_heads * self._memory.step.head_dim], qkv, q_norm, k_norm)

    def attention(self, q: FloatArray, layer: int, batch: Batch) -> FloatArray:
        """See Backend."""
        self._take_batch(batch)
        key = (lib.OP_ATTENTION, id(q), layer)
        out = self._replayed(*key)
        if out is not None:
            return out
        out = self._memory.out("attention", *q.shape)
        self._run(
            lib.OpStruct(
                kind=lib.OP_ATTENTION,
                m=len(q),
                a=q.ctypes.data,
                c=self._memory.keys[layer],
                d=self._memory.values[layer],
                out=out.ctypes.data,
                stride=q.strides[0] // 4,
                out_stride=out.strides[0] // 4,
            )
        )
        return self._noted(key, out, q)

    def take_rows(self, x: FloatArray, rows: NDArray[np.int32]) -> FloatArray:
        """See Backend."""
        key = (lib.OP_TAKE_ROWS, id(x), len(rows))
        program = self._notes.replaying or self._notes.noting
        if program is not None:
            program.logit_rows[:] = rows
        out = self._replayed(*key)
        if out is not None:
            return out
        taken = np.ascontiguousarray(rows, np.int32) if program is None else program.logit_rows
        out = self._memory.out("take_rows", len(taken), x.shape[1])
        self._run(
            lib.OpStruct(
                kind=lib.OP_TAKE_ROWS,
                m=len(taken),
                k=x.shape[1],
                a=x.ctypes.data,
                b=taken.ctypes.data,
                out=out.ctypes.data,
            )
        )
        return self._noted(key, out, x)

    def logits(self, x: FloatArray, head: lib.PackedHead | lib.PackedLinear) -> FloatArray:
        """See Backend. Ends a step. What `_EXACT_DEPTH` leaves out is near, see kernels/cpu/head.c."""
        key = (lib.OP_LOGITS, id(x), id(head))
        out = self._replayed(*key)
        if out is not None:
            assert self._notes.replaying is not None, "only a replay returns an array"
            self._execute(*self._notes.replaying.operations(self._notes.at))
        else:
            out = self._memory.out("logits", len(x), head.columns)
            if isinstance(head, lib.PackedHead):
                self._head_logits(x, head, out)
            else:
                self._linear(x, head, out, lib.LINEAR_STORE)
            self._noted(key, out, x, head)
        self._notes.end()
        return out

    def _head_logits(self, x: FloatArray, head: lib.PackedHead, out: FloatArray) -> None:
        if x.shape[1] != head.k or x.dtype != np.float32 or not x.flags.c_contiguous:
            raise ContractError(
                f"The input of a head has width {x.shape[1]} and type {x.dtype}, the head takes {head.k}."
            )
        self._memory.reserve(len(x), head.k)
        self._run(
            lib.OpStruct(
                kind=lib.OP_LOGITS,
                m=len(x),
                a=x.ctypes.data,
                b=ctypes.addressof(head.struct),
                c=None if self._exact_rows is None else self._exact_rows.ctypes.data,
                out=out.ctypes.data,
                out_stride=out.strides[0] // 4,
            )
        )

    def close(self) -> None:
        """See Backend."""
        if self._closed:
            return
        self._closed = True
        self._library.pool_destroy(self._pool)
        self._notes.clear()
        self._memory.clear()
        del self._arena
