"""An NVIDIA GPU through our own kernels (kernels/cuda): weights as tiles of 3, 4 or 8 bits, KV in float16.

The decoder calls operations one by one; here some of them only take note, so that one kernel does several. A norm is
part of the product behind it, RoPE and the append to the cache are part of a decode step's attention. Hidden states are
float32 in memory that the next call of the same kind uses again, and everything is queued on the device's one stream:
nothing here waits for the GPU.

Rows that decode (one token of up to 8 sequences) go through the matrix-vector kernels, prompts through the tensor
cores; see `prepare_decode` and `prepare_prefill`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inference.backends import cuda_plan, cuda_self_check
from inference.backends.backend import Batch, DeviceMemory
from inference.backends.cuda_memory import StepMemory, attention_shape, workspace_bytes
from inference.backends.cuda_plan import MAX_ROWS, PREFILL_CHUNK, RESERVE_BYTES, SAMPLER_ROWS, aligned
from inference.backends.cuda_variants import Variant, jobs_of, load_variants, needed_variants
from inference.backends.cuda_weights import WeightLoader
from inference.errors import BackendUnavailableError
from inference.formats.model_source import WeightTensor
from inference.models.model_spec import ModelSpec
from kernels.device.driver import Device, DeviceBuffer
from kernels.errors import ContractError, KernelError
from kernels.launch.attention import Attention
from kernels.launch.elementwise import Elementwise
from kernels.launch.linear import DeviceMatrix, Linear
from kernels.launch.matmul import Matmul
from kernels.launch.sampling import Sampler
from kernels.shipped.build_pool import BuildPool
from kernels.weights.block_tiles import tile_format


@dataclass(frozen=True, slots=True)
class Rows:
    """float32 (rows, columns) on the device."""

    pointer: int
    rows: int
    columns: int


@dataclass(frozen=True, slots=True)
class Normed:
    """Rows whose norm the next product applies."""

    x: Rows
    weight: int
    eps: float


@dataclass(frozen=True, slots=True)
class Queries:
    """Q, K and V of a layer, and what the attention of a decode step still has to do with them."""

    qkv: Rows
    q_norm: int
    k_norm: int


class CudaBackend:
    """Backend of the registry's name "cuda".

    Args:
        vram_bytes: the most that is taken of the GPU's memory; None is what is free.
        ordinal: of the GPU.

    Raises:
        BackendUnavailableError: no driver, no GPU, no memory, or kernels that do not compute what they should.
    """

    name = "cuda"
    prefill_chunk = PREFILL_CHUNK
    max_running = MAX_ROWS

    def __init__(self, vram_bytes: int | None = None, ordinal: int = 0) -> None:
        self.device = f"gpu{ordinal}"
        try:
            self.gpu = Device(ordinal, vram_bytes)
        except KernelError as error:
            raise BackendUnavailableError(self.name, str(error)) from error
        reason = ""
        try:
            reason = cuda_self_check.fault(self.gpu)
            self._linear, self._matmul, self._elementwise = Linear(self.gpu), Matmul(self.gpu), Elementwise(self.gpu)
        except KernelError as error:
            reason = str(error)
        if reason:
            self.gpu.close()
            raise BackendUnavailableError(self.name, reason)
        self._spec: ModelSpec | None = None
        self._variants: list[Variant] = []
        self._builds: BuildPool | None = None
        self._loader: WeightLoader | None = None
        self._weights: DeviceBuffer | None = None
        self._pages: DeviceBuffer | None = None
        self._memory: StepMemory | None = None
        self._attention: Attention | None = None
        self._sampler: Sampler | None = None
        self._layer_bytes = self._side_bytes = self._q_size = 0
        self._eps = 0.0
        # Of the step that the operations belong to.
        self._decoding = self._early = False
        self._sequences = self._longest = 0

    # Plans

    def device_memory(self, freed_bytes: int) -> DeviceMemory:
        """See Backend."""
        free = int(self.gpu.call("cuMemGetInfo")[0]) + freed_bytes
        limit = self.gpu.memory_limit_bytes
        return DeviceMemory(free if limit is None else min(free, limit), RESERVE_BYTES)

    @property
    def peak_bytes(self) -> int:
        """See Backend."""
        return self.gpu.peak_bytes

    def planned_model_bytes(self, spec: ModelSpec, tensors: Mapping[str, tuple[str, tuple[int, ...]]]) -> int:
        """See Backend.

        Raises:
            BackendUnavailableError: the kernels do not take the model's shape.
        """
        cuda_plan.check_shape(spec)
        formats, table = cuda_plan.model_formats(tensors)
        self._variants = needed_variants(self.gpu, spec, formats, table)
        return cuda_plan.model_bytes(spec, tensors)

    def planned_weight_bytes(self, kind: str, shape: tuple[int, ...]) -> int:
        """See Backend."""
        return aligned(4 * shape[0]) if len(shape) == 1 else aligned(tile_format(kind).nbytes(*shape))

    def planned_kv_page_bytes(self, spec: ModelSpec) -> int:
        """See Backend. float16."""
        return cuda_plan.kv_page_bytes(spec)

    def planned_workspace_bytes(self, spec: ModelSpec, max_batch_tokens: int) -> int:
        """See Backend. Page tables are counted for the longest context of the model."""
        return workspace_bytes(spec, max_batch_tokens, self.gpu.sm_count)

    # Weights

    def begin_load(self, spec: ModelSpec, weight_bytes: int) -> None:
        """See Backend."""
        self._spec = spec
        self._builds = self._start_builds()
        self._loader = WeightLoader(self.gpu, weight_bytes)
        self._weights = self._loader.memory

    def _start_builds(self) -> BuildPool:
        try:
            return BuildPool(jobs_of(self.gpu, self._variants))
        except KernelError as error:
            raise BackendUnavailableError(self.name, str(error)) from error

    @property
    def _loading(self) -> WeightLoader:
        if self._loader is None:
            raise ContractError("A weight came before begin_load, or after allocate.")
        return self._loader

    def vector(self, tensor: WeightTensor) -> int:
        """See Backend: the address."""
        return self._loading.vector(tensor)

    def linear_weight(self, parts: Sequence[WeightTensor], biases: Sequence[WeightTensor] = ()) -> DeviceMatrix:
        """See Backend."""
        return self._loading.matrix(parts, biases)

    def embedding_weight(self, tensor: WeightTensor) -> DeviceMatrix:
        """See Backend. In the host's memory, unless it is the head too."""
        tied = self._spec is not None and self._spec.tied_head
        return self._loading.matrix([tensor]) if tied else self._loading.host_table(tensor)

    def head_weight(self, tensor: WeightTensor, tied: DeviceMatrix | None) -> DeviceMatrix:
        """See Backend."""
        return tied or self._loading.matrix([tensor])

    # Running

    def allocate(self, spec: ModelSpec, inv_freq: NDArray[np.float64], num_pages: int, max_batch_tokens: int) -> None:
        """See Backend."""
        self._loading.finish()
        self._loader = None
        if self._builds is not None:
            try:
                self._builds.wait()
                load_variants(self.gpu, self._variants)
            except KernelError as error:
                raise BackendUnavailableError(self.name, str(error)) from error
        self._pages = self.gpu.allocate(cuda_plan.kv_page_bytes(spec) * num_pages)
        self._layer_bytes = cuda_plan.kv_page_bytes(spec) * num_pages // spec.num_layers
        self._side_bytes = self._layer_bytes // 2
        self._q_size, self._eps = spec.q_size, spec.rms_norm_eps
        self._attention = Attention(self.gpu, attention_shape(spec, num_pages), inv_freq, MAX_ROWS)
        self._memory = StepMemory.allocate(self.gpu, spec, max_batch_tokens, num_pages)
        self._sampler = Sampler(self.gpu, SAMPLER_ROWS, spec.vocab_size)

    def fill_pages(self, byte: int) -> None:
        """Sets every byte of the KV pages; what was never written must not matter, which tests check."""
        assert self._pages is not None, "allocate has been called"
        self._pages.fill(byte)

    @property
    def sampler(self) -> Sampler:
        """Chooses tokens of this model's logits."""
        assert self._sampler is not None, "allocate has been called"
        return self._sampler

    @property
    def memory(self) -> StepMemory:
        """What steps read and write."""
        if self._memory is None:
            raise ContractError("A step came before allocate, or after close.")
        return self._memory

    def prepare_decode(self, rows: int, in_graph: bool) -> None:
        """The next step is one token of each of `rows` sequences, whose arrays lie at "rows" of the step's memory.

        Args:
            in_graph: it is captured: what lies there was written before the step began.
        """
        self._decoding, self._early, self._sequences, self._longest = True, in_graph, rows, 1

    def prepare_prefill(self, batch: Batch) -> None:
        """Queues the upload of a batch's arrays; the next step works on it.

        Raises:
            ContractError: more tokens or sequences than were allocated for.
        """
        memory, sequences = self.memory, len(batch.context_lengths)
        if len(batch.token_ids) > memory.max_tokens or sequences > MAX_ROWS:
            raise ContractError(
                f"A step has {len(batch.token_ids)} tokens of {sequences} sequences, but {memory.max_tokens} and"
                f" {MAX_ROWS} were allocated."
            )
        memory.upload_batch(batch)
        self._decoding, self._sequences = False, sequences
        # Tokens behind the last chunk are padding; kernels are launched for them too.
        self._longest = len(batch.token_ids) if sequences == 1 else int(np.diff(batch.query_starts).max())

    def _array(self, name: str) -> int:
        """Address of an int32 array of the step."""
        memory = self.memory
        if self._decoding:
            return memory.at["rows"] + memory.decode.offsets[name]
        return memory.at["batch"] + memory.prefill.offsets[name]

    def embed(self, table: DeviceMatrix, batch: Batch) -> Rows:
        """See Backend. Of the step that was prepared; `batch` gives the number of tokens."""
        x = Rows(self.memory.at["hidden"], len(batch.token_ids), table.columns)
        self._elementwise.embed(table, self._array("token_ids"), x.rows, x.pointer)
        return x

    def rms_norm(self, x: Rows, weight: int, eps: float) -> Normed:
        """See Backend. Computed by the product that takes it."""
        return Normed(x, weight, eps)

    def _product(self, x: Rows | Normed, weight: DeviceMatrix, out: int, epilogue: str, matvec: bool) -> None:
        rows, norm, eps = (x.x, x.weight, x.eps) if isinstance(x, Normed) else (x, 0, 0.0)
        residual = out if epilogue == "add" else 0
        if matvec:
            self._linear.matvec(
                rows.pointer, rows.rows, weight, out, norm=norm, eps=eps, epilogue=epilogue, residual=residual
            )
            return
        activations = self.memory.activations
        self._matmul.quantize_rows(rows.pointer, rows.rows, rows.columns, activations, norm=norm, eps=eps)
        self._matmul.matmul(activations, rows.rows, weight, out, epilogue=epilogue, residual=residual)

    def linear(self, x: Normed, weight: DeviceMatrix) -> Rows:
        """See Backend."""
        out = Rows(self.memory.at["qkv"], x.x.rows, weight.rows)
        self._product(x, weight, out.pointer, "store", self._decoding)
        return out

    def add_linear(self, residual: Rows, x: Rows, weight: DeviceMatrix) -> Rows:
        """See Backend. Overwrites `residual`."""
        self._product(x, weight, residual.pointer, "add", self._decoding)
        return residual

    def gated_linear(self, x: Normed, gate_up: DeviceMatrix) -> Rows:
        """See Backend."""
        out = Rows(self.memory.at["gated"], x.x.rows, gate_up.rows // 2)
        self._product(x, gate_up, out.pointer, "gated", self._decoding)
        return out

    def rope_append(self, qkv: Rows, layer: int, q_norm: int | None, k_norm: int | None, batch: Batch) -> Queries:
        """See Backend. In a decode step it is part of the attention."""
        queries = Queries(qkv, q_norm or 0, k_norm or 0)
        if not self._decoding:
            assert self._attention is not None, "allocate has been called"
            keys, values = self._layer(layer)
            self._attention.rope_append(
                qkv.pointer, qkv.rows, self._sequences, keys, values, self._array("positions"),
                self._array("query_starts"), self._array("page_tables"), queries.q_norm, queries.k_norm, self._eps,
            )  # fmt: skip
        return queries

    def attention(self, q: Queries, layer: int, batch: Batch) -> Rows:
        """See Backend."""
        assert self._attention is not None, "allocate has been called"
        keys, values = self._layer(layer)
        out = Rows(self.memory.at["attention"], q.qkv.rows, self._q_size)
        lengths, tables = self._array("context_lengths"), self._array("page_tables")
        if self._decoding:
            self._attention.decode(
                q.qkv.pointer, q.qkv.rows, keys, values, self._array("positions"), lengths, tables, out.pointer,
                q.q_norm, q.k_norm, self._eps, early=self._early,
            )  # fmt: skip
        else:
            self._attention.prefill(
                q.qkv.pointer, self._longest, self._sequences, keys, values, self._array("query_starts"), lengths,
                tables, out.pointer,
            )  # fmt: skip
        return out

    def take_rows(self, x: Rows, rows: NDArray[np.int32]) -> Rows:
        """See Backend. All rows of a decode step are wanted."""
        if self._decoding:
            return x
        out = Rows(self.memory.at["taken"], len(rows), x.columns)
        self._elementwise.take_rows(x.pointer, self._array("logit_rows"), out.rows, out.columns, out.pointer)
        return out

    def logits(self, x: Normed, head: DeviceMatrix) -> Rows:
        """See Backend, but they stay on the device."""
        out = Rows(self.memory.at["logits"], x.x.rows, head.rows)
        self._product(x, head, out.pointer, "store", matvec=True)
        return out

    @property
    def max_logit_rows(self) -> int:
        """Rows of logits that a step may ask for."""
        return MAX_ROWS

    def read(self, rows: Rows) -> NDArray[np.float32]:
        """Waits for the step's results: (rows, columns)."""
        self.gpu.stream.synchronize()
        buffer = self.memory.buffer
        return buffer.download(np.float32, (rows.rows, rows.columns), rows.pointer - buffer.pointer)

    def read_logits(self, row: int) -> NDArray[np.float32]:
        """Waits for what was queued, and takes one row of the logits to the host: (vocab_size,)."""
        columns = self.sampler.vocab_size
        return self.read(Rows(self.memory.at["logits"] + 4 * columns * row, 1, columns)).reshape(columns)

    def close(self) -> None:
        """See Backend."""
        if self._builds is not None:
            self._builds.cancel()
        if self._loader is not None:
            self._loader.close()
        self._memory = self._attention = self._sampler = self._pages = self._weights = self._loader = None
        with contextlib.suppress(KernelError):  # of a GPU that has failed nothing can be given back
            self.gpu.close()

    def _layer(self, layer: int) -> tuple[int, int]:
        """Addresses of a layer's keys and values."""
        assert self._pages is not None, "allocate has been called"
        keys = self._pages.pointer + layer * self._layer_bytes
        return keys, keys + self._side_bytes
