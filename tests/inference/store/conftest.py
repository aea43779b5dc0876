"""A hub of this machine for every test of the store."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.inference.store.fake_hub import (
    FakeHub,
)


@pytest.fixture(autouse=True)
def own_hub_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes off the switch that keeps tests from hubs: here every endpoint is on 127.0.0.1."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    import huggingface_hub

    monkeypatch.setattr("inference.store.hub_download.RETRY_PAUSE_S", 0.01)
    with FakeHub() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        huggingface_hub.close_session()
        server.shutdown()
        thread.join()
