"""The installer against a scripted shell: which commands it runs, in which order, and what it says when they fail."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from installer import bootstrap, environment, steps, system_packages
from installer.environment import Environment
from installer.shell import Result, SetupError, Shell

Answer = Callable[[list[str]], Result | None]


class ScriptedShell(Shell):
    """Records commands instead of running them; `answer` may give a result other than success."""

    def __init__(self, answer: Answer = lambda argv: None) -> None:
        self.answer = answer
        self.commands: list[list[str]] = []
        self.said: list[str] = []
        self.root = True
        self.libraries: set[str] | None = None
        self.programs: set[str] | None = None
        self.release = 'ID=debian\n'
        self.pythons: list[Path] = []

    @property
    def is_terminal(self) -> bool:
        return False

    @property
    def is_root(self) -> bool:
        return self.root

    def say(self, text: str) -> None:
        self.said.append(text)

    def which(self, program: str) -> str | None:
        known = self.programs is None or program in self.programs or program == "apt-get"
        return f"/usr/bin/{program}" if known else None

    def has_library(self, soname: str) -> bool:
        return self.libraries is None or soname in self.libraries

    def read_text(self, path: str) -> str:
        return self.release

    def _run(self, argv: Sequence[str]) -> Result:
        self.commands.append(list(argv))
        result = self.answer(list(argv)) or Result(0, "fine\n")
        if "venv" in argv and result.code == 0:
            for python in self.pythons:
                python.parent.mkdir(parents=True, exist_ok=True)
                python.touch()
        return result

    def capture(self, argv, extra=None) -> Result:
        return self._run(argv)

    def follow(self, argv, log, on_line) -> Result:
        result = self._run(argv)
        for line in result.output.splitlines():
            on_line(line)
        return result

    def call(self, argv, folder=None) -> int:
        return self._run(argv).code

    def become(self, argv) -> int:
        return self._run(argv).code

    def ran(self, *words: str) -> int:
        """How many commands hold all of these words."""
        return sum(all(word in command for word in words) for command in self.commands)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text('[project]\ndependencies = ["numpy", "torch==2.13.0"]\n')
    return tmp_path


def make(project: Path, answer: Answer = lambda argv: None) -> tuple[Environment, ScriptedShell]:
    shell = ScriptedShell(answer)
    made = Environment(project, shell)
    shell.pythons = [made.python]
    return made, shell


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "has_nvidia_gpu", lambda: False)


def test_second_prepare_runs_no_command(project: Path) -> None:
    made, shell = make(project)
    made.prepare()
    assert shell.ran("venv") == 1
    assert shell.ran("install", "--editable") == 1
    shell.commands.clear()
    made.prepare()
    assert shell.commands == []


def test_changed_project_file_installs_again_without_a_new_environment(project: Path) -> None:
    made, shell = make(project)
    made.prepare()
    shell.commands.clear()
    (project / "pyproject.toml").write_text('[project]\ndependencies = ["numpy", "rich", "torch==2.13.0"]\n')
    made.prepare()
    assert shell.ran("venv") == 0
    assert shell.ran("install", "--editable") == 1


def test_extras_are_added_and_kept(project: Path) -> None:
    made, shell = make(project)
    made.prepare()
    made.prepare(("dev",))
    assert shell.ran(f"{project}[dev]") == 1
    assert made.is_current(())
    assert made.is_current(("dev",))
    assert not made.is_current(("cuda",))


def test_interrupted_installation_is_made_anew(project: Path) -> None:
    made, shell = make(project)

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
def test_moved_folder_or_other_python_is_made_anew(project: Path, entry: str) -> None:
    made, shell = make(project)
    made.prepare()
    made.update_stamp(**{entry: "another"})
    shell.commands.clear()
    made.prepare()
    assert shell.ran("venv") == 1


def test_damaged_stamp_counts_as_none(project: Path) -> None:
    made, _ = make(project)
    made.prepare()
    (made.folder / environment.STAMP).write_text("[1, 2")
    assert made.read_stamp() == {}
    assert not made.is_current(())


def test_failed_installation_leaves_no_stamp_and_names_the_reason(project: Path) -> None:
    def fail(argv: list[str]) -> Result | None:
        return Result(1, "ERROR: No space left on device\nhint\n") if "--editable" in argv else None

    made, _ = make(project, fail)
    with pytest.raises(SetupError, match="No space left on device"):
        made.prepare()
    assert not made.is_current(())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has two builds of torch under one name")
class TestTorch:
    """Which build of torch is asked for."""

    def test_local_cpu_build_first(self, project: Path) -> None:
        made, shell = make(project)
        made.prepare()
        assert shell.ran("torch==2.13.0+cpu") == 1
        assert shell.ran("uv") == 0

    def test_uv_where_pip_has_no_cpu_build(self, project: Path) -> None:
        made, shell = make(project, lambda argv: Result(1, "ERROR: none") if "torch==2.13.0+cpu" in argv else None)
        made.prepare()
        assert shell.ran("--torch-backend", "cpu", "torch==2.13.0") == 1

    def test_general_build_with_a_warning_where_neither_works(self, project: Path) -> None:
        made, shell = make(
            project, lambda argv: Result(1, "ERROR: none") if {"torch==2.13.0+cpu", "uv"} & set(argv) else None
        )
        made.prepare()
        assert any("3 GB" in line for line in shell.said)
        assert made.is_current(())

    def test_no_cpu_build_with_a_gpu(self, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(environment, "has_nvidia_gpu", lambda: True)
        made, shell = make(project)
        made.prepare()
        assert shell.ran("torch==2.13.0+cpu") == 0


def test_nvidia_gpu_by_vendor_and_class(tmp_path: Path) -> None:
    for name, vendor, kind in [("a", "0x8086", "0x030000"), ("b", "0x10de", "0x040300")]:
        (tmp_path / name).mkdir()
        (tmp_path / name / "vendor").write_text(vendor + "\n")
        (tmp_path / name / "class").write_text(kind + "\n")
    (tmp_path / "c").mkdir()
    assert not real_has_nvidia_gpu(tmp_path)
    (tmp_path / "c" / "vendor").write_text("0x10de\n")
    (tmp_path / "c" / "class").write_text("0x030200\n")
    assert real_has_nvidia_gpu(tmp_path)


real_has_nvidia_gpu = environment.has_nvidia_gpu


class TestSystemPackages:
    """What is missing, and who may install it."""

    def test_root_installs_exactly_what_is_missing(self) -> None:
        shell = ScriptedShell()
        shell.libraries = {*system_packages.QT_LIBRARIES, *system_packages.X11_LIBRARIES} - {
            "libxcb-icccm.so.4",
            "libxcb-keysyms.so.1",
        }
        system_packages.check_desktop_libraries(shell, has_display=True)
        expected = ["apt-get", "install", "-y", "--no-install-recommends", "libxcb-icccm4", "libxcb-keysyms1"]
        assert shell.commands == [["apt-get", "update"], expected]

    def test_nothing_missing_runs_nothing(self) -> None:
        shell = ScriptedShell()
        system_packages.check_desktop_libraries(shell, has_display=True)
        assert shell.commands == []

    def test_user_is_given_the_exact_command(self) -> None:
        shell = ScriptedShell()
        shell.root = False
        shell.libraries = {*system_packages.QT_LIBRARIES, *system_packages.X11_LIBRARIES} - {"libxcb-icccm.so.4"}
        with pytest.raises(SetupError, match="sudo apt-get install -y --no-install-recommends libxcb-icccm4"):
            system_packages.check_desktop_libraries(shell, has_display=True)
        assert shell.commands == []

    def test_user_without_a_display_goes_on(self) -> None:
        shell = ScriptedShell()
        shell.root = False
        shell.libraries = set()
        system_packages.check_desktop_libraries(shell, has_display=False)
        assert any("sudo apt-get install" in line for line in shell.said)

    def test_other_distribution_is_told_the_names(self) -> None:
        shell = ScriptedShell()
        shell.release = "ID=fedora\n"
        shell.libraries = set()
        with pytest.raises(SetupError, match="libxcb-icccm4"):
            system_packages.check_desktop_libraries(shell, has_display=True)

    def test_failed_apt_is_an_error_with_its_reason(self) -> None:
        shell = ScriptedShell(lambda argv: Result(100, "E: Unable to fetch\n") if "install" in argv else None)
        shell.libraries = set()
        with pytest.raises(SetupError, match="Unable to fetch"):
            system_packages.check_desktop_libraries(shell, has_display=True)

    def test_venv_package_matches_this_python(self) -> None:
        shell = ScriptedShell()
        system_packages.check_venv_support(shell, has_ensurepip=False)
        major, minor, _ = platform.python_version_tuple()
        assert shell.ran(f"python{major}.{minor}-venv") == 1
        system_packages.check_venv_support(shell, has_ensurepip=True)
        assert shell.ran(f"python{major}.{minor}-venv") == 1

    def test_test_programs(self) -> None:
        shell = ScriptedShell()
        shell.programs = set(system_packages.TEST_PROGRAMS) - {"Xvfb", "trayer"}
        system_packages.check_test_programs(shell)
        assert shell.commands[-1][-2:] == ["trayer", "xvfb"]


class TestRun:
    """The steps of `run`."""

    @pytest.fixture
    def model(self, tmp_path: Path) -> Path:
        path = tmp_path / "model.gguf"
        path.write_bytes(b"GGUF")
        return path

    def answer(self, model: Path) -> Answer:
        def reply(argv: list[str]) -> Result | None:
            return Result(0, f"{model}\n") if "where" in argv or "-c" in argv else None

        return reply

    def test_first_and_second_start(self, project: Path, model: Path) -> None:
        made, shell = make(project, self.answer(model))
        assert steps.run(made, model=None, assume_yes=True, has_display=True) == 0
        assert shell.ran("models", "pull") == 1
        assert shell.commands[-1][-1] == "run"
        shell.commands.clear()
        assert steps.run(made, model=None, assume_yes=True, has_display=True) == 0
        assert len(shell.commands) == 1
        assert shell.commands[0][-1] == "run"

    def test_lost_or_cut_model_is_fetched_again(self, project: Path, model: Path) -> None:
        made, shell = make(project, self.answer(model))
        steps.run(made, model=None, assume_yes=True, has_display=False)
        model.write_bytes(b"GG")
        steps.run(made, model=None, assume_yes=True, has_display=False)
        assert shell.ran("models", "pull") == 2

    def test_model_option_reaches_download_and_app(self, project: Path, model: Path) -> None:
        made, shell = make(project, self.answer(model))
        steps.run(made, model="tiny", assume_yes=True, has_display=True)
        assert shell.ran("models", "pull", "--yes", "tiny") == 1
        assert shell.commands[-1][-3:] == ["run", "--model", "tiny"]

    def test_failed_download_stops_before_the_app(self, project: Path) -> None:
        made, shell = make(project, lambda argv: Result(3, "no network") if "pull" in argv else None)
        with pytest.raises(SetupError, match="goes on where it stopped"):
            steps.run(made, model=None, assume_yes=True, has_display=True)
        assert shell.ran("run") == 0

    def test_kernels_that_cannot_be_built_do_not_stop(self, project: Path, model: Path) -> None:
        def reply(argv: list[str]) -> Result | None:
            return Result(1, "no compiler\n") if "-c" in argv else self.answer(model)(argv)

        made, shell = make(project, reply)
        assert steps.run(made, model=None, assume_yes=True, has_display=False) == 0
        assert any("no compiler" in line for line in shell.said)

    def test_status_of_the_app_is_passed_on(self, project: Path, model: Path) -> None:
        def reply(argv: list[str]) -> Result | None:
            return Result(7, "") if argv[-1] == "run" else self.answer(model)(argv)

        made, _ = make(project, reply)
        assert steps.run(made, model=None, assume_yes=True, has_display=True) == 7


class TestTest:
    """The steps of `test`."""

    def test_all_checks_run_and_pytest_is_last(self, project: Path) -> None:
        made, shell = make(project)
        assert steps.test(made, ["-k", "word"]) == 0
        assert shell.ran("models", "pull", steps.TEST_MODEL) == 1
        assert [c[2] for c in shell.commands[-4:] if c[1] == "-m"] == ["ruff", "mypy", "pytest"]
        assert shell.commands[-1][-3:] == ["pytest", "-k", "word"]

    def test_a_failed_check_fails_the_command_but_not_the_rest(self, project: Path) -> None:
        made, shell = make(project, lambda argv: Result(1, "") if "ruff" in argv else None)
        assert steps.test(made, []) == 1
        assert shell.ran("pytest") == 1
        assert shell.said[-1] == "Failed: ruff."


class TestPython:
    """Versions of Python that fit and that do not."""

    def test_this_one_fits(self) -> None:
        assert bootstrap.check_python() is None

    @pytest.mark.parametrize("version", [(3, 10, 4), (3, 14, 0)])
    def test_unfit_version_is_named(
        self, version: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(sys, "version_info", version)
        monkeypatch.setattr(bootstrap, "find_other_python", lambda: None)
        assert bootstrap.check_python() == 1
        message = capsys.readouterr().err
        assert f"this is {version[0]}.{version[1]}" in message
        assert "3.11 to 3.13" in message

    def test_unfit_version_goes_on_with_a_fitting_one(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(sys, "version_info", (3, 10, 4))
        monkeypatch.setattr(bootstrap, "find_other_python", lambda: sys.executable)
        monkeypatch.setattr(sys, "argv", ["bootstrap.py", "--help"])
        assert bootstrap.check_python() == 0
        assert "going on with" in capsys.readouterr().out

    def test_file_starts_by_path_from_anywhere(self, tmp_path: Path) -> None:
        command = [sys.executable, bootstrap.__file__, "run", "--help"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0
        assert "--model" in done.stdout


class TestShell:
    """The real shell, with harmless commands."""

    def test_capture_joins_both_streams(self) -> None:
        code = "import sys; print('out', flush=True); print('err', file=sys.stderr); sys.exit(3)"
        result = Shell().capture([sys.executable, "-c", code])
        assert (result.code, result.last_line) == (3, "err")
        assert "out" in result.output

    def test_missing_command_is_a_result(self, tmp_path: Path) -> None:
        assert Shell().capture([str(tmp_path / "none")]).code == 127
        assert Shell().follow([str(tmp_path / "none")], tmp_path / "log", print).code == 127

    def test_follow_hands_over_lines_and_keeps_a_log(self, tmp_path: Path) -> None:
        lines: list[str] = []
        result = Shell().follow([sys.executable, "-c", "print('a'); print('b')"], tmp_path / "log", lines.append)
        assert (result.code, lines) == (0, ["a", "b"])
        assert (tmp_path / "log").read_text().endswith("a\nb\n")

    def test_foreign_python_paths_are_not_passed_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PYTHONPATH", "somewhere")
        result = Shell().capture([sys.executable, "-c", "import os; print(os.environ.get('PYTHONPATH'))"])
        assert result.last_line == "None"
