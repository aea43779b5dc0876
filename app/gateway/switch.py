"""Starts and stops the gateway of the running app when its settings change, over the app's own engine."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from app.settings.gateway_settings import origins_of
from app.settings.settings import Settings
from app.translation import UserText
from inference.errors import InferenceError

if TYPE_CHECKING:
    from inference.gateway.options import GatewayOptions

CLOSE_TIMEOUT_S = 3.0


class Server(Protocol):
    """What the switch needs of inference.gateway.server.GatewayServer, which has its port from the beginning."""

    def start(self) -> None:
        """Serves on a thread."""
        ...

    def stop(self) -> None:
        """Ends it."""
        ...


@dataclass(frozen=True, slots=True)
class GatewayState:
    """What became of the switch.

    Attributes:
        address: where programs reach it; "" where it is off.
        error: why it could not be started, None where it could.
    """

    address: str = ""
    error: UserText | None = None


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What the settings say."""

    port: int
    origins: tuple[str, ...]
    needs_key: bool


class GatewaySwitch:
    """Heavy libraries are imported, and ports opened, on a thread of its own that starts with the first use.

    Args:
        open_server: makes a server out of options; raises InferenceError where it cannot.
        key: what programs must send where the settings want that, "" where there is none; asked on the thread, where it
            may wait.
        told: gets every change, on the thread.
    """

    def __init__(
        self,
        settings: Settings,
        open_server: Callable[[GatewayOptions], Server],
        key: Callable[[], str],
        told: Callable[[GatewayState], None],
    ) -> None:
        """Listens to the settings from here on, and starts the server where they say so."""
        self._settings, self._open_server, self._key, self._told = settings, open_server, key, told
        self._changes: queue.SimpleQueue[Callable[[], bool]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._server: Server | None = None
        self._stop_listening = settings.listen("gateway", lambda _key, _value: self.apply())
        self.apply()

    def apply(self) -> None:
        """Makes the server what the settings say now, with the key that there is now."""
        settings = self._settings
        if not settings.flag("gateway.enabled"):
            if self._thread is not None:
                self._changes.put(self._turn_off)
            return
        origins = origins_of(settings.text("gateway.origins"))
        wanted = _Wanted(settings.integer("gateway.port"), origins, settings.flag("gateway.needs_key"))
        self._changes.put(lambda: self._turn_on(wanted))
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="gateway-switch", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Ends the server and the thread."""
        self._stop_listening()
        if self._thread is not None:
            self._changes.put(self._end)
            self._thread.join(CLOSE_TIMEOUT_S)
            self._thread = None

    # -- the thread ---------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        goes_on = True
        while goes_on:
            change = self._changes.get()
            while not self._changes.empty():  # of what was changed together only the last counts
                change = self._changes.get()
            goes_on = change()

    def _stop(self) -> None:
        if self._server is not None:
            self._server.stop()
            self._server = None

    def _end(self) -> bool:
        self._stop()
        return False

    def _turn_off(self) -> bool:
        self._stop()
        self._told(GatewayState())
        return True

    def _turn_on(self, wanted: _Wanted) -> bool:
        from inference.gateway.options import GatewayOptions
        from inference.gateway.server import GatewayPortError

        self._stop()
        key = self._key() if wanted.needs_key else ""
        if wanted.needs_key and not key:  # rather nobody than everybody
            text = UserText("There is no key, or the system's keyring does not give it. Set the key of the gateway.")
            self._told(GatewayState(error=text))
            return True
        try:
            self._server = self._open_server(GatewayOptions(port=wanted.port, origins=wanted.origins, api_key=key))
        except GatewayPortError as error:
            text = UserText(
                "Port {port} cannot be used: {reason}. Another program may have it; choose another port in the "
                "settings.",
                port=wanted.port,
                reason=error.reason,
            )
            self._told(GatewayState(error=text))
        except InferenceError as error:
            self._told(GatewayState(error=UserText("{reason}", reason=str(error))))
        else:
            self._server.start()
            self._told(GatewayState(f"127.0.0.1:{wanted.port}"))
        return True
