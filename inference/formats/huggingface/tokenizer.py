"""The tokenizer files of a Hugging Face directory, as transformers 4 and 5 write them, as TokenizerData."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inference.errors import ModelFormatError
from inference.formats.json_file import MIB, parse_object, read_optional_object, read_text
from inference.text.tokenizer_data import TokenizerData

MAX_TOKENIZER_BYTES = 96 * MIB
MAX_TEMPLATE_BYTES = 4 * MIB


def read_tokenizer(path: Path, config: Mapping[str, Any], vocab_size: int) -> TokenizerData:
    """The text of tokenizer.json, with what the files beside it say of templates and control tokens.

    Args:
        config: the object in config.json.
        vocab_size: rows of the embedding; ids from there on are ignored.

    Raises:
        ModelFormatError: no tokenizer.json, or a file that is no sound JSON.
    """
    tokenizer_path = path / "tokenizer.json"
    if not tokenizer_path.exists():
        raise ModelFormatError(
            f"{path} has no tokenizer.json. Fetch it, or write it with AutoTokenizer.from_pretrained(...) and its"
            " save_pretrained."
        )
    settings = read_optional_object(path / "tokenizer_config.json")
    generation = read_optional_object(path / "generation_config.json")
    text = read_text(tokenizer_path, MAX_TOKENIZER_BYTES)
    token_ids = _added_tokens(parse_object(text, str(tokenizer_path)))
    bos_token, eos_token = (_token_text(settings.get(key)) for key in ("bos_token", "eos_token"))
    bos_ids = [token_ids[bos_token]] if bos_token in token_ids else _ids(config.get("bos_token_id"))
    eos_ids = [*_ids(generation.get("eos_token_id")), *_ids(config.get("eos_token_id"))]
    if eos_token in token_ids:
        eos_ids.append(token_ids[eos_token])
    return TokenizerData(
        tokenizer_json=text,
        bos_token_id=next((token_id for token_id in bos_ids if token_id < vocab_size), None),
        eos_token_ids=tuple(dict.fromkeys(token_id for token_id in eos_ids if token_id < vocab_size)),
        add_bos_token=settings.get("add_bos_token") is True,
        chat_template=_chat_template(path, settings),
        bos_token=bos_token,
        eos_token=eos_token,
    )


def _chat_template(path: Path, settings: Mapping[str, Any]) -> str | None:
    """chat_template.jinja where there is one, else the settings' template, or the one named "default" of several."""
    file = path / "chat_template.jinja"
    if file.exists():
        return read_text(file, MAX_TEMPLATE_BYTES)
    template = settings.get("chat_template")
    if isinstance(template, list):
        named = {item.get("name"): item.get("template") for item in template if isinstance(item, dict)}
        template = named.get("default")
    return template if isinstance(template, str) else None


def _added_tokens(tokenizer: Mapping[str, Any]) -> dict[str, int]:
    """Ids of the control tokens by their text."""
    entries = tokenizer.get("added_tokens")
    ids = {}
    for entry in entries if isinstance(entries, list) else []:
        content, token_id = (entry.get("content"), entry.get("id")) if isinstance(entry, dict) else (None, None)
        if isinstance(content, str) and type(token_id) is int and token_id >= 0:
            ids[content] = token_id
    return ids


def _token_text(value: Any) -> str:
    """A token of tokenizer_config.json: its text, or an object that holds it."""
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) else ""


def _ids(value: Any) -> list[int]:
    """A token id or a list of them."""
    values = value if isinstance(value, list) else [value]
    return [token_id for token_id in values if type(token_id) is int and token_id >= 0]
