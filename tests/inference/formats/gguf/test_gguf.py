"""GGUF models: names, order of rows, spec and vocabulary, and the refusal of what this engine would compute wrongly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inference.errors import ModelFormatError, ModelNotFoundError, UnsupportedModelError
from inference.formats.gguf.gguf import GgufSource
from inference.models.model_spec import RopeScaling
from kernels.weights.reference import dequantize


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3"])
@pytest.mark.parametrize("tied", [True, False])
def test_weights_come_back_under_hugging_face_names_and_order(
    tiny: Any, tmp_path: Path, architecture: str, tied: bool
) -> None:
    state = tiny.random_state(architecture, tied=tied)
    source = GgufSource(tiny.write_gguf(tmp_path / "m.gguf", architecture, state=state))
    assert set(source.tensor_names()) == set(state)
    for name, weight in state.items():
        assert source.tensor_kind(name) == ("f32", weight.shape)
        tensor = source.tensor(name)
        assert tensor.data.shape == ((1, weight.nbytes) if weight.ndim == 1 else (len(weight), weight[0].nbytes))
        assert tensor.data.flags.c_contiguous
        np.testing.assert_array_equal(dequantize(tensor.kind, tensor.data, tensor.shape), weight)
    source.close()


@pytest.mark.parametrize("kind", ["q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "f16", "bf16"])
def test_quantized_rows_of_a_llama_are_reordered_exactly(tiny: Any, tmp_path: Path, kind: str) -> None:
    import gguf

    state = tiny.random_state("llama", tied=True)
    source = GgufSource(tiny.write_gguf(tmp_path / "m.gguf", "llama", state=state, kind=kind))
    number = gguf.GGMLQuantizationType[kind.upper()]
    for part in ("q", "k"):
        name = f"model.layers.1.self_attn.{part}_proj.weight"
        tensor = source.tensor(name)
        expected = gguf.quants.dequantize(gguf.quants.quantize(state[name], number), number)
        np.testing.assert_array_equal(dequantize(kind, tensor.data, tensor.shape), expected)
    source.close()


@pytest.mark.filterwarnings("ignore")
def test_reordering_agrees_with_transformers(tiny: Any, tmp_path: Path) -> None:
    loader = pytest.importorskip("transformers.modeling_gguf_pytorch_utils")
    transformers = pytest.importorskip("transformers")
    path = tiny.write_gguf(tmp_path / "m.gguf", "llama", kind="q8_0")
    config = {key: value for key, value in tiny.config_of("llama", tied=True).items() if key != "architectures"}
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**config))
    loaded = loader.load_gguf_checkpoint(str(path), return_tensors=True, model_to_load=model)["tensors"]
    source = GgufSource(path)
    assert set(loaded) == set(source.tensor_names())
    for name, expected in loaded.items():
        tensor = source.tensor(name)
        np.testing.assert_array_equal(dequantize(tensor.kind, tensor.data, tensor.shape), expected.numpy())
    source.close()


def test_the_spec_follows_the_metadata(tiny: Any, tmp_path: Path) -> None:
    state = tiny.random_state("qwen2", tied=False)
    spec = GgufSource(tiny.write_gguf(tmp_path / "m.gguf", "qwen2", state=state)).spec
    assert (spec.architecture, spec.num_layers, spec.hidden_size, spec.intermediate_size) == ("qwen2", 2, 64, 96)
    assert (spec.num_q_heads, spec.num_kv_heads, spec.head_dim, spec.vocab_size) == (4, 2, 16, 40)
    assert (spec.max_context, spec.rope_theta) == (512, 10_000.0)
    assert spec.rms_norm_eps == pytest.approx(1e-6)
    assert (spec.qkv_bias, spec.qk_norm, spec.tied_head) == (True, False, False)
    assert spec.rope_scaling is None
    assert spec.rope_factors == ()


def test_llama_3_rope_factors_belong_to_the_spec(tiny: Any, tmp_path: Path) -> None:
    factors = np.linspace(1, 8, tiny.HEAD_DIM // 2, dtype=np.float32)
    source = GgufSource(tiny.write_gguf(tmp_path / "m.gguf", "llama", extra={"rope_freqs.weight": factors}))
    assert source.spec.rope_factors == tuple(factors.tolist())
    assert "rope_freqs.weight" not in source.tensor_names()


def test_linear_scaling_and_a_head_size_of_its_own(tiny: Any, tmp_path: Path) -> None:
    metadata = {
        "llama.rope.scaling.type": "linear",
        "llama.rope.scaling.factor": 4.0,
        "llama.attention.key_length": 16,
        "llama.attention.value_length": 16,
    }
    spec = GgufSource(tiny.write_gguf(tmp_path / "m.gguf", "llama", metadata=metadata)).spec
    assert spec.rope_scaling == RopeScaling("linear", 4.0)
    assert spec.head_dim == 16


def test_the_vocabulary_comes_back_whole(tiny: Any, tmp_path: Path) -> None:
    metadata = {"tokenizer.ggml.eot_token_id": 3}
    data = GgufSource(tiny.write_gguf(tmp_path / "m.gguf", "qwen2", metadata=metadata)).tokenizer_data()
    assert data.tokens == tuple(tiny.TOKENS)
    assert data.merges == ("t 0", "t 1")
    assert data.token_types == (1,) * 38 + (3, 3)
    assert (data.pre_tokenizer, data.chat_template) == ("qwen2", tiny.TEMPLATE)
    assert (data.bos_token_id, data.bos_token) == (38, "<|im_start|>")
    assert (data.eos_token_ids, data.eos_token) == ((39, 3), "<|im_end|>")
    assert data.add_bos_token is False


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({"llama.expert_count": 8}, "mixture of experts"),
        ({"llama.attention.sliding_window": 128}, "sliding window"),
        ({"llama.rope.scaling.type": "yarn"}, "'yarn'"),
        ({"split.count": 3}, "several files"),
        ({"tokenizer.ggml.model": "llama"}, "kind 'llama' instead of 'gpt2'"),
        ({"llama.rope.dimension_count": 8}, "rope.dimension_count = 8"),
        ({"general.architecture": "gemma3"}, "'gemma3'.*qwen2, llama, qwen3"),
    ],
)
def test_variants_that_would_be_computed_wrongly_are_named(
    tiny: Any, tmp_path: Path, metadata: dict[str, Any], words: str
) -> None:
    path = tmp_path / "m.gguf"
    if "general.architecture" in metadata:
        tiny.write_gguf(path, "llama")
        path.write_bytes(path.read_bytes().replace(b"\x05\0\0\0\0\0\0\0llama", b"\x06\0\0\0\0\0\0\0gemma3", 1))
    else:
        tiny.write_gguf(path, "llama", metadata=metadata)
    with pytest.raises(UnsupportedModelError, match=words):
        GgufSource(path)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("blk.0.attn_output.bias", r"layers\.0\.self_attn\.o_proj\.bias"),
        ("blk.0.ffn_gate_exps.weight", r"blk\.0\.ffn_gate_exps\.weight"),
        ("lm_head.weight", r"lm_head\.weight \(GGUF\)"),
        ("blk.00.attn_norm.weight", r"blk\.00\.attn_norm\.weight"),
    ],
)
def test_a_tensor_that_would_be_ignored_is_named(tiny: Any, tmp_path: Path, name: str, words: str) -> None:
    path = tiny.write_gguf(tmp_path / "m.gguf", "llama", extra={name: np.zeros(tiny.HIDDEN, np.float32)})
    with pytest.raises(UnsupportedModelError, match=words):
        GgufSource(path)


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({"llama.block_count": 3}, "lacks the tensor 'model.layers.2"),
        ({"llama.block_count": 4_000_000_000}, "num_layers = 4000000000, but it must be between 1 and 1024"),
        ({"llama.embedding_length": 0}, "llama.embedding_length = 0"),
        ({"llama.attention.head_count": 0}, "llama.attention.head_count = 0"),
        ({"llama.attention.head_count_kv": 0}, "num_kv_heads = 0"),
        ({"llama.attention.head_count_kv": 3}, "4 query heads for 3 key heads"),
        ({"llama.feed_forward_length": 97}, "asks for \\(97, 64\\)"),
        ({"llama.context_length": None}, "llama.context_length = None"),
        ({"llama.rope.freq_base": float("nan")}, "rope_theta = nan"),
        ({"llama.attention.layer_norm_rms_epsilon": "small"}, "a text, but it must be a number"),
        ({"llama.block_count": [2, 2]}, "an array, but it must be a whole number"),
        ({"general.alignment": 0}, "alignment is 0"),
        ({"general.alignment": 48}, "alignment is 48"),
    ],
)
def test_metadata_that_contradicts_the_weights_is_refused(
    tiny: Any, tmp_path: Path, metadata: dict[str, Any], words: str
) -> None:
    path = tmp_path / "m.gguf"
    tiny.write_gguf(path, "llama", metadata=metadata)
    with pytest.raises(ModelFormatError, match=words):
        GgufSource(path)


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({"tokenizer.ggml.tokens": ["a"] * 41}, "41 tokens"),
        ({"tokenizer.ggml.tokens": None}, "0 tokens"),
        ({"tokenizer.ggml.tokens": [1, 2]}, "no array of strings"),
        ({"tokenizer.ggml.token_type": [1]}, "1 token types"),
        ({"tokenizer.ggml.eos_token_id": 40}, "eos_token_id = 40, but it must be a token id below 40"),
        ({"tokenizer.chat_template": 7}, "is no string"),
    ],
)
def test_a_vocabulary_that_does_not_fit_is_refused(
    tiny: Any, tmp_path: Path, metadata: dict[str, Any], words: str
) -> None:
    source = GgufSource(tiny.write_gguf(tmp_path / "m.gguf", "llama", metadata=metadata))
    with pytest.raises(ModelFormatError, match=words):
        source.tokenizer_data()


def test_a_missing_tensor_and_a_missing_file_are_named(tiny: Any, tmp_path: Path) -> None:
    source = GgufSource(tiny.write_gguf(tmp_path / "m.gguf", "llama"))
    with pytest.raises(ModelFormatError, match=r"no tensor 'lm_head\.weight'"):
        source.tensor("lm_head.weight")
    with pytest.raises(ModelNotFoundError, match=r"absent\.gguf"):
        GgufSource(tmp_path / "absent.gguf")
