"""Asking the running app: its model is already loaded, and two processes never hold one each."""

from __future__ import annotations

import contextlib
import dataclasses
import queue
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import TextIO

from app.engine_client import EngineClient
from app.instance.event_json import Json, event_from_json, event_to_json, request_from_json, request_to_json
from app.instance.instance import InstanceError, Reply, send_to_running, stream_from_running
from inference.errors import EngineStoppedError, InferenceError, InvalidRequestError
from inference.request import DoneEvent, FailedEvent, GenerationRequest, RequestEvent, TokenCounts

_LOOK_S = 0.1


def ask_running(
    request: GenerationRequest, model: str = "", timeout_s: float = 2.0, directory: Path | None = None
) -> Generator[RequestEvent, None, None] | None:
    """Sends a request to the running app.

    Args:
        model: refuse to answer with another resident model than this; "" takes what the app has.
        timeout_s: to reach the app; its answer may then take as long as it likes.

    Returns:
        The events, up to the one that ends the request, or None where no app runs. Closing the generator early cancels
        the request.

    Raises:
        InstanceError: the app cannot be reached, or goes away before the last event.
    """
    command = {"command": "ask", "request": request_to_json(request), "model": model}
    messages = stream_from_running(command, timeout_s, directory)
    return None if messages is None else _events(messages)


def _events(messages: Generator[Json, None, None]) -> Generator[RequestEvent, None, None]:
    with contextlib.closing(messages):
        for message in messages:
            if "event" not in message and "error" in message:
                raise InstanceError(str(message["error"]))
            event = event_from_json(message)
            yield event
            if isinstance(event, (DoneEvent, FailedEvent)):
                return
    raise InstanceError("The running app ended its answer without a result. Try again.")


def tell_where(notes: TextIO, timeout_s: float = 2.0, directory: Path | None = None) -> None:
    """Says it where the running app sends texts to a server, before one is given to it."""
    with contextlib.suppress(InstanceError):  # what is asked next says why the app cannot be reached
        reply = send_to_running({"command": "where"}, timeout_s, directory)
        if reply is not None and reply.get("host"):
            notes.write(f"deskinfer: the running app sends this text to {reply['host']}.\n")


def count_running(
    texts: Sequence[str], model: str = "", timeout_s: float = 2.0, directory: Path | None = None
) -> TokenCounts | InferenceError | None:
    """Has the running app count the tokens of texts.

    Returns:
        The counts, why its model cannot be loaded, or None where no app runs.

    Raises:
        InstanceError: the app cannot be reached, goes away before it answers, or holds another model than this.
    """
    command = {"command": "count", "texts": list(texts), "model": model}
    messages = stream_from_running(command, timeout_s, directory)
    if messages is None:
        return None
    with contextlib.closing(messages):
        for message in messages:
            if "counts" in message:
                counts = tuple(int(count) for count in message["counts"])
                return TokenCounts(counts, int(message["context_tokens"]), bool(message["estimated"]))
            if "event" in message:
                event = event_from_json(message)
                return event.error if isinstance(event, FailedEvent) else None
            raise InstanceError(str(message.get("error", "")))
    raise InstanceError("The running app ended its answer without a result. Try again.")


def count(command: Json, reply: Reply, client: EngineClient) -> None:
    """Serves one "count" in the running app, on the connection's thread.

    Raises:
        ValueError: the command is not a count.
    """
    texts = command.get("texts")
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError("The command has no texts.")
    answers: queue.SimpleQueue[TokenCounts | InferenceError] = queue.SimpleQueue()
    try:
        _check_model(str(command.get("model", "")), client)
        client.count_tokens(texts, answers.put)
    except InferenceError as error:
        answers.put(error)
    while not reply.is_closed:
        try:
            counts = answers.get(timeout=_LOOK_S)
        except queue.Empty:
            reply.check()
            continue
        if isinstance(counts, InferenceError):
            reply.send(event_to_json(FailedEvent("", counts)))
        else:
            reply.send(dataclasses.asdict(counts))
        reply.close()


def answer(command: Json, reply: Reply, client: EngineClient) -> None:
    """Serves one "ask" in the running app, on the connection's thread.

    The engine's thread only fills a queue, so a client that reads slowly, or stops reading, never holds up the engine.
    A client that goes away cancels its request.

    Raises:
        ValueError: the command is not an ask.
    """
    try:
        request = request_from_json(command["request"])
    except (KeyError, TypeError) as error:
        raise ValueError("The command has no request.") from error
    except InvalidRequestError as error:
        raise ValueError(str(error)) from error
    events: queue.SimpleQueue[RequestEvent] = queue.SimpleQueue()
    reply.on_gone(lambda: _cancel(client, request.request_id))
    try:
        _check_model(str(command.get("model", "")), client)
        client.submit(request, events.put)
    except InferenceError as error:
        reply.send(event_to_json(FailedEvent(request.request_id, error)))
        reply.close()
        return
    while not reply.is_closed:
        try:
            event = events.get(timeout=_LOOK_S)
        except queue.Empty:
            reply.check()
            continue
        reply.send(event_to_json(event))
        if isinstance(event, (DoneEvent, FailedEvent)):
            reply.close()


def _check_model(wanted: str, client: EngineClient) -> None:
    resident = client.reading().model
    if wanted and resident and wanted != resident:
        raise InferenceError(
            f"The running app holds the model {resident!r}, but {wanted!r} was asked for, and one machine holds one"
            " model. Leave out --model, or quit the app first."
        )


def _cancel(client: EngineClient, request_id: str) -> None:
    try:
        client.cancel(request_id)
    except EngineStoppedError:
        return
