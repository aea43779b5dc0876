"""The virtual environment: made once, completed, repaired; which build of torch it gets."""

from __future__ import annotations

import sys

import pytest

from installer import environment
from installer.environment import Environment, has_nvidia_driver
from installer.shell import Result, SetupError

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has two builds of torch under one name")


def test_second_prepare_runs_no_command(made: Environment, shell) -> None:
    made.prepare()
    assert shell.ran("venv") == 1
    assert shell.ran("install", "--editable") == 1
    shell.commands.clear()
    made.prepare()
    assert shell.commands == []


def test_changed_project_file_installs_again_in_the_same_environment(made: Environment, shell) -> None:
    made.prepare()
    shell.commands.clear()
    (made.root / "pyproject.toml").write_text('[project]\ndependencies = ["numpy", "rich", "torch==2.13.0"]\n')
    made.prepare()
    assert shell.ran("venv") == 0
    assert shell.ran("install", "--editable") == 1


def test_extras_are_added_and_kept(made: Environment, shell) -> None:
    made.prepare()
    made.prepare(("dev",))
    assert shell.ran(f"{made.root}[dev]") == 1
    assert made.is_current(())
    assert made.is_current(("dev",))
    assert not made.is_current(("cuda",))


def test_interrupted_installation_is_made_anew(made: Environment, shell) -> None:
    def interrupt(argv: list[str]) -> Result | None:
        if "--editable" in argv:
            raise KeyboardInterrupt
        return None

    shell.answer = interrupt
    with pytest.raises(KeyboardInterrupt):
        made.prepare()
    leftover = made.folder / "half a package"
    leftover.touch()
    shell.answer = lambda argv: None
    made.prepare()
    assert not leftover.exists()
    assert made.is_current(())


@pytest.mark.parametrize("entry", ["root", "python"])
def test_moved_folder_or_other_python_is_made_anew(made: Environment, shell, entry: str) -> None:
    made.prepare()
    made.update_stamp(**{entry: "another"})
    shell.commands.clear()
    made.prepare()
    assert shell.ran("venv") == 1


@pytest.mark.parametrize("content", ["[1, 2", "[1, 2]", "\udcff"])
def test_damaged_stamp_counts_as_none(made: Environment, content: str) -> None:
    made.prepare()
    (made.folder / environment.STAMP).write_bytes(content.encode("utf-8", "surrogateescape"))
    assert made.read_stamp() == {}
    assert not made.is_current(())


def test_failed_installation_leaves_no_stamp_and_names_the_reason(made: Environment, shell) -> None:
    full = Result(1, "ERROR: No space left on device\nhint\n")
    shell.answer = lambda argv: full if "--editable" in argv else None
    with pytest.raises(SetupError, match="No space left on device"):
        made.prepare()
    assert not made.is_current(())


def test_environment_that_cannot_be_made(made: Environment, shell) -> None:
    shell.answer = lambda argv: Result(1, "read-only file system") if "venv" in argv else None
    with pytest.raises(SetupError, match="read-only file system"):
        made.prepare()
    assert not made.folder.exists()


@linux_only
def test_local_cpu_build_of_torch_first(made: Environment, shell) -> None:
    made.prepare()
    assert shell.ran("torch==2.13.0+cpu") == 1
    assert shell.ran("uv") == 0


@linux_only
def test_uv_where_pip_has_no_cpu_build(made: Environment, shell) -> None:
    shell.answer = lambda argv: Result(1, "ERROR: none") if "torch==2.13.0+cpu" in argv else None
    made.prepare()
    assert shell.ran("--torch-backend", "cpu", "torch==2.13.0") == 1


@linux_only
def test_general_build_with_a_warning_where_neither_works(made: Environment, shell) -> None:
    shell.answer = lambda argv: Result(1, "ERROR: none") if {"torch==2.13.0+cpu", "uv"} & set(argv) else None
    made.prepare()
    assert any("3 GB" in line for line in shell.said)
    assert made.is_current(())


@pytest.mark.parametrize("platform", ["linux", "win32"])
def test_the_drivers_library_is_looked_for(shell, monkeypatch: pytest.MonkeyPatch, platform: str) -> None:
    monkeypatch.setattr("sys.platform", platform)
    shell.libraries = {"libX11.so.6"}
    assert not has_nvidia_driver(shell)
    shell.libraries.add({"linux": "libcuda.so.1", "win32": "nvcuda.dll"}[platform])
    assert has_nvidia_driver(shell)
