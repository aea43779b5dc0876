"""Tiny random models of every family, as transformers saves them, and the real models that the store may hold."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inference.errors import ModelNotFoundError
from inference.store.model_store import ModelStore

TINY: dict[str, dict[str, Any]] = {
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 311,
    "eos_token_id": 258,
    "max_position_embeddings": 512,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
}
"""Odd sizes on purpose; a test changes what it is about."""

CONTROL_TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

MakeModel = Callable[..., Path]


@pytest.fixture
def stored_model() -> Callable[[str], Path]:
    """`stored_model(id)` is the path of a real model; the test is skipped where the store does not hold it."""

    def path_of(model_id: str) -> Path:
        try:
            return ModelStore().resolve(model_id)
        except ModelNotFoundError as error:
            pytest.skip(str(error))

    return path_of


@pytest.fixture(scope="session")
def save_tiny_model(tmp_path_factory: pytest.TempPathFactory) -> MakeModel:
    """`save_tiny_model(family, **config)` writes a random model and returns its directory."""
    import torch
    import transformers

    def save(family: str, **changes: Any) -> Path:
        configuration = {"qwen2": "Qwen2Config", "llama": "LlamaConfig", "qwen3": "Qwen3Config"}[family]
        config = getattr(transformers, configuration)(**{**TINY, **changes})
        torch.manual_seed(7)
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                # Norms and biases start as ones and zeros, which would hide a missing one.
                spread = 0.3 if "norm" in name or "bias" in name else 0.15
                parameter.add_(torch.randn_like(parameter), alpha=spread)
        path = tmp_path_factory.mktemp(family)
        model.save_pretrained(path)
        _save_tokenizer(path, config.vocab_size)
        return path

    return save


def _save_tokenizer(path: Path, vocab_size: int) -> None:
    """Bytes, then control tokens, then as many pairs of letters as the vocabulary has room for."""
    import tokenizers

    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    letters = "etaoinsrhdlucmfyw"
    pairs = [left + right for left in letters for right in letters]
    vocab = {text: index for index, text in enumerate(alphabet)}
    first_pair = len(alphabet) + len(CONTROL_TOKENS)
    merges = pairs[: max(0, vocab_size - first_pair)]
    vocab.update({pair: first_pair + index for index, pair in enumerate(merges)})
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab, [(pair[0], pair[1]) for pair in merges]))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    document = json.loads(tokenizer.to_str())
    document["added_tokens"] = [
        {
            "id": len(alphabet) + index,
            "content": text,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for index, text in enumerate(CONTROL_TOKENS)
    ]
    (path / "tokenizer.json").write_text(json.dumps(document), encoding="utf-8")
    settings = {"eos_token": CONTROL_TOKENS[2], "chat_template": CHATML}
    (path / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")


@pytest.fixture
def tiny() -> Any:
    """What writes tiny model files, and their sizes. Imported late, since not every test here needs gguf."""
    from tests.inference import tiny_files

    return tiny_files
