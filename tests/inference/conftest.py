"""Tiny random models of every family, as transformers saves them, and the real models that the store may hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TINY: dict[str, dict[str, Any]] = {
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 311,
    "max_position_embeddings": 512,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
}
"""Odd sizes on purpose; a test changes what it is about."""

MakeModel = Callable[..., Path]


@pytest.fixture(scope="session")
def save_tiny_model(tmp_path_factory: pytest.TempPathFactory) -> MakeModel:
    """`save_tiny_model(family, **config)` writes a random model and returns its directory."""
    import torch
    import transformers

    def save(family: str, **changes: Any) -> Path:
        configuration = {"qwen2": "Qwen2Config", "llama": "LlamaConfig", "qwen3": "Qwen3Config"}[family]
        config = getattr(transformers, configuration)(**{**TINY, **changes})
        torch.manual_seed(7)
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                # Norms and biases start as ones and zeros, which would hide a missing one.
                spread = 0.3 if "norm" in name or "bias" in name else 0.15
                parameter.add_(torch.randn_like(parameter), alpha=spread)
        path = tmp_path_factory.mktemp(family)
        model.save_pretrained(path)
        return path

    return save
