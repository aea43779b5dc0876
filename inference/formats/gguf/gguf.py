"""Models in GGUF files: their spec, weights and vocabulary, as a ModelSource."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from inference.errors import ModelFormatError, UnsupportedModelError
from inference.formats.gguf.gguf_file import GgufArray, GgufFile, GgufString, GgufTensor
from inference.formats.model_source import WeightTensor
from inference.formats.weight_shapes import MAX_VOCABULARY, Shape, check_spec, check_weights
from inference.models.model_spec import ModelSpec, RopeScaling
from inference.text.tokenizer_data import TokenizerData

ARCHITECTURES = ("qwen2", "llama", "qwen3")
"""Values of general.architecture that this engine runs."""

_TOP_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_LAYER_NAME = re.compile(r"blk\.(0|[1-9][0-9]{0,3})\.(\w+)\.(weight|bias)")
_ROTATED = re.compile(r"model\.layers\.\d+\.self_attn\.([qk])_proj\.(?:weight|bias)")
_ROPE_FACTORS = "rope_freqs.weight"


class GgufSource:
    """A GGUF file as a ModelSource.

    Files of architecture "llama" hold the rows of Q and K in pairs (2 i, 2 i + 1) that rotate together. `tensor` puts
    them back into halves (i, i + head_dim / 2), as Hugging Face has them. Whole rows move: exact, quantized or not.
    """

    def __init__(self, path: Path) -> None:
        """Opens and checks the whole file; weights are not read.

        Raises:
            ModelFormatError: truncated, hostile, or tensors that do not fit the metadata.
            UnsupportedModelError: an architecture, tokenizer, rope scaling or weight kind that this engine lacks.
            ModelNotFoundError: no such file.
        """
        self.path = path
        self._file = GgufFile(path)
        try:
            self.spec = _Metadata(self._file).spec()
            check_spec(self.spec, path.name)
            self._tensors = _named_weights(self._file)
            check_weights(self.spec, {name: tensor.shape for name, tensor in self._tensors.items()}, path.name)
        except BaseException:
            self._file.close()
            raise

    def tensor_names(self) -> tuple[str, ...]:
        """All tensors, in file order."""
        return tuple(self._tensors)

    def tensor_kind(self, name: str) -> tuple[str, Shape]:
        """Kind and shape of a tensor without reading it."""
        tensor = self._find(name)
        return tensor.kind, tensor.shape

    def tensor(self, name: str) -> WeightTensor:
        """Maps one tensor; Q and K of a llama are copied into their order. ModelFormatError where it is missing."""
        tensor = self._find(name)
        rows = 1 if len(tensor.shape) == 1 else tensor.shape[0]
        data = self._file.tensor_bytes(tensor).reshape(rows, -1)
        rotated = _ROTATED.fullmatch(name) if self.spec.architecture == "llama" else None
        if rotated:
            heads = self.spec.num_q_heads if rotated[1] == "q" else self.spec.num_kv_heads
            data = _split_halves(data, heads, tensor.shape[0]).reshape(rows, -1)
        return WeightTensor(name, tensor.shape, tensor.kind, data)

    def tokenizer_data(self) -> TokenizerData:
        """Vocabulary, merges, control tokens and chat template, decoded now (0.15 s for 150 000 tokens)."""
        return _Metadata(self._file).tokenizer_data()

    def close(self) -> None:
        """Lets go of the file."""
        self._file.close()

    def _find(self, name: str) -> GgufTensor:
        tensor = self._tensors.get(name)
        if tensor is None:
            raise ModelFormatError(f"{self.path.name} has no tensor {name!r}. Fetch the model again.")
        return tensor


def _named_weights(file: GgufFile) -> dict[str, GgufTensor]:
    """The file's tensors by Hugging Face's names, Llama 3's rope factors left out: they belong to the spec."""
    weights = {}
    for name, tensor in file.tensors.items():
        if len(tensor.shape) == 1 and tensor.kind not in ("f32", "f16", "bf16"):
            raise UnsupportedModelError(
                f"{file.path.name} stores the vector {name!r} as {tensor.kind}, but this engine takes f32, f16 and"
                " bf16. Take another variant of the model."
            )
        if name != _ROPE_FACTORS:
            weights[_hugging_face_name(name)] = tensor
    return weights


def _hugging_face_name(name: str) -> str:
    layer = _LAYER_NAME.fullmatch(name)
    if layer and layer[2] in _LAYER_NAMES:
        return f"model.layers.{layer[1]}.{_LAYER_NAMES[layer[2]]}.{layer[3]}"
    # An unknown name must not pass for a Hugging Face one; check_weights refuses it under this name.
    return _TOP_NAMES.get(name, f"{name} (GGUF)")


def _split_halves(data: NDArray[np.uint8], num_heads: int, num_rows: int) -> NDArray[np.uint8]:
    """Reorders the rows of all heads from pairs to halves: row 2 i + a of a head becomes row a * head_dim / 2 + i."""
    pairs = data.reshape(num_heads, num_rows // num_heads // 2, 2, -1)
    return np.ascontiguousarray(pairs.swapaxes(1, 2))


class _Metadata:
    """The metadata of a model, read as numbers and strings of known ranges."""

    def __init__(self, file: GgufFile) -> None:
        self._file = file
        self._name = file.path.name
        self._architecture = file.string("general.architecture") or ""
        if self._architecture not in ARCHITECTURES:
            raise UnsupportedModelError(
                f"{self._name} is of the architecture {self._architecture!r},"
                f" but this engine runs {', '.join(ARCHITECTURES)}. Take a model of one of these families."
            )

    def spec(self) -> ModelSpec:
        """The shape of the model. Ranges are checked by check_spec."""
        self._refuse_variants()
        tensors = self._file.tensors
        embedding = tensors.get("token_embd.weight")
        if embedding is None or len(embedding.shape) != 2:
            raise ModelFormatError(f"{self._name} lacks the matrix 'token_embd.weight'. Fetch the model again.")
        hidden_size = self._integer("embedding_length")
        num_q_heads = self._integer("attention.head_count")
        head_dim = self._integer("attention.key_length", hidden_size // num_q_heads)
        for key in ("attention.value_length", "rope.dimension_count"):
            if self._integer(key, head_dim) != head_dim:
                raise UnsupportedModelError(
                    f"{self._name} states {key} = {self._integer(key)}, but this engine needs it to be the head size,"
                    f" {head_dim}. Take another model."
                )
        return ModelSpec(
            architecture=self._architecture,
            num_layers=self._integer("block_count"),
            hidden_size=hidden_size,
            intermediate_size=self._integer("feed_forward_length"),
            num_q_heads=num_q_heads,
            num_kv_heads=self._integer("attention.head_count_kv", num_q_heads),
            head_dim=head_dim,
            vocab_size=embedding.shape[0],
            max_context=self._integer("context_length"),
            rms_norm_eps=self._number("attention.layer_norm_rms_epsilon"),
            rope_theta=self._number("rope.freq_base", 10_000.0),
            rope_scaling=self._rope_scaling(),
            rope_factors=self._rope_factors(head_dim),
            qkv_bias="blk.0.attn_q.bias" in tensors,
            qk_norm="blk.0.attn_q_norm.weight" in tensors,
            tied_head="output.weight" not in tensors,
        )

    def tokenizer_data(self) -> TokenizerData:
        """The vocabulary; ids are checked against it."""
        file = self._file
        tokens = file.strings("tokenizer.ggml.tokens")
        token_types = file.integers("tokenizer.ggml.token_type")
        embedding_rows = file.tensors["token_embd.weight"].shape[0]
        if not 1 <= len(tokens) <= embedding_rows or len(token_types) not in (0, len(tokens)):
            raise ModelFormatError(
                f"{self._name} has {len(tokens)} tokens and {len(token_types)} token types for {embedding_rows} rows of"
                " the embedding. Fetch the model again."
            )
        bos = self._token_id("bos", len(tokens))
        ends = (self._token_id(name, len(tokens)) for name in ("eos", "eot", "eom"))
        eos_token_ids = tuple(dict.fromkeys(end for end in ends if end is not None))
        return TokenizerData(
            tokens=tokens,
            merges=file.strings("tokenizer.ggml.merges"),
            token_types=token_types,
            pre_tokenizer=file.string("tokenizer.ggml.pre") or "",
            bos_token_id=bos,
            eos_token_ids=eos_token_ids,
            add_bos_token=file.metadata.get("tokenizer.ggml.add_bos_token") is True,
            chat_template=file.string("tokenizer.chat_template"),
            bos_token="" if bos is None else tokens[bos],
            eos_token=tokens[eos_token_ids[0]] if eos_token_ids else "",
        )

    def _refuse_variants(self) -> None:
        """Refuses what is sound but would be computed wrongly: splits, experts, sliding windows, other tokenizers."""
        tokenizer = self._file.string("tokenizer.ggml.model") or "none"
        num_files = self._file.metadata.get("split.count", 0)
        reasons = (
            (num_files not in (0, 1), "is one part of a model in several files. Join them into one"),
            (self._integer("expert_count", 0) > 0, "is a mixture of experts. Take a dense model"),
            (self._integer("attention.sliding_window", 0) > 0, "attends in a sliding window. Take another model"),
            (tokenizer != "gpt2", f"has a tokenizer of the kind {tokenizer!r} instead of 'gpt2'. Take another model"),
        )
        for found, reason in reasons:
            if found:
                raise UnsupportedModelError(f"This engine does not run {self._name}: it {reason}.")

    def _rope_scaling(self) -> RopeScaling | None:
        prefix = f"{self._architecture}.rope.scaling."
        kind = self._file.string(prefix + "type") or "none"
        if kind == "none":
            return None
        if kind != "linear":
            raise UnsupportedModelError(
                f"{self._name} scales its context by {kind!r}, but this engine knows 'linear' and Llama 3's factors."
                " Take the model without the extension of its context."
            )
        return RopeScaling("linear", self._number("rope.scaling.factor"))

    def _rope_factors(self, head_dim: int) -> tuple[float, ...]:
        """Llama 3's scaling, which GGUF files store as one divisor per frequency."""
        tensor = self._file.tensors.get(_ROPE_FACTORS)
        if tensor is None:
            return ()
        if tensor.kind != "f32" or tensor.shape != (head_dim // 2,):
            raise ModelFormatError(
                f"{self._name} has {_ROPE_FACTORS!r} as {tensor.kind} {tensor.shape}, but it must be f32"
                f" ({head_dim // 2},). Fetch the model again."
            )
        return tuple(self._file.tensor_bytes(tensor).view("<f4").tolist())

    def _integer(self, key: str, default: int | None = None) -> int:
        full_key = f"{self._architecture}.{key}"
        value = self._file.metadata.get(full_key, default)
        # Above 2^40 nothing of a model is sound, and what is computed from it would not be either.
        if type(value) is not int or not 0 <= value < 1 << 40 or (value == 0 and default is None):
            self._wrong(full_key, value, "a whole number above 0")
        return value

    def _number(self, key: str, default: float | None = None) -> float:
        full_key = f"{self._architecture}.{key}"
        value = self._file.metadata.get(full_key, default)
        if type(value) not in (int, float):
            self._wrong(full_key, value, "a number")
        return float(value)  # type: ignore[arg-type]

    def _token_id(self, name: str, num_tokens: int) -> int | None:
        key = f"tokenizer.ggml.{name}_token_id"
        value = self._file.metadata.get(key)
        if value is None:
            return None
        if type(value) is not int or not 0 <= value < min(num_tokens, MAX_VOCABULARY):
            self._wrong(key, value, f"a token id below {num_tokens}")
        return value

    def _wrong(self, key: str, value: object, limit: str) -> NoReturn:
        stated = {GgufString: "a text", GgufArray: "an array"}.get(type(value), value)
        raise ModelFormatError(f"{self._name} states {key} = {stated}, but it must be {limit}. Fetch the model again.")
