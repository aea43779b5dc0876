"""Whose the memory is: ours by our own count, the driver's share for us, the others'; on the GPU or in main memory."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from app.memory.reading import MemoryHistory, MemoryReader, MemoryReading
from app.memory.vram import GpuMemory, GpuUnreadableError, GpuWatch, NoGpuError
from app.translation import UserText
from inference.request import EngineReading, ModelState
from tests.nvml_stub.library import GPU_IS_LOST, NvmlStub

GIB = 1 << 30
ON_GPU = EngineReading(state=ModelState.READY, backend="cuda", weight_bytes=GIB, kv_bytes=GIB // 2, workspace_bytes=0)
ON_CPU = EngineReading(state=ModelState.READY, backend="cpu", weight_bytes=GIB)


class ScriptedGpu:
    """Gives what a test says, and notes whether it was asked or let go."""

    def __init__(self, outcome: GpuMemory | GpuUnreadableError) -> None:
        self.outcome = outcome
        self.asked: list[bool] = []
        self.closes = 0

    def read(self, is_resident: bool) -> GpuMemory:
        self.asked.append(is_resident)
        if isinstance(self.outcome, GpuUnreadableError):
            raise self.outcome
        return self.outcome

    def close(self) -> None:
        self.closes += 1


def read(engine: EngineReading, outcome: GpuMemory | GpuUnreadableError) -> tuple[MemoryReading, ScriptedGpu]:
    gpu = ScriptedGpu(outcome)
    return MemoryReader(lambda: engine, gpu, lambda: 5.0).read(), gpu


def test_ours_is_our_own_count_and_the_drivers_share_beside_it() -> None:
    reading, gpu = read(ON_GPU, GpuMemory("RTX", 4 * GIB, 3 * GIB, 2 * GIB))
    shares = (reading.ours_bytes, reading.driver_bytes, reading.others_bytes, reading.free_bytes)
    assert shares == (3 * GIB // 2, GIB // 2, GIB, GIB)
    assert (reading.place, reading.name, reading.at_s, gpu.asked) == ("gpu", "RTX", 5.0, [True])


def test_without_a_count_for_each_process_only_the_totals_are_used() -> None:
    reading, _ = read(ON_GPU, GpuMemory("RTX", 4 * GIB, 3 * GIB, None))
    assert (reading.ours_bytes, reading.driver_bytes, reading.others_bytes) == (3 * GIB // 2, 0, 3 * GIB // 2)


@pytest.mark.parametrize("process_bytes", [None, 0, GIB, 9 * GIB])
def test_shares_never_exceed_the_whole(process_bytes: int | None) -> None:
    reading, _ = read(ON_GPU, GpuMemory("RTX", 4 * GIB, GIB, process_bytes))  # totals that lag behind a load
    assert reading.others_bytes is not None
    assert reading.ours_bytes + reading.driver_bytes + reading.others_bytes == GIB


def test_a_model_in_main_memory_leaves_the_gpu_alone() -> None:
    reading, gpu = read(ON_CPU, GpuMemory("RTX", 4 * GIB, GIB, None))
    assert (gpu.asked, gpu.closes) == ([], 1)
    assert reading.place == "ram"
    assert reading.total_bytes == psutil.virtual_memory().total
    assert reading.model_bytes == GIB
    assert 0 < reading.ours_bytes < reading.total_bytes
    assert str(reading.note) == "The model works in main memory."


def test_without_a_gpu_main_memory_is_shown_and_said_to_be() -> None:
    reading, _ = read(EngineReading(), NoGpuError(UserText("no driver")))
    assert reading.place == "ram"
    assert "No NVIDIA GPU" in str(reading.note)


def test_a_model_elsewhere_takes_nothing_here() -> None:
    reading, gpu = read(EngineReading(state=ModelState.READY, backend="remote"), GpuMemory("RTX", 4 * GIB, GIB, None))
    assert (reading.ours_bytes, reading.others_bytes, gpu.asked) == (0, GIB, [False])


def test_a_failing_driver_leaves_our_own_count(tmp_path: Path, nvml_stub: NvmlStub) -> None:
    reader = MemoryReader(lambda: ON_GPU, GpuWatch(tmp_path))
    nvml_stub.fail("nvmlDeviceGetMemoryInfo", GPU_IS_LOST)
    reading = reader.read()
    assert (reading.ours_bytes, reading.others_bytes, reading.free_bytes) == (3 * GIB // 2, None, None)
    assert str(reading.unknown) == "the NVIDIA driver failed (GPU is lost)"
    reader.close()
    assert nvml_stub.sessions == 0


def at(at_s: float, place: str = "gpu", others_bytes: int | None = 1) -> MemoryReading:
    return MemoryReading(at_s, place, total_bytes=4, others_bytes=others_bytes)  # type: ignore[arg-type]


def test_the_history_forgets_what_is_old() -> None:
    history = MemoryHistory(span_s=10.0)
    for second in range(30):
        history.add(at(float(second)))
    (run,) = history.runs()
    assert [reading.at_s for reading in run] == [float(second) for second in range(19, 30)]


def test_gaps_and_unknown_readings_part_the_runs() -> None:
    history = MemoryHistory()
    for second in (1.0, 2.0, 60.0, 61.0):
        history.add(at(second))
    history.add(at(62.0, others_bytes=None))
    history.add(at(63.0))
    assert [[reading.at_s for reading in run] for run in history.runs()] == [[1.0, 2.0], [60.0, 61.0], [63.0]]


def test_another_place_starts_anew() -> None:
    history = MemoryHistory()
    history.add(at(1.0, "ram"))
    history.add(at(2.0, "gpu"))
    assert [len(run) for run in history.runs()] == [1]
