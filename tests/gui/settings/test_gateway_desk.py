"""The gateway among the windows: what the user sees of it, and its key."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from pytestqt.qtbot import QtBot

from app.desktop.protocols import DesktopSession
from app.remote.key import SERVICE
from tests.app.gateway.test_switch import is_served
from tests.app.remote.test_key import Ring
from tests.gui.test_application import RunningApp

pytestmark = pytest.mark.gui

WAIT_MS = 20_000


@pytest.fixture
def ring() -> Iterator[Ring]:
    before: KeyringBackend = keyring.get_keyring()
    ring = Ring()
    keyring.set_keyring(ring)
    yield ring
    keyring.set_keyring(before)


@pytest.fixture
def running(qtbot: QtBot, fake_session: DesktopSession, tmp_path: Path, ring: Ring) -> Iterator[RunningApp]:
    running = RunningApp(qtbot, fake_session, tmp_path).start()
    yield running
    running.app.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_window_and_tray_say_where_programs_are_served(running: RunningApp, qtbot: QtBot) -> None:
    port = free_port()
    running.settings.set("gateway.port", port)
    running.settings.set("gateway.enabled", True)
    line = f"Serving other programs at 127.0.0.1:{port}"
    qtbot.waitUntil(lambda: line in running.app.window.served_line.text(), timeout=WAIT_MS)
    assert line in running.app.tray.icon.toolTip()
    running.app.close()
    assert not is_served(port)


def test_a_port_that_is_taken_is_told(running: RunningApp, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(running.app.gateway, "_show_error", lambda title, text: told.append(f"{title}: {text}"))
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        running.settings.set("gateway.port", port)
        running.settings.set("gateway.enabled", True)
        qtbot.waitUntil(lambda: bool(told), timeout=WAIT_MS)
    assert told[0].startswith(f"Other programs are not served: Port {port} cannot be used")
    assert "Serving" not in running.app.window.served_line.text()


def test_its_key_is_asked_for_and_kept_in_the_keyring(running: RunningApp, qtbot: QtBot, ring: Ring) -> None:
    running.app.gateway.ask_for_key(running.app.window)
    dialog = running.app.gateway._dialog
    assert dialog is not None
    dialog.setTextValue(" s3cret ")
    dialog.accept()
    qtbot.waitUntil(lambda: running.settings.flag("gateway.needs_key"))
    assert ring.held == {(SERVICE, "gateway"): "s3cret"}
