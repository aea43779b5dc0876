"""A GPU for machines without one: its memory is an array, its kernels are NumPy in float64, its graphs are lists.

What it shows is how the backend and the engine use the kernels: addresses, order, contracts, memory. Memory that nobody
wrote holds NaN. Everything runs when it is launched, as a stream of one would have it at the latest.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.engine.sampler import choose
from inference.errors import InferenceError
from inference.request import SamplingParams
from kernels.compile.contracts import contract_of
from kernels.device.memory import MEMORY_BLOCK, rounded_up
from kernels.errors import OutOfDeviceMemory
from kernels.launch.attention import PAGE_SIZE
from kernels.launch.repack import KINDS
from kernels.launch.sampling import LOGIT_IS_NAN, ROW_IS_IDLE, SamplingRow
from kernels.weights.block_tiles import repack_reference
from kernels.weights.quant_format import QuantFormat, unpack
from kernels.weights.reference import row_bytes

BASE = 1 << 40
Launch = Callable[[], None]


class EmulatedMemory:
    """A piece of the GPU's memory, or of the host's that it sees."""

    def __init__(self, gpu: EmulatedGpu, pointer: int, nbytes: int, on_device: bool) -> None:
        self._gpu, self._on_device = gpu, on_device
        self.pointer = self.device_pointer = pointer
        self.nbytes = nbytes
        self.array = gpu.view(pointer, np.uint8, nbytes)

    def fill(self, byte: int) -> None:
        self.array[:] = byte

    def upload(self, array: NDArray[Any], offset: int = 0) -> None:
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self.array[offset : offset + data.size] = data

    def download(self, dtype: Any, shape: Any, offset: int = 0) -> NDArray[Any]:
        return self._gpu.view(self.pointer + offset, dtype, shape).copy()

    def free(self) -> None:
        if self._on_device:
            self._gpu.allocated_bytes -= rounded_up(self.nbytes, MEMORY_BLOCK)
            self._on_device = False


class EmulatedStream:
    """Runs at once what is queued, or keeps it where a graph is captured."""

    def __init__(self, gpu: EmulatedGpu) -> None:
        self._gpu = gpu
        self._captured: list[Launch] | None = None

    def queue(self, launch: Launch) -> None:
        if self._captured is not None:
            self._captured.append(launch)
        else:
            launch()

    def copy_to_device(self, dst: int, src: Any, nbytes: int, offset: int = 0) -> None:
        assert self._captured is None, "a copy from the host in a graph would read what lies there later"
        data = src.array if isinstance(src, EmulatedMemory) else src.reshape(-1).view(np.uint8)
        self._gpu.view(dst, np.uint8, nbytes)[:] = data[offset : offset + nbytes]

    def copy(self, dst: int, src: int, nbytes: int) -> None:
        self._gpu.view(dst, np.uint8, nbytes)[:] = self._gpu.view(src, np.uint8, nbytes)

    def record(self, event: Any = None, **_: Any) -> Any:
        return event or SimpleNamespace(synchronize=lambda: None)

    def synchronize(self) -> None:
        assert self._captured is None, "a capture does not run"

    @contextlib.contextmanager
    def capture(self) -> Iterator[Any]:
        launches: list[Launch] = []
        self._captured = launches

        def replay() -> None:
            self._gpu.replays += 1
            for launch in launches:
                launch()

        yield SimpleNamespace(launch=replay, length=len, launches=launches)
        self._captured = None


class EmulatedKernel:
    """Checks the contract of each launch and computes what its header says."""

    registers = local_bytes = shared_bytes = 0

    def __init__(self, gpu: EmulatedGpu, source: str, name: str, defines: dict[str, int]) -> None:
        self._gpu, self._name, self._defines = gpu, name, defines
        self._contract = contract_of(source, name)

    def launch(self, arguments: ctypes.Structure, grid: int | tuple[int, ...], *_: Any, **__: Any) -> None:
        self._contract.check(arguments, self._defines)
        kept = type(arguments).from_buffer_copy(arguments)
        blocks = (grid, 1, 1) if isinstance(grid, int) else (*grid, 1, 1)
        run = getattr(self._gpu, f"run_{self._name}")
        self._gpu.launched.append(self._name)
        self._gpu.stream.queue(lambda: run(kept, self._defines, blocks))

    def max_blocks_per_sm(self, *_: Any) -> int:
        return 2

    def max_cluster(self, *_: Any) -> int:
        return 1


class EmulatedGpu:
    """Takes the place of kernels.device.driver.Device.

    Attributes:
        launched: names of kernels, in order, captured ones once.
        asked: the variants of kernels that were asked for.
        replays: of graphs.
    """

    name, capability, sm_count, driver_version = "emulated", (8, 6), 16, 12080
    shared_bytes_per_block, l2_bytes = 101_376, 2 << 20
    checks_every_launch = overlaps = False
    total_bytes = 64 << 20
    context_bytes = 0

    def __init__(self, ordinal: int = 0, memory_limit_bytes: int | None = None) -> None:
        self.memory_limit_bytes = memory_limit_bytes
        self.stream = EmulatedStream(self)
        self.allocated_bytes = self.peak_bytes = 0
        self.launched: list[str] = []
        self.asked: set[tuple[str, str, tuple[tuple[str, int], ...]]] = set()
        self.replays = 0
        self._memory = np.full(self.total_bytes, 0xFF, np.uint8)
        self._used = 0
        self._weights: dict[tuple[Any, ...], NDArray[np.float64]] = {}
        self._digits: dict[int, NDArray[np.float64]] = {}
        self._steps: dict[int, int] = {}
        self.closed = False

    # What Device has

    def view(self, pointer: int, dtype: Any, shape: Any) -> NDArray[Any]:
        """Memory at an address as an array."""
        count = math.prod(shape) if isinstance(shape, tuple) else int(shape)
        start = pointer - BASE
        nbytes = count * np.dtype(dtype).itemsize
        assert 0 <= start <= start + nbytes <= self._used, f"{pointer:#x} is not memory of this GPU"
        return self._memory[start : start + nbytes].view(dtype).reshape(shape)

    def _take(self, nbytes: int) -> int:
        pointer = BASE + self._used
        self._used += rounded_up(max(1, nbytes), 256)
        assert self._used <= self.total_bytes, "the emulated GPU is too small for this test"
        return pointer

    def free_bytes(self) -> int:
        return min(self.total_bytes, self.memory_limit_bytes or self.total_bytes) - self.allocated_bytes

    def call(self, function: str, *_: Any) -> Any:
        assert function == "cuMemGetInfo", function
        return self.total_bytes - self.allocated_bytes, self.total_bytes

    def allocate(self, nbytes: int) -> EmulatedMemory:
        if nbytes > self.free_bytes():
            raise OutOfDeviceMemory(nbytes, self.free_bytes(), self.memory_limit_bytes)
        self.allocated_bytes += rounded_up(nbytes, MEMORY_BLOCK)
        self.peak_bytes = max(self.peak_bytes, self.allocated_bytes)
        return EmulatedMemory(self, self._take(nbytes), nbytes, on_device=True)

    def host_buffer(self, nbytes: int) -> EmulatedMemory:
        return EmulatedMemory(self, self._take(nbytes), nbytes, on_device=False)

    def kernel(self, source: str, name: str, **defines: int) -> EmulatedKernel:
        self.asked.add((source, name, tuple(sorted(defines.items()))))
        return EmulatedKernel(self, source, name, defines)

    def close(self) -> None:
        self.closed = True

    # What the kernels compute

    def _matrix(self, pointer: int, rows: int, columns: int, defines: dict[str, int]) -> NDArray[np.float64]:
        key = (pointer, rows, columns)
        if key not in self._weights:
            of_format = QuantFormat(defines["BITS"], defines["GROUP"], not defines["MINIMA"])
            tiles = self.view(pointer, np.uint8, of_format.nbytes(rows, columns))
            self._weights[key] = unpack(of_format, tiles, rows, columns).dequantize().astype(np.float64)
        return self._weights[key]

    def _normed(self, x: NDArray[Any], norm: int, eps: float) -> NDArray[np.float64]:
        x = x.astype(np.float64)
        if norm:
            x = x / np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + eps) * self.view(norm, np.float32, x.shape[-1])
        return x

    def _store(self, a: Any, product: NDArray[np.float64], epilogue: int) -> None:
        if a.bias:
            product = product + self.view(a.bias, np.float32, a.rows)
        if epilogue == 2:
            gate, up = np.split(product, 2, axis=1)
            product = gate / (1 + np.exp(-gate)) * up
        elif epilogue == 1:
            product = product + self.view(a.residual, np.float32, product.shape)
        self.view(a.out, np.float32, product.shape)[:] = product

    def _times(self, x: NDArray[np.float64], a: Any, defines: dict[str, int]) -> NDArray[np.float64]:
        weights = self._matrix(a.weights, a.rows, a.columns, defines)
        # Row by row, so that a row's result does not depend on the others.
        return np.stack([weights @ row for row in x])

    def run_matvec(self, a: Any, defines: dict[str, int], _: Any) -> None:
        x = self._normed(self.view(a.x, np.float32, (a.tokens, a.columns)), a.norm, a.eps)
        assert defines["NORM"] == bool(a.norm)
        self._store(a, self._times(x, a, defines), defines["EPILOGUE"])

    def run_quantize_rows(self, a: Any, _: dict[str, int], __: Any) -> None:
        self._digits[a.high] = self._normed(self.view(a.x, np.float32, (a.tokens, a.columns)), a.norm, a.eps)

    def run_matmul(self, a: Any, defines: dict[str, int], _: Any) -> None:
        x = self._digits[a.high]
        assert x.shape == (a.tokens, a.columns)
        self._store(a, self._times(x, a, defines), a.epilogue)

    def run_embed(self, a: Any, defines: dict[str, int], _: Any) -> None:
        table = self._matrix(a.table, a.rows, a.columns, defines)
        out = self.view(a.out, np.float32, (a.tokens, a.columns))
        for row, token in zip(out, self.view(a.token_ids, np.int32, a.tokens), strict=True):
            row[:] = table[token] if 0 <= token < a.rows else 0.0

    def run_take_rows(self, a: Any, _: dict[str, int], __: Any) -> None:
        for place, row in enumerate(self.view(a.rows, np.int32, a.count)):
            source = self.view(a.x + 4 * a.columns * int(row), np.float32, a.columns)
            self.view(a.out + 4 * a.columns * place, np.float32, a.columns)[:] = source

    def _rotated(self, heads: NDArray[np.float64], a: Any, position: int, head_dim: int, norm: int) -> NDArray[Any]:
        heads = self._normed(heads, norm, a.eps)
        turns = self.view(a.turns, np.uint64, head_dim // 2)
        with np.errstate(over="ignore"):
            angles = np.ldexp((turns * np.uint64(position)).astype(np.float64), -64) * 2 * np.pi
        first, second = np.split(heads, 2, axis=-1)
        cos, sin = np.cos(angles), np.sin(angles)
        return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)

    def _place(self, pages: int, page: int, head: int, kv_heads: int, head_dim: int) -> NDArray[np.float16]:
        assert page >= 0, "a page that the sequence does not have"
        size = PAGE_SIZE * head_dim
        return self.view(pages + 2 * size * (int(page) * kv_heads + head), np.float16, size)

    def _append(self, a: Any, row: int, position: int, table: NDArray[np.int32], head_dim: int) -> NDArray[np.float64]:
        """Rotates a row's queries, which it returns, and appends its keys and values."""
        width = (a.q_heads + 2 * a.kv_heads) * head_dim
        values = self.view(a.qkv + 4 * width * row, np.float32, (a.q_heads + 2 * a.kv_heads, head_dim))
        q, k, v = np.split(values.astype(np.float64), [a.q_heads, a.q_heads + a.kv_heads])
        keys = self._rotated(k, a, position, head_dim, a.k_norm)
        page, slot = table[position // PAGE_SIZE], position % PAGE_SIZE
        for head in range(a.kv_heads):
            self._place(a.keys, page, head, a.kv_heads, head_dim).reshape(PAGE_SIZE, -1)[slot] = keys[head]
            self._place(a.values, page, head, a.kv_heads, head_dim).reshape(-1, PAGE_SIZE)[:, slot] = v[head]
        return self._rotated(q, a, position, head_dim, a.q_norm)

    def _attend(self, a: Any, q: NDArray[Any], length: int, table: NDArray[np.int32], head_dim: int) -> NDArray[Any]:
        """Of one token's queries (q_heads, head_dim) over `length` positions."""
        pages = table[: -(-length // PAGE_SIZE)]
        out = []
        for head in range(a.q_heads):
            kv_head = head // (a.q_heads // a.kv_heads)
            keys, values = (
                [self._place(side, page, kv_head, a.kv_heads, head_dim) for page in pages]
                for side in (a.keys, a.values)
            )
            k = np.concatenate([page.reshape(PAGE_SIZE, -1) for page in keys])[:length].astype(np.float64)
            v = np.concatenate([page.reshape(-1, PAGE_SIZE).T for page in values])[:length].astype(np.float64)
            scores = k @ q[head] * a.scale
            weights = np.exp(scores - scores.max())
            out.append(weights / weights.sum() @ v)
        return np.concatenate(out)

    def run_attention_decode(self, a: Any, defines: dict[str, int], _: Any) -> None:
        head_dim = defines["HEAD_DIM"]
        tables = self.view(a.page_tables, np.int32, (a.rows, a.max_pages))
        out = self.view(a.out, np.float32, (a.rows, a.q_heads * head_dim))
        positions = self.view(a.positions, np.int32, a.rows)
        lengths = self.view(a.context_lengths, np.int32, a.rows)
        for row, position in enumerate(positions.tolist()):
            if position < 0:
                out[row] = 0.0
                continue
            assert lengths[row] == position + 1
            q = self._append(a, row, position, tables[row], head_dim)
            out[row] = self._attend(a, q, position + 1, tables[row], head_dim)

    def run_attention_combine(self, a: Any, defines: dict[str, int], _: Any) -> None:
        """What attention_decode left to it is done already."""

    def run_rope_append(self, a: Any, defines: dict[str, int], _: Any) -> None:
        head_dim = defines["HEAD_DIM"]
        starts = self.view(a.query_starts, np.int32, a.sequences + 1)
        tables = self.view(a.page_tables, np.int32, (a.sequences, a.max_pages))
        width = (a.q_heads + 2 * a.kv_heads) * head_dim
        for row, position in enumerate(self.view(a.positions, np.int32, a.tokens).tolist()):
            if position < 0:
                continue
            sequence = int(np.searchsorted(starts, row, side="right")) - 1
            q = self._append(a, row, position, tables[sequence], head_dim)
            self.view(a.qkv + 4 * width * row, np.float32, (a.q_heads, head_dim))[:] = q

    def run_attention_prefill(self, a: Any, defines: dict[str, int], grid: Any) -> None:
        head_dim, sequences = defines["HEAD_DIM"], grid[2]
        starts = self.view(a.query_starts, np.int32, sequences + 1)
        lengths = self.view(a.context_lengths, np.int32, sequences)
        tables = self.view(a.page_tables, np.int32, (sequences, a.max_pages))
        width = (a.q_heads + 2 * a.kv_heads) * head_dim
        for sequence in range(sequences):
            count = int(starts[sequence + 1] - starts[sequence])
            for token in range(count):
                row = int(starts[sequence]) + token
                q = self.view(a.qkv + 4 * width * row, np.float32, (a.q_heads, head_dim)).astype(np.float64)
                length = int(lengths[sequence]) - count + token + 1
                result = self._attend(a, q, length, tables[sequence], head_dim)
                self.view(a.out + 4 * a.q_heads * head_dim * row, np.float32, a.q_heads * head_dim)[:] = result

    def run_sample(self, a: Any, _: dict[str, int], grid: Any) -> None:
        size = ctypes.sizeof(SamplingRow)
        ring = self.view(a.ring, np.uint64, (a.ring_slots, a.ring_rows))
        for place in range(grid[1]):
            row = a.first_row + place
            params = SamplingRow.from_buffer(self.view(a.rows + size * row, np.uint8, size))
            position = self.view(a.positions + 4 * row, np.int32, 1)
            step = self._steps.get(row, 0)
            self._steps[row] = step + 1
            token = ROW_IS_IDLE
            if params.live and position[0] >= 0:
                token = self._choice(a, params, place)
            ring[step % a.ring_slots, row] = np.uint64((step + 1) << 32 | token & 0xFFFFFFFF)
            if token >= 0:
                self.view(a.token_ids + 4 * row, np.int32, 1)[0] = token
                position[0] += 1
                self.view(a.context_lengths + 4 * row, np.int32, 1)[0] += 1
                params.index += 1

    def _choice(self, a: Any, params: SamplingRow, place: int) -> int:
        logits = self.view(a.logits + 4 * a.vocab_size * place, np.float32, a.vocab_size)
        assert params.penalty == 1.0, "the emulated sampler keeps no tokens that were seen"
        sampling = SamplingParams(params.temperature, params.top_k, params.top_p, params.min_p)
        try:
            return choose(logits, [], sampling, params.seed, params.index)
        except InferenceError:
            return LOGIT_IS_NAN

    def run_repack(self, a: Any, _: dict[str, int], __: Any) -> None:
        kind = KINDS[a.kind]
        data = self.view(a.source, np.uint8, (a.rows, row_bytes(kind, a.columns)))
        tiles = repack_reference(kind, data, (a.rows, a.columns))
        self.view(a.destination, np.uint8, tiles.size)[:] = tiles
