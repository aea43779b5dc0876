"""One running app per user, and a private line to it: JSON over a Unix socket, or a named pipe on Windows.

Nothing is ever unpickled. The socket lies in a directory that only its owner may enter, and the peer's user is checked;
on Windows the pipe's default rights let only the same user (and administrators) write.

A client sends one command, a JSON object, and gets frames: {"message": {...}} any number of times, then {"end": true}.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import stat
import struct
import sys
import threading
import time
from collections.abc import Callable, Generator
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from app.instance.address import InstanceError, address_in, private_directory
from app.paths import runtime_dir

__all__ = [
    "AlreadyRunningError",
    "InstanceError",
    "InstanceServer",
    "Reply",
    "is_running",
    "send_to_running",
    "stream_from_running",
]

MAX_MESSAGE_BYTES = 8 * 1024 * 1024
MAX_CONNECTIONS = 16
SEND_LIMIT_S = 5.0
_LOCK_WAIT_S = 0.3
_RETRY_S = 0.05

Message = dict[str, Any]
Handler = Callable[[Message, "Reply"], None]


class AlreadyRunningError(Exception):
    """Another process of this user is the running app."""


class Reply:
    """The way back to one client. May be used from any thread; `close` ends it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._gone = False
        self._on_gone: list[Callable[[], None]] = []

    def send(self, message: Message) -> bool:
        """Sends one message; False where the client is gone or the reply is closed."""
        return self._send({"message": message})

    def close(self) -> None:
        """Ends the reply; the client sees that it is whole."""
        self._send({"end": True})
        self._closed.set()

    def on_gone(self, callback: Callable[[], None]) -> None:
        """Calls back once, on another thread, if the client goes away before `close`: its request may be cancelled."""
        with self._lock:
            if not self._gone:
                self._on_gone.append(callback)
                return
        callback()

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called or the client is gone."""
        return self._closed.is_set()

    def check(self) -> None:
        """Looks whether the client is still there. For handlers that keep the connection's thread; only from there."""
        try:
            if self._connection.poll(0):  # a client sends one command only: this is its end
                self._connection.recv_bytes(0)
        except (OSError, EOFError):
            self.mark_gone()

    def mark_gone(self) -> None:
        """The client went away."""
        with self._lock:
            if self._gone or self._closed.is_set():
                return
            self._gone = True
            self._closed.set()
            callbacks, self._on_gone = self._on_gone, []
        for callback in callbacks:
            callback()

    def wait(self, seconds: float) -> bool:
        """Whether the reply ended within that time."""
        return self._closed.wait(seconds)

    def _send(self, frame: Message) -> bool:
        data = _encode(frame)
        with self._lock:
            if self._closed.is_set():
                return False
            try:
                self._connection.send_bytes(data)
                return True
            except (OSError, ValueError):
                pass
        self.mark_gone()
        return False


class InstanceServer:
    """The running app's end of the line: takes the lock, listens, and hands each command to a handler.

    The handler runs on a thread of the connection. What it raises as ValueError, LookupError or TypeError goes to the
    client as {"error": text}: a command that makes no sense never ends the server.
    """

    def __init__(self, handler: Handler, directory: Path | None = None) -> None:
        """Becomes the running app.

        Raises:
            AlreadyRunningError: another process is it. Of two that start at once, exactly one succeeds.
            InstanceError: the directory belongs to somebody else.
        """
        self._handler = handler
        self._directory = private_directory(directory or runtime_dir())
        # A probe of `send_to_running` may hold the lock for a moment.
        self._lock = FileLock(self._directory / "app.lock", timeout=_LOCK_WAIT_S, thread_local=False)
        try:
            self._lock.acquire()
        except Timeout as error:
            raise AlreadyRunningError("The app is already running.") from error
        self._address = address_in(self._directory)
        try:
            self._listener = self._listen()
        except BaseException:
            self._lock.release()
            raise
        self._closing = threading.Event()
        self._connections: dict[Connection, threading.Thread] = {}
        self._guard = threading.Lock()
        self._thread = threading.Thread(target=self._accept, name="instance", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends every connection, the threads and the claim to be the running app. May be called twice."""
        if self._closing.is_set():
            return
        self._closing.set()
        with contextlib.suppress(OSError):
            Client(self._address).close()  # wakes the thread that waits for a client
        self._thread.join(SEND_LIMIT_S)
        with self._guard:
            open_connections = list(self._connections.items())
        for connection, _ in open_connections:
            _shut_down(connection)
        for _, thread in open_connections:
            if thread is not threading.current_thread():
                thread.join(SEND_LIMIT_S)
        self._listener.close()
        self._lock.release()

    def _listen(self) -> Listener:
        if sys.platform != "win32":
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._address)  # of a process that died: we hold the lock, so nobody listens there
        listener = Listener(self._address, backlog=MAX_CONNECTIONS)
        if sys.platform != "win32":
            os.chmod(self._address, stat.S_IRUSR | stat.S_IWUSR)
        return listener

    def _accept(self) -> None:
        while not self._closing.is_set():
            try:
                connection = self._listener.accept()
            except OSError:  # a client that was gone before we took it
                time.sleep(_RETRY_S)
                continue
            if not self._admit(connection):
                connection.close()

    def _admit(self, connection: Connection) -> bool:
        """Gives a client its thread; False where we close, are full, or the client is another user or already gone."""
        try:
            _limit_waiting(connection)
            if not _is_same_user(connection):
                return False
        except OSError:
            return False
        with self._guard:
            if self._closing.is_set() or len(self._connections) >= MAX_CONNECTIONS:
                return False
            thread = threading.Thread(target=self._serve, args=(connection,), name="instance-client", daemon=True)
            self._connections[connection] = thread
            thread.start()
        return True

    def _serve(self, connection: Connection) -> None:
        reply = Reply(connection)
        try:
            if not connection.poll(SEND_LIMIT_S):
                return
            self._run(connection.recv_bytes(MAX_MESSAGE_BYTES), reply)
            while not reply.wait(_RETRY_S) and not self._closing.is_set():
                reply.check()
        except (OSError, EOFError):
            pass
        finally:
            reply.mark_gone()
            with self._guard:
                self._connections.pop(connection, None)
            connection.close()

    def _run(self, data: bytes, reply: Reply) -> None:
        try:
            self._handler(decode(data), reply)
        except (ValueError, LookupError, TypeError) as error:
            reply.send({"error": str(error)})
            reply.close()


def stream_from_running(
    command: Message, timeout_s: float = 2.0, directory: Path | None = None
) -> Generator[Message, None, None] | None:
    """Sends a command to the running app.

    Args:
        timeout_s: to reach it; an app that just starts is waited for. Its messages may come as slowly as they like.

    Returns:
        Its messages as they come, or None where no app runs. Closing the iterator early tells the app that we are gone.

    Raises:
        InstanceError: it runs, but cannot be reached in time, or (while iterating) went away before the end; or the
            command is too long.
    """
    folder = private_directory(directory or runtime_dir())
    connection = _connect(folder, time.monotonic() + timeout_s)
    if connection is None:
        return None
    try:
        _send_command(connection, command)
    except InstanceError:
        connection.close()
        raise
    except OSError as error:
        connection.close()
        raise InstanceError(f"The running app does not take commands ({error}). Quit it and start it again.") from error
    return _messages(connection)


def send_to_running(command: Message, timeout_s: float = 2.0, directory: Path | None = None) -> Message | None:
    """Sends a command and returns the first message of the reply, {} where it has none, None where no app runs.

    Raises:
        InstanceError: the app runs, but did not answer in time; or the command is too long.
    """
    folder = private_directory(directory or runtime_dir())
    deadline = time.monotonic() + timeout_s
    connection = _connect(folder, deadline)
    if connection is None:
        return None
    try:
        _send_command(connection, command)
        if not connection.poll(max(0.0, deadline - time.monotonic())):
            raise InstanceError(f"The running app did not answer within {timeout_s:g} s. Quit it and start it again.")
        frame = decode(connection.recv_bytes(MAX_MESSAGE_BYTES))
    except (OSError, EOFError, ValueError) as error:
        raise InstanceError("The running app closed the line without an answer. Try again.") from error
    finally:
        connection.close()
    message = frame.get("message", {})
    return message if isinstance(message, dict) else {}


def _messages(connection: Connection) -> Generator[Message, None, None]:
    try:
        while True:
            frame = decode(connection.recv_bytes(MAX_MESSAGE_BYTES))
            if "message" not in frame:
                return
            yield frame["message"]
    except (OSError, EOFError, ValueError) as error:
        raise InstanceError("The running app went away before its answer was complete. Try again.") from error
    finally:
        connection.close()


def _connect(directory: Path, deadline_s: float) -> Connection | None:
    while True:
        try:
            return Client(address_in(directory))
        except OSError as error:
            if not is_running(directory):
                return None
            if time.monotonic() >= deadline_s:
                raise InstanceError(
                    f"The app runs but cannot be reached ({error}). Quit it and start it again."
                ) from error
            time.sleep(_RETRY_S)


def is_running(directory: Path | None = None) -> bool:
    """Whether some process of this user is the running app, or is about to be."""
    lock = FileLock(private_directory(directory or runtime_dir()) / "app.lock", timeout=0, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        return True
    lock.release()
    return False


def _encode(message: Message) -> bytes:
    # A clipboard or a command line may hold lone surrogates; json.loads lets them pass in the same way.
    return json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _send_command(connection: Connection, command: Message) -> None:
    data = _encode(command)
    if len(data) > MAX_MESSAGE_BYTES:
        raise InstanceError(
            f"The text takes {len(data)} bytes, but the running app takes at most {MAX_MESSAGE_BYTES}."
            " Use a shorter text."
        )
    connection.send_bytes(data)


def decode(data: bytes) -> Message:
    """Reads a JSON object. Raises ValueError for anything else."""
    try:
        message = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"A message of {len(data)} bytes is not JSON.") from error
    if not isinstance(message, dict):
        raise ValueError(f"A message must be a JSON object, not {type(message).__name__}.")
    return message


def _is_same_user(connection: Connection) -> bool:
    """Asks the kernel who is at the other end, where it can say (Linux)."""
    if not sys.platform.startswith("linux"):
        return True
    with _socket_of(connection) as peer:
        _, uid, _ = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return bool(uid == os.getuid())


def _limit_waiting(connection: Connection) -> None:
    """A peer that stops in the middle of a message, or does not read, holds a thread for a few seconds only."""
    if sys.platform != "win32":
        limit = struct.pack("ll", int(SEND_LIMIT_S), 0)
        with _socket_of(connection) as peer:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)


def _shut_down(connection: Connection) -> None:
    """Wakes a thread that reads from or writes to the connection."""
    if sys.platform == "win32":
        connection.close()  # reads there are never begun before a whole message has come
        return
    with contextlib.suppress(OSError), _socket_of(connection) as peer:
        peer.shutdown(socket.SHUT_RDWR)


def _socket_of(connection: Connection) -> socket.socket:
    return socket.socket(fileno=os.dup(connection.fileno()))
