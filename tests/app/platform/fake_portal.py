"""A private D-Bus and a portal on it that gives out shortcuts, as far as the app talks to one."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

NAME = "org.freedesktop.portal.Desktop"
PATH = "/org/freedesktop/portal/desktop"
SHORTCUTS = "org.freedesktop.portal.GlobalShortcuts"
TIMEOUT_S = 10.0


@contextmanager
def private_bus(folder: Path) -> Iterator[str]:
    """The address of a bus of one's own; skips where there is no dbus-daemon."""
    if shutil.which("dbus-daemon") is None:
        pytest.skip("dbus-daemon is not installed")
    command = ["dbus-daemon", "--session", "--nofork", "--print-address", f"--address=unix:path={folder}/bus"]
    daemon = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert daemon.stdout is not None
    try:
        yield daemon.stdout.readline().decode().strip()
    finally:
        daemon.terminate()
        daemon.wait(TIMEOUT_S)
        daemon.stdout.close()


class FakePortal(threading.Thread):
    """The service. Behaviour is ordered by attributes before the client comes.

    Attributes:
        calls: every method called with its arguments, in order.
        has_registry: whether it knows host.portal.Registry.
        create_code: response to CreateSession; 0 grants.
        bind_code: response to BindShortcuts; 0 grants, 1 is the user's no.
        refusal: name and text of an error that CreateSession answers with.
        keys: what the user gives, by shortcut id; those without an entry are not given. None: as is wished.
        asks_user: the answer to BindShortcuts waits for `answer_bind`.
    """

    def __init__(self, address: str) -> None:
        super().__init__(name="fake-portal", daemon=True)
        from jeepney.bus_messages import message_bus
        from jeepney.io.threading import DBusRouter, Proxy, open_dbus_connection

        self.calls: Queue[tuple[str, tuple[Any, ...]]] = Queue()
        self.has_registry = True
        self.create_code = self.bind_code = 0
        self.refusal: tuple[str, str] | None = None
        self.keys: Mapping[str, str] | None = None
        self.asks_user = False
        self._connection: Any = open_dbus_connection(address)
        with DBusRouter(self._connection) as router:
            Proxy(message_bus, router, timeout=TIMEOUT_S).RequestName(NAME)
        self._client = ""
        self._session = ""
        self._bind: tuple[str, list[Any]] = ("", [])

    def run(self) -> None:
        from jeepney import MessageType
        from jeepney.io.threading import ReceiveStopped

        try:
            while True:
                message = self._connection.receive()
                if message.header.message_type is MessageType.method_call:
                    self._answer(message)
        except ReceiveStopped:
            pass

    def end(self) -> None:
        """Leaves the bus."""
        self._connection.interrupt()
        self.join(TIMEOUT_S)
        self._connection.close()

    def next_call(self) -> tuple[str, tuple[Any, ...]]:
        """The next method that was called."""
        return self.calls.get(timeout=TIMEOUT_S)

    # --- what happens on the desktop ----------------------------------------------------------------------------

    def press(self, shortcut_id: str, token: str = "", session: str | None = None) -> None:
        """The user presses the keys of a shortcut."""
        options = {"activation_token": ("s", token)} if token else {}
        body = (session or self._session, shortcut_id, 12345, options)
        self._signal(PATH, SHORTCUTS, "Activated", "osta{sv}", body)

    def change_keys(self, keys: Mapping[str, str]) -> None:
        """The user gives other keys in the settings of the desktop."""
        given = [(name, {"trigger_description": ("s", text)}) for name, text in keys.items()]
        self._signal(PATH, SHORTCUTS, "ShortcutsChanged", "oa(sa{sv})", (self._session, given))

    def close_session(self) -> None:
        """The desktop ends the session."""
        self._signal(self._session, "org.freedesktop.portal.Session", "Closed", "a{sv}", ({},))

    def answer_bind(self) -> None:
        """The user answers the question."""
        handle, wishes = self._bind
        given = []
        for name, values in wishes:
            text = values["preferred_trigger"][1] if self.keys is None else self.keys.get(name)
            if text is not None:
                given.append((name, {"description": values["description"], "trigger_description": ("s", text)}))
        results = {"shortcuts": ("a(sa{sv})", given)} if self.bind_code == 0 else {}
        self._respond(handle, self.bind_code, results)

    # --- the protocol -------------------------------------------------------------------------------------------

    def _answer(self, message: Any) -> None:
        from jeepney import HeaderFields, new_error, new_method_return

        fields = message.header.fields
        method, interface = fields[HeaderFields.member], fields.get(HeaderFields.interface, "")
        self._client = fields[HeaderFields.sender]
        if interface.endswith("Registry") and not self.has_registry:
            self._send(new_error(message, "org.freedesktop.DBus.Error.UnknownMethod", "s", ("No such interface",)))
            return
        if method == "CreateSession" and self.refusal is not None:
            name, text = self.refusal
            self._send(new_error(message, name, "s", (text,)))
        elif method == "Register":
            self._send(new_method_return(message))
        elif method in ("CreateSession", "BindShortcuts"):
            options = message.body[-1]
            sender = self._client[1:].replace(".", "_")
            handle = f"{PATH}/request/{sender}/{options['handle_token'][1]}"
            if method == "CreateSession":
                self._session = f"{PATH}/session/{sender}/{options['session_handle_token'][1]}"
                # Before the reply, as a quick portal may do.
                self._respond(handle, self.create_code, {"session_handle": ("s", self._session)})
                self._send(new_method_return(message, "o", (handle,)))
            else:
                self._send(new_method_return(message, "o", (handle,)))
                self._bind = (handle, message.body[1])
                if not self.asks_user:
                    self.answer_bind()
        self.calls.put((method, message.body))

    def _respond(self, handle: str, code: int, results: Mapping[str, Any]) -> None:
        self._signal(handle, "org.freedesktop.portal.Request", "Response", "ua{sv}", (code, results))

    def _signal(self, path: str, interface: str, name: str, signature: str, body: tuple[Any, ...]) -> None:
        from jeepney import DBusAddress, HeaderFields, new_signal

        message = new_signal(DBusAddress(path, interface=interface), name, signature, body)
        message.header.fields[HeaderFields.destination] = self._client
        self._send(message)

    def _send(self, message: Any) -> None:
        self._connection.send(message)
