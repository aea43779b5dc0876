"""What the diagnostics bundle needs of the running app, and the row of the settings that opens its window."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from app.actions import ActionRegistry
from app.diagnostics import AppState, Timings, bundle
from app.engine_client import EngineClient
from app.qt.bridge import Bridge
from app.qt.diagnostics_window import DiagnosticsWindow
from app.qt.settings_extras import ButtonRow
from app.qt.settings_owner import SettingsOwner
from app.settings import Settings
from app.translation import Translator
from inference.request import DoneEvent, RequestEvent


class DiagnosticsDesk(QObject):
    """Keeps the timings of answers, and opens the window of the bundle. UI thread only.

    Attributes:
        window: the last one that was opened.
    """

    def __init__(
        self,
        settings: Settings,
        actions: ActionRegistry,
        translator: Translator,
        client: EngineClient,
        bridge: Bridge,
        owner: SettingsOwner,
        session: str,
        has_tray: Callable[[], bool],
    ) -> None:
        """Adds its row to the settings.

        Args:
            session: kind of the desktop session.
        """
        super().__init__(owner)
        self._settings, self._actions, self._translator = settings, actions, translator
        self._client, self._owner, self._session, self._has_tray = client, owner, session, has_tray
        self._timings = Timings()
        self.window: DiagnosticsWindow | None = None
        bridge.request_event.connect(self._on_request_event)
        owner.extras["diagnostics"] = self._row

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

    def _row(self) -> QWidget:
        tr = self._translator.tr
        row = ButtonRow(
            tr("Diagnostics bundle"),
            tr(
                "Versions, hardware, settings without texts, states and timings, for a report of a fault. It holds no "
                "text of yours, and you see all of it before it is saved."
            ),
            tr("Look at it…"),
        )
        row.button.clicked.connect(self.open)
        return row

    def _on_request_event(self, event: RequestEvent) -> None:
        if isinstance(event, DoneEvent):
            self._timings.add(event.usage)
