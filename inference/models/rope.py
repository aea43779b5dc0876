"""Rotary position embedding: the rotation per position of each frequency, scaling included."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inference.errors import UnsupportedModelError
from inference.models.model_spec import ModelSpec, RopeScaling


def inv_freq(spec: ModelSpec) -> NDArray[np.float64]:
    """Radians per position of each frequency.

    Args:
        spec: its `rope_factors` already hold Llama 3's scaling (GGUF writes it so), which is then not applied again.

    Returns:
        (head_dim / 2,) float64.

    Raises:
        UnsupportedModelError: a scaling of another kind, or a number of factors that does not match the head.

    Source: Su et al., RoFormer (2021); Llama 3.1's scaling as published with its weights.
    """
    half = spec.head_dim // 2
    freq = spec.rope_theta ** -(np.arange(half, dtype=np.float64) / half)
    if spec.rope_factors:
        if len(spec.rope_factors) != half:
            raise UnsupportedModelError(
                f"The model has {len(spec.rope_factors)} RoPE factors, but a head of {spec.head_dim} needs {half}."
            )
        freq = freq / np.asarray(spec.rope_factors, dtype=np.float64)
    scaling = spec.rope_scaling
    if scaling is None:
        return freq
    if scaling.kind == "linear":
        return freq / scaling.factor
    if scaling.kind == "llama3":
        return freq if spec.rope_factors else _llama3(freq, scaling)
    raise UnsupportedModelError(f"RoPE scaling {scaling.kind!r} is not supported, only 'linear' and 'llama3' are.")


def _llama3(freq: NDArray[np.float64], scaling: RopeScaling) -> NDArray[np.float64]:
    """Long waves are stretched by `factor`, short ones kept, and those between are blended."""
    turns = scaling.original_context * freq / (2.0 * np.pi)
    low, high = scaling.low_freq_factor, scaling.high_freq_factor
    keep = np.clip((turns - low) / (high - low), 0.0, 1.0)
    return freq * (keep + (1.0 - keep) / scaling.factor)
