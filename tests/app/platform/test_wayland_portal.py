"""Shortcuts through the portal: asked for once, told as given only where they are, and gone with the portal."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty, Queue

import pytest

from app.desktop.hotkeys import KEY_NAMES, parse
from app.desktop.protocols import Hotkey, PortalAnswer, Shortcut
from app.platform import wayland_portal
from app.platform.wayland_portal import DECLINED, NO_PORTAL, PORTAL_ENDED, PortalShortcuts, trigger

pytest.importorskip("jeepney", exc_type=ImportError)

from tests.app.platform.fake_portal import TIMEOUT_S, FakePortal, private_bus

SHORTCUTS = (
    Shortcut("action.summarize", "Summarize", parse("Ctrl+Shift+1")),
    Shortcut("action.translate", "翻译", parse("Ctrl+Shift+F2")),
)


class Client:
    """The app's side, with all that it was told."""

    def __init__(self, address: str, install_entry: Callable[[], None] = lambda: None) -> None:
        self.portal = PortalShortcuts("org.example.App", install_entry, address)
        self.answers: Queue[PortalAnswer] = Queue()
        self.presses: Queue[tuple[str, str]] = Queue()

    def ask(self) -> None:
        self.portal.ask(SHORTCUTS, self.answers.put, lambda *press: self.presses.put(press))

    def answer(self) -> PortalAnswer:
        return self.answers.get(timeout=TIMEOUT_S)

    def press(self) -> tuple[str, str]:
        return self.presses.get(timeout=TIMEOUT_S)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with private_bus(tmp_path_factory.mktemp("bus")) as found:
        yield found


@pytest.fixture
def portal(address: str) -> Iterator[FakePortal]:
    portal = FakePortal(address)
    portal.start()
    yield portal
    portal.end()


@pytest.fixture
def client(address: str) -> Iterator[Client]:
    client = Client(address)
    yield client
    client.portal.close()


def test_asked_once_given_and_pressed(portal: FakePortal, client: Client) -> None:
    client.ask()
    assert client.answer() == PortalAnswer({"action.summarize": "CTRL+SHIFT+1", "action.translate": "CTRL+SHIFT+F2"})
    name, (app_id, _) = portal.next_call()
    assert (name, app_id) == ("Register", "org.example.App"), "first of all it says who it is"
    assert portal.next_call()[0] == "CreateSession"
    name, (session, wishes, parent, _) = portal.next_call()
    assert (name, parent) == ("BindShortcuts", "")
    assert session.endswith("/deskinfer")
    assert wishes == [
        ("action.summarize", {"description": ("s", "Summarize"), "preferred_trigger": ("s", "CTRL+SHIFT+1")}),
        ("action.translate", {"description": ("s", "翻译"), "preferred_trigger": ("s", "CTRL+SHIFT+F2")}),
    ]
    portal.press("action.translate")
    portal.press("action.summarize", token="token-7")
    assert client.press() == ("action.translate", "")
    assert client.press() == ("action.summarize", "token-7")
    assert portal.calls.empty(), "nothing is bound a second time"


def test_what_the_desktop_gives_is_told_in_its_words(portal: FakePortal, client: Client) -> None:
    portal.keys = {"action.summarize": ""}
    client.ask()
    assert client.answer() == PortalAnswer({"action.summarize": ""})
    portal.change_keys({"action.summarize": "Meta+S", "action.translate": "Meta+T", "of.another": "x"})
    assert client.answer() == PortalAnswer({"action.summarize": "Meta+S", "action.translate": "Meta+T"})


def test_the_user_may_take_his_time(portal: FakePortal, client: Client) -> None:
    portal.asks_user = True
    client.ask()
    for _ in range(3):
        portal.next_call()
    assert client.answers.empty()
    portal.press("action.summarize")
    portal.answer_bind()
    assert client.answer().problem is None
    assert client.press() == ("action.summarize", ""), "a press that came meanwhile is not lost"


def test_presses_of_another_session_are_not_ours(portal: FakePortal, client: Client) -> None:
    client.ask()
    client.answer()
    portal.press("action.summarize", session="/org/freedesktop/portal/desktop/session/1_1/other")
    portal.press("action.translate")
    assert client.press() == ("action.translate", "")
    assert client.presses.empty()


def test_the_users_no_is_told_as_such(portal: FakePortal, client: Client) -> None:
    portal.bind_code = 1
    client.ask()
    assert client.answer() == PortalAnswer(problem=DECLINED)


@pytest.mark.parametrize("step", ["create", "bind"])
def test_a_refusal_without_a_reason(portal: FakePortal, client: Client, step: str) -> None:
    if step == "create":
        portal.create_code = 2
    else:
        portal.bind_code = 2
    client.ask()
    assert client.answer() == PortalAnswer(problem=NO_PORTAL)


def test_a_refusal_with_a_reason(portal: FakePortal, client: Client) -> None:
    portal.refusal = ("org.freedesktop.portal.Error.NotAllowed", "An app id is required.")
    client.ask()
    problem = client.answer().problem
    assert str(problem) == "The desktop refused to give out shortcuts: An app id is required."


def test_a_portal_without_shortcuts(portal: FakePortal, client: Client) -> None:
    portal.refusal = ("org.freedesktop.DBus.Error.UnknownMethod", "No such interface")
    client.ask()
    assert client.answer() == PortalAnswer(problem=NO_PORTAL)


def test_an_older_portal_without_a_registry(portal: FakePortal, client: Client) -> None:
    portal.has_registry = False
    client.ask()
    assert client.answer().problem is None


def test_no_portal_at_all(client: Client) -> None:
    client.ask()
    assert client.answer() == PortalAnswer(problem=NO_PORTAL)


@pytest.mark.parametrize("bus", ["unix:path=/nowhere/bus", "no address", "SESSION"])
def test_no_bus_at_all(bus: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
    client = Client(bus)
    client.ask()
    assert client.answer() == PortalAnswer(problem=NO_PORTAL)
    client.portal.close()


@pytest.mark.parametrize("how", ["session", "portal"])
def test_shortcuts_that_are_gone_are_told(address: str, client: Client, how: str) -> None:
    portal = FakePortal(address)
    portal.start()
    client.ask()
    assert client.answer().problem is None
    if how == "session":
        portal.close_session()
        assert client.answer() == PortalAnswer(problem=PORTAL_ENDED)
    portal.end()
    if how == "portal":
        assert client.answer() == PortalAnswer(problem=PORTAL_ENDED)


def test_close_ends_the_thread_also_while_the_user_is_asked(portal: FakePortal, client: Client) -> None:
    portal.asks_user = True
    client.ask()
    for _ in range(3):
        portal.next_call()
    client.portal.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "shortcut-portal"]
    client.portal.close()
    portal.answer_bind()
    with pytest.raises(Empty):
        client.answers.get(timeout=0.1)


def test_asked_again_it_is_a_new_session(portal: FakePortal, client: Client) -> None:
    client.ask()
    client.answer()
    client.ask()
    assert client.answer().problem is None
    portal.press("action.summarize")
    assert client.press() == ("action.summarize", "")
    assert client.presses.empty(), "the first session is over"


def test_the_entry_is_there_before_the_portal_looks_for_it(portal: FakePortal, address: str, tmp_path: Path) -> None:
    entry = tmp_path / "entry"
    client = Client(address, lambda: entry.write_text("x") and None)
    client.ask()
    portal.next_call()
    assert entry.exists()
    client.answer()
    client.portal.close()


def test_an_entry_that_cannot_be_written_does_not_stop_it(portal: FakePortal, address: str) -> None:
    def fail() -> None:
        raise PermissionError(13, "Permission denied")

    client = Client(address, fail)
    client.ask()
    assert client.answer().problem is None
    client.portal.close()


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("Ctrl+Shift+1", "CTRL+SHIFT+1"),
        ("Alt+Meta+q", "ALT+LOGO+q"),
        ("F12", "F12"),
        ("Ctrl+PageUp", "CTRL+Page_Up"),
        ("Ctrl+Space", "CTRL+space"),
        ("Alt+Shift+[", "ALT+SHIFT+bracketleft"),
        ("Ctrl+F", "CTRL+f"),
    ],
)
def test_triggers_are_written_as_the_specification_says(text: str, written: str) -> None:
    assert trigger(parse(text)) == written


def test_every_key_has_a_keysym() -> None:
    known = {
        *"abcdefghijklmnopqrstuvwxyz0123456789",
        *(f"F{number}" for number in range(1, 25)),
        *wayland_portal._KEYSYMS.values(),
        *("space", "minus", "equal", "comma", "period", "slash", "backslash", "semicolon", "apostrophe", "grave"),
        *("bracketleft", "bracketright"),
    }
    assert {trigger(Hotkey(frozenset(), key)) for key in KEY_NAMES} == known
