"""A model's config.json, as transformers 4 and 5 write it, as a ModelSpec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from inference.errors import ModelFormatError, UnsupportedModelError
from inference.models.model_spec import ModelSpec, RopeScaling

CLASSES = {"Qwen2ForCausalLM": "qwen2", "LlamaForCausalLM": "llama", "Qwen3ForCausalLM": "qwen3"}
"""Values of `architectures` that this engine runs."""


def read_spec(config: Mapping[str, Any], file_name: str) -> ModelSpec:
    """The shape of a model.

    Raises:
        ModelFormatError: a number is missing or of another type. (Ranges: weight_shapes.check_spec.)
        UnsupportedModelError: another architecture, or a variant that the decoder would compute wrongly.
    """
    return _Config(config, file_name).spec()


def config_of(spec: ModelSpec) -> dict[str, Any]:
    """A config.json from which `read_spec` makes this spec again.

    Per-frequency factors of a GGUF have no place in it; whoever needs them has the spec itself.
    """
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": spec.rope_theta}
    if spec.rope_scaling is not None:
        scaling = spec.rope_scaling
        rope |= {"rope_type": scaling.kind, "factor": scaling.factor}
        if scaling.kind == "llama3":
            rope |= {
                "low_freq_factor": scaling.low_freq_factor,
                "high_freq_factor": scaling.high_freq_factor,
                "original_max_position_embeddings": scaling.original_context,
            }
    return {
        "architectures": [next(name for name, kind in CLASSES.items() if kind == spec.architecture)],
        "model_type": spec.architecture,
        "num_hidden_layers": spec.num_layers,
        "hidden_size": spec.hidden_size,
        "intermediate_size": spec.intermediate_size,
        "num_attention_heads": spec.num_q_heads,
        "num_key_value_heads": spec.num_kv_heads,
        "head_dim": spec.head_dim,
        "vocab_size": spec.vocab_size,
        "max_position_embeddings": spec.max_context,
        "rms_norm_eps": spec.rms_norm_eps,
        "rope_parameters": rope,
        "hidden_act": "silu",
        "attention_bias": spec.qkv_bias,
        "tie_word_embeddings": spec.tied_head,
    }


class _Config:
    def __init__(self, config: Mapping[str, Any], file_name: str) -> None:
        self._config = config
        self._name = file_name

    def spec(self) -> ModelSpec:
        architecture = self._architecture()
        hidden_size = self._integer("hidden_size")
        num_q_heads = self._integer("num_attention_heads")
        rope = self._rope_parameters()
        self._refuse_variants(rope)
        return ModelSpec(
            architecture=architecture,
            num_layers=self._integer("num_hidden_layers"),
            hidden_size=hidden_size,
            intermediate_size=self._integer("intermediate_size"),
            num_q_heads=num_q_heads,
            num_kv_heads=self._integer("num_key_value_heads", num_q_heads),
            head_dim=self._integer("head_dim", 128 if architecture == "qwen3" else hidden_size // num_q_heads),
            vocab_size=self._integer("vocab_size"),
            max_context=self._integer("max_position_embeddings"),
            rms_norm_eps=self._number(self._config, "rms_norm_eps", 1e-6),
            rope_theta=self._number(rope, "rope_theta", 10_000.0),
            rope_scaling=self._rope_scaling(rope),
            qkv_bias=architecture == "qwen2" or self._config.get("attention_bias") is True,
            qk_norm=architecture == "qwen3",
            tied_head=self._config.get("tie_word_embeddings") is True,
        )

    def _architecture(self) -> str:
        classes = self._config.get("architectures") or [""]
        for name in classes if isinstance(classes, list) else [classes]:
            if name in CLASSES:
                return CLASSES[name]
        raise UnsupportedModelError(
            f"{self._name} states the architecture {str(classes)[:80]}, but this engine runs {', '.join(CLASSES)}."
            " Take a model of one of these families."
        )

    def _rope_parameters(self) -> dict[str, Any]:
        """rope_parameters of transformers 5, or rope_theta and rope_scaling of transformers 4 in the same form."""
        parameters = self._config.get("rope_parameters")
        if parameters is None:
            parameters = dict(self._object("rope_scaling"))
            parameters.setdefault("rope_theta", self._config.get("rope_theta", 10_000.0))
            return parameters
        merged = dict(self._object("rope_parameters"))
        merged.setdefault("rope_theta", self._config.get("rope_theta", 10_000.0))
        return merged

    def _rope_scaling(self, rope: Mapping[str, Any]) -> RopeScaling | None:
        kind = rope.get("rope_type", rope.get("type", "default"))
        if kind == "default":
            return None
        if kind == "linear":
            return RopeScaling("linear", self._number(rope, "factor"))
        if kind == "llama3":
            original = rope.get("original_max_position_embeddings")
            if type(original) is not int:
                self._wrong("original_max_position_embeddings", original, "a whole number")
            return RopeScaling(
                "llama3",
                factor=self._number(rope, "factor"),
                low_freq_factor=self._number(rope, "low_freq_factor"),
                high_freq_factor=self._number(rope, "high_freq_factor"),
                original_context=original,
            )
        raise UnsupportedModelError(
            f"{self._name} scales its context by {str(kind)[:40]!r}, but this engine knows 'llama3' and 'linear'."
            " Remove the scaling from the file to run the model within its original context."
        )

    def _refuse_variants(self, rope: Mapping[str, Any]) -> None:
        config = self._config
        layer_types = config.get("layer_types") or []
        sliding = config.get("use_sliding_window") is True or "sliding_attention" in layer_types
        reasons = (
            (config.get("quantization_config") is not None, "is quantized its own way; take the original weights"),
            (sliding, "attends in a sliding window; take another model"),
            (config.get("hidden_act", "silu") != "silu", "has another activation than silu; take another model"),
            (config.get("mlp_bias") is True, "has biases in its MLP; take another model"),
            (config.get("rope_interleaved") is True, "rotates interleaved pairs; take another model"),
            (
                any(where.get("partial_rotary_factor", 1.0) != 1.0 for where in (config, rope)),
                "rotates a part of each head only; take another model",
            ),
        )
        for found, reason in reasons:
            if found:
                raise UnsupportedModelError(f"This engine does not run the model of {self._name}: it {reason}.")

    def _object(self, key: str) -> Mapping[str, Any]:
        value = self._config.get(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            self._wrong(key, value, "an object")
        return value

    def _integer(self, key: str, default: int | None = None) -> int:
        value = self._config.get(key)
        if value is None:
            value = default
        if type(value) is not int or not 0 < value < 1 << 40:
            self._wrong(key, value, "a whole number above 0")
        return value

    def _number(self, where: Mapping[str, Any], key: str, default: float | None = None) -> float:
        value = where.get(key)
        if value is None:
            value = default
        if type(value) not in (int, float) or abs(value) > 1e30:  # type: ignore[arg-type]
            self._wrong(key, value, "a number")
        return float(value)  # type: ignore[arg-type]

    def _wrong(self, key: str, value: object, limit: str) -> NoReturn:
        raise ModelFormatError(
            f"{self._name} states {key} = {str(value)[:40]}, but it must be {limit}. Fetch the model again."
        )
