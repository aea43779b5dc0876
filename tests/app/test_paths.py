"""Where the app keeps its files."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from app import paths


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="XDG variables")
def test_every_folder_follows_the_users_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"CONFIG_HOME": "config", "DATA_HOME": "data", "CACHE_HOME": "cache", "STATE_HOME": "state"}
    for variable, name in {**names, "RUNTIME_DIR": "run"}.items():
        monkeypatch.setenv(f"XDG_{variable}", str(tmp_path / name))
    assert paths.config_dir() == tmp_path / "config" / "deskinfer"
    assert paths.settings_file() == tmp_path / "config" / "deskinfer" / "settings.toml"
    assert paths.user_actions_dir() == tmp_path / "config" / "deskinfer" / "actions"
    assert paths.data_dir() == tmp_path / "data" / "deskinfer"
    assert paths.cache_dir() == tmp_path / "cache" / "deskinfer"
    assert tmp_path / "state" in paths.log_dir().parents
    assert paths.runtime_dir() == tmp_path / "run" / "deskinfer"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["actions", "icons", "translations"])
def test_assets_are_part_of_the_package(name: str) -> None:
    assert paths.assets_dir(name).is_dir()
    assert any(paths.assets_dir(name).iterdir())
