"""Real models: what quantizing them costs, and that they still answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from inference.backends.backend import create_backend
from inference.engine.loader import open_engine
from inference.formats.model_file import open_model
from inference.quantize.job import QuantizeOptions, quantize_model
from inference.quantize.perplexity import measure_perplexity, reference_text
from inference.request import DoneEvent, FailedEvent, GenerationRequest, Message, SamplingParams, TokenEvent
from inference.text.tokenizer import Tokenizer


def perplexity_of(path: Path, tokens: int, name: str = "cpu", **options: object) -> float:
    source, backend = open_model(path), create_backend(name, **options)
    try:
        ids = Tokenizer.from_data(source.tokenizer_data()).encode_text(reference_text()[: 8 * tokens])[:tokens]
        return measure_perplexity(source, backend, ids).value
    finally:
        backend.close()
        source.close()


def answer_of(path: Path, question: str) -> str:
    engine = open_engine(str(path), backend="cpu", context_tokens=512)
    try:
        sampling = SamplingParams(temperature=0.0, max_new_tokens=24)
        engine.add(GenerationRequest((Message("user", question),), sampling))
        text = ""
        while True:
            for event in engine.step():
                if isinstance(event, TokenEvent):
                    text += event.text
                if isinstance(event, FailedEvent):
                    raise event.error
                if isinstance(event, DoneEvent):
                    return text
    finally:
        engine.close()


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_smollm2_in_fewer_bits(stored_model: Callable[[str], Path], tmp_path: Path) -> None:
    """Less is lost in smaller groups; the float32 oracle finds what the CPU finds in the same weights."""
    source = stored_model("smollm2-135m-instruct")
    found = {}
    for group in (32, 128):
        quantize_model(source, tmp_path / str(group), QuantizeOptions("w4", group))
        found[group] = perplexity_of(tmp_path / str(group), 1000, exact_logits=True)
    plain = perplexity_of(source, 1000, exact_logits=True)
    assert plain < found[32] < found[128] < 1.8 * plain
    assert found[32] < 1.3 * plain
    assert perplexity_of(tmp_path / "32", 1000, "torch") == pytest.approx(found[32], rel=0.01)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_qwen_still_answers(stored_model: Callable[[str], Path], tmp_path: Path) -> None:
    quantize_model(stored_model("qwen2.5-coder-0.5b-instruct"), tmp_path / "out", QuantizeOptions("w4"))
    assert "Paris" in answer_of(tmp_path / "out", "What is the capital of France?")
    assert "东京" in answer_of(tmp_path / "out", "日本的首都是哪里?")
