"""How an engine is to be built. Pure data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Choices of the user; the defaults fit most machines.

    Attributes:
        backend: "auto" takes our own kernels, and torch where they cannot be built; else a name of the registry.
        threads: None is left to the backend.
        context_tokens: tokens that prompt and answer may have together, cut to what the model was trained for; None
            is the largest up to `DEFAULT_CONTEXT_TOKENS` that fits the memory.
        models_dir: where fetched models lie; None is the user's data directory.
        prefill_chunk: most prompt tokens of a step; smaller answers a cancel sooner, larger computes faster.
        lock_dir: where processes tell each other which model is resident; None is the user's state directory.
    """

    backend: str = "auto"
    threads: int | None = None
    context_tokens: int | None = None
    models_dir: Path | None = None
    prefill_chunk: int = 256
    lock_dir: Path | None = None


DEFAULT_CONTEXT_TOKENS = 8192
