"""Vocabulary and chat template of a model as plain data, however its file stores them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TokenizerData:
    """Either `tokenizer_json` (Hugging Face's tokenizer.json, whole text) or the pieces below it (from a GGUF file).

    Attributes:
        tokens: token strings in GPT-2's byte alphabet, by id.
        merges: "left right" pairs in order of rank.
        token_types: GGUF's types by id: 1 normal, 3 control, 4 user-defined, 5 unused, 6 byte.
        pre_tokenizer: GGUF's name of the splitting rule ("qwen2", "smollm", "llama-bpe", "gpt-2", ...).
        eos_token_ids: every id that ends an answer, as the file states (both of Qwen's are added by the tokenizer).
        chat_template: jinja2 source, None where the file has none.
        bos_token, eos_token: their text, for the template; "" where none.
    """

    tokenizer_json: str | None = None
    tokens: tuple[str, ...] = ()
    merges: tuple[str, ...] = ()
    token_types: tuple[int, ...] = ()
    pre_tokenizer: str = ""
    bos_token_id: int | None = None
    eos_token_ids: tuple[int, ...] = ()
    add_bos_token: bool = False
    chat_template: str | None = None
    bos_token: str = ""
    eos_token: str = ""
