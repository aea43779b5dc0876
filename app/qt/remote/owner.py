"""Keeps requests going where the settings say, and runs the dialog that sets a server up."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QWidget

from app.engine_client import EngineClient
from app.qt.look.notice import Notice
from app.qt.remote.dialog import RemoteChoice, RemoteDialog
from app.remote.address import RemoteAddress, RemoteAddressError
from app.remote.routed_client import RoutedClient
from app.settings.remote_settings import address_of
from app.settings.settings import Settings, SettingsFileError
from app.translation import Translator


class RemoteOwner(QObject):
    """Owns the dialog of the server. UI thread only.

    Signals:
        changed: another server, or none, stands in the settings.
        noticed: a Notice that the user should see.
    """

    changed = Signal()
    noticed = Signal(object)

    def __init__(
        self,
        settings: Settings,
        translator: Translator,
        client: EngineClient,
        default_model: Callable[[], str],
        post_call: Callable[[Callable[[], object]], None],
        parent: QObject | None = None,
    ) -> None:
        """Listens to the settings from here on.

        Args:
            client: a RoutedClient where servers may be used; any other stays as it is.
            default_model: which model the settings mean, the server's where it is to be used.
            post_call: runs a function on the UI thread.
        """
        super().__init__(parent)
        self._settings, self._translator, self._client = settings, translator, client
        self._default_model, self._post_call = default_model, post_call
        self.dialog: RemoteDialog | None = None
        self._is_closed = False
        self._timer = QTimer(self, interval=0, singleShot=True)
        self._timer.timeout.connect(self._apply)
        self._stop_listening = settings.listen("remote", lambda _key, _value: self._timer.start())

    def address(self) -> RemoteAddress | None:
        """The server of the settings; None where there is none that may be asked."""
        try:
            return address_of(self._settings)
        except RemoteAddressError as error:
            tr = self._translator.tr
            self.noticed.emit(Notice(tr("The server cannot be used"), tr(error.text), is_error=True))
            return None

    def set_up(self, parent: QWidget | None = None) -> None:
        """Opens the dialog."""
        if not isinstance(self._client, RoutedClient) or self.dialog is not None:
            return
        settings = self._settings
        choice = RemoteChoice(
            settings.text("remote.url"), settings.text("remote.model"), settings.flag("remote.allow_http")
        )
        self.dialog = RemoteDialog(choice, self._client.keys, self._translator, self._post_call, parent)
        self.dialog.chosen.connect(self._on_chosen)
        self.dialog.finished.connect(self._on_finished)
        self.dialog.open()

    def close(self) -> None:
        """Closes the dialog and changes nothing any more."""
        self._is_closed = True
        self._stop_listening()
        self._timer.stop()
        if self.dialog is not None:
            self.dialog.reject()

    def _on_finished(self) -> None:
        if self.dialog is not None:
            self.dialog.deleteLater()
            self.dialog = None

    def _on_chosen(self, choice: RemoteChoice) -> None:
        settings, tr = self._settings, self._translator.tr
        settings.set("remote.allow_http", choice.allows_plain)
        settings.set("remote.url", choice.url)
        settings.set("remote.model", choice.model)
        settings.set("remote.enabled", True)
        try:
            settings.save()
        except SettingsFileError as error:
            self.noticed.emit(Notice(tr("The settings were not saved"), tr(error.text), is_error=True))

    def _apply(self) -> None:
        """Sends requests where the settings say, once all that was changed together has been."""
        client = self._client
        if self._is_closed or not isinstance(client, RoutedClient):
            return
        before, address = client.address, self.address()
        client.remote.set_address(address)
        is_enabled = self._settings.flag("remote.enabled")
        if is_enabled is not client.is_remote or (is_enabled and address != before):
            client.load(self._default_model())
        self.changed.emit()
