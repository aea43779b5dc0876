"""Hugging Face directories: what transformers writes, sharded or not, old or new, and what must be refused."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inference.errors import ModelFormatError, UnsupportedModelError
from inference.formats.huggingface.huggingface import HuggingFaceSource
from inference.models.model_spec import RopeScaling
from kernels.weights.reference import dequantize

safetensors_numpy = pytest.importorskip("safetensors.numpy")


def write_directory(
    tiny: Any,
    path: Path,
    architecture: str = "qwen2",
    *,
    tied: bool = True,
    shards: int = 1,
    config: dict[str, Any] | None = None,
    dtype: Any = np.float32,
) -> dict[str, np.ndarray]:
    path.mkdir(exist_ok=True)
    state = {name: weight.astype(dtype) for name, weight in tiny.random_state(architecture, tied=tied).items()}
    tiny.write_json(path / "config.json", tiny.config_of(architecture, tied=tied) | (config or {}))
    if shards == 1:
        safetensors_numpy.save_file(state, path / "model.safetensors")
        return state
    weight_map = {}
    for index in range(shards):
        file_name = f"model-{index + 1:05}-of-{shards:05}.safetensors"
        part = dict(list(state.items())[index::shards])
        safetensors_numpy.save_file(part, path / file_name)
        weight_map |= dict.fromkeys(part, file_name)
    tiny.write_json(path / "model.safetensors.index.json", {"metadata": {}, "weight_map": weight_map})
    return state


@pytest.mark.parametrize("architecture", ["qwen2", "llama", "qwen3"])
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("shards", [1, 3])
def test_weights_come_back_as_they_were(tiny: Any, tmp_path: Path, architecture: str, tied: bool, shards: int) -> None:
    state = write_directory(tiny, tmp_path / "m", architecture, tied=tied, shards=shards)
    source = HuggingFaceSource(tmp_path / "m")
    assert set(source.tensor_names()) == set(state)
    for name, weight in state.items():
        assert source.tensor_kind(name) == ("f32", weight.shape)
        tensor = source.tensor(name)
        assert len(tensor.data) == (1 if weight.ndim == 1 else len(weight))
        np.testing.assert_array_equal(dequantize(tensor.kind, tensor.data, tensor.shape), weight)
    spec = source.spec
    assert (spec.tied_head, spec.qkv_bias, spec.qk_norm) == (tied, architecture == "qwen2", architecture == "qwen3")
    source.close()


@pytest.mark.parametrize(("dtype", "kind"), [("float16", "f16"), ("bfloat16", "bf16")])
@pytest.mark.parametrize("architecture", ["Qwen2", "Llama", "Qwen3"])
def test_what_transformers_saves_is_read(tiny: Any, tmp_path: Path, architecture: str, dtype: str, kind: str) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    keys = {key: value for key, value in tiny.config_of("qwen2", tied=True).items() if key != "architectures"}
    del keys["model_type"]
    config = getattr(transformers, f"{architecture}Config")(**keys)
    model = getattr(transformers, f"{architecture}ForCausalLM")(config).to(getattr(torch, dtype))
    model.save_pretrained(tmp_path / "m", max_shard_size="40KB")
    source = HuggingFaceSource(tmp_path / "m")
    state = model.state_dict()
    assert len(list((tmp_path / "m").glob("*.safetensors"))) > 1
    for name in source.tensor_names():
        tensor = source.tensor(name)
        assert tensor.kind == kind
        np.testing.assert_array_equal(dequantize(kind, tensor.data, tensor.shape), state[name].float().numpy())
    assert source.spec.head_dim == tiny.HEAD_DIM
    assert source.spec.rope_theta == 10_000.0
    source.close()


LLAMA3 = {
    "rope_type": "llama3",
    "factor": 32.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}


@pytest.mark.parametrize(
    ("config", "theta", "scaling"),
    [
        ({"rope_theta": 5e5}, 5e5, None),
        ({"rope_scaling": None}, 1e4, None),
        ({"rope_theta": 5e5, "rope_scaling": LLAMA3}, 5e5, RopeScaling("llama3", 32.0, 1.0, 4.0, 8192)),
        ({"rope_scaling": {"type": "linear", "factor": 2.0}}, 1e4, RopeScaling("linear", 2.0)),
        ({"rope_parameters": {"rope_theta": 1e6, "rope_type": "default"}}, 1e6, None),
        ({"rope_parameters": LLAMA3 | {"rope_theta": 5e5}}, 5e5, RopeScaling("llama3", 32.0, 1.0, 4.0, 8192)),
    ],
)
def test_both_forms_of_rope_parameters(
    tiny: Any, tmp_path: Path, config: dict[str, Any], theta: float, scaling: RopeScaling | None
) -> None:
    write_directory(tiny, tmp_path / "m", "llama", config=config)
    spec = HuggingFaceSource(tmp_path / "m").spec
    assert spec.rope_theta == theta
    assert spec.rope_scaling == scaling


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"architectures": ["GemmaForCausalLM"]}, "GemmaForCausalLM.*Qwen2ForCausalLM"),
        ({"architectures": None}, "states the architecture"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, "'yarn'"),
        ({"quantization_config": {"quant_method": "awq"}}, "quantized its own way"),
        ({"use_sliding_window": True}, "sliding window"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "sliding window"),
        ({"hidden_act": "gelu"}, "another activation"),
        ({"mlp_bias": True}, "biases in its MLP"),
        ({"partial_rotary_factor": 0.5}, "part of each head"),
    ],
)
def test_variants_that_would_be_computed_wrongly_are_named(
    tiny: Any, tmp_path: Path, config: dict[str, Any], words: str
) -> None:
    write_directory(tiny, tmp_path / "m", config=config)
    with pytest.raises(UnsupportedModelError, match=words):
        HuggingFaceSource(tmp_path / "m")


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"hidden_size": None}, "hidden_size = None"),
        ({"hidden_size": "64"}, "hidden_size = 64, but it must be a whole number"),
        ({"hidden_size": 128}, r"of shape \(40, 64\), but its configuration asks for \(40, 128\)"),
        ({"num_hidden_layers": 3}, r"lacks the tensor 'model\.layers\.2"),
        ({"num_hidden_layers": 10**9}, "num_layers = 1000000000, but it must be between 1 and 1024"),
        ({"num_key_value_heads": 3}, "4 query heads for 3 key heads"),
        ({"tie_word_embeddings": False}, r"lacks the tensor 'lm_head\.weight'"),
        ({"rms_norm_eps": float("nan")}, "rms_norm_eps = nan"),
        ({"rope_scaling": 4}, "rope_scaling = 4, but it must be an object"),
    ],
)
def test_a_config_that_contradicts_the_weights_is_refused(
    tiny: Any, tmp_path: Path, config: dict[str, Any], words: str
) -> None:
    write_directory(tiny, tmp_path / "m", config=config)
    with pytest.raises(ModelFormatError, match=words):
        HuggingFaceSource(tmp_path / "m")


def test_a_tied_head_that_is_stored_all_the_same_is_left_out(tiny: Any, tmp_path: Path) -> None:
    write_directory(tiny, tmp_path / "m", tied=False, config={"tie_word_embeddings": True})
    assert "lm_head.weight" not in HuggingFaceSource(tmp_path / "m").tensor_names()


def test_missing_shards_are_named(tiny: Any, tmp_path: Path) -> None:
    write_directory(tiny, tmp_path / "m", shards=3)
    (tmp_path / "m" / "model-00002-of-00003.safetensors").unlink()
    with pytest.raises(ModelFormatError, match=r"lacks 1 of its 3 weight files: model-00002-of-00003\.safetensors"):
        HuggingFaceSource(tmp_path / "m")


def test_a_tensor_in_two_shards_is_refused(tiny: Any, tmp_path: Path) -> None:
    state = write_directory(tiny, tmp_path / "m", shards=2)
    safetensors_numpy.save_file(state, tmp_path / "m" / "model-00002-of-00002.safetensors")
    with pytest.raises(ModelFormatError, match=r"is in model-00001-of-00002\.safetensors and in"):
        HuggingFaceSource(tmp_path / "m")


@pytest.mark.parametrize("name", ["../secret.safetensors", "/etc/passwd", "a\\..\\b.safetensors", ""])
def test_an_index_cannot_reach_out_of_the_directory(tiny: Any, tmp_path: Path, name: str) -> None:
    write_directory(tiny, tmp_path / "m", shards=2)
    tiny.write_json(tmp_path / "m" / "model.safetensors.index.json", {"weight_map": {"model.norm.weight": name}})
    with pytest.raises(ModelFormatError, match="no sound list of weight files"):
        HuggingFaceSource(tmp_path / "m")


def test_pickles_are_refused_with_a_cure(tiny: Any, tmp_path: Path) -> None:
    write_directory(tiny, tmp_path / "m")
    (tmp_path / "m" / "model.safetensors").rename(tmp_path / "m" / "pytorch_model.bin")
    with pytest.raises(UnsupportedModelError, match=r"pytorch_model\.bin, a pickle.*save_pretrained"):
        HuggingFaceSource(tmp_path / "m")


def test_a_directory_without_weights_or_config_is_named(tiny: Any, tmp_path: Path) -> None:
    write_directory(tiny, tmp_path / "m")
    (tmp_path / "m" / "model.safetensors").unlink()
    with pytest.raises(ModelFormatError, match=r"has no model\.safetensors"):
        HuggingFaceSource(tmp_path / "m")
    with pytest.raises(ModelFormatError, match=r"config\.json cannot be read"):
        HuggingFaceSource(tmp_path)


TOKENIZER = {"added_tokens": [{"id": 38, "content": "<|im_start|>"}, {"id": 39, "content": "<|im_end|>"}], "model": {}}


def tokenizer_directory(tiny: Any, path: Path, **files: Any) -> HuggingFaceSource:
    write_directory(tiny, path, config={"bos_token_id": 5, "eos_token_id": 7})
    tiny.write_json(path / "tokenizer.json", TOKENIZER)
    for name, value in files.items():
        tiny.write_json(path / f"{name}.json", value)
    return HuggingFaceSource(path)


def test_the_tokenizer_of_transformers_4(tiny: Any, tmp_path: Path) -> None:
    source = tokenizer_directory(
        tiny,
        tmp_path / "m",
        tokenizer_config={
            "bos_token": {"content": "<|im_start|>", "lstrip": False},
            "eos_token": "<|im_end|>",
            "chat_template": [{"name": "tools", "template": "T"}, {"name": "default", "template": "D"}],
            "add_bos_token": True,
        },
        generation_config={"eos_token_id": [3, 4]},
    )
    data = source.tokenizer_data()
    assert json.loads(data.tokenizer_json or "") == TOKENIZER
    assert (data.bos_token_id, data.bos_token, data.eos_token) == (38, "<|im_start|>", "<|im_end|>")
    assert data.eos_token_ids == (3, 4, 7, 39)
    assert data.add_bos_token is True
    assert data.chat_template == "D"


def test_a_template_file_goes_before_the_settings(tiny: Any, tmp_path: Path) -> None:
    source = tokenizer_directory(
        tiny, tmp_path / "m", tokenizer_config={"bos_token": None, "eos_token": None, "chat_template": "old"}
    )
    (tmp_path / "m" / "chat_template.jinja").write_text("neu: 你好", encoding="utf-8")
    data = source.tokenizer_data()
    assert data.chat_template == "neu: 你好"
    assert (data.bos_token_id, data.bos_token, data.eos_token_ids) == (5, "", (7,))


def test_ids_outside_the_vocabulary_are_left_out(tiny: Any, tmp_path: Path) -> None:
    source = tokenizer_directory(tiny, tmp_path / "m", generation_config={"eos_token_id": [40, -1, True, "x", 2]})
    assert source.tokenizer_data().eos_token_ids == (2, 7)
    assert source.tokenizer_data().chat_template is None


def test_a_missing_tokenizer_is_named(tiny: Any, tmp_path: Path) -> None:
    write_directory(tiny, tmp_path / "m")
    with pytest.raises(ModelFormatError, match=r"no tokenizer\.json"):
        HuggingFaceSource(tmp_path / "m").tokenizer_data()


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_empty_files_are_refused(tiny: Any, tmp_path: Path, name: str) -> None:
    write_directory(tiny, tmp_path / "m")
    (tmp_path / "m" / name).write_bytes(b"")
    with pytest.raises(ModelFormatError, match=r"no sound JSON|is empty"):
        HuggingFaceSource(tmp_path / "m")


def test_nothing_is_read_of_the_weights_when_a_model_is_opened(tiny: Any, tmp_path: Path) -> None:
    write_directory(tiny, tmp_path / "m")
    path = tmp_path / "m" / "model.safetensors"
    with path.open("rb") as file:
        (header_bytes,) = struct.unpack("<Q", file.read(8))
    source = HuggingFaceSource(tmp_path / "m")
    # Written after opening: a view that shows it cannot be a copy made before.
    name, tensor = min(source._tensors.items(), key=lambda item: item[1][1].offset)
    assert tensor[1].offset == 8 + header_bytes
    with path.open("r+b") as file:
        file.seek(8 + header_bytes)
        file.write(struct.pack("<f", 42.0))
    assert source.tensor(name).data.view("<f4").flat[0] == 42.0
