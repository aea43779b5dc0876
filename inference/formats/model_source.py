"""The seam between files and the engine: what every reader of a model offers.

Tensor names are Hugging Face's state-dict names in every format ("model.layers.0.self_attn.q_proj.weight",
"model.layers.0.mlp.gate_proj.weight", "model.layers.0.input_layernorm.weight", "model.embed_tokens.weight",
"model.norm.weight", "lm_head.weight", "model.layers.0.self_attn.q_norm.weight", ...), and Q and K rows are always in
Hugging Face's half-split RoPE order: a reader of a format that stores them otherwise permutes the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from inference.models.model_spec import ModelSpec
from inference.text.tokenizer_data import TokenizerData


@dataclass(frozen=True, slots=True, eq=False)
class WeightTensor:
    """One tensor as it lies in the file, not dequantized.

    Attributes:
        shape: logical shape, (N, K) for a matrix, (N,) for a vector.
        kind: "f32", "f16", "bf16", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q4_k", "q5_k" or "q6_k" (ggml's types); of
            our own checkpoints a name of kernels/weights/quant_format.py such as "w4g128".
        data: uint8, C-contiguous, the rows' bytes one after the other: (N, row_bytes), or (1, bytes) for a vector and
            for tiles. May be a view of a mapped file: copy what has to outlive the source.
    """

    name: str
    shape: tuple[int, ...]
    kind: str
    data: NDArray[np.uint8]


class ModelSource(Protocol):
    """An open model. Opening checks all sizes; nothing is read before `tensor` is called."""

    path: Path
    spec: ModelSpec

    def tensor_names(self) -> tuple[str, ...]:
        """All tensors, in file order."""
        ...

    def tensor_kind(self, name: str) -> tuple[str, tuple[int, ...]]:
        """Kind and shape of a tensor without reading it."""
        ...

    def tensor(self, name: str) -> WeightTensor:
        """Reads (or maps) one tensor. Raises ModelFormatError where the model lacks it."""
        ...

    def tokenizer_data(self) -> TokenizerData:
        """Vocabulary, merges, control tokens and chat template."""
        ...

    def close(self) -> None:
        """Unmaps the file; views handed out become invalid."""
        ...
