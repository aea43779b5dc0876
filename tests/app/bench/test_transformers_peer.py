"""The library on a tiny model that has a shape and no weights."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.bench.peers import read_lines
from app.bench.protocol import CHAT, DECODE, PREFILL, Case
from app.bench.transformers_peer import main

CONFIG = {
    "model_type": "qwen2",
    "architectures": ["Qwen2ForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 49152,
    "tie_word_embeddings": True,
}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    pytest.importorskip("transformers")
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    return tmp_path


def test_every_case_is_measured(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(directory), "--prompt=5", "--depth=0,9", "--decode=3", "--repeat=1", "--chat"])
    result = read_lines("hf", capsys.readouterr().out.splitlines())
    assert "transformers" in result.note
    assert "cpu" in result.note
    cases = {case for case, _ in result.figures.values}
    assert cases == {Case(CHAT, 0), Case(CHAT, 1), Case(PREFILL, 5), Case(DECODE, 0), Case(DECODE, 9)}
    assert result.figures.values[Case(DECODE, 9), "new_tokens"] == [4]
    assert result.figures.median(Case(DECODE, 9), "decode_tok_s") > 0
    assert result.figures.values[Case(PREFILL, 5), "prompt_tokens"] == [5]


def test_nf4_needs_a_gpu(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(directory), "--nf4"])
    assert "GPU" in json.loads(capsys.readouterr().out)["skip"]
