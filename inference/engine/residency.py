"""One model resident, ever: plan, unload, load as a state machine. Pure; what it moves is passed in. For one thread.

EMPTY ──load──▶ LOADING ──▶ READY ──unload──▶ UNLOADING ──▶ EMPTY
                   │          │
                   │          └─load of another: refused ▶ READY (the old one), else UNLOADING ▶ LOADING
                   └─error ▶ FAILED ──load──▶ LOADING;  stopped ▶ EMPTY
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from inference.engine.decoder import LoadStopped
from inference.engine.engine import Engine
from inference.engine.memory_plan import MemoryPlan
from inference.errors import InferenceError, OutOfMemoryError
from inference.request import ModelEvent, ModelState

PROGRESS_STEP = 0.01
"""Loading is reported this often; a share of the whole."""


class Loadable(Protocol):
    """A model that was planned: see loader.PlannedModel."""

    @property
    def memory(self) -> MemoryPlan:
        """What it will take, and of which device."""
        ...

    def load(self, on_progress: Callable[[float], None], should_stop: Callable[[], bool]) -> Engine:
        """Loads it; its file is closed whatever happens."""
        ...

    def close(self) -> None:
        """Gives it up unloaded."""
        ...


class Lock(Protocol):
    """See device_lock.DeviceLocks."""

    def acquire(self, model: str) -> None:
        """Takes it or changes the model's name; ModelResidentError where another process has it."""
        ...

    def settle(self, model: str, device: str) -> None:
        """Takes the device's instead; ModelResidentError where another process has that."""
        ...

    def release(self) -> None:
        """Gives all back."""
        ...


class Residency:
    """Holds the one engine.

    Args:
        plan: opens a model and checks that it fits, given the bytes that the resident one will give back, and where.
        notify: gets every change.

    Attributes:
        is_outdated: the options have changed since the last plan (see `outdate`).
    """

    def __init__(
        self, plan: Callable[[str, int, str], Loadable], lock: Lock, notify: Callable[[ModelEvent], None]
    ) -> None:
        self._plan, self._lock, self._notify = plan, lock, notify
        self._memory: MemoryPlan | None = None
        self.engine: Engine | None = None
        self.model = ""
        self.state = ModelState.EMPTY
        self.is_outdated = False

    def outdate(self) -> None:
        """What was planned so far was planned under other options: the next load of the same model loads it anew."""
        self.is_outdated = True

    def load(self, model: str, should_stop: Callable[[], bool], before_unload: Callable[[], None]) -> None:
        """Makes `model` the resident one; nothing but a READY event where it is already.

        Args:
            should_stop: asked before each tensor.
            before_unload: called when another resident model is about to leave, to end its requests.

        Where `should_stop` says so, nothing is resident afterwards.

        Raises:
            InferenceError: refused, and what was resident still is; or failed on the way, and nothing is.
        """
        if self.engine is not None and self.model == model and not self.is_outdated:
            self._enter(ModelState.READY, model, progress=1.0)
            return
        planned = self._plan_or_refuse(model)
        self.is_outdated = False
        if self.engine is not None:
            before_unload()
            self._drop()
        try:
            self._lock.settle(model, planned.memory.device)
        except InferenceError as error:
            planned.close()
            self._fail(model, error)
            raise
        self._load_planned(model, planned, should_stop)

    def unload(self) -> None:
        """Gives the resident model's memory back, and the lock."""
        self._drop()
        self._lock.release()
        self._enter(ModelState.EMPTY, "")

    @property
    def freed(self) -> tuple[int, str]:
        """Bytes that the resident model would give back, and of which device."""
        memory = self._memory
        return (0, "cpu") if memory is None else (memory.total_bytes - memory.reserve_bytes, memory.device)

    def fail(self, model: str, error: InferenceError) -> None:
        """After a failure of `load` that nobody foresaw: what was not touched stays, else nothing is resident."""
        if self.state is ModelState.READY:
            self._refuse(model, error)
        else:
            self.engine, self._memory = None, None
            self._fail(model, error)

    def _plan_or_refuse(self, model: str) -> Loadable:
        if self.engine is None:
            self._enter(ModelState.LOADING, model)
        try:
            if self.engine is None:
                self._lock.acquire(model)
            return self._plan(model, *self.freed)
        except InferenceError as error:
            if self.engine is None:
                self._fail(model, error)
            else:
                self._refuse(model, error)
            raise

    def _load_planned(self, model: str, planned: Loadable, should_stop: Callable[[], bool]) -> None:
        self._enter(ModelState.LOADING, model)
        reported = 0.0

        def on_progress(share: float) -> None:
            nonlocal reported
            if share - reported >= PROGRESS_STEP:
                reported = share
                self._notify(ModelEvent(ModelState.LOADING, model, share))

        try:
            self.engine = planned.load(on_progress, should_stop)
        except LoadStopped:
            self.unload()
            return
        except MemoryError:
            error = OutOfMemoryError(
                planned.memory.total_bytes, 0, "The system gave less than it had promised. Close other programs."
            )
            self._fail(model, error)
            raise error from None
        except InferenceError as error:
            self._fail(model, error)
            raise
        self._memory = planned.memory
        self._enter(ModelState.READY, model, progress=1.0)

    def _drop(self) -> None:
        if self.engine is not None:
            self._enter(ModelState.UNLOADING, self.model)
            self.engine.close()
        self.engine, self._memory = None, None

    def _refuse(self, model: str, error: InferenceError) -> None:
        """Listeners learn why, and then what is still true."""
        self._notify(ModelEvent(ModelState.FAILED, model, error=error))
        self._enter(ModelState.READY, self.model, progress=1.0)

    def _fail(self, model: str, error: InferenceError) -> None:
        self._lock.release()
        self.state, self.model = ModelState.FAILED, model
        self._notify(ModelEvent(ModelState.FAILED, model, error=error))

    def _enter(self, state: ModelState, model: str, progress: float = 0.0) -> None:
        self.state, self.model = state, model
        self._notify(ModelEvent(state, model, progress))
