"""A scripted shell and a small project for the installer's tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from installer import steps
from installer.environment import Environment
from installer.shell import Result, Shell

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
        self.release = "ID=debian\n"
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
def shell() -> ScriptedShell:
    """A shell on which every command succeeds."""
    return ScriptedShell()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text('[project]\ndependencies = ["numpy", "torch==2.13.0"]\n')
    return tmp_path


@pytest.fixture
def made(project: Path, shell: ScriptedShell, monkeypatch: pytest.MonkeyPatch) -> Environment:
    """The environment of the small project, on the scripted shell, on a machine without a GPU."""
    monkeypatch.setattr(steps, "has_nvidia_driver", lambda shell: False)
    environment_ = Environment(project, shell)
    shell.pythons = [environment_.python]
    return environment_
