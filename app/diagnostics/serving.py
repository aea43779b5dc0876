"""What the doctor and the bundle say of the gateways that run here."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from app.gateway.running import Health, RunningServer, ask_health, running_servers
from app.settings.gateway_settings import DEFAULT_PORT
from app.settings.settings import Settings
from inference.request import ModelState

Named = Callable[[str], str]


def serving_lines(settings: Settings, named: Named = str) -> Iterator[str]:
    """The app's gateway, each `deskinfer serve`, and who else has their ports.

    Args:
        named: how a model is called here, where its name may be private.
    """
    servers = running_servers()
    ports = {server.port for server in servers}
    yield _app_line(settings, ports, named)
    for server in servers:
        yield _server_line(server, ask_health(server.port, server.reached_at), named)
    if not servers:
        yield "deskinfer serve: does not run"
    if DEFAULT_PORT not in {*ports, settings.integer("gateway.port")}:
        health = ask_health(DEFAULT_PORT)
        if health is not None and not health.is_ours:
            yield f"LIMIT: another program has port {DEFAULT_PORT}: give deskinfer serve another one with --port"


def _app_line(settings: Settings, ports: set[int], named: Named) -> str:
    from app.instance.instance import is_running

    port, runs = settings.integer("gateway.port"), is_running()
    health = ask_health(port)
    is_taken = health is not None and (not health.is_ours or port in ports)
    who = "deskinfer serve" if port in ports else "another program"
    if not settings.flag("gateway.enabled"):
        if is_taken:
            cure = "" if port in ports else ": choose another one before you switch it on"
            return f"the app's gateway: off; {who} has its port {port}{cure}"
        if health is not None:
            return f"the app's gateway: off; another DeskInfer answers at its port {port}: {_model(health, named)}"
        return "the app's gateway: off"
    if is_taken:
        cure = "end that one, or choose another port in the settings"
        return f"PROBLEM: the app's gateway: on, but {who} has its port {port}: {cure}"
    if health is not None:
        return f"the app's gateway: on, port {port}: {_model(health, named)}"
    if runs:
        return f"PROBLEM: the app's gateway: on, but port {port} does not answer. The app's tray icon tells more."
    return f"the app's gateway: on, port {port}, once the app runs"


def _server_line(server: RunningServer, health: Health | None, named: Named) -> str:
    what = f"deskinfer serve: runs (process {server.pid}), port {server.port}"
    if health is None or not health.is_ours:
        return f"PROBLEM: {what}, but it does not answer. End it and start it again."
    line = f"{what}: {_model(health, named)}"
    return (
        f"PROBLEM: {line}; what it wrote in its terminal tells why" if health.state == ModelState.FAILED.value else line
    )


def _model(health: Health, named: Named) -> str:
    if health.state == ModelState.EMPTY.value:
        return "no model in memory, the next request loads it"
    return f"{named(health.model)}, {health.state}" if health.model else health.state
