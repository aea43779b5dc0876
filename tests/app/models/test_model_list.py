"""The list of models: catalog, folder, added paths, a server; each once, with what its files say."""

from __future__ import annotations

import os
from pathlib import Path

import gguf
import numpy as np
import pytest

from app.models.model_list import (
    ListedModel,
    ModelList,
    Origin,
    same_model,
    split_paths,
    split_title,
    with_names_apart,
    with_path,
    without_path,
)
from app.remote.address import RemoteAddress
from inference.store.catalog import load_catalog
from inference.store.model_store import ModelStore


def write_gguf(path: Path, name: str = "Mine", licence: str = "mit") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = gguf.GGUFWriter(path, "qwen2")
    writer.add_name(name)
    writer.add_license(licence)
    writer.add_file_type(15)
    writer.add_tensor("token_embd.weight", np.zeros((4, 32), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture
def models(tmp_path: Path) -> ModelList:
    return ModelList(ModelStore(tmp_path / "models"))


def found(models: ModelList, *added: str, remote: RemoteAddress | None = None) -> dict[str, ListedModel]:
    return {model.id: model for model in models.models(added, remote)}


def test_an_empty_disk_shows_the_catalog(models: ModelList) -> None:
    listed = found(models)
    assert set(listed) == set(load_catalog().entries)
    first = listed["qwen2.5-coder-1.5b-instruct"]
    assert (first.title, first.quantization) == ("Qwen2.5-Coder 1.5B Instruct", "Q4_K_M")
    assert first.can_be_fetched
    assert (first.is_here, first.can_be_deleted) == (False, False)
    assert listed["qwen2.5-3b-instruct"].licence_note
    assert listed["qwen2.5-3b-instruct"].quantization == "BF16"
    assert [model.id for model in listed.values() if model.for_tests] == ["smollm2-135m-instruct"]
    assert all(model.num_bytes or model.about_bytes for model in listed.values())


def test_what_a_download_has_left_is_told_and_can_be_deleted(models: ModelList) -> None:
    partial = models.store.root / ".partial" / "smollm2-135m-instruct"
    partial.mkdir(parents=True)
    (partial / "x.part").write_bytes(b"12345")
    model = found(models)["smollm2-135m-instruct"]
    assert (model.partial_bytes, model.is_here, model.can_be_deleted) == (5, False, True)


def test_files_of_the_folder_and_added_ones_are_listed_once(models: ModelList, tmp_path: Path) -> None:
    mine = write_gguf(models.store.root / "mine.gguf")
    other = write_gguf(tmp_path / "elsewhere" / "other.gguf", "Other")
    listed = found(models, str(mine), str(other), str(other.parent))
    own = {path: model for path, model in listed.items() if model.origin is not Origin.CATALOG}
    assert set(own) == {str(mine), str(other)}
    assert own[str(mine)].origin is Origin.FOLDER
    assert own[str(mine)].can_be_deleted
    assert own[str(other)].origin is Origin.ADDED
    assert not own[str(other)].can_be_deleted
    assert (own[str(other)].quantization, own[str(other)].licence, own[str(other)].parameters) == ("Q4_K_M", "mit", 128)


def test_what_cannot_be_used_says_why(models: ModelList, tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF but not really")
    listed = found(models, str(broken), str(tmp_path / "gone.gguf"))
    assert "damaged" in str(listed[str(broken)].problem)
    assert "There is nothing" in str(listed[str(tmp_path / "gone.gguf")].problem)


def test_headers_are_read_again_only_when_a_file_changes(models: ModelList, monkeypatch: pytest.MonkeyPatch) -> None:
    import app.models.model_list as module

    path = write_gguf(models.store.root / "mine.gguf")
    reads: list[Path] = []
    read_facts = module.read_facts
    monkeypatch.setattr(module, "read_facts", lambda path: (reads.append(path), read_facts(path))[1])
    found(models)
    found(models)
    assert reads == [path]
    write_gguf(path, "Renamed")
    os.utime(path, (1, 1))
    found(models)
    assert reads == [path, path]


def test_a_server_is_a_line_of_the_list(models: ModelList) -> None:
    listed = found(models, remote=RemoteAddress("http://localhost:8000/v1", "org/big"))
    model = listed["remote:localhost:8000/org/big"]
    assert (model.title, model.origin) == ("org/big", Origin.REMOTE)
    assert model.is_here
    assert not model.can_be_deleted


def test_titles_are_split() -> None:
    entries = load_catalog().entries
    assert split_title(entries["smollm2-135m-instruct"]) == ("SmolLM2 135M Instruct", "Q4_1")
    assert split_title(entries["qwen2.5-7b-instruct"]) == ("Qwen2.5 7B Instruct", "BF16")


def test_paths_of_the_setting(tmp_path: Path) -> None:
    first, second = str(tmp_path / "a.gguf"), str(tmp_path / "b" / "c.gguf")
    text = with_path(with_path("", first), second)
    assert split_paths(text) == (first, second)
    assert with_path(text, first) == text
    assert without_path(text, first) == second
    assert without_path(str(tmp_path / "b"), second) == ""
    with pytest.raises(ValueError, match=os.pathsep):
        with_path("", f"a{os.pathsep}b")


def test_paths_that_mean_nothing_are_no_accident(models: ModelList) -> None:
    assert split_paths("bad\0path") == ()
    (line,) = [model for model in models.models(["~nobody-of-this-name/models"]) if model.origin is Origin.ADDED]
    assert line.problem


def test_one_model_under_two_names(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf")
    assert same_model(str(path), str(tmp_path / "x" / ".." / "m.gguf"))
    assert same_model("qwen", "qwen")
    assert not same_model("qwen", "")
    assert not same_model("qwen", "other")


def test_equal_titles_get_their_folder(models: ModelList, tmp_path: Path) -> None:
    first, second = write_gguf(tmp_path / "a" / "m.gguf"), write_gguf(tmp_path / "b" / "m.gguf")
    titles = {model.title for model in with_names_apart(models.models([str(first), str(second)]))}
    assert {"m (a)", "m (b)"} <= titles
