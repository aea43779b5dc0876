"""Memory of the cuda backend's steps: what the kernels read and write, and the way of a step's arrays to the GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inference.backends import cuda_plan
from inference.backends.backend import Batch
from inference.backends.cuda_plan import MAX_ROWS, SAMPLER_ROWS, Regions
from inference.models.model_spec import ModelSpec
from kernels.device.driver import Device, DeviceBuffer, Event, HostBuffer
from kernels.device.memory import MEMORY_BLOCK, rounded_up
from kernels.launch.attention import Attention, AttentionShape
from kernels.launch.matmul import Activations
from kernels.launch.sampling import planned_sampler_bytes

_UPLOADS = 4
"""Steps whose arrays may be on their way to the GPU at once."""


class UploadRing:
    """Pinned memory for the arrays of a few steps: none is written again before its copy has run."""

    def __init__(self, gpu: Device, nbytes: int) -> None:
        self._gpu = gpu
        self._buffers: list[HostBuffer] = [gpu.host_buffer(nbytes) for _ in range(_UPLOADS)]
        self._copied: list[Event | None] = [None] * _UPLOADS
        self._at = 0

    def take(self) -> NDArray[np.uint8]:
        """Memory to write to; `send` copies it."""
        self._at = (self._at + 1) % _UPLOADS
        event = self._copied[self._at]
        if event is not None:
            event.synchronize()
        return self._buffers[self._at].array

    def send(self, pointer: int, start: int, end: int) -> None:
        """Queues the copy of bytes start to end of what was taken last, to that offset behind `pointer`."""
        stream = self._gpu.stream
        stream.copy_to_device(pointer + start, self._buffers[self._at], end - start, start)
        self._copied[self._at] = stream.record(self._copied[self._at])


@dataclass(frozen=True, slots=True, eq=False)
class StepMemory:
    """One allocation for all that steps read and write, beside what attention and sampler keep for themselves.

    Attributes:
        at: addresses of its parts, see cuda_plan.step_regions.
        prefill, decode: where each array lies in "batch" and in "rows".
        pages: width of the page tables.
        max_tokens: most tokens of a step.
        rows: the way of the arrays of rows that decode.
    """

    buffer: DeviceBuffer
    at: Mapping[str, int]
    activations: Activations
    prefill: Regions
    decode: Regions
    pages: int
    max_tokens: int
    batches: UploadRing
    rows: UploadRing

    @staticmethod
    def planned_bytes(spec: ModelSpec, tokens: int, pages: int) -> int:
        """Bytes that `allocate` takes of the GPU's memory."""
        digits = Activations.nbytes_for(tokens, cuda_plan.widest(spec))
        return cuda_plan.step_regions(spec, tokens, pages, digits).nbytes

    @classmethod
    def allocate(cls, gpu: Device, spec: ModelSpec, tokens: int, pages: int) -> StepMemory:
        """Takes it."""
        digits = Activations.nbytes_for(tokens, cuda_plan.widest(spec))
        regions = cuda_plan.step_regions(spec, tokens, pages, digits)
        buffer = gpu.allocate(regions.nbytes)
        at = {name: buffer.pointer + offset for name, offset in regions.offsets.items()}
        prefill, decode = cuda_plan.prefill_arrays(tokens, pages), cuda_plan.decode_arrays(pages)
        return cls(
            buffer=buffer,
            at=at,
            activations=Activations(at["activations"], digits),
            prefill=prefill,
            decode=decode,
            pages=pages,
            max_tokens=tokens,
            batches=UploadRing(gpu, prefill.nbytes),
            rows=UploadRing(gpu, decode.nbytes),
        )

    def upload_batch(self, batch: Batch) -> None:
        """Queues the copy of a prefill step's arrays."""
        tables = np.full((len(batch.context_lengths), self.pages), -1, np.int32)
        tables[:, : batch.page_tables.shape[1]] = batch.page_tables
        arrays = {
            "token_ids": batch.token_ids,
            "positions": batch.positions,
            "query_starts": batch.query_starts,
            "context_lengths": batch.context_lengths,
            "logit_rows": batch.logit_rows,
            "page_tables": tables,
        }
        staging, end = self.batches.take(), 0
        for name, array in arrays.items():
            start = self.prefill.offsets[name]
            end = start + array.nbytes
            staging[start:end] = np.ascontiguousarray(array, np.int32).reshape(-1).view(np.uint8)
        self.batches.send(self.at["batch"], 0, end)


def attention_shape(spec: ModelSpec, pages: int) -> AttentionShape:
    """What the attention kernels are told of a model; `pages` is the width of the page tables."""
    return AttentionShape(spec.num_q_heads, spec.num_kv_heads, spec.head_dim, pages, spec.num_layers)


def workspace_bytes(spec: ModelSpec, max_batch_tokens: int, sm_count: int) -> int:
    """All that is allocated beside weights and KV, with page tables for the longest context of the model."""
    pages = cuda_plan.max_pages(spec)
    parts = (
        StepMemory.planned_bytes(spec, max_batch_tokens, pages),
        Attention.workspace_bytes(attention_shape(spec, pages), MAX_ROWS, sm_count),
        planned_sampler_bytes(SAMPLER_ROWS, spec.vocab_size),
    )
    return sum(rounded_up(nbytes, MEMORY_BLOCK) for nbytes in parts)
