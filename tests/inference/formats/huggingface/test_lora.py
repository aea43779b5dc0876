"""LoRA adapters: merged as PEFT merges, and refused where that cannot be done exactly."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inference.errors import InferenceError, ModelFormatError, ModelNotFoundError, UnsupportedModelError
from inference.formats.huggingface.lora import LoraAdapter
from inference.formats.model_file import open_model
from inference.models.model_spec import ModelSpec
from inference.quantize.weight_stream import WeightStream
from kernels.weights.reference import dequantize

safetensors_numpy = pytest.importorskip("safetensors.numpy")

SPEC = ModelSpec("qwen2", 2, 64, 96, 4, 2, 16, 50, 512, 1e-6, 1e4, qkv_bias=True)
TARGETS = ["q_proj", "v_proj", "down_proj"]
ROWS = {"self_attn.q_proj": 64, "self_attn.v_proj": 32, "mlp.down_proj": 64}
COLUMNS = {"self_attn.q_proj": 64, "self_attn.v_proj": 64, "mlp.down_proj": 96}


def config_of(**changes: Any) -> dict[str, Any]:
    config = {
        "peft_type": "LORA",
        "r": 4,
        "lora_alpha": 8,
        "target_modules": TARGETS,
        "bias": "none",
        "use_rslora": False,
        "use_dora": False,
        "rank_pattern": {},
        "alpha_pattern": {},
        "fan_in_fan_out": False,
        "modules_to_save": None,
        "init_lora_weights": True,
    }
    return config | changes


def pairs_of(ranks: Callable[[str], int] = lambda module: 4, layers: int = 2) -> dict[str, np.ndarray]:
    rng, tensors = np.random.default_rng(0), {}
    for layer in range(layers):
        for module, rows in ROWS.items():
            name, rank = f"model.layers.{layer}.{module}", ranks(f"model.layers.{layer}.{module}")
            halves = {"A": (rank, COLUMNS[module]), "B": (rows, rank)}
            for half, shape in halves.items():
                key = f"base_model.model.{name}.lora_{half}.weight"
                tensors[key] = rng.standard_normal(shape).astype(np.float32)
    return tensors


def write(path: Path, config: dict[str, Any], tensors: dict[str, np.ndarray]) -> Path:
    path.mkdir(exist_ok=True)
    (path / "adapter_config.json").write_text(json.dumps(config), encoding="utf-8")
    safetensors_numpy.save_file(tensors, path / "adapter_model.safetensors")
    return path


def product(tensors: dict[str, np.ndarray], name: str) -> np.ndarray:
    a, b = (tensors[f"base_model.model.{name}.lora_{half}.weight"].astype(np.float64) for half in "AB")
    return b @ a


@pytest.mark.parametrize(
    ("changes", "ranks", "scales"),
    [
        ({}, {}, {"": 2.0}),
        ({"use_rslora": True}, {}, {"": 4.0}),
        ({"lora_alpha": 0.5}, {}, {"": 0.125}),
        ({"rank_pattern": {"v_proj": 8}}, {"v_proj": 8}, {"v_proj": 1.0, "": 2.0}),
        ({"alpha_pattern": {r".*layers\.1\..*q_proj": 40}}, {}, {"layers.1.self_attn.q_proj": 10.0, "": 2.0}),
        ({"rank_pattern": {"^model.layers.0.mlp.down_proj": 1}}, {"0.mlp.down_proj": 1}, {"0.mlp.d": 8.0, "": 2.0}),
        ({"fan_in_fan_out": True}, {}, {"": 2.0}),
        ({"target_modules": "all-linear"}, {}, {"": 2.0}),
    ],
)
def test_merged_is_the_weight_and_the_scaled_product(
    tmp_path: Path, changes: dict[str, Any], ranks: dict[str, int], scales: dict[str, float]
) -> None:
    def first(table: dict[str, Any], name: str, default: Any) -> Any:
        return next((value for part, value in table.items() if part in name), default)

    tensors = pairs_of(lambda module: int(first(ranks, module, 4)))
    adapter = LoraAdapter(write(tmp_path / "a", config_of(**changes), tensors), SPEC)
    rng = np.random.default_rng(1)
    for layer in range(2):
        for module, rows in ROWS.items():
            name = f"model.layers.{layer}.{module}"
            weights = rng.standard_normal((rows, COLUMNS[module])).astype(np.float32)
            expected = weights + first(scales, name, None) * product(tensors, name)
            found = adapter.merged(f"{name}.weight", weights)
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
            np.testing.assert_array_equal(adapter.merged(f"{name}.weight", weights[16:20], 16), found[16:20])
    untouched = rng.standard_normal((64, 64)).astype(np.float32)
    assert adapter.merged("model.layers.0.self_attn.o_proj.weight", untouched) is untouched
    assert len(adapter.changed) == 6


def test_half_precision_and_adapter_names_in_keys(tmp_path: Path) -> None:
    tensors = {key.replace(".weight", ".default.weight"): value.astype(np.float16) for key, value in pairs_of().items()}
    adapter = LoraAdapter(write(tmp_path / "a", config_of(), tensors), SPEC)
    name = "model.layers.1.mlp.down_proj"
    plain = {key.replace(".default", ""): value for key, value in tensors.items()}
    found = adapter.merged(f"{name}.weight", np.zeros((64, 96), np.float32))
    np.testing.assert_allclose(found, 2 * product(plain, name), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("infix", ["", "modules_to_save.default."])
def test_modules_that_are_replaced(tmp_path: Path, infix: str) -> None:
    head = np.random.default_rng(2).standard_normal((50, 64)).astype(np.float32)
    tensors = pairs_of() | {f"base_model.model.lm_head.{infix}weight": head}
    adapter = LoraAdapter(write(tmp_path / "a", config_of(modules_to_save=["lm_head"]), tensors), SPEC)
    found = adapter.merged("lm_head.weight", np.zeros((10, 64), np.float32), 20)
    np.testing.assert_array_equal(found, head[20:30])


def test_an_embedding_has_its_own_order(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((4, 50)).astype(np.float32), rng.standard_normal((64, 4)).astype(np.float32)
    prefix = "base_model.model.model.embed_tokens.lora_embedding_"
    tensors = pairs_of() | {f"{prefix}A": a, f"{prefix}B": b}
    config = config_of(target_modules=[*TARGETS, "embed_tokens"])
    adapter = LoraAdapter(write(tmp_path / "a", config, tensors), SPEC)
    found = adapter.merged("model.embed_tokens.weight", np.zeros((50, 64), np.float32))
    np.testing.assert_allclose(found, 2 * (b @ a).T, rtol=1e-4, atol=1e-5)


def without(key_part: str) -> dict[str, np.ndarray]:
    return {key: value for key, value in pairs_of().items() if key_part not in key}


Q = "base_model.model.model.layers.0.self_attn.q_proj."


@pytest.mark.parametrize(
    ("config", "tensors", "match"),
    [
        ({}, {f"{Q}lora_C.weight": np.ones((4, 64), np.float32)}, "lora_C.weight', which belongs to nothing"),
        ({}, {"model.layers.0.self_attn.q_proj.lora_A.weight": np.ones((4, 64), np.float32)}, "belongs to nothing"),
        ({}, {Q.replace("s.0", "s.7") + "lora_A.weight": np.ones((4, 64), np.float32)}, "layers.7.*nothing"),
        ({}, {f"{Q}lora_A.weight": np.ones((4, 60), np.float32)}, r"\(64, 64\) by a product of shape \(64, 60\)"),
        ({}, {f"{Q}lora_B.weight": np.ones((60, 4), np.float32)}, r"product of shape \(60, 64\)"),
        ({}, {f"{Q}lora_B.weight": np.ones((64, 3), np.float32)}, "its rank is 4"),
        ({"r": 5}, {}, "its rank is 5"),
        ({"rank_pattern": {"q_proj": 2}}, {}, "its rank is 2"),
        ({"lora_alpha": None}, {}, "lora_alpha = 'None'"),
        ({"rank_pattern": {"(": 2}}, {}, "no pattern"),
        ({"rank_pattern": [1]}, {}, "rank_pattern as no object"),
        ({"rank_pattern": {"([a-z0-9._]+)+!": 4}}, {}, "none of a group. List the modules"),
        ({"rank_pattern": {"(?:a)?b?" + ".*" * 3 + "!": 4}}, {}, "3 repeats"),
        ({"alpha_pattern": {"a" * 301: 4}}, {}, "may have 300 characters"),
        ({"r": "4"}, {}, "the rank '4' of"),
        ({"r": 0}, {}, "whole number of 1 or more"),
        ({"lora_alpha": 10**400}, {}, "'a larger number', but it must be a number of at most 1000000"),
        ({"lora_alpha": 1e308}, {}, r"lora_alpha = '1e\+308'"),
        ({}, {f"{Q}lora_A.default.weight": np.ones((4, 64), np.float32)}, "has lora_A of .* twice"),
        (
            {"modules_to_save": 5},
            {"base_model.model.model.norm.weight": np.ones(64, np.float32)},
            "modules_to_save do not name it",
        ),
        ({}, {f"{Q}lora_B.weight": np.full((64, 4), np.nan, np.float32)}, "not finite"),
        ({"target_modules": [*TARGETS, "up_proj"]}, {}, "targets 'up_proj', but has no tensors"),
        ({}, {"base_model.model.lm_head.weight": np.ones((51, 64), np.float32)}, r"\(50, 64\) by \(51, 64\)"),
        ({}, {"base_model.model.model.norm.weight": np.ones(64, np.float32)}, "modules_to_save do not name it"),
    ],
)
def test_what_does_not_fit_is_an_error(
    tmp_path: Path, config: dict[str, Any], tensors: dict[str, np.ndarray], match: str
) -> None:
    path = write(tmp_path / "a", config_of(**config), pairs_of() | tensors)
    with pytest.raises(ModelFormatError, match=match):
        LoraAdapter(path, SPEC)


def test_a_product_that_overflows_names_the_adapter(save_tiny_model: Callable[..., Path], tmp_path: Path) -> None:
    path = save_tiny_model("qwen2", hidden_size=64, intermediate_size=96, num_hidden_layers=2)
    source = open_model(path)
    tensors = {key: np.full_like(value, 1e30) for key, value in pairs_of().items()}
    stream = WeightStream(source, LoraAdapter(write(tmp_path / "large", config_of(), tensors), source.spec))
    with pytest.raises(ModelFormatError, match=r" with large has .* The adapter or the weights are damaged"):
        list(stream.slices("model.layers.0.self_attn.q_proj.weight"))
    source.close()


def test_half_a_pair_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelFormatError, match=r"has only lora_A of 'model.layers.1.self_attn.v_proj'"):
        LoraAdapter(write(tmp_path / "a", config_of(), without("1.self_attn.v_proj.lora_B")), SPEC)
    with pytest.raises(ModelFormatError, match="holds no tensors"):
        LoraAdapter(write(tmp_path / "b", config_of(), {}), SPEC)


@pytest.mark.parametrize(
    ("config", "match"),
    [
        ({"use_dora": True}, "DoRA"),
        ({"bias": "all"}, "trained biases"),
        ({"lora_bias": True}, "trained biases"),
        ({"peft_type": "LOHA"}, "type 'LOHA'"),
        ({"init_lora_weights": "pissa_niter_4"}, "changes the model's own weights"),
        ({"trainable_token_indices": [1]}, "single tokens"),
        ({"layer_replication": [[0, 1]]}, "repeats layers"),
        ({"target_parameters": ["a"]}, "bare parameters"),
        ({"alora_invocation_tokens": [3]}, "cannot be merged"),
    ],
)
def test_variants_that_are_no_plain_lora(tmp_path: Path, config: dict[str, Any], match: str) -> None:
    with pytest.raises(UnsupportedModelError, match=match):
        LoraAdapter(write(tmp_path / "a", config_of(**config), pairs_of()), SPEC)


def test_an_embedding_that_is_the_head_cannot_be_merged(tmp_path: Path) -> None:
    import dataclasses

    prefix = "base_model.model.model.embed_tokens.lora_embedding_"
    tensors = {f"{prefix}A": np.ones((4, 50), np.float32), f"{prefix}B": np.ones((64, 4), np.float32)}
    path = write(tmp_path / "a", config_of(target_modules=["embed_tokens"]), tensors)
    with pytest.raises(ModelFormatError, match="change both"):
        LoraAdapter(path, dataclasses.replace(SPEC, tied_head=True))


def test_no_adapter_and_pickles(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match=r"no adapter_config.json"):
        LoraAdapter(tmp_path, SPEC)
    path = write(tmp_path / "a", config_of(), pairs_of())
    (path / "adapter_model.safetensors").rename(path / "adapter_model.bin")
    with pytest.raises(ModelNotFoundError, match="safe_serialization=True"):
        LoraAdapter(path, SPEC)
    (path / "adapter_model.safetensors").write_bytes(b"\0" * 40)
    with pytest.raises(InferenceError, match=r"damaged|JSON"):
        LoraAdapter(path, SPEC)


def test_answers_are_those_of_the_adapted_model(save_tiny_model: Callable[..., Path], tmp_path: Path) -> None:
    """The merged weights in transformers give what the adapter's two small products give beside the unmerged ones."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    path = save_tiny_model("qwen2", hidden_size=64, intermediate_size=96, num_hidden_layers=2)
    tensors = {key: value * np.float32(0.1) for key, value in pairs_of().items()}
    source = open_model(path)
    adapter = LoraAdapter(write(tmp_path / "a", config_of(), tensors), source.spec)
    ids = torch.arange(3, 40)[None]

    plain = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
    unadapted = plain(ids).logits
    for name, module in plain.named_modules():
        key = f"base_model.model.{name}.lora_"
        if f"{key}A.weight" in tensors:
            a, b = (torch.from_numpy(tensors[f"{key}{half}.weight"]) for half in "AB")
            module.register_forward_hook(lambda _, args, out, a=a, b=b: out + 2.0 * (args[0] @ a.T) @ b.T)
    expected = plain(ids).logits

    merged = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
    stream = WeightStream(source, adapter)
    with torch.no_grad():
        for name, parameter in merged.named_parameters():
            read = stream.vector(name) if parameter.ndim == 1 else np.concatenate(list(stream.slices(name)))
            parameter.copy_(torch.from_numpy(read))
    found = merged(ids).logits
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    assert torch.equal(found.argmax(-1), expected.argmax(-1))
    assert (found - unadapted).abs().max() > 0.1
    tensor = source.tensor("model.layers.0.self_attn.q_proj.weight")
    assert not np.array_equal(
        dequantize(tensor.kind, tensor.data, tensor.shape), merged.model.layers[0].self_attn.q_proj.weight.detach()
    )
    source.close()
