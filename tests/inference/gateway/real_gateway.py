"""A gateway over a real engine on the CPU, for tests that need answers which a model has made."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from inference.engine.options import EngineOptions
from inference.engine.worker import Worker
from inference.errors import BackendUnavailableError, ModelNotFoundError
from inference.formats.random_model import PREFIX
from inference.gateway.gateway import Gateway
from inference.gateway.options import GatewayOptions
from inference.gateway.server import GatewayServer
from inference.request import ModelEvent, ModelState
from inference.store.model_store import ModelStore

SMOLLM2 = "smollm2-135m-instruct"
QWEN = "qwen2.5-coder-0.5b-instruct"
LOAD_S = 100.0


class RealGateway:
    """A model that is loaded and served.

    Attributes:
        url: with /v1.
    """

    def __init__(self, worker: Worker, server: GatewayServer, model: str) -> None:
        self.worker, self.server, self.model = worker, server, model
        self.url = f"http://127.0.0.1:{server.port}/v1"

    def is_idle(self) -> bool:
        """Whether nothing runs, by the engine's own count."""
        reading = self.worker.reading()
        return reading.running == reading.waiting == 0


@contextmanager
def served(
    model: str, folder: Path, context_tokens: int = 2048, backend: str = "cpu", threads: int = 2
) -> Iterator[RealGateway]:
    """Loads and serves a model of the store, or a random one; the test is skipped where the store does not hold it."""
    try:
        if not model.startswith(PREFIX):
            ModelStore().resolve(model)
    except ModelNotFoundError as error:
        pytest.skip(str(error))
    engine = EngineOptions(backend=backend, threads=threads, context_tokens=context_tokens, lock_dir=folder)
    worker, ended, failures = Worker(engine, model), threading.Event(), list[BaseException]()

    def hear(event: ModelEvent) -> None:
        if event.error is not None:
            failures.append(event.error)
        if event.state in (ModelState.READY, ModelState.FAILED):
            ended.set()

    worker.listen(hear)
    worker.load(model)
    options = GatewayOptions(port=0)
    try:
        assert ended.wait(LOAD_S)
        if failures and isinstance(failures[0], BackendUnavailableError):
            pytest.skip(str(failures[0]))
        assert not failures
        server = GatewayServer(Gateway(worker, options, lambda: {model: model}, lambda: model).app, options)
        server.start()
        try:
            yield RealGateway(worker, server, model)
        finally:
            server.stop()
    finally:
        worker.close()
