"""Which bits a matrix gets, and how auto spends what there is."""

from __future__ import annotations

import dataclasses

import pytest

from inference.errors import InvalidRequestError
from inference.formats.checkpoint.layout import EMBEDDING, HEAD
from inference.models.model_spec import ModelSpec
from inference.quantize.device_budget import matrix_budget
from inference.quantize.scheme import Choice, choose_best, influence_of, matrices, open_choices, scheme_formats
from kernels.weights.quant_format import QuantFormat

MIB = 2**20
UNTIED = ModelSpec("qwen2", 28, 3584, 18944, 28, 4, 128, 152064, 32768, 1e-6, 1e6, qkv_bias=True)
TIED = ModelSpec("qwen2", 36, 2048, 11008, 16, 2, 128, 151936, 32768, 1e-6, 1e6, qkv_bias=True, tied_head=True)

QKV, OUTPUT = "model.layers.3.self_attn.qkv_proj.weight", "model.layers.3.self_attn.o_proj.weight"
GATE_UP, DOWN = "model.layers.3.mlp.gate_up_proj.weight", "model.layers.3.mlp.down_proj.weight"


@pytest.mark.parametrize(
    ("scheme", "attention", "mlp", "embedding", "head", "tied"),
    [("w4", 4, 4, 4, 8, 8), ("w4-all", 4, 4, 4, 4, 4), ("mixed", 4, 3, 4, 3, 4), ("w3", 3, 3, 4, 3, 4)],
)
def test_bits_of_each_role(scheme: str, attention: int, mlp: int, embedding: int, head: int, tied: int) -> None:
    formats = scheme_formats(UNTIED, scheme, 64)
    assert {formats[QKV].bits, formats[OUTPUT].bits} == {attention}
    assert {formats[GATE_UP].bits, formats[DOWN].bits} == {mlp}
    assert (formats[EMBEDDING].bits, formats[HEAD].bits) == (embedding, head)
    assert formats[GATE_UP].group_size == 64
    assert all(of_format.group_size == (128 if of_format.bits == 8 else 64) for of_format in formats.values())
    formats = scheme_formats(TIED, scheme)
    assert HEAD not in formats
    assert formats[EMBEDDING].bits == tied


@pytest.mark.parametrize(("spec", "scheme", "mib"), [(UNTIED, "mixed", 2732), (TIED, "w4-all", 1517)])
def test_sizes_are_those_of_the_plan(spec: ModelSpec, scheme: str, mib: int) -> None:
    """Bytes on the device of the two models that the engine is made for."""
    formats = scheme_formats(spec, scheme)
    on_device = [t for t in matrices(spec) if spec.tied_head or t.name != EMBEDDING]
    assert sum(formats[t.name].nbytes(t.rows, t.columns) for t in on_device) / MIB == pytest.approx(mib, abs=2)


def choices_of(spec: ModelSpec, low_error: dict[str, float]) -> list[Choice]:
    stored = {tensor.name: tensor for tensor in matrices(spec)}
    return [
        Choice(stored[name], low, high, next((e for part, e in low_error.items() if part in name), 0.03), 0.01)
        for name, (low, high) in open_choices(spec, 128).items()
        if low != high
    ]


def test_those_whose_error_sinks_most_for_each_byte_come_first() -> None:
    choices = choices_of(UNTIED, {"layers.3.mlp.down": 0.9})
    low = sum(choice.low.nbytes(choice.tensor.rows, choice.tensor.columns) for choice in choices)
    chosen = choose_best(choices, low + 60 * MIB)
    assert chosen[DOWN].bits == 4
    assert chosen["model.layers.4.mlp.down_proj.weight"].bits == 3
    # Of equal errors the smaller matrix is the cheaper one.
    assert chosen[OUTPUT].bits == 4
    assert chosen[GATE_UP].bits == 3
    size = sum(chosen[c.tensor.name].nbytes(c.tensor.rows, c.tensor.columns) for c in choices)
    assert low < size <= low + 60 * MIB


def test_the_head_and_the_outer_layers_count_more() -> None:
    stored = {tensor.name: tensor for tensor in matrices(UNTIED)}
    choices = [
        Choice(stored[name], low, high, 0.03, 0.01, influence_of(name, UNTIED))
        for name, (low, high) in open_choices(UNTIED, 128).items()
        if low != high
    ]
    order = [choice.tensor.name for choice in sorted(choices, key=lambda choice: -choice.gain)]
    assert order.index(HEAD) < order.index("model.layers.9.mlp.down_proj.weight")
    for name in ("self_attn.qkv_proj", "mlp.gate_up_proj", "mlp.down_proj"):
        edge = [order.index(f"model.layers.{layer}.{name}.weight") for layer in (0, 2, 26, 27)]
        middle = [order.index(f"model.layers.{layer}.{name}.weight") for layer in (3, 13, 25)]
        assert max(edge) < min(middle)


def test_what_gains_nothing_is_not_bought() -> None:
    choices = choices_of(UNTIED, {"layers.3.mlp.down": 0.01})
    assert choose_best(choices, 10**12)[DOWN] == QuantFormat(3, 128)


def test_too_little_is_said_with_numbers() -> None:
    choices = choices_of(UNTIED, {})
    with pytest.raises(InvalidRequestError, match=r"take 2\.\d\d GB, but 100 MB are left.*smaller --context"):
        choose_best(choices, 100 * MIB)


def test_the_embedding_has_no_choice() -> None:
    for spec in (TIED, UNTIED):
        low, high = open_choices(spec, 32)[EMBEDDING]
        assert low == high == QuantFormat(4, 32)
    assert open_choices(UNTIED, 32)[HEAD] == (QuantFormat(3, 32), QuantFormat(4, 32))


def test_what_lies_beside_the_weights() -> None:
    card = int(3.237 * 2**30)
    assert 2730 * MIB < matrix_budget(UNTIED, card, 8192) < 2790 * MIB
    assert matrix_budget(UNTIED, card, 1) - matrix_budget(UNTIED, card, 8192) == (8192 - 64) * 57_344
    assert matrix_budget(UNTIED, 10, 8192) < 0


def test_auto_is_for_models_that_a_gpu_runs() -> None:
    with pytest.raises(InvalidRequestError, match=r"heads are 48 wide.*Choose w4, w4-all"):
        matrix_budget(dataclasses.replace(UNTIED, head_dim=48), int(3.237 * 2**30), 8192)
