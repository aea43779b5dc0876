"""One engine for the app out of two: the one of this process, and a server that the user may have chosen instead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from app.engine_client import CountListener, EngineClient, ModelListener, PlanListener, RequestListener
from app.remote.address import RemoteAddress, is_remote
from app.remote.client import RemoteClient
from app.remote.key import RemoteKeys
from inference.engine.options import EngineOptions
from inference.listeners import Listeners
from inference.request import EngineReading, GenerationRequest, ModelEvent


class RoutedClient:
    """Loading a remote model sends requests there from then on; loading a local one brings them back.

    The local model leaves its memory when requests go elsewhere, and listeners hear of the side that is in use only.

    Attributes:
        local: the engine of this process.
        remote: the server.
        keys: of servers; the remote engine asks them.
    """

    def __init__(
        self, local: EngineClient, remote: RemoteClient, keys: RemoteKeys | None = None, is_remote: bool = False
    ) -> None:
        """`is_remote`: requests go to the server from the start."""
        self.local, self.remote, self.keys = local, remote, keys or RemoteKeys()
        self._is_remote = is_remote
        self._listeners: Listeners[ModelEvent] = Listeners()
        local.listen(lambda event: self._tell(event, of_remote=False))
        remote.listen(lambda event: self._tell(event, of_remote=True))

    @property
    def is_remote(self) -> bool:
        """Whether requests leave this process."""
        return self._is_remote

    @property
    def address(self) -> RemoteAddress | None:
        """Where the server is; None where none is set up."""
        return self.remote.address

    def submit(self, request: GenerationRequest, listener: RequestListener) -> None:
        """See EngineClient."""
        self._engine.submit(request, listener)

    def cancel(self, request_id: str) -> None:
        """See EngineClient. Requests end where they began."""
        self.local.cancel(request_id)
        if self.remote.is_used:
            self.remote.cancel(request_id)

    def load(self, model: str) -> None:
        """See EngineClient; `model` decides which side is in use from here on."""
        self._is_remote = is_remote(model)
        if self._is_remote:
            self.local.unload()
        elif self.remote.is_used:
            self.remote.unload()
        self._engine.load(model)

    def unload(self) -> None:
        """Gives this machine's memory back; a server stays chosen."""
        self.local.unload()

    def set_options(self, options: EngineOptions) -> None:
        """See EngineClient."""
        self.local.set_options(options)

    def count_tokens(self, texts: Sequence[str], listener: CountListener) -> None:
        """See EngineClient; estimates where a server is in use."""
        self._engine.count_tokens(texts, listener)

    def plan(self, model: str, context_tokens: int | None, listener: PlanListener) -> None:
        """See EngineClient; local models are planned whichever side is in use."""
        (self.remote if is_remote(model) else self.local).plan(model, context_tokens, listener)

    def listen(self, listener: ModelListener) -> Callable[[], None]:
        """See EngineClient."""
        return self._listeners.add(listener)

    def reading(self) -> EngineReading:
        """The side in use; sizes are always this machine's."""
        local = self.local.reading()
        if not self._is_remote:
            return local
        sizes = {name: getattr(local, name) for name in ("weight_bytes", "kv_bytes", "workspace_bytes", "peak_bytes")}
        reading = self.remote.reading()
        address = self.address
        return replace(reading, model=reading.model or (address.id if address is not None else ""), **sizes)

    def close(self) -> None:
        """See EngineClient."""
        self.remote.close()
        self.local.close()

    @property
    def _engine(self) -> EngineClient:
        return self.remote if self._is_remote else self.local

    def _tell(self, event: ModelEvent, of_remote: bool) -> None:
        if of_remote is not self._is_remote:
            return
        for listener in self._listeners:
            listener(event)
