"""From the user's settings to an engine of this process."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from app.actions.registry import ActionRegistry
from app.byte_size import byte_size
from app.language import Languages
from app.paths import settings_file
from app.settings.registry import setting_registry
from app.settings.settings import Settings
from app.translation import system_locale

if TYPE_CHECKING:
    from app.engine_client import EngineClient
    from app.remote.address import RemoteAddress
    from app.remote.client import RemoteClient
    from app.remote.routed_client import RoutedClient
    from inference.engine.options import EngineOptions
    from inference.engine.worker import Worker
    from inference.errors import InferenceError

SERVER_KEY_VARIABLE = "DESKINFER_SERVER_KEY"


def load_settings() -> Settings:
    """The user's settings; a broken file is set aside and named in `problems`."""
    return Settings.load(settings_file(), setting_registry(ActionRegistry().all()))


def tell_problems(notes: TextIO) -> Settings:
    """The user's settings for the terminal; what is wrong with them is written to `notes`."""
    settings = load_settings()
    for problem in settings.problems:
        notes.write(f"deskinfer: {problem}\n")
    return settings


def user_languages(settings: Settings) -> Languages:
    """The user's two languages."""
    return Languages.resolve(settings.text("language.first"), settings.text("language.second"), system_locale())


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """What the command line says about the engine in place of the settings; "" and None leave it to them."""

    backend: str = ""
    vram_bytes: int | None = None


def engine_options(settings: Settings, choice: EngineChoice | None = None) -> EngineOptions:
    """What the settings, or the command line before them, say about the engine.

    Raises:
        InvalidRequestError: the command line limits the GPU's memory of an engine that takes none.
    """
    from inference.engine.options import EngineOptions
    from inference.errors import InvalidRequestError

    choice = choice or EngineChoice()
    vram, backend = settings.text("engine.vram"), choice.backend or settings.text("engine.backend")
    if choice.vram_bytes is not None and backend in ("cpu", "torch"):
        raise InvalidRequestError(
            f"--vram limits the memory of a GPU, but the engine {backend!r} takes none. Leave it out, or choose"
            " --backend cuda or auto."
        )
    return EngineOptions(
        backend=backend,
        threads=settings.integer("engine.threads") or None,
        context_tokens=settings.integer("model.context_tokens"),
        vram_bytes=choice.vram_bytes or (byte_size(vram) if vram else None),
    )


def backend_cure(settings: Settings, choice: EngineChoice | None = None) -> str:
    """What helps where the backend that was asked for cannot work here: a sentence that follows its error."""
    asked = choice.backend if choice is not None else ""
    if (asked or settings.text("engine.backend")) == "auto":
        return "`deskinfer doctor` tells more."
    place = "give --backend auto" if asked else "set engine.backend to auto in the settings"
    return f"Or {place}: what works here is then taken."


def error_with_cure(error: InferenceError, settings: Settings, choice: EngineChoice | None = None) -> str:
    """An error of an engine of this process, and what helps in the terminal."""
    from inference.errors import BackendUnavailableError, ModelNotFoundError

    if isinstance(error, BackendUnavailableError):
        return f"{error} {backend_cure(settings, choice)}"
    here = _models_here() if isinstance(error, ModelNotFoundError) else []
    told = str(error).removesuffix(".")
    return f"{told}; or choose one that is here with --model: {', '.join(here)}." if here else str(error)


def _models_here() -> list[str]:
    from inference.store.model_store import ModelStore

    store = ModelStore()
    return [stored.entry.id for stored in store.list() if stored.path is not None] + [path.name for path in store.own()]


def chosen_model(settings: Settings, model: str = "") -> str:
    """The model that is meant: the one given, else the one of the settings, else what fits this machine's memory."""
    import psutil

    from inference.store.catalog import default_model

    return model or settings.text("model.default") or default_model(psutil.virtual_memory().total)


def build_engine(
    settings: Settings, model: str = "", choice: EngineChoice | None = None, *, has_windows: bool = True
) -> tuple[Worker, Callable[[], str]]:
    """An engine on a thread of its own, and what tells which model it loads by default.

    Args:
        model: in place of that of the settings, until the user chooses another one.
        has_windows: they must not stand still; without them the engine may prepare more ahead.
    """
    from inference.engine.worker import Worker

    if model:
        settings.override("model.default", model)

    def default_model() -> str:
        return chosen_model(settings)

    options = dataclasses.replace(engine_options(settings, choice), prepares_grammars=not has_windows)
    return Worker(options, default_model), default_model


def with_server(
    settings: Settings, local: EngineClient, local_model: Callable[[], str]
) -> tuple[RoutedClient, Callable[[], str]]:
    """The engine of the windows: the local one, or the server of the settings where that is switched on.

    Args:
        local_model: which model the local engine loads by default.

    Returns:
        The engine, and what tells which model is meant.
    """
    from app.remote.address import REMOTE_PREFIX, RemoteAddressError
    from app.remote.client import RemoteClient
    from app.remote.key import RemoteKeys
    from app.remote.routed_client import RoutedClient
    from app.settings.remote_settings import address_of

    keys = RemoteKeys()
    remote = RemoteClient(keys.get)
    with contextlib.suppress(RemoteAddressError):  # the window of models says why
        remote.set_address(address_of(settings))

    def default_model() -> str:
        if not settings.flag("remote.enabled"):
            return local_model()
        return REMOTE_PREFIX if remote.address is None else remote.address.id

    return RoutedClient(local, remote, keys, settings.flag("remote.enabled")), default_model


class ServerEngine:
    """A server as an engine for the terminal; its key is the environment's or the keyring's."""

    def __init__(self, address: RemoteAddress) -> None:
        from app.remote.key import RemoteKeys

        self._address, self._keys = address, RemoteKeys()

    def __call__(self) -> RemoteClient:
        """Opens it; the caller closes it."""
        from app.remote.client import RemoteClient

        client = RemoteClient(lambda url: os.environ.get(SERVER_KEY_VARIABLE, "") or self._keys.get(url))
        client.set_address(self._address)
        return client

    def key_cure(self) -> str:
        """What helps where the server has refused the key: a sentence that follows its error."""
        if os.environ.get(SERVER_KEY_VARIABLE, ""):
            return f"What was sent is in {SERVER_KEY_VARIABLE}."
        if self._keys.get(self._address.url):
            return f"What was sent is in the system's keyring; {SERVER_KEY_VARIABLE} goes before it."
        why = f"; the system's keyring does not answer ({self._keys.trouble})" if self._keys.trouble else ""
        return f"None was sent: {SERVER_KEY_VARIABLE} may hold it{why}."


def open_worker(model: str = "", choice: EngineChoice | None = None) -> Worker:
    """An engine for the terminal; the caller closes it."""
    return build_engine(load_settings(), model, choice)[0]
