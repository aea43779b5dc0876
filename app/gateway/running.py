"""Which gateways of this user run: a note that each `deskinfer serve` leaves while it serves, and what a port says."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from app.instance.address import InstanceError, private_directory
from app.paths import runtime_dir
from inference.request import ModelState

HEALTH_TIMEOUT_S = 2.0
_MOST_BYTES = 64 << 10
_NOTES = "serve-*.json"
# Listening everywhere, as addresses of this machine.
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}
_STATES = {state.value for state in ModelState}


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A `deskinfer serve`.

    Attributes:
        pid: of its process.
        host, port: where it listens.
        started: when its process began, as the system counts; another one may have its number later.
    """

    pid: int
    host: str
    port: int
    started: float

    @property
    def reached_at(self) -> str:
        """The host by which programs of this machine reach it."""
        return _ANY.get(self.host, self.host)

    @property
    def address(self) -> str:
        """The same as the beginning of a URL."""
        host = self.reached_at
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Health:
    """What listens at a port.

    Attributes:
        is_ours: it speaks as a gateway of DeskInfer.
        state, model: of the model there; "" where it is not ours, or has none.
    """

    is_ours: bool
    state: str = ""
    model: str = ""


@contextlib.contextmanager
def announced(host: str, port: int) -> Iterator[None]:
    """Leaves a note of this process's server. Where none can be left, the server is only not known to others."""
    import psutil

    server = RunningServer(os.getpid(), host.strip("[]"), port, psutil.Process().create_time())
    note = runtime_dir() / f"serve-{server.pid}.json"
    with contextlib.suppress(OSError, InstanceError):
        private_directory(note.parent)
        note.write_text(json.dumps(asdict(server)), encoding="utf-8")
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            note.unlink(missing_ok=True)


def running_servers() -> list[RunningServer]:
    """Those whose process lives; the notes of others, which were killed, are removed."""
    found = []
    for note in sorted(runtime_dir().glob(_NOTES)):
        server = _read(note)
        if server is not None:
            found.append(server)
        else:
            with contextlib.suppress(OSError):
                note.unlink(missing_ok=True)
    return found


def _read(note: Path) -> RunningServer | None:
    import psutil

    try:
        told = json.loads(note.read_text(encoding="utf-8"))
        server = RunningServer(int(told["pid"]), str(told["host"]), int(told["port"]), float(told["started"]))
        # Its clock may have been set meanwhile.
        return server if abs(psutil.Process(server.pid).create_time() - server.started) < 2 else None
    except (OSError, ValueError, KeyError, TypeError, psutil.Error):
        return None


def ask_health(port: int, host: str = "127.0.0.1") -> Health | None:
    """What listens at a port of this machine; None where nothing does. Waits for two seconds at most, twice."""
    connection = http.client.HTTPConnection(host, port, timeout=HEALTH_TIMEOUT_S)
    try:
        try:
            connection.connect()
        except OSError:
            return None
        connection.request("GET", "/health")
        told = json.loads(connection.getresponse().read(_MOST_BYTES))
        if told["status"] != "ok" or told["state"] not in _STATES:
            return Health(is_ours=False)
        return Health(True, told["state"], str(told["model"] or ""))
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return Health(is_ours=False)
    finally:
        connection.close()
