"""The options of `deskinfer bench`."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.bench import command
from app.bench.command import expects_gpu, lengths, numbers, vram_bytes
from app.bench.protocol import Plan
from app.cli import app
from app.terminal.errors import UsageError


@pytest.mark.parametrize("text", ["58,512", "58 512", " 58, 512 "])
def test_numbers(text: str) -> None:
    assert numbers(text) == (58, 512)


@pytest.mark.parametrize("text", ["many", "58,-1", "5.5"])
def test_numbers_that_are_none(text: str) -> None:
    with pytest.raises(UsageError):
        numbers(text)


def test_lengths_are_those_of_the_device_unless_said() -> None:
    assert lengths("auto", "auto", on_gpu=False) == ((58, 512), (0, 2048))
    assert lengths("auto", "auto", on_gpu=True) == ((58, 512, 2048), (0, 2048, 8192, 32512))
    assert lengths("7", "90,0", on_gpu=True) == ((7,), (0, 90))


def test_a_limit_of_memory() -> None:
    assert vram_bytes("") is None
    assert vram_bytes("3.5GiB") == 3.5 * 2**30
    with pytest.raises(UsageError, match="much"):
        vram_bytes("much")


@pytest.mark.parametrize(
    ("backend", "gpus", "expected"),
    [("cuda", (), True), ("auto", ("a GPU",), True), ("auto", (), False), ("cpu", ("a GPU",), False)],
)
def test_longer_contexts_are_measured_on_a_gpu(
    monkeypatch: pytest.MonkeyPatch, backend: str, gpus: tuple[str, ...], expected: bool
) -> None:
    monkeypatch.setattr("app.bench.machine.gpu_lines", lambda: gpus)
    assert expects_gpu(backend) is expected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--threads", "-3"], "--threads"),
        (["--decode", "-4"], "--decode"),
        (["--prompt", "", "--depth", "", "--no-chat"], "nothing to measure"),
        (["--json", "absent/run.json"], "there is no directory"),
        (["--json", "."], "it is a directory"),
    ],
)
def test_what_cannot_end_well_is_not_begun(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: list[str], message: str
) -> None:
    monkeypatch.setattr("app.bench.run.run_bench", lambda *arguments: pytest.fail("it was measured"))
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["bench", "--model", "random:smollm2-135m", "--backend", "cpu", *words])
    assert result.exit_code in (1, 2)
    assert message in result.stderr


def test_a_file_that_can_be_written(tmp_path: Path) -> None:
    command.check_run(Plan(), None)
    command.check_run(Plan(), tmp_path / "new.json")
    assert not list(tmp_path.iterdir())


def test_a_server_needs_a_model() -> None:
    with pytest.raises(UsageError, match="--server-model"):
        list(command._server("http://localhost:11434", ""))


def test_shapes_of_the_linear_layers() -> None:
    assert command._matrices("random:qwen2.5-3b:w4") == [
        "2560x2048x36",
        "2048x2048x36",
        "22016x2048x36",
        "2048x11008x36",
        "151936x2048x1",
    ]
