"""When a model's memory is given back by itself: after a time without use, and for a full-screen program."""

from __future__ import annotations

from app.desktop.full_screen import may_need_gpu
from app.desktop.protocols import Window
from app.remote.address import is_remote
from inference.request import EngineReading, ModelState

# So long after its last use a model stays, whatever comes to the front: the user is likely to go on.
LEAST_REST_S = 15.0


class UnloadPolicy:
    """Times in seconds on the clock of `time.monotonic`. A request that runs or waits always keeps the model.

    Attributes:
        idle_s: how long a model stays without use; 0 is for ever.
        yields: whether a full-screen program gets the GPU's memory.
    """

    def __init__(self) -> None:
        self.idle_s = 0.0
        self.yields = False
        self._used_at_s = 0.0
        self._yielded_to: set[int] = set()

    def note_use(self, now_s: float) -> None:
        """Something happened for which the model will soon be needed: it was loaded, or the user types."""
        self._used_at_s = now_s

    def due_in_s(self, now_s: float, engine: EngineReading) -> float | None:
        """Time until the model has been idle for long enough, 0 where that is now; None where it never will be."""
        if self.idle_s <= 0 or not _lies_here(engine):
            return None
        if _is_busy(engine):
            return self.idle_s
        return max(0.0, self._last_use_s(engine) + self.idle_s - now_s)

    def yields_to(self, window: Window | None, now_s: float, engine: EngineReading) -> bool:
        """Whether the GPU is to be given to the program that fills the screen. It gets it once for each window:
        who asks for an answer there afterwards wants the model more.

        Args:
            window: that fills the screen, None where none does.
        """
        if window is None or not self.yields or not _lies_here(engine):
            return False
        if _is_busy(engine) or now_s - self._last_use_s(engine) < LEAST_REST_S:
            return False
        if window.window_id in self._yielded_to or window.is_terminal or not may_need_gpu(window.program):
            return False
        self._yielded_to.add(window.window_id)
        return True

    def _last_use_s(self, engine: EngineReading) -> float:
        return max(self._used_at_s, engine.used_at_s)


def _lies_here(engine: EngineReading) -> bool:
    return engine.state is ModelState.READY and not is_remote(engine.model)


def _is_busy(engine: EngineReading) -> bool:
    return bool(engine.running or engine.waiting)
