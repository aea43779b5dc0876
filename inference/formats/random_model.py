"""Models of published shapes with random weights: speed and memory without a checkpoint.

A name is `random:SHAPE:SCHEME`, for example `random:qwen2.5-3b:w4`. The weights are drawn once for each format and
width and then repeated, so that a 7B is there in seconds; their scale keeps activations finite. What it says is noise.
"""

from __future__ import annotations

import difflib
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from inference.errors import ModelFormatError, ModelNotFoundError
from inference.formats.model_source import WeightTensor
from inference.formats.weight_shapes import weight_shapes
from inference.models.model_spec import ModelSpec
from inference.text.byte_alphabet import characters_by_byte
from inference.text.tokenizer_data import TokenizerData
from kernels.weights.quant_format import QuantFormat

PREFIX = "random:"
_POOL_BYTES = 8 << 20
"""Bytes that are drawn for each format and width."""
_CONTROL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


def _qwen(layers: int, hidden: int, intermediate: int, heads: int, kv_heads: int, tied: bool = True) -> ModelSpec:
    return ModelSpec(
        architecture="qwen2",
        num_layers=layers,
        hidden_size=hidden,
        intermediate_size=intermediate,
        num_q_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=hidden // heads,
        vocab_size=151_936 if hidden < 3584 else 152_064,
        max_context=32_768,
        rms_norm_eps=1e-6,
        rope_theta=1e6,
        qkv_bias=True,
        tied_head=tied,
    )


SHAPES: dict[str, ModelSpec] = {
    "qwen2.5-0.5b": _qwen(24, 896, 4864, 14, 2),
    "qwen2.5-1.5b": _qwen(28, 1536, 8960, 12, 2),
    "qwen2.5-3b": _qwen(36, 2048, 11_008, 16, 2),
    "qwen2.5-7b": _qwen(28, 3584, 18_944, 28, 4, tied=False),
    "smollm2-135m": ModelSpec(
        "llama", 30, 576, 1536, 9, 3, 64, vocab_size=49_152, max_context=8192, rms_norm_eps=1e-5, rope_theta=1e5,
        tied_head=True,
    ),
    "llama3.1-8b": ModelSpec(
        "llama", 32, 4096, 14_336, 32, 8, 128, vocab_size=128_256, max_context=131_072, rms_norm_eps=1e-5,
        rope_theta=5e5,
    ),
    "qwen3-4b": ModelSpec(
        "qwen3", 36, 2560, 9728, 32, 8, 128, vocab_size=151_936, max_context=40_960, rms_norm_eps=1e-6, rope_theta=1e6,
        qk_norm=True, tied_head=True,
    ),
}  # fmt: skip
"""As their publishers state them."""

SCHEMES: dict[str, tuple[str, str]] = {
    "w4": ("w4g128", "w4g128"),
    "mixed": ("w4g128", "w3g128"),
    "w3": ("w3g128", "w3g128"),
    "w8": ("w8g32", "w8g32"),
}
"""Formats of attention and embedding, and of MLP and an untied head."""


class RandomModel:
    """A ModelSource whose weights are drawn when they are asked for; equal names give equal weights.

    Args:
        spec: any shape; None is the one that `name` says.
    """

    def __init__(self, name: str, spec: ModelSpec | None = None) -> None:
        """Reads the name.

        Raises:
            ModelNotFoundError: no such shape or scheme.
        """
        shape, _, scheme = name.removeprefix(PREFIX).partition(":")
        scheme = scheme or "w4"
        if spec is None and shape not in SHAPES:
            near = difflib.get_close_matches(shape, SHAPES, n=3, cutoff=0.4) or list(SHAPES)
            raise ModelNotFoundError(f"There is no random model of the shape {shape!r}; there is {', '.join(near)}.")
        if scheme not in SCHEMES:
            raise ModelNotFoundError(f"There is no scheme {scheme!r} of random weights; there is {', '.join(SCHEMES)}.")
        self.path = Path(name.replace(":", "-"))
        self.spec = spec or SHAPES[shape]
        self._shapes = weight_shapes(self.spec)
        self._scheme = SCHEMES[scheme]
        self._pools: dict[tuple[str, int], NDArray[np.uint8]] = {}
        self._names = {name: index for index, name in enumerate(self._shapes)}

    def tensor_names(self) -> tuple[str, ...]:
        """See ModelSource."""
        return tuple(self._shapes)

    def tensor_kind(self, name: str) -> tuple[str, tuple[int, ...]]:
        """See ModelSource."""
        shape = self._shapes.get(name)
        if shape is None:
            raise ModelFormatError(f"The random model has no tensor {name!r}.")
        if len(shape) == 1:
            return "f32", shape
        attention, others = self._scheme
        return (others if ".mlp." in name or name == "lm_head.weight" else attention), shape

    def tensor(self, name: str) -> WeightTensor:
        """See ModelSource. Norms are about one, biases about zero."""
        kind, shape = self.tensor_kind(name)
        index = self._names[name]
        if len(shape) == 1:
            drawn = np.random.default_rng(index).standard_normal(shape[0], dtype=np.float32)
            values = 0.1 * drawn + (0.0 if name.endswith(".bias") else 1.0)
            return WeightTensor(name, shape, kind, values.astype(np.float32).view(np.uint8).reshape(1, -1))
        pool = self._pool(kind, shape[1])
        of_format = QuantFormat.parse(kind)
        nbytes = of_format.nbytes(*shape)
        # Each tensor begins elsewhere in the pool, at a tile.
        start = index * 977 % (pool.size // of_format.tile_bytes) * of_format.tile_bytes
        data = np.empty(nbytes, np.uint8)
        done = 0
        while done < nbytes:
            part = pool[start : start + nbytes - done]
            data[done : done + part.size] = part
            done, start = done + part.size, 0
        return WeightTensor(name, shape, kind, data.reshape(1, -1))

    def _pool(self, kind: str, columns: int) -> NDArray[np.uint8]:
        pool = self._pools.get((kind, columns))
        if pool is None:
            pool = self._pools[kind, columns] = _random_tiles(QuantFormat.parse(kind), columns)
        return pool

    def tokenizer_data(self) -> TokenizerData:
        """Bytes, three control tokens, and an invented word for every other id."""
        characters = characters_by_byte()
        count = self.spec.vocab_size - len(characters) - len(_CONTROL)
        words = [f"Ġ{_word(index)}" for index in range(count)]
        return TokenizerData(
            tokens=(*characters, *_CONTROL, *words),
            token_types=(1,) * len(characters) + (3,) * len(_CONTROL) + (1,) * count,
            pre_tokenizer="qwen2",
            eos_token_ids=(len(characters) + 2,),
            eos_token=_CONTROL[2],
        )

    def close(self) -> None:
        """See ModelSource."""
        self._pools.clear()


def _random_tiles(of_format: QuantFormat, columns: int) -> NDArray[np.uint8]:
    """Tiles of random codes whose weights have a standard deviation of 1 / sqrt(columns)."""
    count = _POOL_BYTES // of_format.tile_bytes
    rng = np.random.default_rng([of_format.bits, of_format.group_size, columns])
    tiles = np.frombuffer(rng.bytes(count * of_format.tile_bytes), np.uint8).reshape(count, -1).copy()
    numbers = tiles[:, of_format.code_bytes :].view(np.float16)
    spread = (1 << of_format.bits) / math.sqrt(12.0)
    scales = of_format.groups * 16
    numbers[:, :scales] = rng.uniform(0.5, 1.5, (count, scales)) / (spread * math.sqrt(columns))
    # A code is half below zero on average; without minima that stays.
    numbers[:, scales:] = 0.5 * numbers[:, : numbers.shape[1] - scales]
    return tiles.reshape(-1)


def _word(index: int) -> str:
    letters = "etaoinsrhdlucmfywgpbvkxqjz"
    text = letters[index % 26]
    while index := index // 26:
        text += letters[index % 26]
    return f"{text}{letters[len(text)]}"
