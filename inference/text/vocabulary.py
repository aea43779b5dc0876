"""A vocabulary ready for use: token texts, control tokens, and an encoder without these."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from inference.errors import ModelFormatError, UnsupportedModelError
from inference.text.byte_pairs import BytePairs
from inference.text.control_tokens import ControlToken, ControlTokens, looks_like_control
from inference.text.splitting_rule import splitting_rule
from inference.text.text_encoder import TextEncoder
from inference.text.tokenizer_data import TokenizerData

_CONTROL, _USER_DEFINED, _UNUSED = 3, 4, 5


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What the tokenizer works with.

    Control tokens are those that the file marks: type 3 in GGUF, `special` in tokenizer.json, and in both also added
    tokens of the shape `<|...|>`, because GGUF writers mark these as control whatever tokenizer.json says (Qwen's
    `<|fim_prefix|>`). Other added tokens (Qwen's `<tool_call>`, `<think>`) are ordinary text with an id of its own, as
    in Hugging Face.

    Attributes:
        encoder: knows every token but the control tokens, so no text that it encodes can become one.
        texts: by id; in the byte alphabet, or literal where `literal_ids` holds the id; "" for ids without a token.
        literal_ids: added tokens, whose text is not in the byte alphabet.
    """

    encoder: TextEncoder
    texts: tuple[str, ...]
    literal_ids: frozenset[int]
    control: ControlTokens
    control_ids: frozenset[int]


def read_vocabulary(data: TokenizerData) -> Vocabulary:
    """Builds the vocabulary from either form of the data.

    Raises:
        ModelFormatError: the data contradicts itself.
        UnsupportedModelError: not a byte-level BPE vocabulary, or an unknown splitting rule.
    """
    return _from_json(data.tokenizer_json) if data.tokenizer_json is not None else _from_pieces(data)


def _from_pieces(data: TokenizerData) -> Vocabulary:
    rule = splitting_rule(data.pre_tokenizer)
    types = data.token_types or (1,) * len(data.tokens)
    if not data.tokens or len(types) != len(data.tokens):
        raise ModelFormatError(
            f"The vocabulary has {len(data.tokens)} tokens and {len(data.token_types)} token types, but needs as"
            " many of the one as of the other. Fetch the model again."
        )
    control: list[ControlToken] = []
    added: list[dict[str, Any]] = []
    vocab: dict[str, int] = {}
    texts = list(data.tokens)
    for token_id, (text, kind) in enumerate(zip(data.tokens, types, strict=True)):
        control_shape = looks_like_control(text) and (kind == _USER_DEFINED or not data.token_types)
        if kind == _CONTROL or control_shape:
            control.append(ControlToken(token_id, text))
        elif kind == _UNUSED or not text:
            texts[token_id] = ""
        else:
            vocab[text] = token_id
            if kind == _USER_DEFINED:
                added.append(_added_token(token_id, text))
    pairs = BytePairs(vocab, map(_pair, data.merges), rule.whole_words)
    return _vocabulary(TextEncoder(rule.pipeline(), added, pairs), texts, added, control)


def _added_token(token_id: int, text: str) -> dict[str, Any]:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    return {"id": token_id, "content": text, **flags}


def _pair(merge: str | Sequence[str]) -> tuple[str, str]:
    left, right = merge.partition(" ")[::2] if isinstance(merge, str) else merge
    return left, right


def _from_json(source: str) -> Vocabulary:
    try:
        tree: dict[str, Any] = json.loads(source)
        model: dict[str, Any] = tree["model"]
        _refuse_other_models(tree, model)
        vocab: dict[str, int] = model["vocab"]
        control: list[ControlToken] = []
        added: list[dict[str, Any]] = []
        for entry in tree.get("added_tokens") or ():
            token_id, text = int(entry["id"]), str(entry["content"])
            if entry.get("special") or looks_like_control(text):
                control.append(ControlToken(token_id, text, bool(entry.get("lstrip")), bool(entry.get("rstrip"))))
                vocab.pop(text, None)
            elif text:
                added.append({**_added_token(token_id, text), **entry, "id": token_id, "special": False})
        by_id = {token_id: text for text, token_id in vocab.items()}
        by_id.update({entry["id"]: entry["content"] for entry in added})
        by_id.update({token.token_id: token.text for token in control})
        size = 1 + max(by_id)
        if min(by_id) < 0 or size > 4 * len(by_id) + 1024:
            raise ValueError(f"{len(by_id)} tokens have ids from {min(by_id)} to {size - 1}")
        texts = [by_id.get(token_id, "") for token_id in range(size)]
        pairs = BytePairs(vocab, map(_pair, model["merges"]), bool(model.get("ignore_merges")))
        pipeline = {name: tree.get(name) for name in ("normalizer", "pre_tokenizer")}
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise ModelFormatError(
            f"tokenizer.json is not in Hugging Face's format ({type(error).__name__}: {str(error)[:200]})."
            " Fetch the model again."
        ) from error
    return _vocabulary(TextEncoder(pipeline, added, pairs), texts, added, control)


def _refuse_other_models(tree: dict[str, Any], model: dict[str, Any]) -> None:
    """Byte-level BPE without extras is what all supported families use; anything else would get wrong ids silently."""
    extras = ("byte_fallback", "continuing_subword_prefix", "dropout", "end_of_word_suffix")
    found = [name for name in extras if model.get(name)]
    if model.get("type", "BPE") != "BPE" or found or '"ByteLevel"' not in json.dumps(tree.get("pre_tokenizer")):
        raise UnsupportedModelError(
            f"tokenizer.json holds a vocabulary of type {model.get('type')!r} with {found or 'no byte-level rule'},"
            " but this engine runs plain byte-level BPE vocabularies. Use another model."
        )


def _vocabulary(
    encoder: TextEncoder, texts: Sequence[str], added: Sequence[dict[str, Any]], control: Sequence[ControlToken]
) -> Vocabulary:
    return Vocabulary(
        encoder=encoder,
        texts=tuple(texts),
        literal_ids=frozenset(entry["id"] for entry in added),
        control=ControlTokens(control),
        control_ids=frozenset(token.token_id for token in control),
    )
