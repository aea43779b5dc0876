"""How a model lies on the GPU, in bytes, before anything is allocated. Pure.

    weights    one allocation: every stacked matrix as tiles, behind it its bias; norms in float32
    KV         one allocation: float16 pages, keys of all layers and values of all layers
    workspace  one allocation: what a step reads and writes; what is never needed at the same time shares a place

An untied embedding lies in pinned memory of the host and takes nothing here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from inference.backends.backend import PAGE_SIZE
from inference.errors import BackendUnavailableError
from inference.models.model_spec import ModelSpec
from kernels.weights.block_tiles import tile_format
from kernels.weights.quant_format import TILE_COLUMNS, TILE_ROWS, QuantFormat

ALIGNMENT = 256
PREFILL_CHUNK = 512
"""Prompt tokens of a step: more gain little speed and take more memory."""
RESERVE_BYTES = 16 << 20
"""What the driver takes for modules and graphs, and blocks that are not full; measured, rounded up."""
HEAD_DIMS = (64, 80, 96, 128, 256)
MAX_ROWS = 16
"""Sequences of a step, and rows of logits."""
COMMON_KIND = "f32"
"""What the parts of a stack go through where their kinds differ."""
WIDTHS = (1, 2, 4, 8, 16)
"""Rows of the decode graphs."""
SAMPLER_ROWS = 2 * MAX_ROWS
"""Rows that decode, and behind them rows for prompts that end in a step beside them."""

TensorKinds = Mapping[str, tuple[str, tuple[int, ...]]]
_STACKS = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"))
_EMBEDDING = "model.embed_tokens.weight"


def aligned(nbytes: int) -> int:
    """Rounded up, so that what follows is aligned for any kernel."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def stack_format(kinds: Iterable[str]) -> QuantFormat:
    """The tiles of a matrix that stacks parts of these kinds: theirs, or 8 bits where they differ."""
    formats = {tile_format(kind) for kind in kinds}
    return formats.pop() if len(formats) == 1 else tile_format(COMMON_KIND)


def matrix_bytes(parts: Sequence[tuple[str, tuple[int, ...]]]) -> int:
    """Bytes of a stack's tiles."""
    of_format = stack_format(kind for kind, _ in parts)
    return aligned(sum(of_format.nbytes(*shape) for _, shape in parts))


def vector_bytes(lengths: Iterable[int]) -> int:
    """Bytes of vectors one after the other in float32."""
    return aligned(4 * sum(lengths))


def model_bytes(spec: ModelSpec, tensors: TensorKinds) -> int:
    """Bytes of all weights on the GPU."""
    total = 0
    for names in _stacked_names(tensors):
        if names == (_EMBEDDING,) and not spec.tied_head:
            continue
        parts = [tensors[name] for name in names]
        if len(parts[0][1]) == 1:
            total += vector_bytes(shape[0] for _, shape in parts)
        else:
            total += matrix_bytes(parts)
    return total


def model_formats(tensors: TensorKinds) -> tuple[set[QuantFormat], QuantFormat]:
    """The formats of a model's matrices, and that of its embedding."""
    stacks = [[tensors[name] for name in names] for names in _stacked_names(tensors)]
    formats = {stack_format(kind for kind, _ in parts) for parts in stacks if len(parts[0][1]) == 2}
    return formats, tile_format(tensors[_EMBEDDING][0])


def _stacked_names(tensors: TensorKinds) -> list[tuple[str, ...]]:
    """Names of what becomes one weight each."""
    found: dict[str, list[str]] = {}
    for name in tensors:
        key = name
        for stack in _STACKS:
            for part in stack:
                key = key.replace(f".{part}.", f".{stack[0]}.")
        found.setdefault(key, []).append(name)
    return [tuple(names) for names in found.values()]


def kv_page_bytes(spec: ModelSpec) -> int:
    """Bytes of one page over all layers, keys and values."""
    return spec.num_layers * 2 * PAGE_SIZE * spec.kv_size * 2


def check_shape(spec: ModelSpec) -> None:
    """Raises BackendUnavailableError where the kernels do not take a model's shape."""
    for name, value, multiple in (
        ("hidden size", spec.hidden_size, 16),
        ("intermediate size", spec.intermediate_size, TILE_ROWS),
        ("width of the queries", spec.q_size, TILE_ROWS),
        ("width of the keys", spec.kv_size, TILE_ROWS),
    ):
        if value % multiple:
            raise BackendUnavailableError(
                "cuda", f"the model's {name} is {value}, but the GPU's kernels take multiples of {multiple}."
            )
    if spec.head_dim not in HEAD_DIMS:
        raise BackendUnavailableError(
            "cuda", f"the model's heads are {spec.head_dim} wide, but the GPU's kernels take {HEAD_DIMS}."
        )


@dataclass(frozen=True, slots=True)
class Regions:
    """Parts of one allocation: name, offset and size in bytes."""

    offsets: Mapping[str, int]
    nbytes: int

    @classmethod
    def of(cls, sizes: Mapping[str, int]) -> Regions:
        """Parts one after the other, aligned."""
        offsets, total = {}, 0
        for name, size in sizes.items():
            offsets[name] = total
            total += aligned(size)
        return cls(offsets, total)


def max_pages(spec: ModelSpec) -> int:
    """Pages of the longest sequence that the model was trained for."""
    return -(-spec.max_context // PAGE_SIZE)


def widest(spec: ModelSpec) -> int:
    """Columns of the widest matrix, padded to tiles."""
    width = max(spec.hidden_size, spec.q_size, spec.intermediate_size)
    return -(-width // TILE_COLUMNS) * TILE_COLUMNS


def step_regions(spec: ModelSpec, tokens: int, pages: int, activation_bytes: int) -> Regions:
    """What a step reads and writes, beside what attention and sampler keep for themselves.

    Args:
        tokens: most of a step.
        pages: width of the page tables.
        activation_bytes: of the products' input in 8 bits.
    """
    number = 4
    lasting = Regions.of(
        {
            "hidden": number * tokens * spec.hidden_size,
            "taken": number * MAX_ROWS * spec.hidden_size,
            "batch": prefill_arrays(tokens, pages).nbytes,
            "rows": decode_arrays(pages).nbytes,
            "activations": activation_bytes,
        }
    )
    # A layer's attention is over when its MLP begins, and all layers are when the head does.
    phases = (
        Regions.of(
            {
                "qkv": number * tokens * (spec.q_size + 2 * spec.kv_size),
                "attention": number * tokens * spec.q_size,
            }
        ),
        Regions.of({"gated": number * tokens * spec.intermediate_size}),
        Regions.of({"logits": number * MAX_ROWS * spec.vocab_size}),
    )
    offsets = dict(lasting.offsets)
    for phase in phases:
        offsets |= {name: lasting.nbytes + offset for name, offset in phase.offsets.items()}
    return Regions(offsets, lasting.nbytes + max(phase.nbytes for phase in phases))


def prefill_arrays(tokens: int, pages: int) -> Regions:
    """The int32 arrays of a prefill step, uploaded as one."""
    return Regions.of(
        {
            "token_ids": 4 * tokens,
            "positions": 4 * tokens,
            "query_starts": 4 * (MAX_ROWS + 1),
            "context_lengths": 4 * MAX_ROWS,
            "logit_rows": 4 * MAX_ROWS,
            "page_tables": 4 * MAX_ROWS * pages,
        }
    )


def decode_arrays(pages: int) -> Regions:
    """The int32 arrays of the sampler's rows; the first ones decode, and have page tables."""
    return Regions.of(
        {
            "token_ids": 4 * SAMPLER_ROWS,
            "positions": 4 * SAMPLER_ROWS,
            "context_lengths": 4 * SAMPLER_ROWS,
            "page_tables": 4 * MAX_ROWS * pages,
        }
    )
