"""Checkpoints as the reader sees them: from GGUF sources, and whatever can be wrong with one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inference.errors import InferenceError, ModelFormatError, UnsupportedModelError
from inference.formats.checkpoint.checkpoint import TOKENIZER_DATA, CheckpointSource, verify_checkpoint
from inference.formats.huggingface.config import config_of, read_spec
from inference.formats.model_file import open_model
from inference.quantize.job import QuantizeOptions, quantize_model
from inference.store.model_store import ModelStore
from kernels.weights.reference import dequantize

EDIT = Callable[[dict[str, Any]], object]


def make(tiny: Any, tmp_path: Path, architecture: str = "llama", **gguf: Any) -> Path:
    source = tiny.write_gguf(tmp_path / "m.gguf", architecture, **gguf)
    quantize_model(source, tmp_path / "c", QuantizeOptions(threads=1))
    return tmp_path / "c"


def edit(path: Path, change: EDIT) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    path.write_text(json.dumps(document), encoding="utf-8")


@pytest.mark.parametrize("architecture", ["qwen2", "llama", "qwen3"])
@pytest.mark.parametrize("kind", ["f32", "q8_0"])
def test_it_reads_as_its_gguf_source(tiny: Any, tmp_path: Path, architecture: str, kind: str) -> None:
    """Names, shapes, spec and vocabulary; and Q and K of a llama in their order, or nothing would be near."""
    path = make(tiny, tmp_path, architecture, kind=kind)
    source, checkpoint = open_model(tmp_path / "m.gguf"), open_model(path)
    assert isinstance(checkpoint, CheckpointSource)
    assert checkpoint.spec == source.spec
    assert checkpoint.tokenizer_data() == source.tokenizer_data()
    assert set(checkpoint.tensor_names()) == set(source.tensor_names())
    for name in source.tensor_names():
        first, second = source.tensor(name), checkpoint.tensor(name)
        assert first.shape == second.shape
        wanted = dequantize(first.kind, first.data, first.shape)
        found = dequantize(second.kind, second.data, second.shape)
        assert np.linalg.norm(found - wanted) <= 0.12 * np.linalg.norm(wanted), name
    config = json.loads((path / "config.json").read_text(encoding="utf-8"))
    assert read_spec(config, "config.json") == source.spec
    source.close()
    checkpoint.close()


def test_factors_of_a_gguf_are_kept(tiny: Any, tmp_path: Path) -> None:
    factors = np.linspace(1, 8, 8).astype(np.float32)
    path = make(tiny, tmp_path, extra={"rope_freqs.weight": factors})
    checkpoint = CheckpointSource(path)
    assert checkpoint.spec.rope_factors == tuple(factors.tolist())
    checkpoint.close()


def test_a_config_of_scaled_ropes_is_read_back(tiny: Any) -> None:
    for scaling in (
        {"rope_type": "linear", "factor": 2.0},
        {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 256,
        },
    ):
        spec = read_spec(tiny.config_of("llama", tied=False) | {"rope_scaling": scaling}, "config.json")
        assert spec.rope_scaling is not None
        assert read_spec(config_of(spec), "config.json") == spec


def test_store_ids_and_paths(tiny: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tiny, tmp_path)
    store = ModelStore(tmp_path)
    assert store.resolve("c") == tmp_path / "c"
    assert store.verify("c") == tmp_path / "c"
    assert store.resolve(tmp_path / "c") == store.verify(str(tmp_path / "c")) == tmp_path / "c"
    for name in ("absent", "../c", "."):
        with pytest.raises(InferenceError):
            ModelStore(tmp_path / "models").verify(name)
    layer = tmp_path / "c" / "layer_00.safetensors"
    layer.write_bytes(layer.read_bytes()[:-4] + b"\1\2\3\4")
    CheckpointSource(tmp_path / "c").close()
    with pytest.raises(ModelFormatError, match=r"layer_00.safetensors is damaged: its sha256"):
        store.verify("c")


def test_another_programs_manifest_does_not_make_a_checkpoint(tiny: Any, tmp_path: Path) -> None:
    safetensors_numpy = pytest.importorskip("safetensors.numpy")
    tiny.write_json(tmp_path / "config.json", tiny.config_of("llama", tied=True))
    safetensors_numpy.save_file(tiny.random_state("llama", tied=True), tmp_path / "model.safetensors")
    tiny.write_json(tmp_path / "manifest.json", {"name": "an extension"})
    open_model(tmp_path).close()


@pytest.mark.parametrize("name", ["layer_01.safetensors", "norm.safetensors", "config.json", TOKENIZER_DATA])
def test_missing_and_cut_files_are_named(tiny: Any, tmp_path: Path, name: str) -> None:
    path = make(tiny, tmp_path)
    content = (path / name).read_bytes()
    (path / name).write_bytes(content[:-1])
    for check in (CheckpointSource, verify_checkpoint):
        with pytest.raises(ModelFormatError, match=rf"{name} is {len(content) - 1} bytes long.*{len(content)} bytes"):
            check(path)
    (path / name).unlink()
    for check in (CheckpointSource, verify_checkpoint):
        with pytest.raises(ModelFormatError, match=rf"{name} is missing"):
            check(path)


def set_in(*keys: str, to: Any) -> EDIT:
    def change(document: dict[str, Any]) -> None:
        for key in keys[:-1]:
            document = document[key]
        document[keys[-1]] = to

    return change


def moved(name: str) -> EDIT:
    def change(document: dict[str, Any]) -> None:
        document["files"][name] = document["files"].pop("config.json")

    return change


QKV = "model.layers.0.self_attn.qkv_proj.weight"


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (set_in("format", to="another"), "no manifest of a checkpoint"),
        (set_in("version", to="1"), "no manifest of a checkpoint"),
        (moved("../../etc/passwd"), "no name of a file"),
        (moved("/etc/passwd"), "no name of a file"),
        (moved("a\\b"), "no name of a file"),
        (moved(".."), "no name of a file"),
        (moved(""), "no name of a file"),
        (moved("C:config.json"), "no name of a file"),
        (set_in("files", "config.json", to=7), "no sound size"),
        (set_in("files", "config.json", "bytes", to=-1), "no sound size"),
        (set_in("files", "config.json", "bytes", to=True), "no sound size"),
        (set_in("files", "config.json", "sha256", to="00"), "no sound size and sha256"),
        (set_in("files", to=[]), "'files': it must be an object"),
        (set_in("files", to={}), "lacks embed.safetensors"),
        (set_in("formats", QKV, to="w5g128"), r"'w5g128'.* with minima\. Quantize"),
        (set_in("formats", QKV, to=4), "must be a text"),
        (set_in("formats", QKV, to="w3g128"), "but w3g128 takes"),
        (set_in("formats", to={}), "no format of"),
        (set_in("source", to=None), "'source'"),
        (set_in("adapter", to={}), "'name'"),
        (set_in("spec", "num_layers", to=3), "lacks layer_02"),
        (set_in("spec", "num_layers", to=10**9), "num_layers"),
        (set_in("spec", "num_layers", to=2.0), "must be of the type int"),
        (set_in("spec", "hidden_size", to=80), "takes"),
        (set_in("spec", "extra", to=1), "its fields must be"),
        (set_in("spec", "rms_norm_eps", to="x"), "must be of the type float"),
        (set_in("spec", "rope_factors", to=["a"]), "rope_factors"),
        (set_in("spec", "rope_scaling", to={"kind": "linear"}), "rope_scaling"),
        (set_in("spec", "qkv_bias", to=True), "other tensors than its model"),
    ],
)
def test_a_manifest_that_was_tampered_with(tiny: Any, tmp_path: Path, change: EDIT, match: str) -> None:
    path = make(tiny, tmp_path)
    edit(path / "manifest.json", change)
    with pytest.raises(ModelFormatError, match=match):
        CheckpointSource(path)


def test_newer_versions_are_told_apart_from_damage(tiny: Any, tmp_path: Path) -> None:
    path = make(tiny, tmp_path)
    edit(path / "manifest.json", set_in("version", to=2))
    with pytest.raises(UnsupportedModelError, match=r"has the version 2, but this program reads up to 1\. Update"):
        CheckpointSource(path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("tokens", [1, 2]),
        ("tokens", ["x"] * 41),
        ("merges", "a b"),
        ("token_types", ["x"]),
        ("eos_token_ids", [40]),
        ("eos_token_ids", [-1]),
        ("bos_token_id", "1"),
        ("chat_template", 3),
        ("add_bos_token", 1),
        ("pre_tokenizer", None),
        ("has_tokenizer_json", 1),
        ("another", 1),
    ],
)
def test_a_vocabulary_that_was_tampered_with(tiny: Any, tmp_path: Path, key: str, value: Any) -> None:
    path = make(tiny, tmp_path)
    edit(path / TOKENIZER_DATA, set_in(key, to=value))
    size = (path / TOKENIZER_DATA).stat().st_size
    edit(path / "manifest.json", set_in("files", TOKENIZER_DATA, "bytes", to=size))
    checkpoint = CheckpointSource(path)
    with pytest.raises(ModelFormatError, match=r"tokenizer_data\.json is damaged"):
        checkpoint.tokenizer_data()
    checkpoint.close()
    sha256 = hashlib.sha256((path / TOKENIZER_DATA).read_bytes()).hexdigest()
    edit(path / "manifest.json", set_in("files", TOKENIZER_DATA, "sha256", to=sha256))
    with pytest.raises(ModelFormatError, match=r"tokenizer_data\.json is damaged"):
        verify_checkpoint(path)


def test_unknown_tensors_are_named(tiny: Any, tmp_path: Path) -> None:
    path = make(tiny, tmp_path)
    checkpoint = CheckpointSource(path)
    for call in (checkpoint.tensor, checkpoint.tensor_kind):
        with pytest.raises(ModelFormatError, match=r"no tensor 'lm_head.weight'"):
            call("lm_head.weight")
    checkpoint.close()
