"""Runs the gateway on a port: in this thread for the command, on one of its own inside the app."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import signal
import socket
import threading
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from inference.errors import InferenceError
from inference.gateway.connection import TimedConnection
from inference.gateway.options import MAX_HEADER_BYTES, GatewayOptions

_MAX_CONNECTIONS = 256
_STOP_TIMEOUT_S = 3.0


class GatewayPortError(InferenceError):
    """The port cannot be had; the message names it and the cure.

    Attributes:
        reason: the system's words.
    """

    def __init__(self, place: str, reason: str, cure: str) -> None:
        self.reason = reason
        super().__init__(f"{place} cannot be used: {reason}. {cure}")


class GatewayServer:
    """A server that is bound to its port from the start.

    Attributes:
        port: where it listens.
    """

    def __init__(self, app: ASGIApp, options: GatewayOptions) -> None:
        """Binds the port. Raises GatewayPortError."""
        self._socket = _bind(options.host, options.port)
        self.port = int(self._socket.getsockname()[1])
        connection: Any = functools.partial(TimedConnection, silence_s=options.silence_s)
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            http=connection,
            ws="none",
            server_header=False,
            timeout_keep_alive=options.silence_s,  # type: ignore[arg-type]  # it is given to the loop as it is
            h11_max_incomplete_event_size=MAX_HEADER_BYTES,
            limit_concurrency=_MAX_CONNECTIONS,
            timeout_graceful_shutdown=1,
        )
        self._server = _Server(config)
        self._thread: threading.Thread | None = None

    def run(self) -> None:
        """Serves until Ctrl+C, SIGTERM or `stop`; what stands behind the call is done then as well."""
        is_main = threading.current_thread() is threading.main_thread()
        # uvicorn sends itself again what ended it, which would end the process here and now.
        before = signal.signal(signal.SIGTERM, lambda *_: self._server.end()) if is_main else None
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._socket.close()
            if is_main:
                signal.signal(signal.SIGTERM, before)

    def start(self) -> None:
        """Serves on a thread."""
        self._thread = threading.Thread(target=self._run_quietly, name="gateway", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the server; open streams are cut."""
        self._server.end()
        if self._thread is not None:
            self._thread.join(_STOP_TIMEOUT_S)
        self._socket.close()

    def _run_quietly(self) -> None:
        with contextlib.suppress(SystemExit):  # uvicorn's way to say that it could not start
            self.run()


class _Server(uvicorn.Server):
    """Ends at once, and looks up once a second, for the date that answers bear, instead of ten times."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending = asyncio.Event()

    def end(self) -> None:
        """From any thread, and from a signal's handler."""
        self.should_exit = True
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(self._ending.set)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """See uvicorn."""
        super().handle_exit(sig, frame)
        self.end()

    async def main_loop(self) -> None:
        """See uvicorn."""
        self._loop = asyncio.get_running_loop()
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), 1.0)


def _bind(host: str, port: int) -> socket.socket:
    bare = host.strip("[]")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(bare, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
    except OSError as error:
        cure = "Give one of this machine's."
        raise GatewayPortError(f"The address {host}", error.strerror or str(error), cure) from error
    try:
        if hasattr(socket, "SO_EXCLUSIVEADDRUSE"):
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(128)
    except OSError as error:
        bound.close()
        cure = "Another program may have it; choose another port in the settings, or with --port."
        raise GatewayPortError(f"Port {port} on {host}", error.strerror or str(error), cure) from error
    return bound
