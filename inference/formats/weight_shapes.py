"""What tensors a model of a given spec has, under Hugging Face's names, and whether a file has just these."""

from __future__ import annotations

import math
from collections.abc import Mapping

from inference.errors import ModelFormatError, UnsupportedModelError
from inference.models.model_spec import ModelSpec

# Ranges that cover every dense model there is; what lies outside is a damaged file, not a large model.
MAX_LAYERS = 1_024
MAX_WIDTH = 1_048_576
MAX_VOCABULARY = 4_194_304
MAX_CONTEXT = 1 << 30

Shape = tuple[int, ...]


def weight_shapes(spec: ModelSpec) -> dict[str, Shape]:
    """Every tensor that the decoder reads, by name: (N, K) for a matrix, (N,) for a vector."""
    hidden, intermediate = spec.hidden_size, spec.intermediate_size
    shapes: dict[str, Shape] = {"model.embed_tokens.weight": (spec.vocab_size, hidden), "model.norm.weight": (hidden,)}
    if not spec.tied_head:
        shapes["lm_head.weight"] = (spec.vocab_size, hidden)
    for layer in range(spec.num_layers):
        prefix = f"model.layers.{layer}."
        shapes[prefix + "input_layernorm.weight"] = (hidden,)
        shapes[prefix + "post_attention_layernorm.weight"] = (hidden,)
        for name, size in (("q", spec.q_size), ("k", spec.kv_size), ("v", spec.kv_size)):
            shapes[f"{prefix}self_attn.{name}_proj.weight"] = (size, hidden)
            if spec.qkv_bias:
                shapes[f"{prefix}self_attn.{name}_proj.bias"] = (size,)
        shapes[prefix + "self_attn.o_proj.weight"] = (hidden, spec.q_size)
        if spec.qk_norm:
            shapes[prefix + "self_attn.q_norm.weight"] = (spec.head_dim,)
            shapes[prefix + "self_attn.k_norm.weight"] = (spec.head_dim,)
        shapes[prefix + "mlp.gate_proj.weight"] = (intermediate, hidden)
        shapes[prefix + "mlp.up_proj.weight"] = (intermediate, hidden)
        shapes[prefix + "mlp.down_proj.weight"] = (hidden, intermediate)
    return shapes


def check_spec(spec: ModelSpec, file_name: str) -> None:
    """Raises ModelFormatError, with the field, the value and the limit, where a number of the spec is out of range."""

    def check(field: str, value: float, low: float, high: float) -> None:
        if not (math.isfinite(value) and low <= value <= high):
            raise ModelFormatError(
                f"{file_name} states {field} = {value}, but it must be between {low} and {high}. Fetch the model again."
            )

    check("num_layers", spec.num_layers, 1, MAX_LAYERS)
    check("num_kv_heads", spec.num_kv_heads, 1, spec.num_q_heads)
    for field in ("hidden_size", "intermediate_size", "num_q_heads", "q_size", "kv_size"):
        check(field, getattr(spec, field), 1, MAX_WIDTH)
    check("head_dim", spec.head_dim, 2, 4_096)
    check("vocab_size", spec.vocab_size, 1, MAX_VOCABULARY)
    check("max_context", spec.max_context, 1, MAX_CONTEXT)
    check("rms_norm_eps", spec.rms_norm_eps, 1e-12, 1.0)
    check("rope_theta", spec.rope_theta, 1.0, 1e12)
    if spec.rope_scaling is not None:
        check("the rope scaling factor", spec.rope_scaling.factor, 1e-3, 1e6)
        check("low_freq_factor", spec.rope_scaling.low_freq_factor, 1e-3, 1e6)
        check("high_freq_factor", spec.rope_scaling.high_freq_factor, 1e-3, 1e6)
        check("the original context", spec.rope_scaling.original_context, 1, MAX_CONTEXT)
    for factor in spec.rope_factors:
        check("a rope factor", factor, 1e-6, 1e6)
    if spec.num_q_heads % spec.num_kv_heads or spec.head_dim % 2:
        raise ModelFormatError(
            f"{file_name} states {spec.num_q_heads} query heads for {spec.num_kv_heads} key heads of {spec.head_dim},"
            " but the first must be a multiple of the second, and the last even. Fetch the model again."
        )


def check_weights(spec: ModelSpec, found: Mapping[str, Shape], file_name: str) -> None:
    """Compares the tensors of a file with what its spec asks for.

    Raises:
        ModelFormatError: a tensor is missing or has another shape.
        UnsupportedModelError: there is a tensor that the decoder would not apply: ignoring it would give wrong answers.
    """
    wanted = weight_shapes(spec)
    for name, shape in wanted.items():
        if name not in found:
            raise ModelFormatError(f"{file_name} lacks the tensor {name!r} {shape}. Fetch the model again.")
        if found[name] != shape:
            raise ModelFormatError(
                f"{file_name} has {name!r} of shape {found[name]}, but its configuration asks for {shape}."
                " Fetch the model again."
            )
    for name in found:
        if name not in wanted:
            raise UnsupportedModelError(
                f"{file_name} has the tensor {name!r}, which a plain {spec.architecture} model does not have and this"
                " engine would not apply. Take another variant of the model."
            )
