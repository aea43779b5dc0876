"""Rotary frequencies against transformers' and against their definition."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import transformers
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from inference.errors import UnsupportedModelError
from inference.models.model_spec import ModelSpec, RopeScaling
from inference.models.rope import inv_freq

SPEC = ModelSpec(
    architecture="llama",
    num_layers=1,
    hidden_size=256,
    intermediate_size=8,
    num_q_heads=2,
    num_kv_heads=1,
    head_dim=128,
    vocab_size=8,
    max_context=131072,
    rms_norm_eps=1e-6,
    rope_theta=500000.0,
)
LLAMA3 = RopeScaling("llama3", factor=32.0, low_freq_factor=1.0, high_freq_factor=4.0, original_context=8192)


def test_plain_frequencies_follow_their_definition() -> None:
    freq = inv_freq(SPEC)
    assert freq.dtype == np.float64
    assert freq[0] == 1.0
    assert freq == pytest.approx([500000.0 ** (-2 * i / 128) for i in range(64)], rel=1e-14)


@pytest.mark.parametrize("factor", [2.0, 32.0])
def test_llama3_scaling_equals_transformers(factor: float) -> None:
    config = transformers.LlamaConfig(
        hidden_size=256,
        num_attention_heads=2,
        head_dim=128,
        max_position_embeddings=131072,
        rope_parameters={
            "rope_type": "llama3",
            "rope_theta": 500000.0,
            "factor": factor,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        },
    )
    wanted, attention_factor = ROPE_INIT_FUNCTIONS["llama3"](config, "cpu")
    assert attention_factor == 1.0
    spec = dataclasses.replace(SPEC, rope_scaling=dataclasses.replace(LLAMA3, factor=factor))
    np.testing.assert_allclose(inv_freq(spec), wanted.numpy(), rtol=2e-6)


def test_linear_scaling_divides_every_frequency() -> None:
    spec = dataclasses.replace(SPEC, rope_scaling=RopeScaling("linear", factor=4.0))
    np.testing.assert_array_equal(inv_freq(spec), inv_freq(SPEC) / 4.0)


def test_factors_divide_and_replace_the_llama3_scaling() -> None:
    factors = tuple(np.linspace(1.0, 32.0, 64))
    spec = dataclasses.replace(SPEC, rope_factors=factors)
    np.testing.assert_array_equal(inv_freq(spec), inv_freq(SPEC) / np.array(factors))
    both = dataclasses.replace(spec, rope_scaling=LLAMA3)
    np.testing.assert_array_equal(inv_freq(both), inv_freq(spec))


def test_unknown_scaling_and_wrong_number_of_factors_are_refused() -> None:
    with pytest.raises(UnsupportedModelError, match="yarn"):
        inv_freq(dataclasses.replace(SPEC, rope_scaling=RopeScaling("yarn", factor=4.0)))
    with pytest.raises(UnsupportedModelError, match="3 RoPE factors"):
        inv_freq(dataclasses.replace(SPEC, rope_factors=(1.0, 2.0, 3.0)))
