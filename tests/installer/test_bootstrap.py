"""The entry of the installer: versions of Python, start by path."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from installer import bootstrap


def test_this_one_fits() -> None:
    assert bootstrap.check_python() is None


@pytest.mark.parametrize("version", [(3, 10, 4), (3, 14, 0)])
def test_unfit_version_is_named(
    version: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "version_info", version)
    monkeypatch.setattr(bootstrap, "find_other_python", lambda: None)
    assert bootstrap.check_python() == 1
    message = capsys.readouterr().err
    assert f"this is {version[0]}.{version[1]}" in message
    assert "3.11 to 3.13" in message


def test_unfit_version_goes_on_with_a_fitting_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 4))
    monkeypatch.setattr(bootstrap, "find_other_python", lambda: sys.executable)
    monkeypatch.setattr(sys, "argv", ["bootstrap.py", "--help"])
    assert bootstrap.check_python() == 0
    assert "going on with" in capsys.readouterr().out


@pytest.mark.parametrize("others", [[], ["--durations=5"], ["-x", "tests/app", "-k", "a or b"]])
def test_what_follows_test_is_for_pytest(others: list[str]) -> None:
    options = bootstrap.parse(["test", *others])
    assert (options.command, options.pytest) == ("test", others)


def test_help_of_test_is_ours(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        bootstrap.parse(["test", "--help"])
    assert "bootstrap.py test" in capsys.readouterr().out


def test_options_of_run() -> None:
    options = bootstrap.parse(["run", "--model", "smollm2-135m-instruct", "--yes"])
    assert (options.command, options.model, options.yes, options.pytest) == ("run", "smollm2-135m-instruct", True, [])


def test_file_starts_by_path_from_anywhere(tmp_path: Path) -> None:
    command = [sys.executable, bootstrap.__file__, "run", "--help"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "--model" in done.stdout
