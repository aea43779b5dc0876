"""How an engine is to be built. Pure data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Choices of the user; the defaults fit most machines.

    Attributes:
        backend: "auto" takes the GPU where it works and holds the model, else our own kernels on the CPU, and torch
            where they cannot be built; else a name of the registry.
        threads: None is left to the backend.
        context_tokens: tokens that prompt and answer may have together, cut to what the model was trained for; None
            is the largest up to `DEFAULT_CONTEXT_TOKENS` that fits the memory.
        models_dir: where fetched models lie; None is the user's data directory.
        vram_bytes: the most that the engine takes of the GPU's memory; None is all that is free.
        prefill_chunk: most prompt tokens of a step; None is the backend's choice.
        lock_dir: where processes tell each other which model is resident; None is the user's state directory.
        prepares_grammars: prepares the vocabulary for grammars when nothing has been asked for a moment, so that the
            first answer with one does not hold up others. It stops every thread for 0.2 s: not for windows.
    """

    backend: str = "auto"
    threads: int | None = None
    context_tokens: int | None = None
    models_dir: Path | None = None
    vram_bytes: int | None = None
    prefill_chunk: int | None = None
    lock_dir: Path | None = None
    prepares_grammars: bool = False


DEFAULT_CONTEXT_TOKENS = 8192
