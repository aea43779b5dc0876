"""LoRA adapters as PEFT saves them, to be merged into a model's weights: W + scale * B A.

    adapter_config.json            rank, alpha, patterns of both, modules that are replaced as a whole
    adapter_model.safetensors      base_model.model.NAME.lora_A.weight (r, K), NAME.lora_B.weight (N, r);
                                   NAME.lora_embedding_A (r, vocabulary), NAME.lora_embedding_B (hidden, r);
                                   NAME.weight of a replaced module

Whatever cannot be merged exactly is an error: a tensor that was left out would change every answer without a word.
Source: the file format's description in PEFT's documentation, and its names.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from inference.errors import ModelFormatError, ModelNotFoundError, UnsupportedModelError
from inference.formats.huggingface.safetensors_file import SafetensorsFile, SafetensorsTensor
from inference.formats.json_file import read_object
from inference.formats.weight_shapes import Shape, weight_shapes
from inference.models.model_spec import ModelSpec
from kernels.weights.reference import dequantize

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"

_KEY = re.compile(
    r"base_model\.model\.(?P<module>[\w.]+?)\.(?:(?P<part>lora_(?:embedding_)?[AB])(?:\.default)?(?:\.weight)?"
    r"|(?:modules_to_save\.(?:default\.)?)?(?P<whole>weight|bias))"
)
_EMBEDDING, _HEAD = "model.embed_tokens", "lm_head"
_MAX_PATTERN, _MAX_REPEATS = 300, 3
_REPEAT = re.compile(r"\\.|\(\?|([*+?{])", re.DOTALL)
_REPEATED_GROUP = re.compile(r"\)[*+{]")
_MAX_ALPHA = 1e6
# Ways to start A and B that leave the model's own weights as they are.
_PLAIN_STARTS = (True, False, None, "gaussian", "eva", "orthogonal")

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Product:
    """scale * B A, for the rows of W that are asked for.

    Attributes:
        b: (N, r), scaled.
        a: (r, K).
    """

    b: Floats
    a: Floats

    @property
    def shape(self) -> Shape:
        return self.b.shape[0], self.a.shape[1]


@dataclass(slots=True)
class _Pair:
    """The two halves of a module, as they are found."""

    tensors: dict[str, SafetensorsTensor] = field(default_factory=dict)


class LoraAdapter:
    """An adapter, checked against the model that it is for; all of it is read when it is opened (tens of megabytes).

    Attributes:
        name: of its directory.
    """

    def __init__(self, path: Path, spec: ModelSpec) -> None:
        """Opens an adapter.

        Raises:
            ModelNotFoundError: there is none at `path`.
            ModelFormatError: a key that matches nothing, half a pair, a wrong shape, a target without a tensor.
            UnsupportedModelError: a variant that is no plain LoRA.
        """
        self.path, self.name = path, path.resolve().name
        if not (path / CONFIG).is_file():
            raise ModelNotFoundError(f"There is no {CONFIG} in {path}. Give the directory of a PEFT adapter.")
        if not (path / WEIGHTS).is_file():
            raise ModelNotFoundError(
                f"There is no {WEIGHTS} in {path}. A pickle (adapter_model.bin) is not opened, since it can run any"
                " code: save the adapter with safe_serialization=True."
            )
        self._config = read_object(path / CONFIG)
        self._refuse_variants()
        self._shapes = weight_shapes(spec)
        self._products: dict[str, _Product] = {}
        self._replaced: dict[str, Floats] = {}
        file = SafetensorsFile(path / WEIGHTS)
        try:
            self._read(file)
        finally:
            file.close()
        self._check_targets()
        self._check_tied(spec)

    @property
    def changed(self) -> tuple[str, ...]:
        """Names of the model's tensors that it changes."""
        return tuple(sorted({*self._products, *self._replaced}))

    def merged(self, name: str, values: Floats, first_row: int = 0) -> Floats:
        """A tensor, or some rows of it, with the adapter merged in float32.

        Args:
            values: (n, K) or (N,), rows from `first_row` on.
        """
        replaced = self._replaced.get(name)
        if replaced is not None:
            values = replaced[first_row : first_row + len(values)]
        product = self._products.get(name)
        if product is None:
            return values
        # What overflows is found, and named, where all weights are checked.
        with np.errstate(over="ignore", invalid="ignore"):
            merged: Floats = values + product.b[first_row : first_row + len(values)] @ product.a
        return merged

    # Reading

    def _refuse_variants(self) -> None:
        config = self._config
        kind = str(config.get("peft_type", "")).upper()
        reasons = (
            (kind != "LORA", f"is of the type {kind[:40]!r}, not LORA"),
            (config.get("use_dora") is True, "is a DoRA, which scales each row of the merged weight"),
            (config.get("bias", "none") != "none" or config.get("lora_bias") is True, "has trained biases"),
            (bool(config.get("trainable_token_indices")), "trains single tokens"),
            (bool(config.get("layer_replication")), "repeats layers"),
            (bool(config.get("alora_invocation_tokens")), "acts after certain tokens only and cannot be merged"),
            (bool(config.get("target_parameters")), "targets bare parameters"),
            (
                config.get("init_lora_weights", True) not in _PLAIN_STARTS,
                f"started as {str(config.get('init_lora_weights'))[:40]!r}, which changes the model's own weights;"
                " convert it to a plain LoRA when it is saved",
            ),
        )
        for found, reason in reasons:
            if found:
                raise UnsupportedModelError(f"The adapter {self.path} cannot be merged: it {reason}.")

    def _read(self, file: SafetensorsFile) -> None:
        pairs: dict[str, _Pair] = {}
        for key, tensor in file.tensors.items():
            match = _KEY.fullmatch(key)
            name = "" if match is None else f"{match['module']}.{match['whole'] or 'weight'}"
            if match is None or name not in self._shapes:
                self._fail(f"has the tensor {key!r}, which belongs to nothing in this model. Take the adapter's model")
            if match["part"]:
                halves = pairs.setdefault(match["module"], _Pair()).tensors
                if match["part"] in halves:
                    self._fail(f"has {match['part']} of {match['module']!r} twice. Save it again")
                halves[match["part"]] = tensor
            else:
                self._replace(match["module"], name, file, tensor)
        for module, pair in pairs.items():
            self._add_pair(module, pair, file)
        if not self._products and not self._replaced:
            self._fail("holds no tensors. Save it again")

    def _replace(self, module: str, name: str, file: SafetensorsFile, tensor: SafetensorsTensor) -> None:
        saved = self._config.get("modules_to_save")
        names = [each for each in saved if isinstance(each, str)] if isinstance(saved, list) else []
        listed = any(module == each or module.endswith(f".{each}") for each in names)
        # PEFT adds these two by itself where the vocabulary was enlarged.
        if not listed and module not in (_EMBEDDING, _HEAD):
            self._fail(f"has {name!r}, but its modules_to_save do not name it. Save it again")
        if tensor.shape != self._shapes[name]:
            cure = "Take the adapter's own model, with a vocabulary of that size"
            self._fail(f"replaces {name!r} {self._shapes[name]} by {tensor.shape}. {cure}")
        self._replaced[name] = _floats(file, tensor)

    def _add_pair(self, module: str, pair: _Pair, file: SafetensorsFile) -> None:
        name = f"{module}.weight"
        prefix = "lora_embedding_" if module == _EMBEDDING else "lora_"
        if set(pair.tensors) != {prefix + "A", prefix + "B"}:
            self._fail(f"has only {', '.join(sorted(pair.tensors))} of {module!r}. Save it again")
        a, b = (_floats(file, pair.tensors[prefix + half]) for half in "AB")
        rank = self._pattern("rank_pattern", module, self._config.get("r"))
        if type(rank) is not int or rank < 1:
            self._fail(f"states the rank {str(rank)[:40]!r} of {module!r}, but it must be a whole number of 1 or more")
        if a.ndim != 2 or b.ndim != 2 or not a.shape[0] == b.shape[1] == rank:
            self._fail(f"has {module!r} as {a.shape} and {b.shape}, but its rank is {rank}")
        scale = np.float32(self._scale(module, a.shape[0]))
        # An embedding's product is the transposed table.
        product = _Product(a.T * scale, np.ascontiguousarray(b.T)) if module == _EMBEDDING else _Product(b * scale, a)
        if product.shape != self._shapes[name]:
            self._fail(f"changes {name!r} {self._shapes[name]} by a product of shape {product.shape}")
        if not (np.isfinite(a).all() and np.isfinite(b).all()):
            self._fail(f"has values in {module!r} that are not finite. Train or fetch it again")
        self._products[name] = product

    def _scale(self, module: str, rank: int) -> float:
        alpha = self._pattern("alpha_pattern", module, self._config.get("lora_alpha"))
        # Also false of NaN; and of a whole number that no float holds.
        if type(alpha) not in (int, float) or not -_MAX_ALPHA <= alpha <= _MAX_ALPHA:
            self._fail(f"states lora_alpha = {_shown(alpha)!r}, but it must be a number of at most {_MAX_ALPHA:.0f}")
        return float(alpha) / (math.sqrt(rank) if self._config.get("use_rslora") is True else rank)

    def _pattern(self, key: str, module: str, default: Any) -> Any:
        """The value of the first pattern that fits a module: PEFT's are ends of names, or regular expressions."""
        patterns = self._config.get(key) or {}
        if not isinstance(patterns, Mapping):
            self._fail(f"states {key} as no object")
        for pattern, value in patterns.items():
            # A search that goes back and forth without an end would hang here.
            repeats = sum(found[1] is not None for found in _REPEAT.finditer(pattern))
            if len(pattern) > _MAX_PATTERN or repeats > _MAX_REPEATS or _REPEATED_GROUP.search(pattern):
                self._fail(
                    f"has the {key} {pattern[:80]!r}, but a pattern may have {_MAX_PATTERN} characters and"
                    f" {_MAX_REPEATS} repeats, none of a group. List the modules one by one"
                )
            try:
                if re.fullmatch(rf"(?:.*\.)?(?:{pattern})", module):
                    return value
            except re.error as error:
                self._fail(f"has the {key} {pattern[:80]!r}, which is no pattern ({error})")
        return default

    # Checks of the whole

    def _check_targets(self) -> None:
        """Every module that the adapter says it changes must have tensors, or they were lost."""
        targets = self._config.get("target_modules")
        if not isinstance(targets, list):
            return
        modules = [name.removesuffix(".weight") for name in self._products]
        for target in targets:
            if not any(module == target or module.endswith(f".{target}") for module in modules):
                self._fail(f"targets {str(target)[:80]!r}, but has no tensors of it. Save it again")

    def _check_tied(self, spec: ModelSpec) -> None:
        name = f"{_EMBEDDING}.weight"
        if spec.tied_head and name in self._products:
            self._fail("changes the embedding, which is the head too, so that merging would change both")

    def _fail(self, what: str) -> NoReturn:
        raise ModelFormatError(f"The adapter {self.path} {what}.")


def _shown(value: Any) -> str:
    # Python refuses to print a whole number of thousands of digits.
    return "a larger number" if type(value) is int else str(value)[:40]


def _floats(file: SafetensorsFile, tensor: SafetensorsTensor) -> Floats:
    return dequantize(tensor.kind, file.tensor_bytes(tensor).reshape(1, -1), tensor.shape)
