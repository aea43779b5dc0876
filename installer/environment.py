"""The virtual environment `.venv` in the project's folder: made once, repaired when half-made, else left alone."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import sys
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from installer.shell import Result, SetupError, Shell

STAMP = "deskinfer-stamp.json"
LOG = "deskinfer-install.log"


@dataclass
class Environment:
    """`.venv` and what is installed in it.

    A stamp is written when an installation is complete and taken away before one begins. An environment without a stamp
    was interrupted and is made anew; one with a stamp of an older pyproject.toml is brought up to date.

    Attributes:
        root: the project's folder.
    """

    root: Path
    shell: Shell
    folder: Path = field(init=False)
    python: Path = field(init=False)

    def __post_init__(self) -> None:
        self.folder = self.root / ".venv"
        self.python = self.folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")

    # -- the stamp ----------------------------------------------------------------------------------------------------

    def read_stamp(self) -> dict[str, Any]:
        """The stamp, {} where there is none that can be read."""
        try:
            stamp = json.loads((self.folder / STAMP).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return stamp if isinstance(stamp, dict) else {}

    def update_stamp(self, **entries: Any) -> None:
        """Adds entries to the stamp, by an atomic rename."""
        path = self.folder / STAMP
        part = path.with_suffix(".part")
        part.write_text(json.dumps({**self.read_stamp(), **entries}, indent=1), encoding="utf-8")
        part.replace(path)

    def _identity(self) -> dict[str, str]:
        """What a stamp must say for the environment to be this project's, at this place, for this Python."""
        return {"root": str(self.root), "python": platform.python_version()}

    def _wanted(self) -> str:
        return hashlib.sha256((self.root / "pyproject.toml").read_bytes()).hexdigest()

    def is_current(self, extras: Iterable[str]) -> bool:
        """Whether everything is installed already; reads two small files and starts nothing."""
        stamp = self.read_stamp()
        return (
            self.python.exists()
            and all(stamp.get(name) == value for name, value in self._identity().items())
            and stamp.get("pyproject") == self._wanted()
            and set(extras) <= set(stamp.get("extras", ()))
        )

    # -- making it ----------------------------------------------------------------------------------------------------

    def prepare(self, extras: tuple[str, ...] = ()) -> None:
        """Makes or completes the environment with the project (editable) and its extras. Raises SetupError."""
        if self.is_current(extras):
            self.shell.say("Environment: ready.")
            return
        old = self.read_stamp()
        if any(old.get(name) != value for name, value in self._identity().items()) or not self.python.exists():
            self._make()
            old = {}
        (self.folder / STAMP).unlink(missing_ok=True)
        extras = tuple(sorted({*extras, *old.get("extras", ())}))
        self._install_torch()
        self._install_project(extras)
        kept = {name: value for name, value in old.items() if name == "models"}
        self.update_stamp(**kept, **self._identity(), pyproject=self._wanted(), extras=list(extras))

    def _make(self) -> None:
        if self.folder.exists():
            self.shell.say("Environment: .venv is incomplete or of another Python; making it anew.")
            try:
                shutil.rmtree(self.folder)
            except OSError as error:
                raise SetupError(
                    "The old .venv cannot be removed.", str(error), "Close the programs that use it and start again."
                ) from error
        else:
            self.shell.say(f"Environment: making .venv with Python {platform.python_version()}.")
        result = self.shell.capture([sys.executable, "-m", "venv", str(self.folder)])
        if result.code != 0:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise SetupError(
                "The virtual environment cannot be made.",
                result.last_line or f"exit status {result.code}",
                "Check free disk space and that this folder may be written to, then start again.",
            )

    def _pip(self, *arguments: str) -> Result:
        result = self.shell.follow(
            [str(self.python), "-m", "pip", "install", "--disable-pip-version-check", "--no-input", *arguments],
            self.folder / LOG,
            self._show_pip_line,
        )
        self.shell.progress("")
        return result

    def _show_pip_line(self, line: str) -> None:
        words = line.split()
        if len(words) >= 2 and words[0] in ("Downloading", "Collecting", "Building", "Installing"):
            self.shell.progress(f"  {line.strip()}")

    def _install_torch(self) -> None:
        """The small CPU build: our own kernels drive the GPU. Other systems' plain build is the CPU's."""
        if sys.platform != "linux":
            return
        requirement = torch_requirement(self.root / "pyproject.toml")
        self.shell.say("Libraries: PyTorch for the CPU.")
        if self._pip(f"{requirement}+cpu").code == 0:
            return
        # uv knows where PyTorch keeps its CPU builds.
        if self._pip("uv").code == 0:
            uv = [str(self.python), "-m", "uv", "pip", "install", "--python", str(self.python)]
            command = [*uv, "--torch-backend", "cpu", requirement]
            result = self.shell.follow(command, self.folder / LOG, self._show_pip_line)
            self.shell.progress("")
            if result.code == 0:
                return
        self.shell.say("Libraries: no CPU build of PyTorch can be reached; the general one needs about 3 GB of disk.")

    def _install_project(self, extras: tuple[str, ...]) -> None:
        suffix = f"[{','.join(extras)}]" if extras else ""
        self.shell.say("Libraries: DeskInfer and what it needs (about 800 MB on disk besides PyTorch).")
        result = self._pip("--editable", f"{self.root}{suffix}")
        if result.code != 0:
            reason = next((line for line in result.output.splitlines() if line.startswith("ERROR")), result.last_line)
            raise SetupError(
                "The libraries cannot be installed.",
                reason,
                f"Check the network and free disk space, then start again. All of pip's output: {self.folder / LOG}",
            )


def torch_requirement(pyproject: Path) -> str:
    """The pinned requirement of torch, such as "torch==2.13.0"."""
    with pyproject.open("rb") as file:
        dependencies = tomllib.load(file)["project"]["dependencies"]
    return next(str(entry) for entry in dependencies if str(entry).startswith("torch=="))


def has_nvidia_driver(shell: Shell) -> bool:
    """Whether NVIDIA's driver is installed; its library is only found, not started, so no sleeping GPU wakes."""
    return shell.has_library("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
