"""A vocabulary ready for use: token texts, control tokens and the library's encoder without the control tokens."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import tokenizers
from tokenizers import AddedToken, decoders, models

from inference.errors import ModelFormatError, UnsupportedModelError
from inference.text.control_tokens import ControlToken, ControlTokens, looks_like_control
from inference.text.splitting_rule import splitting_rule
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

    encoder: tokenizers.Tokenizer
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
            f"The vocabulary has {len(data.tokens)} tokens and {len(data.token_types)} token types, but needs"
            " as many of the one as of the other. Fetch the model again."
        )
    control: list[ControlToken] = []
    added: dict[str, int] = {}
    vocab: dict[str, int] = {}
    texts = list(data.tokens)
    for token_id, (text, kind) in enumerate(zip(data.tokens, types, strict=True)):
        special_shape = looks_like_control(text) and (kind == _USER_DEFINED or not data.token_types)
        if kind == _CONTROL or special_shape:
            control.append(ControlToken(token_id, text))
        elif kind == _UNUSED or not text:
            texts[token_id] = ""
        else:
            vocab[text] = token_id
            if kind == _USER_DEFINED:
                added[text] = token_id
    model = models.BPE(vocab, _merges(data.merges, vocab), ignore_merges=rule.whole_words)
    encoder = tokenizers.Tokenizer(model)
    rule.apply_to(encoder)
    encoder.add_tokens([AddedToken(text, normalized=False) for text in added])
    return _vocabulary(encoder, texts, added, control)


def _merges(merges: tuple[str, ...], vocab: dict[str, int]) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for rank, merge in enumerate(merges):
        left, _, right = merge.partition(" ")
        if left not in vocab or right not in vocab or left + right not in vocab:
            raise ModelFormatError(
                f"Merge {rank} of the vocabulary is {merge[:80]!r}, but its parts and their union must all be tokens"
                " that text may become. Fetch the model again."
            )
        pairs.append((left, right))
    return pairs


def _from_json(source: str) -> Vocabulary:
    try:
        tree: dict[str, Any] = json.loads(source)
        model: dict[str, Any] = tree["model"]
        vocab: dict[str, int] = model["vocab"]
        entries: list[dict[str, Any]] = list(tree.get("added_tokens") or ())
        supported = (
            model.get("type", "BPE") == "BPE"
            and not model.get("byte_fallback")
            and '"ByteLevel"' in json.dumps([tree.get("pre_tokenizer"), tree.get("decoder")])
        )
        control: list[ControlToken] = []
        added: dict[str, int] = {}
        kept: list[dict[str, Any]] = []
        for entry in entries:
            token_id, text = int(entry["id"]), str(entry["content"])
            if entry.get("special") or looks_like_control(text):
                control.append(ControlToken(token_id, text, bool(entry.get("lstrip")), bool(entry.get("rstrip"))))
                vocab.pop(text, None)
            else:
                added[text] = token_id
                # The library numbers an added token anew unless the model knows it.
                vocab[text] = token_id
                kept.append(entry)
        size = 1 + max((*vocab.values(), *(token.token_id for token in control)))
        if not (0 <= min(vocab.values()) and size <= 4 * (len(vocab) + len(control))):
            raise ValueError(f"token ids reach {size}")
        texts = [""] * size
        for text, token_id in vocab.items():
            texts[token_id] = text
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise ModelFormatError(
            f"tokenizer.json is not in Hugging Face's format ({type(error).__name__}: {str(error)[:200]})."
            " Fetch the model again."
        ) from error
    if not supported:
        raise UnsupportedModelError(
            f"tokenizer.json holds a {model.get('type')!r} vocabulary, but this engine runs byte-level BPE"
            " vocabularies. Use another model."
        )
    tree.update(added_tokens=kept, post_processor=None, truncation=None, padding=None)
    try:
        encoder = tokenizers.Tokenizer.from_str(json.dumps(tree))
    except Exception as error:  # the library raises nothing narrower
        raise ModelFormatError(f"tokenizer.json cannot be used: {str(error)[:200]}. Fetch the model again.") from error
    return _vocabulary(encoder, texts, added, control)


def _vocabulary(
    encoder: tokenizers.Tokenizer, texts: list[str], added: dict[str, int], control: list[ControlToken]
) -> Vocabulary:
    encoder.decoder = decoders.ByteLevel()
    for token in control:
        texts[token.token_id] = token.text
    return Vocabulary(
        encoder=encoder,
        texts=tuple(texts),
        literal_ids=frozenset(added.values()),
        control=ControlTokens(control),
        control_ids=frozenset(token.token_id for token in control),
    )
