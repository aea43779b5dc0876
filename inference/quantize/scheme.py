"""Schemes: which format each matrix of a model gets.

    scheme  attention  MLP     embedding             head (its own)
    w4      4 bits     4       8 where tied, else 4  8
    w4-all  4          4       4                     4
    mixed   4          3       4                     3
    w3      3          3       4                     3
    auto    3 or 4     3 or 4  4                     3 or 4

A tied embedding is the head too. Every token is chosen from the head's logits, and a row of it is used alone: w4 spends
8 bits there and is the scheme for quality, w4-all is the smallest one of 4 bits. An embedding that is no head is only
looked up and may lie in the host's memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from inference.byte_size import size_text
from inference.errors import InvalidRequestError
from inference.formats.checkpoint.layout import EMBEDDING, HEAD, StoredTensor, checkpoint_layout
from inference.models.model_spec import ModelSpec
from kernels.weights.quant_format import GROUP_SIZES, QuantFormat

Scheme = Literal["w4", "w4-all", "mixed", "w3", "auto"]
SCHEMES: tuple[Scheme, ...] = ("w4", "w4-all", "mixed", "w3", "auto")
DEFAULT_GROUP = 128

Role = Literal["attention", "mlp", "embedding", "tied", "head"]

_FIRST_LAYERS, _LAST_LAYERS, _EDGE_INFLUENCE = 3, 2, 4.0

_BITS: dict[str, dict[Role, int]] = {
    "w4": {"attention": 4, "mlp": 4, "embedding": 4, "tied": 8, "head": 8},
    "w4-all": {"attention": 4, "mlp": 4, "embedding": 4, "tied": 4, "head": 4},
    "mixed": {"attention": 4, "mlp": 3, "embedding": 4, "tied": 4, "head": 3},
    "w3": {"attention": 3, "mlp": 3, "embedding": 4, "tied": 4, "head": 3},
}


def matrices(spec: ModelSpec) -> tuple[StoredTensor, ...]:
    """Every matrix of a checkpoint, in the order of its files."""
    return tuple(tensor for file in checkpoint_layout(spec) for tensor in file.tensors if tensor.is_matrix)


def role_of(name: str, spec: ModelSpec) -> Role:
    """What a stored matrix is for."""
    if name == EMBEDDING:
        return "tied" if spec.tied_head else "embedding"
    if name == HEAD:
        return "head"
    return "attention" if ".self_attn." in name else "mlp"


def check_scheme(scheme: str, group_size: int) -> None:
    """Raises InvalidRequestError for a scheme or a group size that there is not."""
    if scheme not in SCHEMES:
        raise InvalidRequestError(f"There is no scheme {scheme!r}; there are {', '.join(SCHEMES)}.")
    if group_size not in GROUP_SIZES:
        raise InvalidRequestError(f"The group is {group_size} weights, but it must be one of {GROUP_SIZES}.")


def scheme_formats(spec: ModelSpec, scheme: str, group_size: int = DEFAULT_GROUP) -> dict[str, QuantFormat]:
    """The format of every matrix, by stored name, for every scheme but auto."""
    bits = _BITS[scheme]
    return {
        tensor.name: _format(bits[role_of(tensor.name, spec)], group_size) for tensor in matrices(spec)
    }  # fmt: skip


def _format(bits: int, group_size: int) -> QuantFormat:
    # Of 8 bits smaller groups would buy nothing.
    return QuantFormat(bits, DEFAULT_GROUP if bits == 8 else group_size)


@dataclass(frozen=True, slots=True)
class Choice:
    """A matrix that may have either format, and what each costs.

    Attributes:
        low_error, high_error: squared error of the rounded weights as a share of the weights' own squares.
        influence: what an error counts here, see `influence_of`.
    """

    tensor: StoredTensor
    low: QuantFormat
    high: QuantFormat
    low_error: float
    high_error: float
    influence: float = 1.0

    @property
    def extra_bytes(self) -> int:
        """What the better format takes more."""
        rows, columns = self.tensor.rows, self.tensor.columns
        return self.high.nbytes(rows, columns) - self.low.nbytes(rows, columns)

    @property
    def gain(self) -> float:
        """Error saved by each extra byte."""
        return self.influence * (self.low_error - self.high_error) / max(1, self.extra_bytes)


def influence_of(name: str, spec: ModelSpec) -> float:
    """What an error in a matrix counts beside the same error in one of a middle layer.

    The head's goes into the logits as it is, while a layer's is one of many terms of a sum; errors of the first layers
    pass through all others, and those of the last are not evened out any more.
    """
    if name == HEAD:
        return 2.0 * spec.num_layers
    layer = int(name.split(".")[2])
    return _EDGE_INFLUENCE if layer < _FIRST_LAYERS or layer >= spec.num_layers - _LAST_LAYERS else 1.0


def open_choices(spec: ModelSpec, group_size: int) -> dict[str, tuple[QuantFormat, QuantFormat]]:
    """The two formats between which auto chooses, for every matrix; equal where there is no choice."""
    low, high = QuantFormat(3, group_size), QuantFormat(4, group_size)
    return {
        tensor.name: (high, high) if role_of(tensor.name, spec) in ("embedding", "tied") else (low, high)
        for tensor in matrices(spec)
    }


def check_fits(low_bytes: int, budget_bytes: int) -> None:
    """Raises InvalidRequestError where not even the low formats fit; says what is missing."""
    if low_bytes > budget_bytes:
        raise InvalidRequestError(
            f"With 3 bits the weights take {size_text(low_bytes)}, but {size_text(max(0, budget_bytes))} are left for"
            f" them. Give {math.ceil((low_bytes - budget_bytes) / 2**20)} MB more with --fit, or a smaller --context,"
            " or take a smaller model."
        )


def choose_best(choices: Iterable[Choice], budget_bytes: int) -> dict[str, QuantFormat]:
    """The better format for as many matrices as fit, those first whose error sinks most for each byte.

    Args:
        budget_bytes: for all matrices of `choices`.

    Raises:
        InvalidRequestError: not even the low formats fit; says what they take.
    """
    choices = tuple(choices)
    chosen = {choice.tensor.name: choice.low for choice in choices}
    used = sum(choice.low.nbytes(choice.tensor.rows, choice.tensor.columns) for choice in choices)
    check_fits(used, budget_bytes)
    # The name decides between equals, so that the choice is the same on every run.
    for choice in sorted(choices, key=lambda choice: (-choice.gain, choice.tensor.name)):
        if choice.gain > 0 and used + choice.extra_bytes <= budget_bytes:
            chosen[choice.tensor.name] = choice.high
            used += choice.extra_bytes
    return chosen
