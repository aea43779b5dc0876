"""`deskinfer models` on files and checkpoints of the user."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli import app
from app.engine_setup import EngineChoice, engine_options
from app.settings.registry import setting_registry
from app.settings.settings import Settings
from app.terminal import models as models_cli
from inference.errors import InvalidRequestError
from inference.store.catalog import load_catalog
from inference.store.model_store import ModelStore
from tests.app.models.test_model_list import write_gguf

runner = CliRunner()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "models"
    monkeypatch.setattr(models_cli, "open_store", lambda: ModelStore(root))
    return root


def test_the_list_has_the_users_own(root: Path) -> None:
    path = write_gguf(root / "mine.gguf")
    (root / "broken.gguf").write_bytes(b"no")
    result = runner.invoke(app, ["models", "list"])
    assert result.exit_code == 0
    assert "mine.gguf" in result.stdout
    assert f"your own, Q4_K_M, {path}" in result.stdout
    assert "cannot be used" in result.stdout


def test_the_list_has_the_whole_catalog_with_sizes(root: Path) -> None:
    lines = runner.invoke(app, ["models", "list"]).stdout.splitlines()
    for entry in load_catalog().entries.values():
        line = next(line for line in lines if line.startswith(entry.id))
        assert re.search(r" ~?\d[\d.]* [MG]B ", line), line


def test_an_own_model_is_removed_by_its_name_and_others_are_not(root: Path, tmp_path: Path) -> None:
    path = write_gguf(root / "mine.gguf")
    other = write_gguf(tmp_path / "other.gguf")
    assert runner.invoke(app, ["models", "remove", "mine.gguf"]).exit_code == 0
    assert not path.exists()
    refused = runner.invoke(app, ["models", "remove", str(other)])
    assert refused.exit_code == 1
    assert "outside the folder of models" in refused.stderr
    assert other.exists()


def test_verify_of_a_path_says_what_is_wrong(root: Path) -> None:
    path = write_gguf(root / "mine.gguf")
    result = runner.invoke(app, ["models", "verify", str(path)])
    assert result.exit_code == 1
    assert "mine.gguf" in result.stderr


def test_a_limit_of_gpu_memory_for_an_engine_without_one_is_refused(tmp_path: Path) -> None:
    settings = Settings(tmp_path / "s.toml", setting_registry([]))
    with pytest.raises(InvalidRequestError, match="--vram"):
        engine_options(settings, EngineChoice("cpu", 2**30))
    assert engine_options(settings, EngineChoice("cuda", 2**30)).vram_bytes == 2**30
    settings.set("engine.backend", "torch")
    with pytest.raises(InvalidRequestError, match="'torch'"):
        engine_options(settings, EngineChoice("", 2**30))
