"""Answers of the running app for another process of the same user, over the line of app/instance.py.

The command is {"ask": {...}}, a request as JSON; its messages are the request's events as JSON, and the last one is
done or failed. `RunningClient` is the asking side, `serve_answer` the app's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from app.engine_client import EngineClient, ModelListener, RequestListener
from app.instance import InstanceError, Message, Reply, stream_from_running
from inference.errors import EngineStoppedError, InferenceError, InvalidRequestError
from inference.request import (
    DoneEvent,
    EngineReading,
    FailedEvent,
    GenerationRequest,
    ModelEvent,
    ModelState,
    PrefillEvent,
    Priority,
    RequestEvent,
    SamplingParams,
    TokenEvent,
    Usage,
)
from inference.request import Message as ChatMessage


class RemoteError(InferenceError):
    """The running app could not answer; the message is the app's own."""


def ask_command(request: GenerationRequest) -> Message:
    """The command for a request."""
    return {
        "ask": {
            "messages": [asdict(message) for message in request.messages],
            "sampling": asdict(request.sampling),
            "priority": int(request.priority),
            "request_id": request.request_id,
        }
    }


def request_of(command: Message) -> GenerationRequest:
    """The request of a command. Raises InvalidRequestError for anything that is none."""
    try:
        ask = command["ask"]
        sampling = dict(ask["sampling"])
        sampling["stop"] = tuple(sampling.get("stop", ()))
        return GenerationRequest(
            tuple(ChatMessage(str(m["role"]), str(m["content"])) for m in ask["messages"]),  # type: ignore[arg-type]
            SamplingParams(**sampling),
            Priority(ask["priority"]),
            str(ask["request_id"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidRequestError(f"The command is no request that this version knows ({error}).") from error


def event_message(event: RequestEvent | ModelEvent) -> Message:
    """An event as JSON."""
    if isinstance(event, TokenEvent):
        return {"event": "token", "text": event.text}
    if isinstance(event, PrefillEvent):
        return {"event": "prefill", "done_tokens": event.done_tokens, "prompt_tokens": event.prompt_tokens}
    if isinstance(event, DoneEvent):
        return {"event": "done", "finish_reason": event.finish_reason, "usage": asdict(event.usage)}
    if isinstance(event, FailedEvent):
        return {"event": "failed", "error": str(event.error)}
    return {"event": "model", "state": event.state.value, "model": event.model, "progress": event.progress}


def event_of(message: Message, request_id: str) -> RequestEvent | ModelEvent:
    """The event of a message. Raises RemoteError where the other side is of another version."""
    try:
        kind = message["event"]
        if kind == "token":
            return TokenEvent(request_id, str(message["text"]))
        if kind == "prefill":
            return PrefillEvent(request_id, int(message["done_tokens"]), int(message["prompt_tokens"]))
        if kind == "done":
            return DoneEvent(request_id, message["finish_reason"], Usage(**message["usage"]))
        if kind == "failed":
            return FailedEvent(request_id, RemoteError(str(message["error"])))
        if kind == "model":
            return ModelEvent(ModelState(message["state"]), str(message["model"]), float(message["progress"]))
    except (KeyError, TypeError, ValueError) as error:
        raise RemoteError(f"The running app answered in a way that this version does not know ({error}).") from error
    raise RemoteError(str(message.get("error", "The running app is of another version. Quit it and start it again.")))


def serve_answer(client: EngineClient, command: Message, reply: Reply) -> None:
    """Answers an {"ask": ...} command. Returns at once; events go out on the engine's thread.

    Raises:
        ValueError: the command is no request; the instance server sends the text to the client.
    """
    try:
        request = request_of(command)
    except InferenceError as error:
        raise ValueError(str(error)) from error
    remove = client.listen(lambda event: _pass_on(event, reply))

    def on_event(event: RequestEvent) -> None:
        reply.send(event_message(event))
        if isinstance(event, DoneEvent | FailedEvent):
            remove()
            reply.close()

    reply.on_gone(lambda: client.cancel(request.request_id))
    try:
        client.submit(request, on_event)
    except InferenceError as error:
        on_event(FailedEvent(request.request_id, error))


def _pass_on(event: ModelEvent, reply: Reply) -> None:
    if event.state is ModelState.LOADING:
        reply.send(event_message(event))


class RunningClient:
    """The running app's engine as an EngineClient for one request after another.

    `submit` reads the answer on a thread of its own; `cancel` closes the line, which the app takes as a cancel.
    """

    def __init__(self, directory: Path | None = None, timeout_s: float = 2.0) -> None:
        self._directory = directory
        self._timeout_s = timeout_s
        self._listeners: list[ModelListener] = []
        self._thread: threading.Thread | None = None
        self._cancelled = threading.Event()

    def submit(self, request: GenerationRequest, listener: RequestListener) -> None:
        """Sends a request. Raises EngineStoppedError where no app runs any more."""
        self._cancelled.clear()
        try:
            messages = stream_from_running(ask_command(request), self._timeout_s, self._directory)
        except InstanceError as error:
            raise RemoteError(str(error)) from error
        if messages is None:
            raise EngineStoppedError("The app has ended. Start it again.")
        self._thread = threading.Thread(
            target=self._read, args=(messages, request.request_id, listener), name="running-app", daemon=True
        )
        self._thread.start()

    def cancel(self, request_id: str) -> None:
        """Ends the request that runs; it closes with DoneEvent("cancelled") at the next event from the app."""
        self._cancelled.set()

    def load(self, model: str) -> None:
        """Not from here: the app decides which model is resident."""
        raise RemoteError("The running app chooses its model itself. Change it there, or quit the app first.")

    def unload(self) -> None:
        """Not from here, like `load`."""
        self.load("")

    def listen(self, listener: ModelListener) -> Callable[[], None]:
        """Adds a listener for loads that happen while a request waits."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def reading(self) -> EngineReading:
        """Nothing is known from here."""
        return EngineReading()

    def close(self) -> None:
        """Ends what runs; the reading thread ends with the app's next event, and with this process at the latest."""
        self._cancelled.set()
        if self._thread is not None:
            self._thread.join(self._timeout_s)

    def _read(self, messages: Iterator[Message], request_id: str, listener: RequestListener) -> None:
        try:
            for event in self._events(messages, request_id):
                if isinstance(event, ModelEvent):
                    for each in list(self._listeners):
                        each(event)
                else:
                    listener(event)
                    if isinstance(event, DoneEvent | FailedEvent):
                        return
            failure: InferenceError = RemoteError("The running app ended before its answer was complete. Try again.")
        except (InstanceError, RemoteError) as error:
            failure = RemoteError(str(error))
        listener(FailedEvent(request_id, failure))

    def _events(self, messages: Iterator[Message], request_id: str) -> Generator[RequestEvent | ModelEvent, None, Any]:
        assert isinstance(messages, Generator)
        with closing(messages):
            for message in messages:
                if self._cancelled.is_set():
                    yield DoneEvent(request_id, "cancelled", Usage())
                    return
                yield event_of(message, request_id)
