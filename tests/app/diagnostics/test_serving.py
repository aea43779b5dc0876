"""What is said of the gateways that run here: the app's, `deskinfer serve`, and who else has their ports."""

from __future__ import annotations

import pytest

from app.diagnostics import serving
from app.diagnostics.serving import serving_lines
from app.engine_setup import load_settings
from app.gateway.running import Health, RunningServer
from app.settings.gateway_settings import DEFAULT_PORT

READY, OTHER = Health(True, "ready", "one"), Health(is_ours=False)
PORT = 18077


class World:
    """What listens where, and what runs."""

    def __init__(self) -> None:
        self.ports: dict[int, Health] = {}
        self.servers: list[RunningServer] = []
        self.app_runs = False
        self.is_on = False

    def serve(self, port: int, health: Health | None) -> None:
        self.servers.append(RunningServer(4711, "127.0.0.1", port, 0.0))
        if health is not None:
            self.ports[port] = health

    def lines(self) -> list[str]:
        settings = load_settings()
        settings.set("gateway.enabled", self.is_on)
        settings.set("gateway.port", PORT)
        return list(serving_lines(settings, lambda model: f"<{model}>"))


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World()
    monkeypatch.setattr(serving, "ask_health", lambda port, host="127.0.0.1": world.ports.get(port))
    monkeypatch.setattr(serving, "running_servers", lambda: world.servers)
    monkeypatch.setattr("app.instance.instance.is_running", lambda: world.app_runs)
    return world


NONE = "deskinfer serve: does not run"


@pytest.mark.parametrize("app_runs", [False, True])
@pytest.mark.parametrize(
    ("health", "line"),
    [
        (None, "the app's gateway: off"),
        (
            OTHER,
            "the app's gateway: off; another program has its port 18077: choose another one before you switch it on",
        ),
        (READY, "the app's gateway: off; another DeskInfer answers at its port 18077: <one>, ready"),
    ],
)
def test_the_apps_gateway_is_off(world: World, app_runs: bool, health: Health | None, line: str) -> None:
    world.app_runs = app_runs
    if health is not None:
        world.ports[PORT] = health
    assert world.lines() == [line, NONE]


@pytest.mark.parametrize(
    ("app_runs", "health", "line"),
    [
        (True, READY, "the app's gateway: on, port 18077: <one>, ready"),
        (
            True,
            Health(True, "empty"),
            "the app's gateway: on, port 18077: no model in memory, the next request loads it",
        ),
        (True, None, "PROBLEM: the app's gateway: on, but port 18077 does not answer. The app's tray icon tells more."),
        (False, None, "the app's gateway: on, port 18077, once the app runs"),
        (
            True,
            OTHER,
            "PROBLEM: the app's gateway: on, but another program has its port 18077: end that one, or choose another"
            " port in the settings",
        ),
    ],
)
def test_the_apps_gateway_is_on(world: World, app_runs: bool, health: Health | None, line: str) -> None:
    world.is_on, world.app_runs = True, app_runs
    if health is not None:
        world.ports[PORT] = health
    assert world.lines() == [line, NONE]


@pytest.mark.parametrize(
    ("health", "line"),
    [
        (READY, "deskinfer serve: runs (process 4711), port 18001: <one>, ready"),
        (
            Health(True, "empty"),
            "deskinfer serve: runs (process 4711), port 18001: no model in memory, the next request loads it",
        ),
        (
            Health(True, "failed", "one"),
            "PROBLEM: deskinfer serve: runs (process 4711), port 18001: <one>, failed; what it wrote in its terminal"
            " tells why",
        ),
        (
            None,
            "PROBLEM: deskinfer serve: runs (process 4711), port 18001, but it does not answer. End it and start it"
            " again.",
        ),
    ],
)
def test_a_server_that_runs(world: World, health: Health | None, line: str) -> None:
    world.serve(18001, health)
    assert world.lines() == ["the app's gateway: off", line]


def test_a_server_that_has_the_apps_port(world: World) -> None:
    world.serve(PORT, READY)
    assert world.lines()[0] == "the app's gateway: off; deskinfer serve has its port 18077"
    world.is_on = True
    assert world.lines()[0].startswith("PROBLEM: the app's gateway: on, but deskinfer serve has its port 18077: ")


def test_another_program_has_the_port_that_serve_takes_by_itself(world: World) -> None:
    world.ports[DEFAULT_PORT] = OTHER
    cure = f"LIMIT: another program has port {DEFAULT_PORT}: give deskinfer serve another one with --port"
    assert world.lines() == ["the app's gateway: off", NONE, cure]
