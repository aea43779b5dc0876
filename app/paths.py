"""Where the app keeps its files: configuration, models, cache, runtime, its own assets."""

from __future__ import annotations

import os
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

import platformdirs

APP_NAME = "deskinfer"


def config_dir() -> Path:
    """Settings and the user's own actions, e.g. ~/.config/deskinfer. Not created here."""
    return platformdirs.user_config_path(APP_NAME, appauthor=False)


def data_dir() -> Path:
    """What is worth keeping and can be large: models. Not created here."""
    return platformdirs.user_data_path(APP_NAME, appauthor=False)


def cache_dir() -> Path:
    """What can be made again. Not created here."""
    return platformdirs.user_cache_path(APP_NAME, appauthor=False)


def log_dir() -> Path:
    """Logs, which never hold prompts, selections or answers. Not created here."""
    return platformdirs.user_log_path(APP_NAME, appauthor=False)


def welcomed_file() -> Path:
    """An empty file that says that the welcome of the first start has been seen. Not created here."""
    return data_dir() / "welcomed"


def runtime_dir() -> Path:
    """The lock and the socket of the running app; its owner makes it private (app/instance). Not created here.

    Without a login session it lies in the temporary directory, under a name of this user's own.
    """
    if not sys.platform.startswith("linux"):
        return platformdirs.user_runtime_path(APP_NAME, appauthor=False)
    user_id = os.getuid()
    for base in (os.environ.get("XDG_RUNTIME_DIR", ""), f"/run/user/{user_id}"):
        if os.path.isabs(base) and os.access(base, os.W_OK | os.X_OK):
            return Path(base) / APP_NAME
    return Path(tempfile.gettempdir()) / f"{APP_NAME}-{user_id}"


def settings_file() -> Path:
    """The settings of this user."""
    return config_dir() / "settings.toml"


def history_file() -> Path:
    """Conversations and answers, in a folder of their own that only this user may look into. Not created here."""
    return data_dir() / "history" / "history.db"


def user_actions_dir() -> Path:
    """The user's own actions; a file with the id of a built-in action replaces it."""
    return config_dir() / "actions"


def guide_file(language: str) -> Path | None:
    """The user guide, where it lies beside the program as in its repository; None where it does not.

    Args:
        language: of the windows, "en" or "zh".
    """
    name = "user-guide.zh-CN.md" if language == "zh" else "user-guide.md"
    path = assets_dir("icons").parents[1] / "docs" / name
    return path if path.is_file() else None


def assets_dir(name: str) -> Path:
    """A folder of the package's assets: "actions", "icons" or "translations"."""
    return Path(str(files("assets").joinpath(name)))
