"""From a name to an engine: backends, plans, what is refused and what is closed again."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inference.backends.backend import Backend, create_backend
from inference.engine import loader
from inference.engine.decoder import LoadStopped
from inference.engine.loader import PlannedModel, choose_backend, open_engine
from inference.engine.options import EngineOptions
from inference.errors import (
    BackendUnavailableError,
    InvalidRequestError,
    ModelFormatError,
    ModelNotFoundError,
    OutOfMemoryError,
)
from inference.request import DoneEvent, GenerationRequest, Message, ModelState, SamplingParams

TORCH = EngineOptions(backend="torch", threads=1)


@pytest.fixture(scope="module")
def tiny(save_tiny_model: Callable[..., Path]) -> Path:
    return save_tiny_model("qwen3", tie_word_embeddings=True)


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[Backend]:
    """Backends that were closed."""
    found: list[Backend] = []

    def create(name: str, **options: Any) -> Backend:
        backend = create_backend(name, **options)
        close = backend.close

        def closing() -> None:
            found.append(backend)
            close()

        backend.close = closing  # type: ignore[method-assign]
        return backend

    monkeypatch.setattr(loader, "create_backend", create)
    return found


def test_an_engine_knows_what_it_took(tiny: Path) -> None:
    shares: list[float] = []
    engine = open_engine(str(tiny), TORCH, shares.append, lambda: False)
    assert shares[-1] == pytest.approx(1.0)
    reading = engine.reading()
    assert (reading.state, reading.backend, reading.model) == (ModelState.READY, "torch", str(tiny))
    assert reading.context_tokens == 512, "what the model was trained for"
    assert reading.pages_total == 8
    assert reading.weight_bytes > 0
    # Tokens, layers, keys and values, heads, their width, float16.
    assert reading.kv_bytes == 512 * 3 * 2 * 2 * 128 * 2
    assert reading.workspace_bytes > 0
    assert reading.peak_bytes == 0, "the host's memory has no allocator of ours"
    engine.add(GenerationRequest((Message("user", "hello"),), SamplingParams(max_new_tokens=5)))
    events = [event for _ in range(8) for event in engine.step()]
    assert isinstance(events[-1], DoneEvent)
    engine.close()


def test_a_vocabulary_larger_than_the_weights_is_refused_when_it_matters(tiny: Path) -> None:
    engine = open_engine(str(tiny), TORCH)
    with pytest.raises(ModelFormatError, match="does not belong to them"):
        engine.add(GenerationRequest((Message("user", "hello"),)), token_ids=[1, 2**31 - 1])
    assert not engine.has_work
    engine.close()


def test_memory_of_a_device_is_told_as_its_allocator_counts_it(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = open_engine(str(tiny), TORCH)
    backend = engine._backend
    monkeypatch.setattr(backend, "peak_bytes", 123)
    assert engine.reading().peak_bytes == 123
    engine.close()


def test_a_context_by_choice(tiny: Path) -> None:
    engine = open_engine(str(tiny), TORCH, context_tokens=128)
    assert (engine.reading().context_tokens, engine.reading().pages_total) == (128, 2)
    engine.close()


def test_the_fallback_says_why(tiny: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def create(name: str, **options: Any) -> Backend:
        if name == "cpu":
            raise BackendUnavailableError(name, "no compiler")
        return create_backend(name, **options)

    monkeypatch.setattr(loader, "create_backend", create)
    with caplog.at_level(logging.WARNING):
        planned = PlannedModel(str(tiny), EngineOptions())
    assert planned.fallback_reason == "no compiler"
    assert "no compiler" in caplog.text
    engine = planned.load()
    assert engine.reading().backend == "torch"
    engine.close()
    with pytest.raises(BackendUnavailableError, match="no compiler"):
        choose_backend(EngineOptions(backend="cpu"))
    with pytest.raises(BackendUnavailableError, match="there is none of that name"):
        choose_backend(EngineOptions(backend="abacus"))


def test_what_does_not_fit_is_refused_before_it_is_loaded_unless_the_resident_model_makes_room(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, closed: list[Backend]
) -> None:
    monkeypatch.setattr(loader, "available_bytes", lambda: 1000)
    with pytest.raises(OutOfMemoryError) as caught:
        PlannedModel(str(tiny), TORCH)
    assert caught.value.free_bytes == 1000
    assert len(closed) == 1
    planned = PlannedModel(str(tiny), TORCH, freed_bytes=caught.value.needed_bytes)
    assert planned.memory.total_bytes <= 1000 + caught.value.needed_bytes
    planned.close()
    planned.close()
    assert len(closed) == 2


def test_a_context_out_of_range_is_refused(tiny: Path, closed: list[Backend]) -> None:
    with pytest.raises(InvalidRequestError, match="64 or more"):
        open_engine(str(tiny), TORCH, context_tokens=1)
    assert len(closed) == 1


def test_a_stopped_load_closes_everything(tiny: Path, closed: list[Backend]) -> None:
    answers = iter([False] * 9 + [True])
    with pytest.raises(LoadStopped):
        open_engine(str(tiny), TORCH, None, lambda: next(answers))
    assert len(closed) == 1


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError):
        open_engine(str(tmp_path / "nothing.gguf"), TORCH)
    (tmp_path / "bad.gguf").write_bytes(b"not a model at all, whatever its name says")
    with pytest.raises(ModelFormatError):
        open_engine(str(tmp_path / "bad.gguf"), TORCH)


def test_the_memory_of_a_tied_head_is_counted_once(save_tiny_model: Callable[..., Path]) -> None:
    plans = {}
    for tied in (True, False):
        planned = PlannedModel(str(save_tiny_model("llama", tie_word_embeddings=tied)), TORCH)
        plans[tied] = planned.memory.weight_bytes
        planned.close()
    assert plans[False] - plans[True] == 311 * 48 * 2
