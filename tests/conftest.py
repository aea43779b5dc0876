"""What every test gets: folders of its own for settings and state, no leaked thread, Qt off screen."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs
import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from tests.nvml_stub.library import NvmlStub

# Before anything imports Qt. The end-to-end tests start programs of their own, with an environment of their own.
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
# No test may reach a model hub.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

# The user's own folders, before any test sees others: real models and compiled kernels come from there.
USER_DATA = platformdirs.user_data_path("deskinfer")
USER_CACHE = platformdirs.user_cache_path("deskinfer")

# Threads of libraries that live as long as the process: name or class -> why.
LASTING_THREADS = {
    "TMonitor": "tqdm's, one for the process; daemon",
    "asyncio_0": "pool thread of the event loop that a library keeps",
}
THREAD_GRACE_S = 3.0

# The same examples in every run, so that a run fails for what was changed and not for what was drawn.
# `--hypothesis-profile=search` draws others each time.
settings.register_profile("repeatable", derandomize=True)
settings.register_profile("search", derandomize=False, print_blob=True)
settings.load_profile("repeatable")


@pytest.fixture(autouse=True)
def own_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fresh XDG folders. The model store and the kernel cache stay reachable, through links to the user's own."""
    if sys.platform != "linux":
        yield
        return
    # Short, since sockets below it may have paths of 107 bytes at most.
    home = tmp_path_factory.mktemp("xdg")
    for variable, name in [
        ("XDG_CONFIG_HOME", "config"),
        ("XDG_DATA_HOME", "data"),
        ("XDG_STATE_HOME", "state"),
        ("XDG_CACHE_HOME", "cache"),
        ("XDG_RUNTIME_DIR", "run"),
    ]:
        folder = home / name
        folder.mkdir(mode=0o700)
        monkeypatch.setenv(variable, str(folder))
    for own, real, name in [("data", USER_DATA, "models"), ("cache", USER_CACHE, "kernels")]:
        if (real / name).is_dir():
            (home / own / "deskinfer").mkdir()
            (home / own / "deskinfer" / name).symlink_to(real / name, target_is_directory=True)
    # This is not the first start, except where a test says so.
    (home / "data" / "deskinfer").mkdir(exist_ok=True)
    (home / "data" / "deskinfer" / "welcomed").touch()
    yield


def _lasting(thread: threading.Thread) -> bool:
    return thread.name in LASTING_THREADS or type(thread).__name__ in LASTING_THREADS


@pytest.fixture(autouse=True)
def no_leaked_thread() -> Iterator[None]:
    """Fails a test whose threads outlive it by more than a moment."""
    before = set(threading.enumerate())
    yield
    deadline = time.monotonic() + THREAD_GRACE_S
    while leaked := [t for t in threading.enumerate() if t not in before and not _lasting(t)]:
        if time.monotonic() > deadline:
            pytest.fail(f"threads outlive the test: {', '.join(f'{t.name} ({type(t).__name__})' for t in leaked)}")
        time.sleep(0.01)


@pytest.fixture(scope="session")
def project_root() -> Path:
    """The folder of pyproject.toml."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stub of NVIDIA's management library, alone in its folder."""
    if sys.platform != "linux":
        pytest.skip("the stub is built for Linux")
    from tests.nvml_stub.library import build

    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def nvml_stub(nvml_library: Path, monkeypatch: pytest.MonkeyPatch) -> NvmlStub:
    """The stub behind nvidia-ml-py, in the place of the real library."""
    import pynvml

    from tests.nvml_stub.library import NvmlStub

    stub = NvmlStub(nvml_library)
    monkeypatch.setattr(pynvml, "nvmlLib", stub.library)
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    return stub
