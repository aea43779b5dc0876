"""Random weights of published shapes."""

from __future__ import annotations

import numpy as np
import pytest

from inference.errors import ModelNotFoundError
from inference.formats.random_model import SHAPES, RandomModel
from inference.text.tokenizer import Tokenizer
from kernels.weights.quant_format import QuantFormat, unpack


def test_weights_are_of_the_scheme_and_of_sound_size() -> None:
    source = RandomModel("random:qwen2.5-0.5b:mixed")
    for name, kind in (
        ("model.layers.3.self_attn.k_proj.weight", "w4g128"),
        ("model.layers.3.mlp.down_proj.weight", "w3g128"),
        ("model.embed_tokens.weight", "w4g128"),
    ):
        tensor = source.tensor(name)
        assert tensor.kind == kind
        rows = min(64, tensor.shape[0])
        of_format = QuantFormat.parse(kind)
        data = tensor.data.reshape(-1)[: of_format.nbytes(rows, tensor.shape[1])]
        weights = unpack(of_format, data, rows, tensor.shape[1]).dequantize()
        assert tensor.data.size == of_format.nbytes(*tensor.shape)
        assert weights.std() * np.sqrt(tensor.shape[1]) == pytest.approx(1.0, rel=0.1)


def test_equal_names_give_equal_weights_and_other_tensors_other_ones() -> None:
    name = "model.layers.0.self_attn.q_proj.weight"
    first, again = (RandomModel("random:smollm2-135m").tensor(name).data for _ in range(2))
    np.testing.assert_array_equal(first, again)
    other = RandomModel("random:smollm2-135m").tensor(name.replace("0", "1")).data
    assert (first != other).mean() > 0.5


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_has_a_vocabulary_without_doubles(shape: str) -> None:
    source = RandomModel(f"random:{shape}:w4")
    data = source.tokenizer_data()
    assert len(set(data.tokens)) == len(data.tokens) == source.spec.vocab_size


def test_its_tokenizer_knows_bytes_and_ends() -> None:
    tokenizer = Tokenizer.from_data(RandomModel("random:smollm2-135m").tokenizer_data())
    ids = tokenizer.encode_text("hé")
    assert b"".join(map(tokenizer.token_bytes, ids)).decode() == "hé"
    assert tokenizer.end_token_ids >= {258}
    assert tokenizer.token_bytes(5000).startswith(b" ")


def test_an_unknown_shape_names_the_near_ones() -> None:
    with pytest.raises(ModelNotFoundError, match=r"qwen2\.5-3b"):
        RandomModel("random:qwen2.5-3B")
    with pytest.raises(ModelNotFoundError, match="mixed"):
        RandomModel("random:qwen2.5-3b:w5")
