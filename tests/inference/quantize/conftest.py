"""Tiny models to quantize, and what two readings of a model compute."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inference.backends.backend import Batch, create_backend
from inference.engine.decoder import Decoder, load_weights
from inference.formats.model_file import open_model
from inference.models.rope import inv_freq
from inference.text.tokenizer import Tokenizer

SIZES: dict[str, Any] = {"hidden_size": 64, "intermediate_size": 96}
"""Widths that the blocks of every backend divide; one tile is wider than either."""


@pytest.fixture(scope="session")
def tiny_model(save_tiny_model: Callable[..., Path]) -> Callable[..., Path]:
    """`tiny_model(family, **config)`: as save_tiny_model, in sizes that all backends take; made once for each call."""
    made: dict[str, Path] = {}

    def get(family: str, **changes: Any) -> Path:
        key = repr((family, sorted(changes.items())))
        if key not in made:
            made[key] = save_tiny_model(family, **{**SIZES, **changes})
        return made[key]

    return get


@pytest.fixture
def logits_of() -> Callable[..., np.ndarray]:
    """`logits_of(path, backend, **options)`: float32 (tokens, vocabulary) of 40 tokens, random ones or of a text."""

    def compute(path: Path, name: str, text: str = "", **options: Any) -> np.ndarray:
        source = open_model(path)
        backend = create_backend(name, **options)
        try:
            decoder = Decoder(source.spec, backend, load_weights(source, backend))
            backend.allocate(source.spec, inv_freq(source.spec), 1, 64)
            ids = np.random.default_rng(3).integers(0, source.spec.vocab_size, 40).astype(np.int32)
            if text:
                ids = np.array(Tokenizer.from_data(source.tokenizer_data()).encode_text(text)[:40], np.int32)
            count = np.array([len(ids)], np.int32)
            rows = np.arange(len(ids), dtype=np.int32)
            starts = np.array([0, len(ids)], np.int32)
            batch = Batch(ids, rows, starts, count, np.zeros((1, 1), np.int32), rows)
            logits = decoder.forward(batch)
            assert logits is not None
            return logits.copy()
        finally:
            backend.close()
            source.close()

    return compute
