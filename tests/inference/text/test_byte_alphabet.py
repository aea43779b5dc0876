"""The alphabet against the library's."""

from __future__ import annotations

import pytest
from tokenizers import decoders, pre_tokenizers
from transformers.convert_slow_tokenizer import bytes_to_unicode

from inference.text.byte_alphabet import characters_by_byte, to_bytes


def test_equals_the_libraries() -> None:
    assert set(characters_by_byte()) == set(pre_tokenizers.ByteLevel.alphabet())
    assert dict(enumerate(characters_by_byte())) == bytes_to_unicode()


def test_every_byte_comes_back() -> None:
    assert to_bytes("".join(characters_by_byte())) == bytes(range(256))


@pytest.mark.parametrize("token", ["Ġhello", "<tool_call>", "你好", "Ġ你", "", "\u0143\u0144", " "])
def test_literal_tokens_are_utf_8(token: str) -> None:
    assert to_bytes(token).decode("utf-8", "replace") == decoders.ByteLevel().decode([token])
