"""What the engine is doing, in the words and with the picture that the tray and the window show. Holds no widget."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from pathlib import PurePath

from app.translation import Translator
from inference.request import ModelEvent, ModelState


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
    """

    model_state: ModelState = ModelState.EMPTY
    model: str = ""
    progress: float = 0.0
    error: str = ""
    is_busy: bool = False

    def after(self, event: ModelEvent, error: str = "") -> Status:
        """The status once a model event has arrived.

        Args:
            error: what the event's error is, in one short line of the user's language.
        """
        return replace(
            self,
            model_state=event.state,
            model=event.model or self.model,
            progress=event.progress,
            error=error if event.state is ModelState.FAILED else "",
        )

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
        if self.model_state is ModelState.FAILED:
            return self.error
        if self.model_state is ModelState.LOADING:
            return tr("Loading {model}: {percent} %", model=model, percent=int(100 * self.progress))
        if self.model_state is ModelState.UNLOADING:
            return tr("Unloading {model}", model=model)
        if self.model_state is ModelState.EMPTY:
            return tr("No model is loaded; the next action loads one")
        return tr("Working: {model}", model=model) if self.is_busy else tr("Ready: {model}", model=model)


def model_name(model: str) -> str:
    """A model's name as people read it: for a path its last part without the ending; a catalog id as it is."""
    path = PurePath(model.replace("\\", "/"))
    return path.name.removesuffix(".gguf")


def gibibytes(count_bytes: int) -> str:
    """A size for the user, e.g. "5.1 GiB"."""
    return f"{count_bytes / 1024**3:.1f} GiB"
