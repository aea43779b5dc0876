"""Shortcuts out of the hands of a Wayland desktop: org.freedesktop.portal.GlobalShortcuts, over one D-Bus connection.

The order is the portal's: the connection says which program it is, opens a session, and binds all its shortcuts, once;
the session lives as long as the connection. Which keys they get is decided by the desktop and its user, who may change
them at any time, and only what the desktop has confirmed is told as given.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from app.desktop.protocols import Hotkey, Modifier, PortalAnswer, Shortcut
from app.translation import UserText

_log = logging.getLogger(__name__)

BUS_NAME = "org.freedesktop.portal.Desktop"
OBJECT_PATH = "/org/freedesktop/portal/desktop"
SHORTCUTS = "org.freedesktop.portal.GlobalShortcuts"
REGISTRY = "org.freedesktop.host.portal.Registry"
REQUEST = "org.freedesktop.portal.Request"
SESSION = "org.freedesktop.portal.Session"
# The portal may have to be started first.
CALL_TIMEOUT_S = 25.0
JOIN_TIMEOUT_S = 2.0

NO_PORTAL = UserText("This desktop gives out no shortcuts to programs.")
DECLINED = UserText("The shortcuts were declined.")
PORTAL_ENDED = UserText("The part of the desktop that gives out shortcuts has ended. Start the app again.")
_ABSENT = frozenset(
    f"org.freedesktop.DBus.Error.{name}"
    for name in ("ServiceUnknown", "NameHasNoOwner", "UnknownMethod", "UnknownInterface", "UnknownObject")
)
_MODIFIERS = {Modifier.CTRL: "CTRL", Modifier.ALT: "ALT", Modifier.SHIFT: "SHIFT", Modifier.META: "LOGO"}
# Names of keys as xkbcommon writes them, where they are not our own in lower case.
_KEYSYMS = {
    **{"TAB": "Tab", "RETURN": "Return", "BACKSPACE": "BackSpace", "ESCAPE": "Escape", "INSERT": "Insert"},
    **{"DELETE": "Delete", "HOME": "Home", "END": "End", "PAGEUP": "Page_Up", "PAGEDOWN": "Page_Down", "UP": "Up"},
    **{"DOWN": "Down", "LEFT": "Left", "RIGHT": "Right", "PRINT": "Print", "PAUSE": "Pause", "MENU": "Menu"},
}


def trigger(hotkey: Hotkey) -> str:
    """A combination as the specification of shortcuts writes it: "CTRL+SHIFT+1"."""
    names = [name for modifier, name in _MODIFIERS.items() if modifier in hotkey.modifiers]
    is_function = hotkey.key[0] == "F" and hotkey.key[1:].isdigit()
    return "+".join([*names, hotkey.key if is_function else _KEYSYMS.get(hotkey.key, hotkey.key.lower())])


class _PortalError(Exception):
    """The portal gives nothing.

    Attributes:
        text: why, for the user.
    """

    def __init__(self, text: UserText) -> None:
        self.text = text
        super().__init__(str(text))


class PortalShortcuts:
    """`app.desktop.protocols.ShortcutPortal` on the session's D-Bus."""

    def __init__(self, app_id: str, install_entry: Callable[[], None], bus: str = "SESSION") -> None:
        """Connects to nothing yet.

        Args:
            app_id: name of the installed .desktop file, without its ending.
            install_entry: sees to it that the file is there; may raise OSError.
            bus: "SESSION", or the address of a bus.
        """
        self._app_id, self._install_entry, self._bus = app_id, install_entry, bus
        self._session: _PortalSession | None = None

    def ask(
        self,
        shortcuts: Sequence[Shortcut],
        on_answer: Callable[[PortalAnswer], None],
        on_press: Callable[[str, str], None],
    ) -> None:
        """Asks once for all shortcuts, in a new session; see `ShortcutPortal`."""
        self.close()
        self._session = _PortalSession(
            self._app_id, self._install_entry, self._bus, tuple(shortcuts), on_answer, on_press
        )
        self._session.start()

    def close(self) -> None:
        """Ends the session."""
        session, self._session = self._session, None
        if session is not None:
            session.end()


class _PortalSession(threading.Thread):
    """One session with the portal: asks, then waits for presses until it is ended."""

    def __init__(
        self,
        app_id: str,
        install_entry: Callable[[], None],
        bus: str,
        shortcuts: tuple[Shortcut, ...],
        on_answer: Callable[[PortalAnswer], None],
        on_press: Callable[[str, str], None],
    ) -> None:
        super().__init__(name="shortcut-portal", daemon=True)
        self._app_id, self._install_entry, self._bus = app_id, install_entry, bus
        self._shortcuts, self._on_answer, self._on_press = shortcuts, on_answer, on_press
        self._connection: Any = None
        self._backlog: deque[Any] = deque()
        self._session_path = ""
        self._is_ended = threading.Event()
        self._lock = threading.Lock()

    def end(self) -> None:
        """Ends the thread; nothing is called any more."""
        with self._lock:
            self._is_ended.set()
            if self._connection is not None:
                self._connection.interrupt()
        if threading.current_thread() is not self:
            self.join(JOIN_TIMEOUT_S)

    def run(self) -> None:
        """Talks until the end; whatever goes wrong is told as the answer."""
        from jeepney.io.threading import ReceiveStopped
        from jeepney.wrappers import DBusErrorResponse

        try:
            self._connect()
            self._register()
            self._create_session()
            self._bind()
            while True:
                self._handle(self._next())
        except ReceiveStopped:
            pass
        except _PortalError as error:
            self._fail(error.text)
        except DBusErrorResponse as error:
            _log.warning("the shortcut portal refused: %s", error.name)
            self._fail(NO_PORTAL if error.name in _ABSENT else _refused(error))
        except (OSError, EOFError) as error:
            _log.warning("the connection to the shortcut portal broke: %s", type(error).__name__)
            self._fail(PORTAL_ENDED if self._session_path else NO_PORTAL)
        finally:
            with self._lock:
                connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    # --- the steps ----------------------------------------------------------------------------------------------

    def _connect(self) -> None:
        """Raises _PortalError where there is no bus."""
        from jeepney.io.threading import ReceiveStopped, open_dbus_connection

        try:
            connection = open_dbus_connection(self._bus)
        except (KeyError, RuntimeError, ValueError) as error:
            raise _PortalError(NO_PORTAL) from error  # no address, or none that is understood
        with self._lock:
            self._connection = connection
            if self._is_ended.is_set():
                raise ReceiveStopped("ended before it began")
        for rule in (
            f"type='signal',sender='{BUS_NAME}',interface='{REQUEST}'",
            f"type='signal',sender='{BUS_NAME}',interface='{SESSION}'",
            f"type='signal',sender='{BUS_NAME}',interface='{SHORTCUTS}'",
            f"type='signal',sender='org.freedesktop.DBus',member='NameOwnerChanged',arg0='{BUS_NAME}'",
        ):
            self._call("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "AddMatch", "s", rule)

    def _register(self) -> None:
        """Says which program this is. Older portals have no registry, and find it out in their own way."""
        from jeepney.wrappers import DBusErrorResponse

        try:
            self._install_entry()
        except OSError as error:
            _log.warning("the desktop entry cannot be written: %s", error.strerror)
        try:
            self._call(BUS_NAME, OBJECT_PATH, REGISTRY, "Register", "sa{sv}", self._app_id, {})
        except DBusErrorResponse as error:
            _log.info("the portal did not register the app: %s", error.name)

    def _create_session(self) -> None:
        options = {"handle_token": ("s", "deskinfer_create"), "session_handle_token": ("s", "deskinfer")}
        results = self._request("CreateSession", "a{sv}", options)
        self._session_path = str(results["session_handle"][1])

    def _bind(self) -> None:
        """Asks for the shortcuts and tells the answer; takes as long as the user does."""
        wishes = [
            (each.id, {"description": ("s", each.title), "preferred_trigger": ("s", trigger(each.hotkey))})
            for each in self._shortcuts
        ]
        options = {"handle_token": ("s", "deskinfer_bind")}
        results = self._request("BindShortcuts", "oa(sa{sv})sa{sv}", self._session_path, wishes, "", options)
        self._tell(results.get("shortcuts", ("a(sa{sv})", []))[1])

    def _handle(self, message: Any) -> None:
        """A signal that belongs to no call. Raises _PortalError where it ends the session."""
        from jeepney import HeaderFields

        fields = message.header.fields
        name, path = fields.get(HeaderFields.member), fields.get(HeaderFields.path)
        if name == "Activated" and message.body[0] == self._session_path:
            token = message.body[3].get("activation_token", ("s", ""))[1]
            if not self._is_ended.is_set():
                self._on_press(str(message.body[1]), str(token))
        elif name == "ShortcutsChanged" and message.body[0] == self._session_path:
            self._tell(message.body[1])
        elif (name == "Closed" and path == self._session_path) or (name == "NameOwnerChanged" and not message.body[2]):
            raise _PortalError(PORTAL_ENDED)

    # --- calls and answers --------------------------------------------------------------------------------------

    def _tell(self, given: Iterable[tuple[str, Mapping[str, tuple[str, Any]]]]) -> None:
        asked = {each.id for each in self._shortcuts}
        keys = {name: str(values.get("trigger_description", ("s", ""))[1]) for name, values in given if name in asked}
        if not self._is_ended.is_set():
            self._on_answer(PortalAnswer(keys))

    def _fail(self, problem: UserText) -> None:
        if not self._is_ended.is_set():
            self._on_answer(PortalAnswer(problem=problem))

    def _request(self, method: str, signature: str, *values: Any) -> Mapping[str, tuple[str, Any]]:
        """A call whose result comes later, as a signal. Raises _PortalError where it is not granted."""
        from jeepney import HeaderFields

        (handle,) = self._call(BUS_NAME, OBJECT_PATH, SHORTCUTS, method, signature, *values)
        waiting: list[Any] = []
        while True:
            message = self._next()
            fields = message.header.fields
            if fields.get(HeaderFields.member) == "Response" and fields.get(HeaderFields.path) == handle:
                break
            if fields.get(HeaderFields.member) in ("Closed", "NameOwnerChanged"):
                self._handle(message)
            waiting.append(message)
        self._backlog.extend(waiting)
        code, results = message.body
        if code != 0:
            raise _PortalError(DECLINED if code == 1 else NO_PORTAL)
        found: Mapping[str, tuple[str, Any]] = results
        return found

    def _call(self, bus_name: str, path: str, interface: str, method: str, signature: str, *values: Any) -> Any:
        """The body of the reply. Raises DBusErrorResponse, TimeoutError."""
        from jeepney import DBusAddress, HeaderFields, new_method_call
        from jeepney.wrappers import unwrap_msg

        address = DBusAddress(path, bus_name=bus_name, interface=interface)
        serial = next(self._connection.outgoing_serial)
        self._connection.send(new_method_call(address, method, signature, values), serial)
        while True:
            message = self._connection.receive(timeout=CALL_TIMEOUT_S)
            if message.header.fields.get(HeaderFields.reply_serial) == serial:
                return unwrap_msg(message)
            self._backlog.append(message)

    def _next(self) -> Any:
        return self._backlog.popleft() if self._backlog else self._connection.receive()


def _refused(error: Any) -> UserText:
    detail = error.data[0] if error.data and isinstance(error.data[0], str) else error.name
    return UserText("The desktop refused to give out shortcuts: {reason}.", reason=str(detail).rstrip("."))
