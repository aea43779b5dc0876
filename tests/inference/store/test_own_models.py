"""Models of the user: what they say of themselves, checked by reading, deleted only where they are ours to delete."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from inference.errors import InferenceError, ModelFormatError, ModelNotFoundError
from inference.formats.checkpoint.checkpoint import CheckpointSource
from inference.quantize.job import QuantizeOptions, quantize_model
from inference.store.download import MANIFEST
from inference.store.model_facts import model_kind, read_facts
from inference.store.model_store import ModelStore
from inference.store.own_models import models_in, remove_own, verify_own


@pytest.fixture
def root(tiny: Any, tmp_path: Path) -> Path:
    """A store with a file, a checkpoint of it, and things that are no models."""
    root = tmp_path / "models"
    root.mkdir()
    tiny.write_gguf(root / "mine.gguf", "qwen2", kind="q8_0")
    quantize_model(root / "mine.gguf", root / "small", QuantizeOptions(threads=1))
    (root / "notes.txt").write_text("no model")
    (root / "empty").mkdir()
    (root / ".partial").mkdir()
    return root


def test_the_store_lists_what_no_catalog_knows(root: Path) -> None:
    assert ModelStore(root).own() == (root / "mine.gguf", root / "small")
    assert models_in(root / "absent") == []


def test_facts_of_a_file_and_of_a_checkpoint(root: Path) -> None:
    file, checkpoint = read_facts(root / "mine.gguf"), read_facts(root / "small")
    assert (file.kind, checkpoint.kind) == ("gguf", "checkpoint")
    assert file.quantization == "Q8_0"
    assert file.num_bytes == (root / "mine.gguf").stat().st_size
    assert file.parameters > 0
    assert checkpoint.title == "mine"
    assert checkpoint.quantization
    assert checkpoint.parameters == pytest.approx(file.parameters, rel=0.2)


def test_facts_of_a_directory(save_tiny_model: Any) -> None:
    path = save_tiny_model("qwen2")
    (path / "LICENSE").write_text("\n  === Apache License ===\nVersion 2.0\n")
    facts = read_facts(path)
    assert (facts.kind, facts.quantization, facts.licence) == ("directory", "F32", "Apache License")
    assert facts.parameters > 0


def test_what_is_no_model_says_so(root: Path) -> None:
    assert model_kind(root / "notes.txt") is None
    with pytest.raises(ModelFormatError, match="is no model"):
        read_facts(root / "empty")
    with pytest.raises(ModelNotFoundError, match="nothing at"):
        read_facts(root / "gone.gguf")
    (root / "broken.gguf").write_bytes(b"GGUF")
    with pytest.raises(ModelFormatError):
        read_facts(root / "broken.gguf")


def test_names_in_the_store_and_paths_are_resolved(root: Path) -> None:
    store = ModelStore(root)
    assert store.resolve("mine.gguf") == store.resolve(root / "mine.gguf") == root / "mine.gguf"
    assert store.resolve("small") == root / "small"
    with pytest.raises(ModelNotFoundError):
        store.resolve("../models/mine.gguf")


def test_a_model_is_read_as_a_whole(root: Path) -> None:
    seen: list[int] = []
    told = verify_own(root / "mine.gguf", lambda done, total, note: seen.append(done))
    assert not told.is_compared
    assert len(told.sha256) == 64
    assert seen[-1] == (root / "mine.gguf").stat().st_size
    assert verify_own(root / "small").is_compared
    assert ModelStore(root).verify("mine.gguf") == root / "mine.gguf"


def test_stated_checksums_are_compared(root: Path, tiny: Any) -> None:
    directory = root / "fetched"
    directory.mkdir()
    tiny.write_gguf(directory / "m.gguf", "qwen2")
    (directory / MANIFEST).write_text(json.dumps({"files": {"m.gguf": {"bytes": 1, "sha256": "0" * 64}}}))
    with pytest.raises(ModelFormatError, match="is damaged"):
        verify_own(directory)


def test_only_what_lies_in_the_store_is_deleted(root: Path, tmp_path: Path, tiny: Any) -> None:
    elsewhere = tiny.write_gguf(tmp_path / "elsewhere.gguf", "qwen2")
    store = ModelStore(root)
    with pytest.raises(InferenceError, match="outside the folder of models"):
        store.remove(str(elsewhere))
    with pytest.raises(InferenceError, match="outside the folder of models"):
        remove_own(root, root)
    with pytest.raises(InferenceError, match="outside the folder of models"):
        remove_own(root, root / "notes.txt")
    size = (root / "mine.gguf").stat().st_size
    assert store.remove("mine.gguf") == size
    assert store.remove(str(root / "small")) > 0
    assert not store.own()
    assert (root / "notes.txt").exists()
    assert elsewhere.exists()


@pytest.mark.parametrize("damage", ["header", "cut", "json"])
def test_a_damaged_checkpoint_is_to_be_made_again(root: Path, damage: str) -> None:
    layer = root / "small" / "layer_00.safetensors"
    whole = layer.read_bytes()
    if damage == "header":
        layer.write_bytes(b"\xff" * 8 + whole[8:])
    elif damage == "json":
        layer.write_bytes(whole[:8] + b"?" + whole[9:])
    else:
        (root / "small" / "manifest.json").write_text('{"format": "deskinfer checkpoint"')
    with pytest.raises(ModelFormatError) as failure:
        CheckpointSource(root / "small")
    assert "Quantize the model again." in str(failure.value)
    assert "Fetch" not in str(failure.value)
