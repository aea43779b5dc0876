"""The world outside the installer: commands, system libraries, the terminal. Tests replace it."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


class SetupError(Exception):
    """A step failed: what could not be done, why, and what the user can do about it."""

    def __init__(self, what: str, why: str, cure: str) -> None:
        self.what = what
        self.why = why
        self.cure = cure
        super().__init__(f"{what}\n  Why:  {why}\n  Cure: {cure}")


@dataclass(frozen=True)
class Result:
    """Exit status and output (both streams) of a finished command."""

    code: int
    output: str

    @property
    def last_line(self) -> str:
        """The last line that is not empty, "" where there is none."""
        lines = [line for line in self.output.splitlines() if line.strip()]
        return lines[-1].strip() if lines else ""


def command_environment() -> dict[str, str]:
    """This process's variables less those that would make another Python look into foreign folders."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}


class Shell:
    """Runs commands and prints one calm line a step."""

    @property
    def is_terminal(self) -> bool:
        """Whether somebody is looking."""
        return sys.stdout.isatty()

    @property
    def is_root(self) -> bool:
        """Whether system packages may be installed without asking for a password."""
        return hasattr(os, "geteuid") and os.geteuid() == 0

    def say(self, text: str) -> None:
        """One line on standard output."""
        print(text, flush=True)

    def progress(self, text: str) -> None:
        """A line that the next one replaces; nothing where nobody looks."""
        if self.is_terminal:
            width = shutil.get_terminal_size().columns - 1
            print(f"\r\x1b[K{text[:width]}", end="", flush=True)

    def ask(self, question: str) -> bool:
        """A yes/no question; yes where nobody can answer."""
        if not (self.is_terminal and sys.stdin.isatty()):
            return True
        return input(f"{question} [Y/n] ").strip().lower() in ("", "y", "yes")

    def which(self, program: str) -> str | None:
        """Path of a program, None where there is none."""
        return shutil.which(program)

    def has_library(self, soname: str) -> bool:
        """Whether the system's loader finds a shared library."""
        try:
            ctypes.CDLL(soname)
        except OSError:
            return False
        return True

    def read_text(self, path: str) -> str:
        """A system file, "" where it is not there."""
        try:
            return Path(path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def capture(self, argv: Sequence[str], extra: Mapping[str, str] | None = None) -> Result:
        """Runs a command without input and keeps what it prints; a command that cannot start has code 127."""
        try:
            done = subprocess.run(
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={**command_environment(), **(extra or {})},
                check=False,
            )
        except OSError as error:
            return Result(127, str(error))
        return Result(done.returncode, done.stdout.decode("utf-8", errors="replace"))

    def follow(self, argv: Sequence[str], log: Path, on_line: Callable[[str], None]) -> Result:
        """Runs a command without input, writes what it prints to `log` and hands over each line as it comes."""
        lines: list[str] = []
        with log.open("a", encoding="utf-8") as file:
            file.write(f"$ {' '.join(argv)}\n")
            try:
                process = subprocess.Popen(
                    list(argv),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    env=command_environment(),
                    text=True,
                    encoding="utf-8",
                    errors="replace",
                )
            except OSError as error:
                return Result(127, str(error))
            with process:
                for line in process.stdout or ():
                    file.write(line)
                    lines.append(line)
                    on_line(line.rstrip())
        return Result(process.returncode, "".join(lines[-40:]))

    def call(self, argv: Sequence[str], folder: Path | None = None) -> int:
        """Runs a command on this terminal, in `folder` where one is given, and returns its exit status."""
        try:
            return subprocess.call(list(argv), env=command_environment(), cwd=folder)
        except OSError as error:
            self.say(f"{argv[0]}: {error}")
            return 127

    def become(self, argv: Sequence[str]) -> int:
        """Ends the installer in favour of a command; where the system cannot replace a process, waits for it."""
        sys.stdout.flush()
        if os.name == "posix":
            os.execve(argv[0], list(argv), command_environment())
        return self.call(argv)
