"""How full the memory is that the model works in: ours, others', total; on the GPU or in main memory."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import psutil

from app.memory.vram import GpuMemory, GpuUnreadableError, GpuWatch, NoGpuError
from app.translation import UserText
from inference.request import EngineReading, ModelState

GPU_BACKEND = "cuda"
HOST_BACKENDS = ("cpu", "torch")
HISTORY_S = 300.0
# Readings further apart than this are not joined: nobody looked meanwhile.
LONGEST_STEP_S = 3.5


@dataclass(frozen=True, slots=True)
class MemoryReading:
    """Memory at one moment, in bytes; None where it is not known.

    Attributes:
        at_s: on the clock of `time.monotonic`.
        place: "gpu", or "ram" where there is no NVIDIA GPU or the model works in main memory.
        name: of the GPU, "" for main memory.
        ours_bytes: on the GPU what the engine counts, in main memory what the process has.
        driver_bytes: on the GPU, what the driver has taken for us beside that (its context, our kernels).
        model_bytes: what the engine counts, wherever it lies.
        unknown: why there are no totals, None where there are.
        note: what this place is shown for, None where that goes without saying.
    """

    at_s: float
    place: Literal["gpu", "ram"]
    name: str = ""
    total_bytes: int | None = None
    ours_bytes: int = 0
    driver_bytes: int = 0
    others_bytes: int | None = None
    model_bytes: int = 0
    unknown: UserText | None = None
    note: UserText | None = None

    @property
    def free_bytes(self) -> int | None:
        """What nobody has."""
        if self.total_bytes is None or self.others_bytes is None:
            return None
        return max(0, self.total_bytes - self.others_bytes - self.ours_bytes - self.driver_bytes)


def free_memory_bytes() -> int:
    """Main memory that programs can still get without swapping."""
    return int(psutil.virtual_memory().available)


def model_bytes(engine: EngineReading) -> int:
    """What the resident model takes, by the engine's own count."""
    return engine.weight_bytes + engine.kv_bytes + engine.workspace_bytes


class GpuSource(Protocol):
    """See GpuWatch."""

    def read(self, is_resident: bool) -> GpuMemory:
        """Raises GpuUnreadableError."""
        ...

    def close(self) -> None:
        """Lets go of the driver."""
        ...


class MemoryReader:
    """Takes readings. One thread only; it may wait for the driver, so it is not the one of the windows.

    Args:
        engine: the engine's last snapshot.
    """

    def __init__(
        self,
        engine: Callable[[], EngineReading],
        gpu: GpuSource | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine, self._gpu, self._clock = engine, gpu or GpuWatch(), clock
        self._process: psutil.Process | None = None

    def read(self) -> MemoryReading:
        """The memory of the model's place. Never fails: what is not known is None, with the reason."""
        engine = self._engine()
        on_gpu = engine.backend == GPU_BACKEND
        if engine.state is ModelState.READY and engine.backend in HOST_BACKENDS:
            self._gpu.close()
            return self._in_main_memory(engine, UserText("The model works in main memory."))
        try:
            return self._on_gpu(engine, self._gpu.read(on_gpu))
        except NoGpuError:
            note = UserText("No NVIDIA GPU answers here; this is the program's own memory beside all of the machine's.")
            return self._in_main_memory(engine, note)
        except GpuUnreadableError as error:
            ours = model_bytes(engine)
            return MemoryReading(self._clock(), "gpu", ours_bytes=ours, model_bytes=ours, unknown=error.text)

    def close(self) -> None:
        """Lets go of the driver; the next reading opens it again."""
        self._gpu.close()

    def _on_gpu(self, engine: EngineReading, gpu: GpuMemory) -> MemoryReading:
        ours = min(model_bytes(engine), gpu.used_bytes)
        driver = max(0, min(gpu.process_bytes or 0, gpu.used_bytes) - ours)
        return MemoryReading(
            self._clock(),
            "gpu",
            name=gpu.name,
            total_bytes=gpu.total_bytes,
            ours_bytes=ours,
            driver_bytes=driver,
            others_bytes=gpu.used_bytes - ours - driver,
            model_bytes=model_bytes(engine),
        )

    def _in_main_memory(self, engine: EngineReading, note: UserText) -> MemoryReading:
        if self._process is None:
            self._process = psutil.Process()
        ours = int(self._process.memory_info().rss)
        machine = psutil.virtual_memory()
        # Pages of a model's file that are shared with the page cache count as ours and as available.
        others = max(0, int(machine.total - machine.available) - ours)
        return MemoryReading(
            self._clock(),
            "ram",
            total_bytes=int(machine.total),
            ours_bytes=ours,
            others_bytes=others,
            model_bytes=model_bytes(engine),
            note=note,
        )


class MemoryHistory:
    """The readings of the last minutes, oldest first.

    Attributes:
        span_s: how far back it reaches.
    """

    def __init__(self, span_s: float = HISTORY_S) -> None:
        self.span_s = span_s
        self._readings: deque[MemoryReading] = deque()

    @property
    def last(self) -> MemoryReading | None:
        """The newest reading."""
        return self._readings[-1] if self._readings else None

    def add(self, reading: MemoryReading) -> None:
        """Takes a reading; what is too old, or of another place or size, goes."""
        last = self.last
        if last is not None and last.place != reading.place:
            self._readings.clear()
        self._readings.append(reading)
        while self._readings[0].at_s < reading.at_s - self.span_s:
            self._readings.popleft()

    def runs(self) -> list[Sequence[MemoryReading]]:
        """Stretches of known readings that follow one another; between two of them nothing is known."""
        runs: list[list[MemoryReading]] = []
        before: MemoryReading | None = None
        for reading in self._readings:
            if reading.free_bytes is None:
                before = None
                continue
            if before is None or reading.at_s - before.at_s > LONGEST_STEP_S:
                runs.append([])
            runs[-1].append(reading)
            before = reading
        return list(runs)
