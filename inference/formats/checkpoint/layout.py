"""Which tensors lie in which file of a checkpoint, and which of them are stored as one.

Q, K and V are one matrix, gate and up another, because every backend computes them as one. Their tiles lie one after
the other, so a part is a slice of the bytes; a model whose parts do not end with a tile has them apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inference.formats.weight_shapes import Shape, weight_shapes
from inference.models.model_spec import ModelSpec
from kernels.weights.quant_format import TILE_ROWS

EMBED_FILE, NORM_FILE, HEAD_FILE = "embed.safetensors", "norm.safetensors", "head.safetensors"
EMBEDDING, NORM, HEAD = "model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One tensor of a file.

    Attributes:
        parts: names under which it is read, in order, and the rows of each (of a vector: its values).
        columns: 0 for a vector.
    """

    name: str
    parts: tuple[tuple[str, int], ...]
    columns: int = 0

    @property
    def rows(self) -> int:
        """Of all parts."""
        return sum(rows for _, rows in self.parts)

    @property
    def is_matrix(self) -> bool:
        """Stored in tiles; else float32."""
        return self.columns > 0

    def part_shape(self, rows: int) -> Shape:
        """Shape of a part of so many rows."""
        return (rows, self.columns) if self.is_matrix else (rows,)


@dataclass(frozen=True, slots=True)
class LayoutFile:
    """One file; matrices come first, since their sizes keep them aligned."""

    name: str
    tensors: tuple[StoredTensor, ...]


def checkpoint_layout(spec: ModelSpec) -> tuple[LayoutFile, ...]:
    """The files with weights of a model, in the order in which they are written."""
    shapes = weight_shapes(spec)
    files = [LayoutFile(EMBED_FILE, (_single(EMBEDDING, shapes[EMBEDDING]),))]
    digits = max(2, len(str(spec.num_layers - 1)))
    for layer in range(spec.num_layers):
        files.append(LayoutFile(f"layer_{layer:0{digits}}.safetensors", _layer(shapes, f"model.layers.{layer}.")))
    files.append(LayoutFile(NORM_FILE, (_single(NORM, shapes[NORM]),)))
    if not spec.tied_head:
        files.append(LayoutFile(HEAD_FILE, (_single(HEAD, shapes[HEAD]),)))
    return tuple(files)


def _single(name: str, shape: Shape) -> StoredTensor:
    return StoredTensor(name, ((name, shape[0]),), shape[1] if len(shape) == 2 else 0)


def _layer(shapes: dict[str, Shape], prefix: str) -> tuple[StoredTensor, ...]:
    attention, mlp = f"{prefix}self_attn.", f"{prefix}mlp."
    qkv = [f"{attention}{name}_proj." for name in "qkv"]
    gate_up = [f"{mlp}{name}_proj." for name in ("gate", "up")]
    tensors = [
        *_fused(shapes, f"{attention}qkv_proj.", qkv, "weight"),
        _single(f"{attention}o_proj.weight", shapes[f"{attention}o_proj.weight"]),
        *_fused(shapes, f"{mlp}gate_up_proj.", gate_up, "weight"),
        _single(f"{mlp}down_proj.weight", shapes[f"{mlp}down_proj.weight"]),
    ]
    vectors = ("input_layernorm.weight", "self_attn.q_norm.weight", "self_attn.k_norm.weight")
    for name in (*vectors, "post_attention_layernorm.weight"):
        if prefix + name in shapes:
            tensors.append(_single(prefix + name, shapes[prefix + name]))
    if f"{qkv[0]}bias" in shapes:
        tensors += _fused(shapes, f"{attention}qkv_proj.", qkv, "bias")
    return tuple(tensors)


def _fused(shapes: dict[str, Shape], name: str, prefixes: Sequence[str], suffix: str) -> list[StoredTensor]:
    """The parts as one tensor, or as they are where one of their matrices does not end with a tile."""
    if any(shapes[f"{prefix}weight"][0] % TILE_ROWS for prefix in prefixes):
        return [_single(f"{prefix}{suffix}", shapes[f"{prefix}{suffix}"]) for prefix in prefixes]
    parts = tuple((f"{prefix}{suffix}", shapes[f"{prefix}{suffix}"][0]) for prefix in prefixes)
    return [StoredTensor(f"{name}{suffix}", parts, shapes[f"{prefixes[0]}weight"][1] if suffix == "weight" else 0)]
