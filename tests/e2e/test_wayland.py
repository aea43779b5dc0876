"""The app on a real Wayland compositor (weston in a window of Xvfb), with a portal that gives out shortcuts."""

from __future__ import annotations

import copy
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.app.platform.fake_portal import FakePortal, private_bus
from tests.e2e.conftest import ANSWER_TIMEOUT_S, App, Editor, PipedProgram
from tests.x_display import XDisplay, need, wait_for

SOCKET = "wayland-test"
TEXT = "The meeting moves to Tuesday. Anna brings the plans."
SHORT = ("--pieces", json.dumps(["A ", "short ", "answer."]))


class WaylandEditor(Editor):
    """A program on the compositor; a new window has the keyboard there, and nobody else can give it."""

    def __init__(self, display: XDisplay, log: Path, title: str) -> None:
        PipedProgram.__init__(self, display, _editor_command(title), log)
        self.focus()

    def focus(self) -> None:
        """Waits until the keys go to this window."""
        wait_for(lambda: self.ask("state")["active"], "the editor's focus")


def _editor_command(title: str) -> list[str]:

    return [sys.executable, "-m", "tests.e2e.editor", title]


@pytest.fixture
def compositor(bare_display: XDisplay) -> XDisplay:
    """The display, for programs of a compositor whose window has the keyboard."""
    need("weston")
    size = ("--width=1200", "--height=700")
    bare_display.start("weston", "--backend=x11-backend.so", "--idle-time=0", f"--socket={SOCKET}", *size)
    socket = Path(os.environ["XDG_RUNTIME_DIR"]) / SOCKET
    wait_for(socket.exists, "the compositor")
    wait_for(lambda: bare_display.active_window() and bare_display.focus() > 1, "the compositor's window")
    inside = copy.copy(bare_display)
    kept = {name: value for name, value in bare_display.environment.items() if name != "DISPLAY"}
    inside.environment = kept | {
        "WAYLAND_DISPLAY": SOCKET,
        "XDG_SESSION_TYPE": "wayland",
        "QT_QPA_PLATFORM": "wayland",
        # Nobody outside may be asked.
        "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere/bus",
    }
    return inside


@pytest.fixture
def portal(compositor: XDisplay, tmp_path: Path) -> Iterator[FakePortal]:
    """A portal on the bus of the compositor's programs."""
    with private_bus(tmp_path) as address:
        compositor.environment = {**compositor.environment, "DBUS_SESSION_BUS_ADDRESS": address}
        portal = FakePortal(address)
        portal.start()
        yield portal
        portal.end()


@pytest.fixture
def start(compositor: XDisplay, tmp_path: Path) -> Iterator[Callable[..., App]]:
    """Starts the app on the compositor."""
    apps: list[App] = []

    def start_one(*arguments: str) -> App:
        app = App(compositor, tmp_path / "app.log", *arguments)
        apps.append(app)
        wait_for(lambda: app.ask("started"), "the app", timeout_s=ANSWER_TIMEOUT_S)
        # Without a tray the window comes by itself; what is opened after it has the keyboard.
        wait_for(lambda: app.ask("window")["visible"], "the window")
        return app

    yield start_one
    for app in apps:
        app.close()


@pytest.fixture
def start_wayland_editor(compositor: XDisplay, tmp_path: Path) -> Iterator[Callable[[str], WaylandEditor]]:
    """Starts editors on the compositor."""
    editors: list[WaylandEditor] = []

    def start_one(title: str) -> WaylandEditor:
        editors.append(WaylandEditor(compositor, tmp_path / f"{title}.log", title))
        return editors[-1]

    yield start_one
    for editor in editors:
        editor.close()


def test_from_a_shortcut_of_the_desktop_to_the_clipboard(
    compositor: XDisplay,
    portal: FakePortal,
    start: Callable[..., App],
    start_wayland_editor: Callable[[str], WaylandEditor],
) -> None:
    app = start(*SHORT)
    called = [portal.next_call()[0] for _ in range(3)]
    assert called == ["Register", "CreateSession", "BindShortcuts"]
    wait_for(lambda: "works" in " ".join(app.ask("window")["texts"]), "the window to say that the hotkeys work")
    editor = start_wayland_editor("Editor")
    editor.ask("set_text", text=TEXT)
    compositor.tap("ctrl+a")
    compositor.tap("ctrl+c")
    wait_for(lambda: editor.ask("state")["selected"] == TEXT, "the selection")
    wait_for(lambda: "text/plain" in editor.ask("clipboard"), "the copy")
    portal.press("action.summarize")
    popup = app.wait_for_popup("notice")
    assert TEXT in popup["notice"], "what was copied is offered, and not taken unasked"
    assert app.sent_texts == []
    compositor.tap("return")
    assert app.wait_for_popup("finished")["text"] == "A short answer."
    assert TEXT in app.sent_texts[0]
    other = start_wayland_editor("Other")
    compositor.tap("ctrl+v")
    wait_for(lambda: other.text == "A short answer.", lambda: f"the answer on the clipboard, not {other.text!r}")
    assert portal.calls.empty(), "asked once"


def test_without_a_portal_the_command_is_named(compositor: XDisplay, start: Callable[..., App]) -> None:
    app = start(*SHORT)
    text = wait_for(
        lambda: next((each for each in app.ask("window")["texts"] if "gives out no shortcuts" in each), ""),
        "the advice",
    )
    assert "`deskinfer --action summarize`" in text
    assert "works" not in app.ask("window")["texts"]
