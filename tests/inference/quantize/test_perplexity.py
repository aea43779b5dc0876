"""Perplexity: against transformers' own loss, and the same on every backend."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from inference.backends.backend import create_backend
from inference.errors import InvalidRequestError
from inference.formats.model_file import open_model
from inference.quantize.job import QuantizeOptions, quantize_model
from inference.quantize.perplexity import Perplexity, main, measure_perplexity, reference_text


def measured(path: Path, name: str, ids: list[int], window: int = 512, **options: object) -> Perplexity:
    source, backend = open_model(path), create_backend(name, **options)
    try:
        return measure_perplexity(source, backend, ids, window=window)
    finally:
        backend.close()
        source.close()


def ids_of(count: int) -> list[int]:
    return np.random.default_rng(5).integers(0, 311, count).tolist()


@pytest.mark.parametrize("window", [512, 200, 65])
def test_it_is_e_to_the_loss_of_transformers(tiny_model: Callable[..., Path], window: int) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    path, ids = tiny_model("qwen2"), ids_of(531)
    model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
    total, count = 0.0, 0
    with torch.no_grad():
        for start in range(0, len(ids), window):
            part = torch.tensor(ids[start : start + window])
            log_probabilities = torch.log_softmax(model(part[None]).logits[0].double(), dim=-1)
            total -= float(log_probabilities[:-1].gather(1, part[1:, None]).sum())
            count += len(part) - 1
    found = measured(path, "torch", ids, window)
    assert found.scored == count
    assert found.negative_log_likelihood == pytest.approx(total / count, rel=1e-5)
    assert found.value == math.exp(found.negative_log_likelihood)


def test_backends_agree_and_repeat(tiny_model: Callable[..., Path], tmp_path: Path) -> None:
    quantize_model(tiny_model("qwen3"), tmp_path / "out", QuantizeOptions(threads=1))
    ids = ids_of(300)
    oracle = measured(tmp_path / "out", "torch", ids)
    first, second = (measured(tmp_path / "out", "cpu", ids, threads=1, exact_logits=True) for _ in range(2))
    assert first == second
    assert first.text_sha256 == oracle.text_sha256
    assert first.negative_log_likelihood == pytest.approx(oracle.negative_log_likelihood, rel=0.01)


def test_too_little_to_score(tiny_model: Callable[..., Path]) -> None:
    for ids, window in (([1], 512), ([1, 2], 1), ([1, 2], 513)):
        with pytest.raises(InvalidRequestError, match="cannot be scored"):
            measured(tiny_model("qwen2"), "cpu", ids, window, threads=1)


def test_the_command(tiny_model: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text.txt").write_text("the end of the letter is the same", encoding="utf-8")
    main([str(tiny_model("qwen2")), str(tmp_path / "text.txt"), "--tokens", "20"])
    line = capsys.readouterr().out
    assert line.endswith(f"cpu, {tiny_model('qwen2')}\n")
    assert " over 19 tokens of " in line


def test_ids_in_a_file_score_the_same(
    tiny_model: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = str(tiny_model("llama"))
    main([model, "--tokens", "30", "--save-ids", str(tmp_path / "ids.npy")])
    main([model, str(tmp_path / "ids.npy"), "--backend", "cpu"])
    first, second = capsys.readouterr().out.splitlines()
    assert first == second


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["absent-model"], "There is no model 'absent-model'"),
        (["MODEL", "absent.txt"], "absent.txt cannot be read"),
        (["MODEL", "binary.txt"], "no UTF-8 text at byte 0"),
        (["MODEL", "binary.npy"], "is no array"),
        (["MODEL", "empty.npy"], "is no array"),
        (["MODEL", "absent.npy"], "absent.npy cannot be read"),
        (["MODEL", "table.npy"], "no list of whole numbers"),
        (["MODEL", "large.npy"], "holds ids from -1 to 9999999, but this model's are 0 to"),
        (["MODEL", "ids.npy", "--save-ids", "absent/ids.npy"], "No such file"),
        (["MODEL", "ids.npy", "--backend", "quantum"], "'quantum' is not available"),
    ],
)
def test_mistakes_are_one_line(
    tiny_model: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("binary.txt", "binary.npy"):
        Path(name).write_bytes(bytes([0xFF, 0xFE, 1, 2]))
    Path("empty.npy").touch()
    for name, array in (("ids", [1, 2]), ("table", [[1, 2], [3, 4]]), ("large", [-1, 9_999_999])):
        np.save(name, np.array(array))
    with pytest.raises(SystemExit) as ended:
        main([str(tiny_model("llama")) if word == "MODEL" else word for word in words])
    line = str(ended.value.code)
    assert line.startswith("perplexity: ")
    assert message in line
    assert "\n" not in line


def test_a_number_of_tokens_that_cannot_be(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["any", "--tokens", "-5"])
    assert "-5 cannot be scored; give 2 or more" in capsys.readouterr().err


def test_the_text_that_comes_with_python() -> None:
    text = reference_text()
    assert text == reference_text()
    assert len(text) > 300_000
    assert 'The "import" statement' in text or "import" in text
