"""A client of a local server that does as its script says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.remote.address import RemoteAddress
from app.remote.client import RemoteClient, RemoteTimeouts
from tests.app.remote.client_rig import WAIT_S
from tests.app.remote.remote_server import Script, serve


@pytest.fixture
def script() -> Iterator[Script]:
    with serve(Script()) as script:
        yield script


@pytest.fixture
def client(script: Script) -> Iterator[RemoteClient]:
    client = RemoteClient(lambda _url: "sk-secret", RemoteTimeouts(answer_s=WAIT_S))
    client.set_address(RemoteAddress(script.url, "small"))
    yield client
    client.close()
