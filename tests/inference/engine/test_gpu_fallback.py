"""What the loader does where there is a GPU: takes it, or says why not and takes the CPU."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from inference.backends import cuda_backend, cuda_plan
from inference.engine import loader
from inference.engine.decode_graph import DeviceRunner
from inference.engine.loader import PlannedModel, choose_backend
from inference.engine.options import EngineOptions
from inference.errors import OutOfMemoryError
from inference.formats.random_model import SHAPES, RandomModel
from inference.models.model_spec import ModelSpec
from inference.request import DoneEvent, GenerationRequest, Message, SamplingParams
from kernels.errors import DeviceError
from tests.inference.backends.emulated_gpu import EmulatedGpu

SPEC = ModelSpec("llama", 1, 64, 96, 2, 1, 64, vocab_size=371, max_context=512, rms_norm_eps=1e-6, rope_theta=1e4)


class NoBuilds:
    def __init__(self, *_: Any) -> None:
        pass

    def wait(self) -> None:
        pass

    cancel = wait


@pytest.fixture(autouse=True)
def emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_backend, "Device", EmulatedGpu)
    monkeypatch.setattr(cuda_backend, "BuildPool", NoBuilds)
    monkeypatch.setattr(loader, "has_nvidia_gpu", lambda: True)
    monkeypatch.setitem(SHAPES, "tiny", SPEC)


def test_auto_takes_the_gpu_and_answers() -> None:
    planned = PlannedModel("random:tiny:w4", EngineOptions())
    assert (planned.memory.device, planned.fallback_reason) == ("gpu0", "")
    engine = planned.load()
    assert isinstance(engine._runner, DeviceRunner)
    reading = engine.reading()
    assert (reading.backend, reading.context_tokens) == ("cuda", 512)
    assert 0 < reading.peak_bytes <= planned.memory.total_bytes
    engine.add(GenerationRequest((Message("user", "hello"),), SamplingParams(max_new_tokens=5)))
    events = [event for _ in range(12) if engine.has_work for event in engine.step()]
    assert isinstance(events[-1], DoneEvent)
    engine.close()


def test_a_machine_without_a_gpu_has_nothing_to_explain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "has_nvidia_gpu", lambda: False)
    chosen = choose_backend(EngineOptions())
    assert (chosen.backend.device, chosen.fallback_reason) == ("cpu", "")
    chosen.backend.close()


def test_a_gpu_that_does_not_work_is_why_the_cpu_computes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_driver(*_: Any) -> EmulatedGpu:
        raise DeviceError("the driver is too old. Update it")

    monkeypatch.setattr(cuda_backend, "Device", no_driver)
    with caplog.at_level(logging.WARNING):
        chosen = choose_backend(EngineOptions())
    assert chosen.backend.device == "cpu"
    assert "the driver is too old" in chosen.fallback_reason
    assert "the driver is too old" in caplog.text
    chosen.backend.close()


def test_what_the_gpu_does_not_hold_the_cpu_does_unless_the_gpu_was_asked_for() -> None:
    options = EngineOptions(vram_bytes=9 << 20)
    planned = PlannedModel("random:tiny:w4", options)
    assert planned.memory.device == "cpu"
    assert "MB on the GPU" in planned.fallback_reason
    planned.close()
    with pytest.raises(OutOfMemoryError, match="on the GPU"):
        PlannedModel("random:tiny:w4", EngineOptions(backend="cuda", vram_bytes=9 << 20))


def test_a_shape_that_the_gpu_does_not_take_runs_on_the_cpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cuda_plan, "HEAD_DIMS", (128,))
    planned = PlannedModel("random:tiny:w4", EngineOptions(models_dir=tmp_path))
    assert planned.memory.device == "cpu"
    assert "heads are 64 wide" in planned.fallback_reason
    planned.close()


def test_memory_that_a_resident_model_gives_back_counts_where_it_lies() -> None:
    options = EngineOptions(backend="cuda", context_tokens=512)
    full = EmulatedGpu.total_bytes
    refused = 0
    for freed, device in ((0, "gpu0"), (full, "cpu"), (full, "gpu0")):
        original = EmulatedGpu.call
        try:
            EmulatedGpu.call = lambda self, function: (0, full)  # type: ignore[method-assign]
            PlannedModel("random:tiny:w4", options, freed, device).close()
        except OutOfMemoryError:
            refused += 1
        finally:
            EmulatedGpu.call = original  # type: ignore[method-assign]
    assert refused == 2


def test_names_of_random_models_need_no_files() -> None:
    assert loader.open_source("random:tiny:w4").spec == RandomModel("random:tiny:w4").spec
