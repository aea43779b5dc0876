"""What the matrices of a model see of a text: a forward pass in float32, one layer after the other, streamed.

The pass holds the hidden states of the text and the matrices a few rows at a time, so that a model of any size needs
no more memory than the widest layer's activations of the text. It runs on the weights of the source, not on rounded
ones: each layer's result depends on nothing that was written.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inference.errors import InvalidRequestError
from inference.formats.checkpoint.layout import EMBEDDING, NORM
from inference.models.model_spec import ModelSpec
from inference.models.rope import inv_freq
from inference.quantize.curvature import Curvature, curvature_of
from inference.quantize.weight_stream import WeightStream

SEQUENCE = 512
"""Tokens that see each other."""
LEAST_TOKENS = 256

Floats = NDArray[np.float32]


def check_length(num_tokens: int) -> None:
    """Raises InvalidRequestError for a text that is too short to say anything."""
    if num_tokens < LEAST_TOKENS:
        raise InvalidRequestError(
            f"The text to calibrate with has {num_tokens} tokens, but it must have {LEAST_TOKENS} or more. Give a"
            " longer text: 20 kB are enough."
        )


class Calibration:
    """A text on its way through a model. Ask for the layers in order, then for the head."""

    def __init__(self, stream: WeightStream, spec: ModelSpec, token_ids: Sequence[int]) -> None:
        """Looks the tokens up.

        Args:
            token_ids: of a text like those that the model will be used on; 4096 are enough.

        Raises:
            InvalidRequestError: too few tokens.
        """
        check_length(len(token_ids))
        self._stream, self._spec = stream, spec
        self._layer = 0
        ids = np.asarray(token_ids)
        self._x = np.empty((len(ids), spec.hidden_size), np.float32)
        first = 0
        for rows in stream.slices(EMBEDDING):
            here = (ids >= first) & (ids < first + len(rows))
            self._x[here] = rows[ids[here] - first]
            first += len(rows)

    def layer(self, index: int, *, wanted: bool = True) -> dict[str, Curvature]:
        """Takes the text through a layer.

        Args:
            wanted: False saves the curvatures, and returns none.

        Returns:
            By the module that reads the inputs: "self_attn.qkv_proj", "self_attn.o_proj", "mlp.gate_up_proj",
            "mlp.down_proj".
        """
        assert index == self._layer, "layers come in order"
        self._layer += 1
        prefix, found = f"model.layers.{index}.", {}

        def seen(name: str, inputs: Floats) -> None:
            if wanted:
                found[name] = curvature_of(inputs)

        normed = self._norm(self._x, f"{prefix}input_layernorm.weight")
        seen("self_attn.qkv_proj", normed)
        mixed = self._attention(normed, f"{prefix}self_attn.")
        seen("self_attn.o_proj", mixed)
        self._x += self._linear(mixed, f"{prefix}self_attn.o_proj.weight")
        normed = self._norm(self._x, f"{prefix}post_attention_layernorm.weight")
        seen("mlp.gate_up_proj", normed)
        gated = self._linear(normed, f"{prefix}mlp.gate_proj.weight")
        gated /= 1 + np.exp(-np.clip(gated, -80, None))
        gated *= self._linear(normed, f"{prefix}mlp.up_proj.weight")
        seen("mlp.down_proj", gated)
        self._x += self._linear(gated, f"{prefix}mlp.down_proj.weight")
        return found

    def head(self) -> Curvature:
        """What the head sees, after all layers."""
        assert self._layer == self._spec.num_layers, "the head comes after all layers"
        return curvature_of(self._norm(self._x, NORM))

    def _norm(self, x: Floats, name: str) -> Floats:
        scale = 1 / np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + np.float32(self._spec.rms_norm_eps))
        normed: Floats = x * scale * self._stream.vector(name)
        return normed

    def _linear(self, x: Floats, name: str) -> Floats:
        return np.concatenate([x @ rows.T for rows in self._stream.slices(name)], axis=1)

    def _attention(self, normed: Floats, prefix: str) -> Floats:
        spec = self._spec
        heads = {}
        for name in "qkv":
            projected = self._linear(normed, f"{prefix}{name}_proj.weight")
            if spec.qkv_bias:
                projected += self._stream.vector(f"{prefix}{name}_proj.bias")
            heads[name] = projected.reshape(len(normed), -1, spec.head_dim)
            if spec.qk_norm and name != "v":
                heads[name] = self._norm(heads[name], f"{prefix}{name}_norm.weight")
        mixed = np.empty((len(normed), spec.q_size), np.float32)
        for start in range(0, len(normed), SEQUENCE):
            q, k, v = (heads[name][start : start + SEQUENCE] for name in "qkv")
            mixed[start : start + SEQUENCE] = self._attend(self._rotated(q), self._rotated(k), v)
        return mixed

    def _rotated(self, x: Floats) -> Floats:
        angles = np.arange(len(x))[:, None] * inv_freq(self._spec)
        cos, sin = (part.astype(np.float32)[:, None] for part in (np.cos(angles), np.sin(angles)))
        first, second = np.split(x, 2, axis=-1)
        return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)

    def _attend(self, q: Floats, k: Floats, v: Floats) -> Floats:
        """Causal attention of one sequence, (S, q_size)."""
        spec = self._spec
        per_key = spec.num_q_heads // spec.num_kv_heads
        out = np.empty((len(q), spec.num_q_heads, spec.head_dim), np.float32)
        hidden = np.triu(np.ones((len(q), len(q)), bool), 1)
        for head in range(spec.num_q_heads):
            scores = q[:, head] @ k[:, head // per_key].T / np.float32(np.sqrt(spec.head_dim))
            scores[hidden] = -np.inf
            scores = np.exp(scores - scores.max(axis=1, keepdims=True))
            out[:, head] = (scores / scores.sum(axis=1, keepdims=True)) @ v[:, head // per_key]
        return out.reshape(len(q), -1)
