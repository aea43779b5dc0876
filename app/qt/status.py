"""What the engine is doing, in the words and with the picture that the tray and the window show. Holds no widget."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from pathlib import PurePath

from app.memory.reading import GPU_BACKEND, model_bytes
from app.remote.address import is_this_machine, remote_parts
from app.translation import Translator, UserText
from inference.byte_size import size_text
from inference.errors import ModelNotFoundError
from inference.request import EngineReading, ModelEvent, ModelState


class TrayState(enum.Enum):
    """What the tray icon tells. Each state has its own drawing, not only its own colour."""

    LOADING = "loading"
    READY = "ready"
    BUSY = "busy"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Status:
    """The engine as the user sees it.

    Attributes:
        model_state: where the resident model stands.
        model: catalog id or path of the model that is meant.
        progress: share of the load that is done, 0 to 1.
        error: why the last load failed, in one short line of the user's language; "" where it did not.
        is_busy: whether a request runs.
        memory_bytes: what the model takes, by the engine's own count; 0 where that is not known.
        is_on_gpu: whether it takes it of the GPU's memory.
        reason: why the model left the memory by itself, None where it did not.
        is_missing: whether the model that is meant is known not to be on this machine.
        gateway: where other programs are served, "" where they are not.
    """

    model_state: ModelState = ModelState.EMPTY
    model: str = ""
    progress: float = 0.0
    error: str = ""
    is_busy: bool = False
    memory_bytes: int = 0
    is_on_gpu: bool = False
    reason: UserText | None = None
    is_missing: bool = False
    gateway: str = ""

    def after(
        self, event: ModelEvent, error: str = "", reading: EngineReading | None = None, reason: UserText | None = None
    ) -> Status:
        """The status once a model event has arrived.

        Args:
            error: what the event's error is, in one short line of the user's language.
            reading: of the engine, for the memory.
            reason: why the model left by itself.
        """
        stays_missing = self.is_missing and event.state is ModelState.EMPTY
        return replace(
            self,
            model_state=event.state,
            model=event.model or self.model,
            progress=event.progress,
            error=error if event.state is ModelState.FAILED else "",
            memory_bytes=0 if reading is None else model_bytes(reading),
            is_on_gpu=reading is not None and reading.backend == GPU_BACKEND,
            reason=reason,
            is_missing=stays_missing or isinstance(event.error, ModelNotFoundError),
        )

    @property
    def remote_host(self) -> str:
        """Where texts are sent; "" where they stay on this machine."""
        return remote_parts(self.model)[0]

    @property
    def tray_state(self) -> TrayState:
        """The picture of this status."""
        if self.model_state is ModelState.FAILED:
            return TrayState.ERROR
        if self.model_state is ModelState.LOADING:
            return TrayState.LOADING
        return TrayState.BUSY if self.is_busy else TrayState.READY

    def sentence(self, translator: Translator) -> str:
        """One line for tooltip, menu and window."""
        tr, model = translator.tr, model_name(self.model)
        if self.is_missing:
            return tr("The model is not on this computer yet")
        if self.model_state is ModelState.FAILED:
            return self.error
        if self.remote_host and self.model_state is ModelState.READY:
            stays = is_this_machine(self.remote_host)
            there = tr("Another program here, {host}: {model}", host=self.remote_host, model=model)
            leaves = tr("Text leaves this machine, to {host}: {model}", host=self.remote_host, model=model)
            return there if stays else leaves
        if self.model_state is ModelState.LOADING:
            return tr("Loading {model}: {percent} %", model=model, percent=int(100 * self.progress))
        if self.model_state is ModelState.UNLOADING:
            return tr("Unloading {model}", model=model)
        if self.model_state is ModelState.EMPTY:
            return tr("No model is loaded; the next action loads one") if self.reason is None else tr(self.reason)
        return tr("Working: {model}", model=model) if self.is_busy else tr("Ready: {model}", model=model)

    def memory(self, translator: Translator) -> str:
        """How much memory the model takes, and which; "" where none does."""
        if self.model_state is not ModelState.READY or not self.memory_bytes:
            return ""
        place = UserText("of GPU memory") if self.is_on_gpu else UserText("of main memory")
        return translator.tr("{size} {place}", size=size_text(self.memory_bytes), place=place)

    def served(self, translator: Translator) -> str:
        """Where other programs are served; "" where they are not."""
        return translator.tr("Serving other programs at {address}", address=self.gateway) if self.gateway else ""


def model_name(model: str) -> str:
    """A model's name as people read it: for a path its last part without the ending; a catalog id as it is."""
    host, remote = remote_parts(model)
    if host:
        return remote or host
    path = PurePath(model.replace("\\", "/"))
    return path.name.removesuffix(".gguf")
