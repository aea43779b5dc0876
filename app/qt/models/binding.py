"""The window of models between the application and its owner, which is made when it is first wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from app.engine_client import EngineClient
from app.qt.bridge import Bridge
from app.qt.remote.owner import RemoteOwner
from app.qt.status import Status
from app.settings.settings import Settings
from app.translation import Translator

if TYPE_CHECKING:
    from app.qt.models.owner import ModelOwner


class ModelBinding(QObject):
    """Opens the window of models, and keeps requests going to the server of the settings. UI thread only.

    Attributes:
        meter: makes the memory meter of the window.

    Signals:
        free_requested: the model is to leave the memory.
    """

    free_requested = Signal()

    def __init__(
        self,
        settings: Settings,
        translator: Translator,
        client: EngineClient,
        default_model: Callable[[], str],
        bridge: Bridge,
        parent: QObject | None = None,
    ) -> None:
        """Opens nothing yet.

        Args:
            client: a RoutedClient where servers may be used.
            default_model: which model the settings mean.
        """
        super().__init__(parent)
        self._settings, self._translator, self._client = settings, translator, client
        self._default_model, self._bridge = default_model, bridge
        self._status = Status()
        self._owner: ModelOwner | None = None
        self.meter: Callable[[], QWidget] | None = None
        self.remote = RemoteOwner(settings, translator, client, default_model, bridge.post_call, self)

    @property
    def owner(self) -> ModelOwner:
        """The owner of the window, made now if there is none."""
        if self._owner is None:
            # The readers of model files take a tenth of a second to import: not at the start of the app.
            from app.qt.models.owner import ModelOwner

            self._owner = ModelOwner(
                self._settings, self._translator, self._client, self._default_model, self._bridge, self.remote, self
            )
            self._owner.meter = self.meter
            self._owner.free_requested.connect(self.free_requested)
            self._owner.set_status(self._status)
        return self._owner

    def open(self) -> None:
        """Shows the window, or brings it to the front."""
        self.owner.open()

    def set_status(self, status: Status) -> None:
        """The engine's state has changed."""
        self._status = status
        if self._owner is not None:
            self._owner.set_status(status)

    def close(self) -> None:
        """Pauses downloads and hides the window. May be called twice."""
        self.remote.close()
        if self._owner is not None:
            self._owner.close()
