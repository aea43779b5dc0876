"""A worker over a tiny model, on the oracle."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from inference.engine.options import EngineOptions
from inference.engine.worker import Worker


@pytest.fixture(scope="module")
def tiny(save_tiny_model: Callable[..., Path]) -> str:
    return str(save_tiny_model("qwen2"))


@pytest.fixture
def options(tmp_path: Path) -> EngineOptions:
    return EngineOptions(backend="torch", threads=1, lock_dir=tmp_path, prefill_chunk=64)


@pytest.fixture
def worker(options: EngineOptions, tiny: str) -> Iterator[Worker]:
    worker = Worker(options, tiny)
    yield worker
    worker.close()
