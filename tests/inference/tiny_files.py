"""Tiny model files, written by the gguf and safetensors packages, that the readers' tests open."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Kind

HIDDEN, HEADS, KV_HEADS, HEAD_DIM, MLP, LAYERS, VOCABULARY = 64, 4, 2, 16, 96, 2, 40
TOKENS = [f"t{index}" for index in range(VOCABULARY - 2)] + ["<|im_start|>", "<|im_end|>"]
TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"


def to_pairs(weight: np.ndarray, heads: int) -> np.ndarray:
    """Rows in halves to rows in pairs, by index: another way than the reader's."""
    half = weight.shape[0] // heads // 2
    order = [head * 2 * half + part * half + i for head in range(heads) for i in range(half) for part in range(2)]
    return weight[order]


def random_state(architecture: str, *, tied: bool, seed: int = 0) -> dict[str, np.ndarray]:
    """A tiny model's weights in float32 under Hugging Face's names."""
    rng = np.random.default_rng(seed)
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (VOCABULARY, HIDDEN)}
    shapes["model.norm.weight"] = (HIDDEN,)
    if not tied:
        shapes["lm_head.weight"] = (VOCABULARY, HIDDEN)
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}."
        shapes |= {
            prefix + "self_attn.q_proj.weight": (HEADS * HEAD_DIM, HIDDEN),
            prefix + "self_attn.k_proj.weight": (KV_HEADS * HEAD_DIM, HIDDEN),
            prefix + "self_attn.v_proj.weight": (KV_HEADS * HEAD_DIM, HIDDEN),
            prefix + "self_attn.o_proj.weight": (HIDDEN, HEADS * HEAD_DIM),
            prefix + "mlp.gate_proj.weight": (MLP, HIDDEN),
            prefix + "mlp.up_proj.weight": (MLP, HIDDEN),
            prefix + "mlp.down_proj.weight": (HIDDEN, MLP),
            prefix + "input_layernorm.weight": (HIDDEN,),
            prefix + "post_attention_layernorm.weight": (HIDDEN,),
        }
        if architecture == "qwen2":
            shapes |= {
                prefix + "self_attn.q_proj.bias": (HEADS * HEAD_DIM,),
                prefix + "self_attn.k_proj.bias": (KV_HEADS * HEAD_DIM,),
                prefix + "self_attn.v_proj.bias": (KV_HEADS * HEAD_DIM,),
            }
        if architecture == "qwen3":
            shapes |= {prefix + f"self_attn.{name}_norm.weight": (HEAD_DIM,) for name in "qk"}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


GGUF_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def gguf_name(name: str) -> str:
    stem, _, suffix = name.rpartition(".")
    if not stem.startswith("model.layers."):
        return f"{GGUF_NAMES[stem]}.{suffix}"
    _, _, layer, rest = stem.split(".", 3)
    return f"blk.{layer}.{GGUF_NAMES[rest]}.{suffix}"


def write_gguf(
    path: Path,
    architecture: str = "llama",
    *,
    state: dict[str, np.ndarray] | None = None,
    kind: str = "f32",
    metadata: dict[str, Any] | None = None,
    extra: dict[str, np.ndarray] | None = None,
) -> Path:
    """Writes a tiny model as llama.cpp's converter would; `metadata` overrides keys, None leaves one out."""
    state = random_state(architecture, tied=True) if state is None else state
    writer = gguf.GGUFWriter(path, architecture)
    keys: dict[str, Any] = {
        f"{architecture}.block_count": LAYERS,
        f"{architecture}.context_length": 512,
        f"{architecture}.embedding_length": HIDDEN,
        f"{architecture}.feed_forward_length": MLP,
        f"{architecture}.attention.head_count": HEADS,
        f"{architecture}.attention.head_count_kv": KV_HEADS,
        f"{architecture}.rope.freq_base": 10_000.0,
        f"{architecture}.attention.layer_norm_rms_epsilon": 1e-6,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen2",
        "tokenizer.ggml.tokens": TOKENS,
        "tokenizer.ggml.token_type": [1] * (VOCABULARY - 2) + [3, 3],
        "tokenizer.ggml.merges": ["t 0", "t 1"],
        "tokenizer.ggml.bos_token_id": VOCABULARY - 2,
        "tokenizer.ggml.eos_token_id": VOCABULARY - 1,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": TEMPLATE,
    } | (metadata or {})
    for key, value in keys.items():
        _add(writer, key, value)
    for name, weight in (state | (extra or {})).items():
        if architecture == "llama" and ".q_proj." in name:
            weight = to_pairs(weight, HEADS)
        if architecture == "llama" and ".k_proj." in name:
            weight = to_pairs(weight, KV_HEADS)
        quantize = weight.ndim == 2 and kind != "f32"
        target = Kind[kind.upper()] if quantize else Kind.F32
        data = gguf.quants.quantize(weight, target) if quantize else weight
        writer.add_tensor(name if name in (extra or {}) else gguf_name(name), data, raw_dtype=target)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    add: dict[type, Callable[[str, Any], None]] = {
        bool: writer.add_bool,
        int: writer.add_uint32,
        float: writer.add_float32,
        str: writer.add_string,
        list: writer.add_array,
    }
    if value is not None:
        add[type(value)](key, value)


def config_of(architecture: str, *, tied: bool) -> dict[str, Any]:
    """config.json of the tiny model, in the form of transformers 4."""
    return {
        "architectures": [{"qwen2": "Qwen2", "llama": "Llama", "qwen3": "Qwen3"}[architecture] + "ForCausalLM"],
        "model_type": architecture,
        "num_hidden_layers": LAYERS,
        "hidden_size": HIDDEN,
        "intermediate_size": MLP,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": 512,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10_000.0,
        "hidden_act": "silu",
        "tie_word_embeddings": tied,
        "bos_token_id": VOCABULARY - 2,
        "eos_token_id": VOCABULARY - 1,
    }


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")
