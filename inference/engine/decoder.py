"""The transformer, written once against Backend and ModelSpec: loading its weights and one forward step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from inference.backends.backend import Array, Backend, Batch, Weight
from inference.formats.model_source import ModelSource, WeightTensor
from inference.models.model_spec import ModelSpec

EMBEDDING = "model.embed_tokens.weight"
HEAD = "lm_head.weight"


class LoadStopped(Exception):
    """`should_stop` ended a load: a wish of the user, not an error. What was loaded so far is given up."""


@dataclass(frozen=True, slots=True, eq=False)
class LayerWeights:
    """Handles of one layer; `qkv` stacks Q, K and V, `gate_up` stacks gate and up; the head norms are Qwen3's."""

    attention_norm: Weight
    qkv: Weight
    q_norm: Weight | None
    k_norm: Weight | None
    output: Weight
    mlp_norm: Weight
    gate_up: Weight
    down: Weight


@dataclass(frozen=True, slots=True, eq=False)
class DecoderWeights:
    """Handles of a whole model, meaningful only to the backend that made them."""

    embedding: Weight
    layers: tuple[LayerWeights, ...]
    norm: Weight
    head: Weight


class _Loader:
    """Hands tensors of a source to a backend, one weight at a time; reports the share done, stops when asked to."""

    def __init__(
        self,
        source: ModelSource,
        backend: Backend,
        on_progress: Callable[[float], None] | None,
        should_stop: Callable[[], bool] | None,
    ) -> None:
        self._source, self._backend = source, backend
        self._on_progress, self._should_stop = on_progress, should_stop
        self._done = 0
        self._total = max(1, sum(self._bytes(name) for name in source.tensor_names()))

    def _bytes(self, name: str) -> int:
        return self._backend.planned_weight_bytes(*self._source.tensor_kind(name))

    def _tensor(self, name: str) -> WeightTensor:
        if self._should_stop is not None and self._should_stop():
            raise LoadStopped
        return self._source.tensor(name)

    def _finished(self, *names: str) -> None:
        self._done += sum(self._bytes(name) for name in names)
        if self._on_progress is not None:
            self._on_progress(min(1.0, self._done / self._total))

    def vector(self, name: str) -> Weight:
        handle = self._backend.vector(self._tensor(name))
        self._finished(name)
        return handle

    def linear(self, prefix: str, names: tuple[str, ...], bias: bool = False) -> Weight:
        weights = [f"{prefix}{name}.weight" for name in names]
        biases = [f"{prefix}{name}.bias" for name in names] if bias else []
        handle = self._backend.linear_weight([self._tensor(n) for n in weights], [self._tensor(n) for n in biases])
        self._finished(*weights, *biases)
        return handle

    def embedding(self) -> Weight:
        handle = self._backend.embedding_weight(self._tensor(EMBEDDING))
        self._finished(EMBEDDING)
        return handle

    def head(self, embedding: Weight | None) -> Weight:
        name = HEAD if embedding is None else EMBEDDING
        handle = self._backend.head_weight(self._tensor(name), embedding)
        self._finished(*([name] if embedding is None else []))
        return handle


def load_weights(
    source: ModelSource,
    backend: Backend,
    on_progress: Callable[[float], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> DecoderWeights:
    """Streams a model into a backend: no more than the parts of one weight are held beside what the backend keeps.

    Args:
        on_progress: gets the share of bytes loaded, 0 to 1, after each weight.
        should_stop: asked before each tensor.

    Raises:
        LoadStopped: `should_stop` said so.
        ModelFormatError: a tensor is missing or damaged.
    """
    spec = source.spec
    loader = _Loader(source, backend, on_progress, should_stop)
    embedding = loader.embedding()
    layers = tuple(_load_layer(loader, spec, f"model.layers.{index}.") for index in range(spec.num_layers))
    norm = loader.vector("model.norm.weight")
    return DecoderWeights(embedding, layers, norm, loader.head(embedding if spec.tied_head else None))


def _load_layer(loader: _Loader, spec: ModelSpec, prefix: str) -> LayerWeights:
    attention = f"{prefix}self_attn."
    return LayerWeights(
        attention_norm=loader.vector(f"{prefix}input_layernorm.weight"),
        qkv=loader.linear(attention, ("q_proj", "k_proj", "v_proj"), spec.qkv_bias),
        q_norm=loader.vector(f"{attention}q_norm.weight") if spec.qk_norm else None,
        k_norm=loader.vector(f"{attention}k_norm.weight") if spec.qk_norm else None,
        output=loader.linear(attention, ("o_proj",)),
        mlp_norm=loader.vector(f"{prefix}post_attention_layernorm.weight"),
        gate_up=loader.linear(f"{prefix}mlp.", ("gate_proj", "up_proj")),
        down=loader.linear(f"{prefix}mlp.", ("down_proj",)),
    )


class Decoder:
    """A dense decoder-only transformer on one backend; holds no state of a sequence."""

    def __init__(self, spec: ModelSpec, backend: Backend, weights: DecoderWeights) -> None:
        self.spec = spec
        self._backend = backend
        self._weights = weights

    def forward(self, batch: Batch, should_stop: Callable[[], bool] | None = None) -> Array | None:
        """One step: appends keys and values of the batch's tokens to their pages.

        Args:
            should_stop: asked before each layer, so that a long prefill can be given up within a fraction of its time.

        Returns:
            Logits (L, vocab_size) of `batch.logit_rows`, as the backend gives them; None where `should_stop` ended the
            step. The pages then hold only part of the step, and the same step may simply be run again.
        """
        backend, weights, eps = self._backend, self._weights, self.spec.rms_norm_eps
        x = backend.embed(weights.embedding, batch)
        for index, layer in enumerate(weights.layers):
            if should_stop is not None and should_stop():
                return None
            qkv = backend.linear(backend.rms_norm(x, layer.attention_norm, eps), layer.qkv)
            q = backend.rope_append(qkv, index, layer.q_norm, layer.k_norm, batch)
            x = backend.add_linear(x, backend.attention(q, index, batch), layer.output)
            gated = backend.gated_linear(backend.rms_norm(x, layer.mlp_norm, eps), layer.gate_up)
            x = backend.add_linear(x, gated, layer.down)
        if len(batch.logit_rows) == 0:
            return np.empty((0, self.spec.vocab_size), dtype=np.float32)
        x = backend.rms_norm(backend.take_rows(x, batch.logit_rows), weights.norm, eps)
        return backend.logits(x, weights.head)
