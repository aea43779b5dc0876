"""Texts to token ids: the tokenizers library normalizes and cuts, BytePairs merges the words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import tokenizers

from inference.errors import ModelFormatError
from inference.text.byte_alphabet import characters_by_byte
from inference.text.byte_pairs import BytePairs

_PREFIX = "##"


def byte_model() -> dict[str, Any]:
    """The library's model, as in a tokenizer.json, that gives every byte back: `byte` where a word begins, else 256 +
    byte.

    So the ids alone tell the words, and the library's fast path, which computes no offsets, is enough.
    """
    characters = characters_by_byte()
    vocab = {character: byte for byte, character in enumerate(characters)}
    vocab.update({_PREFIX + character: 256 + byte for byte, character in enumerate(characters)})
    return {"type": "BPE", "vocab": vocab, "merges": [], "continuing_subword_prefix": _PREFIX}


class TextEncoder:
    """Encodes text in which there are no control tokens. Thread-safe; releases the interpreter's lock while it cuts
    words.

    Args:
        pipeline: `normalizer` and `pre_tokenizer` as in a tokenizer.json.
        added_tokens: entries of a tokenizer.json for tokens that are found in text as a whole.

    Raises:
        ModelFormatError: the library does not know the pipeline.
    """

    def __init__(self, pipeline: dict[str, Any], added_tokens: Sequence[dict[str, Any]], pairs: BytePairs) -> None:
        self._pairs = pairs
        self._added_ids = [int(entry["id"]) for entry in added_tokens]
        added = [{**entry, "id": 512 + index} for index, entry in enumerate(added_tokens)]
        try:
            self._cutter = tokenizers.Tokenizer.from_str(
                json.dumps({"version": "1.0", **pipeline, "added_tokens": added, "model": byte_model()})
            )
        except Exception as error:  # the library raises nothing narrower
            raise ModelFormatError(
                f"The vocabulary's rules of cutting text cannot be used: {str(error)[:200]}. Fetch the model again."
            ) from error

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text."""
        encodings = self._cutter.encode_batch_fast(list(texts), add_special_tokens=False)
        return [self._merge(np.array(encoding.ids, dtype=np.int64)) for encoding in encodings]

    def _merge(self, codes: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[int]:
        data = (codes & 0xFF).astype(np.uint8).tobytes()
        begins = np.flatnonzero((codes < 256) | (codes >= 512)).tolist()
        added = codes[begins].tolist()
        encode = self._pairs.encode
        token_ids: list[int] = []
        for begin, end, code in zip(begins, [*begins[1:], len(data)], added, strict=True):
            if code >= 512:
                token_ids.append(self._added_ids[code - 512])
            else:
                token_ids += encode(data[begin:end])
        return token_ids
