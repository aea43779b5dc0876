"""What the diagnostics bundle needs of the running app, and the row of the settings that opens its window."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QObject

from app.actions.registry import ActionRegistry
from app.diagnostics.bundle import AppState, Timings, bundle
from app.engine_client import EngineClient
from app.qt.bridge import Bridge
from app.qt.settings.diagnostics_window import DiagnosticsWindow
from app.qt.settings.owner import SettingsOwner
from inference.request import DoneEvent, RequestEvent


class DiagnosticsDesk(QObject):
    """Keeps the timings of answers, and opens the window of the bundle. UI thread only.

    Attributes:
        window: the last one that was opened.
    """

    def __init__(
        self,
        owner: SettingsOwner,
        actions: ActionRegistry,
        client: EngineClient,
        bridge: Bridge,
        session: str,
        has_tray: Callable[[], bool],
    ) -> None:
        """Adds its row to the settings.

        Args:
            session: kind of the desktop session.
        """
        super().__init__(owner)
        self._settings, self._actions, self._translator = owner.settings, actions, owner.translator
        self._client, self._owner, self._session, self._has_tray = client, owner, session, has_tray
        self._timings = Timings()
        self.window: DiagnosticsWindow | None = None
        bridge.request_event.connect(self._on_request_event)
        tr = owner.translator.tr
        help_text = tr(
            "Versions, hardware, settings without texts, states and timings, for a report of a fault. It holds no "
            "text of yours, and you see all of it before it is saved."
        )
        owner.offer("diagnostics", tr("Diagnostics bundle"), help_text, tr("Look at it…"), lambda _dialog: self.open())

    def open(self) -> None:
        """Collects anew and shows what was found."""
        state = AppState(
            self._session,
            self._has_tray(),
            self._owner.hotkey_states(),
            self._client.reading(),
            self._timings.all(),
        )
        self.window = DiagnosticsWindow(self._translator, partial(bundle, self._settings, self._actions, state))
        self.window.show()

    def _on_request_event(self, event: RequestEvent) -> None:
        if isinstance(event, DoneEvent):
            self._timings.add(event.usage)
