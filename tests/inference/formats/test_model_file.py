"""open_model takes a file or a directory, and says what is wrong with anything else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from inference.errors import ModelFormatError, ModelNotFoundError
from inference.formats.gguf.gguf import GgufSource
from inference.formats.huggingface.huggingface import HuggingFaceSource
from inference.formats.model_file import open_model


def test_a_gguf_file_and_the_directory_that_holds_it(tiny: Any, tmp_path: Path) -> None:
    path = tiny.write_gguf(tmp_path / "m.gguf")
    for given in (path, tmp_path):
        source = open_model(given)
        assert isinstance(source, GgufSource)
        assert source.path == path
        source.close()


def test_a_directory_with_a_config(tiny: Any, tmp_path: Path) -> None:
    safetensors_numpy = pytest.importorskip("safetensors.numpy")
    tiny.write_json(tmp_path / "config.json", tiny.config_of("llama", tied=True))
    safetensors_numpy.save_file(tiny.random_state("llama", tied=True), tmp_path / "model.safetensors")
    source = open_model(tmp_path)
    assert isinstance(source, HuggingFaceSource)
    source.close()


def test_what_cannot_be_opened_is_named(tiny: Any, tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match=r"no model at .*absent"):
        open_model(tmp_path / "absent")
    with pytest.raises(ModelFormatError, match=r"no config\.json and 0 \.gguf files"):
        open_model(tmp_path)
    tiny.write_gguf(tmp_path / "a.gguf")
    tiny.write_gguf(tmp_path / "b.gguf")
    with pytest.raises(ModelFormatError, match=r"2 \.gguf files"):
        open_model(tmp_path)
    (tmp_path / "notes.txt").write_text("hello", encoding="utf-8")
    with pytest.raises(ModelFormatError, match=r"begins with b'hell'"):
        open_model(tmp_path / "notes.txt")


def test_a_directory_that_may_not_be_entered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside, exists = tmp_path / "config.json", Path.exists

    def refuse(path: Path) -> bool:
        if path == inside:
            raise PermissionError(13, "Permission denied", str(path))
        return exists(path)

    monkeypatch.setattr(Path, "exists", refuse)
    with pytest.raises(ModelNotFoundError, match=r"cannot be read \(Permission denied\)"):
        open_model(tmp_path)
