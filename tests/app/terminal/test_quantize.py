"""`deskinfer quantize`: options reach the job, errors are lines, what was made is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from app.cli import app
from inference.errors import InvalidRequestError
from inference.formats.checkpoint.manifest import Origin, Recipe
from inference.models.model_spec import ModelSpec
from inference.quantize.job import QuantizeOptions

SPEC = ModelSpec("llama", 1, 64, 96, 4, 2, 16, 40, 512, 1e-6, 1e4)


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the job was called with; it writes one file."""
    calls: list[Any] = []

    def quantize_model(path: Path, out: Path, options: QuantizeOptions, on_progress: Any) -> Recipe:
        calls.extend((path, out, options))
        on_progress(1, 2, "Quantizing layer_00.")
        out.mkdir()
        (out / "layer_00.safetensors").write_bytes(bytes(3_000_000))
        formats = {"a": "w4g128", "b": "w4g128", "c": "w8g128"}
        return Recipe(SPEC, options.scheme, "nearest", formats, Origin(path.name, "0" * 64))

    monkeypatch.setattr("inference.quantize.job.quantize_model", quantize_model)
    return calls


def test_what_was_asked_for_is_done_and_said(job: list[Any], tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    words = ["quantize", str(tmp_path / "model"), str(tmp_path / "out"), "--scheme", "auto", "--fit", "3.2GiB"]
    result = CliRunner().invoke(
        app, [*words, "--context", "4096", "--group", "64", "--lora", "l", "--calibrate", "t", "--force"]
    )
    assert result.exit_code == 0, result.output
    options = QuantizeOptions("auto", 64, Path("l"), Path("t"), int(3.2 * 2**30), 4096, True, None)
    assert job == [tmp_path / "model", tmp_path / "out", options]
    assert result.stdout == f"{tmp_path / 'out'}\n"
    assert "auto of model, 2.9 MB: 2 matrices of w4g128, 1 matrix of w8g128." in result.stderr


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["absent-model", "out"], "no model 'absent-model'"),
        (["MODEL", "out", "--fit", "much"], '"much" is no size of memory'),
    ],
)
def test_mistakes_are_one_line(job: list[Any], tmp_path: Path, words: list[str], line: str) -> None:
    given = [str(tmp_path) if word == "MODEL" else word for word in words]
    result = CliRunner().invoke(app, ["quantize", *given])
    assert result.exit_code == 1
    assert line in result.stderr
    assert result.stderr.startswith("deskinfer: ")
    assert job == []


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (KeyboardInterrupt(), 130, "Stopped. "),
        (InvalidRequestError("There is no scheme 'w5'."), 1, "deskinfer: There is no scheme 'w5'."),
    ],
)
@pytest.mark.parametrize("begun", [True, False])
def test_an_end_before_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, status: int, line: str, begun: bool
) -> None:
    monkeypatch.chdir(tmp_path)

    def quantize_model(*arguments: object) -> None:
        if begun:
            Path("out").mkdir()
        raise error

    monkeypatch.setattr("inference.quantize.job.quantize_model", quantize_model)
    result = CliRunner().invoke(app, ["quantize", str(tmp_path), "out"])
    assert result.exit_code == status
    assert line in result.stderr
    if status == 130:
        kept = "What is finished is kept in out; the same command goes on from it."
        assert (kept if begun else "Nothing was written yet.") in result.stderr


@pytest.mark.parametrize("option", [("--context", "0"), ("--threads", "-1")])
def test_numbers_below_their_limit_are_refused(job: list[Any], tmp_path: Path, option: tuple[str, str]) -> None:
    result = CliRunner().invoke(app, ["quantize", str(tmp_path), str(tmp_path / "out"), *option])
    assert result.exit_code == 2
    assert option[0] in result.stderr
    assert not job
