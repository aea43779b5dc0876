"""From the user's settings to a gateway over an engine: for `deskinfer serve` and for the running app."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from app.engine_setup import EngineChoice, build_engine, error_with_cure, tell_problems
from app.gateway.running import announced, running_servers

if TYPE_CHECKING:
    from app.engine_client import EngineClient
    from app.settings.settings import Settings
    from inference.errors import InferenceError
    from inference.gateway.options import GatewayOptions
    from inference.gateway.server import GatewayServer
    from inference.request import ModelEvent

KEY_VARIABLE = "DESKINFER_API_KEY"


def models_here() -> dict[str, str]:
    """All models that are on this machine as a whole: the name for clients, and what the engine calls them."""
    from inference.store.model_store import ModelStore

    store = ModelStore()
    own = {path.name: str(path) for path in store.own()}
    return own | {stored.entry.id: stored.entry.id for stored in store.list() if stored.path is not None}


def open_gateway(
    engine: EngineClient,
    options: GatewayOptions,
    default_model: Callable[[], str],
    models: Callable[[], Mapping[str, str]] = models_here,
) -> GatewayServer:
    """A server that has its port and is yet to be started.

    Raises:
        GatewayPortError: the port cannot be had.
    """
    from inference.gateway.gateway import Gateway
    from inference.gateway.server import GatewayServer

    return GatewayServer(Gateway(engine, options, models, default_model).app, options)


def _refuse_beside_app(settings: Settings) -> None:
    """Two processes would take the one model from each other: the app could not answer its hotkeys."""
    from app.instance.instance import is_running
    from inference.errors import ModelResidentError

    if not is_running():
        return
    address = f"http://127.0.0.1:{settings.integer('gateway.port')}/v1"
    if settings.flag("gateway.enabled"):
        raise ModelResidentError(f"The app runs and serves its model already, at {address}.")
    raise ModelResidentError(
        "The app runs, and only one model may be in memory at a time. The app itself can serve the model that it has:"
        f" switch on Settings, Network, Serve other programs; its address is then {address}. Or quit the app first."
    )


def _port_error(error: InferenceError, port: int) -> InferenceError:
    """The error, or who of ours has the port."""
    from inference.errors import ModelResidentError

    for other in running_servers():
        if other.port == port:
            told = f"deskinfer serve runs already (process {other.pid}), at {other.address}/v1."
            return ModelResidentError(f"{told} Programs can use that one; or end it first.")
    return error


def serve(host: str, port: int, model: str, choice: EngineChoice | None, notes: TextIO) -> None:
    """Serves until Ctrl+C; the model is loaded at once.

    Raises:
        InferenceError: the app runs, the address needs a key, or the port cannot be had.
    """
    from inference.errors import InvalidRequestError
    from inference.gateway.options import GatewayOptions, is_loopback
    from inference.gateway.server import GatewayPortError

    settings = tell_problems(notes)
    _refuse_beside_app(settings)
    key = os.environ.get(KEY_VARIABLE, "")
    if not key and not is_loopback(host):
        raise InvalidRequestError(
            f"The address {host} can be reached from other machines, so an API key is needed. Put one into the variable"
            f" {KEY_VARIABLE}, or listen on 127.0.0.1."
        )
    options = GatewayOptions(host=host, port=port, api_key=key)
    engine, default_model = build_engine(settings, model, choice, has_windows=False)
    try:
        # A path that the user names at the start can be loaded again, under the name of its file.
        given = {Path(model).name: model} if model else {}
        try:
            server = open_gateway(engine, options, default_model, lambda: given | models_here())
        except GatewayPortError as error:
            raise _port_error(error, port) from error

        def tell_failure(event: ModelEvent) -> None:
            if event.error is not None:
                told = error_with_cure(event.error, settings, choice)
                notes.write(f"deskinfer: no request can be answered until this is mended: {told}\n")
                notes.flush()

        engine.listen(tell_failure)
        served = default_model()
        engine.load(served)
        shown = f"[{host}]" if ":" in host else host
        notes.write(f"deskinfer: serving {Path(served).name} at http://{shown}:{server.port}/v1; Ctrl+C ends it\n")
        notes.flush()
        with announced(host, server.port):
            server.run()
    finally:
        engine.close()
