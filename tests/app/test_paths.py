"""Where the app keeps its files."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest

from app import paths
from app.instance.address import private_directory


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
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "run").mkdir()
    assert paths.runtime_dir() == tmp_path / "run" / "deskinfer"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="XDG variables")
@pytest.mark.parametrize("value", [None, "", "relative", "/no/such/directory"])
def test_without_a_login_session_the_runtime_folder_is_private_and_quiet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder, value: str | None
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    if value is not None:
        monkeypatch.setenv("XDG_RUNTIME_DIR", value)
    monkeypatch.setattr("os.getuid", lambda: 4_123_456)  # a user without /run/user
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = paths.runtime_dir()
    assert folder == tmp_path / "deskinfer-4123456"
    monkeypatch.undo()
    assert stat.S_IMODE(private_directory(folder).stat().st_mode) == 0o700
    assert list(recwarn) == []


def test_the_user_guide_is_the_one_of_the_language_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for language, words in (("en", "# User guide"), ("zh", "# 用户指南")):
        path = paths.guide_file(language)
        assert path is not None
        assert path.read_text(encoding="utf-8").startswith(words)
    monkeypatch.setattr(paths, "files", lambda _package: tmp_path / "assets")  # as a wheel lies, without docs/
    assert paths.guide_file("en") is None


@pytest.mark.parametrize("name", ["actions", "icons", "translations"])
def test_assets_are_part_of_the_package(name: str) -> None:
    assert paths.assets_dir(name).is_dir()
    assert any(paths.assets_dir(name).iterdir())
