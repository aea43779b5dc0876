"""The steps of the two commands: which commands run, in which order, and what stops them."""

from __future__ import annotations

from pathlib import Path

import pytest

from installer import steps
from installer.environment import Environment
from installer.shell import Result, SetupError


@pytest.fixture
def model(tmp_path: Path, shell) -> Path:
    """A model file that the scripted `models where` names."""
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF")
    shell.answer = lambda argv: Result(0, f"{path}\n") if "where" in argv or "-c" in argv else None
    return path


def run(made: Environment, *, model: str | None = None, has_display: bool = True) -> int:
    return steps.run(made, model=model, assume_yes=True, has_display=has_display)


def test_second_start_only_starts_the_app(made: Environment, shell, model: Path) -> None:
    assert run(made) == 0
    assert shell.ran("models", "pull") == 1
    assert shell.commands[-1][-1] == "run"
    shell.commands.clear()
    assert run(made) == 0
    assert len(shell.commands) == 1
    assert shell.commands[0][-1] == "run"


def test_what_is_said_at_the_start_holds_where_the_app_runs_already(made: Environment, shell, model: Path) -> None:
    run(made)
    assert "without a tray, or if it runs already, its window opens" in shell.said[-1]
    run(made, has_display=False)
    assert "Starting" not in shell.said[-1]


def test_lost_or_cut_model_is_fetched_again(made: Environment, shell, model: Path) -> None:
    run(made, has_display=False)
    model.write_bytes(b"GG")
    run(made, has_display=False)
    assert shell.ran("models", "pull") == 2


def test_model_option_reaches_download_and_app(made: Environment, shell, model: Path) -> None:
    run(made, model="tiny")
    assert shell.ran("models", "pull", "--yes", "tiny") == 1
    assert shell.commands[-1][-3:] == ["run", "--model", "tiny"]


def test_failed_download_stops_before_the_app(made: Environment, shell) -> None:
    shell.answer = lambda argv: Result(3, "no network") if "pull" in argv else None
    with pytest.raises(SetupError, match="goes on where it stopped"):
        run(made)
    assert shell.ran("run") == 0


def test_interrupted_download_is_an_interruption(made: Environment, shell) -> None:
    shell.answer = lambda argv: Result(130, "") if "pull" in argv else None
    with pytest.raises(KeyboardInterrupt):
        run(made)


def test_kernels_that_cannot_be_built_do_not_stop(made: Environment, shell, model: Path) -> None:
    answer = shell.answer
    shell.answer = lambda argv: Result(1, "no compiler\n") if "-c" in argv else answer(argv)
    assert run(made) == 0
    assert any("no compiler" in line for line in shell.said)


def test_a_driver_brings_its_extra_and_kernels_once(
    made: Environment, shell, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "has_nvidia_driver", lambda shell: True)
    assert run(made) == 0
    assert shell.ran("--editable", f"{made.root}[cuda]") == 1
    assert shell.ran("kernels.shipped.resource_table", "--here") == 1
    shell.commands.clear()
    assert run(made) == 0
    assert len(shell.commands) == 1


def test_a_gpu_that_cannot_be_used_does_not_stop(
    made: Environment, shell, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "has_nvidia_driver", lambda shell: True)
    answer = shell.answer
    shell.answer = lambda argv: Result(1, "Update the driver.\n") if "--here" in argv else answer(argv)
    assert run(made) == 0
    assert any("not used: Update the driver." in line for line in shell.said)
    run(made)
    assert shell.ran("--here") == 2  # after an update it may work


def test_without_a_driver_nothing_is_installed_for_it(made: Environment, shell, model: Path) -> None:
    run(made)
    assert shell.ran("--here") == 0
    assert not made.is_current(("cuda",))


def test_status_of_the_app_is_passed_on(made: Environment, shell, model: Path) -> None:
    answer = shell.answer
    shell.answer = lambda argv: Result(7, "") if argv[-1] == "run" else answer(argv)
    assert run(made) == 7


def test_all_checks_run_and_pytest_is_last(made: Environment, shell) -> None:
    assert steps.test(made, ["-k", "word"]) == 0
    for model in steps.TEST_MODELS:
        assert shell.ran("models", "pull", model) == 1
    assert [c[2] for c in shell.commands[-4:] if c[1] == "-m"] == ["ruff", "mypy", "pytest"]
    assert shell.commands[-1][-3:] == ["pytest", "-k", "word"]


def test_a_failed_check_fails_the_command_but_not_the_rest(made: Environment, shell) -> None:
    shell.answer = lambda argv: Result(1, "") if "ruff" in argv else None
    assert steps.test(made, []) == 1
    assert shell.ran("pytest") == 1
    assert "Check: ruff FAILED." in shell.said


def test_a_failed_suite_fails_the_command_and_pytest_has_the_last_word(made: Environment, shell) -> None:
    shell.answer = lambda argv: Result(1, "") if "pytest" in argv else None
    assert steps.test(made, []) == 1
    assert shell.said[-1] == "Check: pytest."
