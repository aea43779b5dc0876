"""What the app sees of an engine: a protocol, the client of the engine in this process, and a scripted one for tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from inference.request import EngineReading, GenerationRequest, ModelEvent, RequestEvent

RequestListener = Callable[[RequestEvent], None]
ModelListener = Callable[[ModelEvent], None]


class EngineClient(Protocol):
    """Every method returns at once and may be called from any thread; listeners run on the engine's thread."""

    def submit(self, request: GenerationRequest, listener: RequestListener) -> None:
        """Queues a request; the default model is loaded first where none is resident. Failures arrive as FailedEvent."""
        ...

    def cancel(self, request_id: str) -> None:
        """Ends a request within two tokens; it closes with DoneEvent("cancelled"). Unknown ids are ignored."""
        ...

    def load(self, model: str) -> None:
        """Makes a catalog id or path the resident model; progress and failure arrive at the model listeners."""
        ...

    def unload(self) -> None:
        """Gives the memory back; running requests are cancelled."""
        ...

    def listen(self, listener: ModelListener) -> Callable[[], None]:
        """Adds a model listener; the result removes it."""
        ...

    def reading(self) -> EngineReading:
        """The last snapshot."""
        ...

    def close(self) -> None:
        """Cancels everything, unloads, ends the thread; returns within three seconds. Later calls raise EngineStoppedError."""
        ...
