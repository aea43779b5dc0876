"""The gateway among the windows: who is told of it, and the row of the settings that sets its key."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QInputDialog, QLineEdit, QWidget

from app.engine_client import EngineClient
from app.engine_setup import chosen_model
from app.gateway.setup import open_gateway
from app.gateway.switch import GatewayState, GatewaySwitch
from app.qt.settings.owner import SettingsOwner
from app.remote.key import RemoteKeys
from app.remote.routed_client import RoutedClient
from app.settings.gateway_settings import KEY_ENTRY
from app.settings.settings import SettingsFileError
from app.translation import UserText


class GatewayDesk(QObject):
    """Keeps the gateway as the settings say. UI thread only.

    What programs send stays on this machine: they get the local model, also while the windows use a server.
    """

    def __init__(
        self,
        owner: SettingsOwner,
        client: EngineClient,
        default_model: Callable[[], str],
        post_call: Callable[[Callable[[], object]], None],
        show_address: Callable[[str], None],
        show_error: Callable[[str, str], None],
    ) -> None:
        """Adds its row to the settings, and serves where they say so, from here on.

        Args:
            post_call: runs a function on the UI thread.
            show_address: gets the address where programs reach the gateway, "" where it is off.
            show_error: gets heading and text, in the user's language.
        """
        super().__init__(owner)
        self._settings, self._tr, self._post_call = owner.settings, owner.translator.tr, post_call
        self._show_address, self._show_error = show_address, show_error
        engine, model = client, default_model
        if isinstance(client, RoutedClient):
            engine, model = client.local, partial(chosen_model, owner.settings)
        self._keys = RemoteKeys()
        self._dialog: QInputDialog | None = None
        tr = self._tr
        help_text = tr("Programs must send it where “Only with a key” is on. It lies in the system's keyring.")
        owner.offer("gateway", tr("Key of the gateway"), help_text, tr("Set…"), self.ask_for_key)
        self._is_closed = False
        self._switch = GatewaySwitch(
            owner.settings,
            lambda options: open_gateway(engine, options, model),
            lambda: self._keys.get(KEY_ENTRY),
            lambda state: self._post_call(lambda: self._on_state(state)),
        )

    def ask_for_key(self, parent: QWidget) -> None:
        """Asks for the key in front of a window."""
        tr = self._tr
        self._dialog = dialog = QInputDialog(parent)
        dialog.setWindowTitle(tr("Key of the gateway"))
        dialog.setLabelText(tr("The key that programs must send. Empty: none."))
        dialog.setTextEchoMode(QLineEdit.EchoMode.Password)
        dialog.textValueSelected.connect(self._set_key)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def close(self) -> None:
        """Ends the gateway."""
        self._is_closed = True
        self._switch.close()

    def _set_key(self, key: str) -> None:
        def keep() -> None:  # the keyring may ask its user and wait
            lasts = self._keys.set(KEY_ENTRY, key)
            self._post_call(lambda: self._on_key_set(bool(key.strip()), lasts))

        threading.Thread(target=keep, name="gateway-key", daemon=True).start()

    def _on_key_set(self, is_there: bool, lasts: bool) -> None:
        if not lasts:
            text = UserText("The system has no keyring that takes it, so the key holds until the app ends.")
            self._show_error(self._tr("The key was not kept"), self._tr(text))
        if self._is_closed:
            return
        try:
            self._settings.set("gateway.needs_key", is_there)
            self._settings.save()
        except SettingsFileError as error:
            self._show_error(self._tr("The settings were not saved"), self._tr(error.text))
        self._switch.apply()

    def _on_state(self, state: GatewayState) -> None:
        if self._is_closed:
            return
        self._show_address(state.address)
        if state.error is not None:
            self._show_error(self._tr("Other programs are not served"), self._tr(state.error))
