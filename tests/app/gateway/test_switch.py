"""The gateway of the app follows the settings."""

from __future__ import annotations

import queue
import socket
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.diagnostics.doctor import gateway
from app.engine_client import FakeClient
from app.gateway.setup import open_gateway
from app.gateway.switch import GatewayState, GatewaySwitch
from app.paths import settings_file
from app.settings.gateway_settings import OriginError, origins_of
from app.settings.registry import setting_registry
from app.settings.settings import Settings
from app.translation import Translator
from inference.gateway.options import GatewayOptions
from inference.gateway.server import GatewayServer


class Room:
    """A switch over a scripted engine; `told` holds what it says, `asked` the options of each server."""

    def __init__(self, settings: Settings, key: str = "") -> None:
        self.settings = settings
        self.told: queue.SimpleQueue[GatewayState] = queue.SimpleQueue()
        self.asked: list[GatewayOptions] = []
        self.client = FakeClient()
        self.switch = GatewaySwitch(settings, self.open, lambda: key, self.told.put)

    def open(self, options: GatewayOptions) -> GatewayServer:
        self.asked.append(options)
        return open_gateway(self.client, options, lambda: "fake", dict)

    def next(self) -> GatewayState:
        return self.told.get(timeout=20)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.load(tmp_path / "settings.toml", setting_registry([]))


@pytest.fixture
def room(settings: Settings) -> Iterator[Callable[..., Room]]:
    """Makes rooms, which are closed at the end."""
    rooms: list[Room] = []

    def make(key: str = "") -> Room:
        rooms.append(Room(settings, key))
        return rooms[-1]

    yield make
    for each in rooms:
        each.switch.close()


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_served(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=10) as response:
            return response.status == 200
    except OSError:
        return False


def test_nothing_is_served_unless_it_is_switched_on(room: Callable[..., Room]) -> None:
    made = room()
    made.settings.set("gateway.port", 20000)
    assert made.asked == []
    assert made.told.empty()


def test_it_follows_the_settings(room: Callable[..., Room], settings: Settings, port: int) -> None:
    settings.set("gateway.port", port)
    settings.set("gateway.origins", "app://obsidian.md, https://notes.example/")
    settings.set("gateway.needs_key", True)
    made = room(key="k")
    settings.set("gateway.enabled", True)
    assert made.next() == GatewayState(f"127.0.0.1:{port}")
    assert is_served(port)
    assert made.asked[-1].origins == ("app://obsidian.md", "https://notes.example")
    assert made.asked[-1].api_key == "k"
    settings.set("gateway.enabled", False)
    assert made.next() == GatewayState()
    assert not is_served(port)


def test_it_is_there_from_the_start_where_it_was_on(room: Callable[..., Room], settings: Settings, port: int) -> None:
    settings.set("gateway.port", port)
    settings.set("gateway.enabled", True)
    made = room()
    assert made.next().address == f"127.0.0.1:{port}"
    made.switch.close()
    assert not is_served(port)


def test_a_port_that_is_taken_is_named_and_another_one_helps(
    room: Callable[..., Room], settings: Settings, port: int
) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = int(other.getsockname()[1])
        settings.set("gateway.port", taken)
        made = room()
        settings.set("gateway.enabled", True)
        state = made.next()
        assert state.address == ""
        assert state.error is not None
        assert f"Port {taken} cannot be used" in str(state.error)
        assert f"端口 {taken}" in Translator("zh").tr(state.error)
    settings.set("gateway.port", port)
    assert made.next() == GatewayState(f"127.0.0.1:{port}")


def test_where_a_key_is_wanted_and_there_is_none_nobody_is_served(
    room: Callable[..., Room], settings: Settings, port: int
) -> None:
    settings.set("gateway.port", port)
    settings.set("gateway.needs_key", True)
    settings.set("gateway.enabled", True)
    made = room(key="")
    state = made.next()
    assert state.error is not None
    assert "no key" in str(state.error)
    assert not is_served(port)


@pytest.mark.parametrize("text", ["obsidian", "https://a.example/path", "https://", "*", "http://["])
def test_what_is_no_origin_is_refused(text: str) -> None:
    with pytest.raises(OriginError):
        origins_of(text)


def test_the_doctor_tells_whether_it_is_on(room: Callable[..., Room], port: int) -> None:
    settings_file().parent.mkdir(parents=True, exist_ok=True)
    settings_file().write_text(f"[gateway]\nport = {port}\n", encoding="utf-8")
    assert next(gateway()) == "the app's gateway: off"
    settings_file().write_text(f"[gateway]\nenabled = true\nport = {port}\n", encoding="utf-8")
    assert next(gateway()) == f"the app's gateway: on, port {port}, once the app runs"
    made = room()
    made.settings.set("gateway.port", port)
    made.settings.set("gateway.enabled", True)
    made.next()
    assert next(gateway()) == f"the app's gateway: on, port {port}: no model in memory, the next request loads it"
