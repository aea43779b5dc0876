"""Start at login: the Run key on Windows, an autostart entry on other desktops. What counts is what the system has.

Nothing is remembered here, so an entry that the user removed elsewhere, switched off in the task manager or brought
along from another installation is seen as what it is.
"""

from __future__ import annotations

import enum
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from app.translation import UserText

NAME = "DeskInfer"
_RUN = r"Software\Microsoft\Windows\CurrentVersion\Run"
_APPROVED = r"Software\Microsoft\Windows\CurrentVersion\Explorer\StartupApproved\Run"
_RESERVED = frozenset(" \t\n\"'\\><~|&;$*?#()`")


class AutostartError(Exception):
    """The entry cannot be written.

    Attributes:
        text: what, why and what to do, for the user.
    """

    def __init__(self, text: UserText) -> None:
        self.text = text
        super().__init__(str(text))


class AutostartState(enum.Enum):
    """What happens at login."""

    OFF = "off"
    ON = "on"
    BLOCKED = "blocked"
    """There is an entry, but the system's own list of autostart programs has it switched off."""
    OTHER = "other"
    """There is an entry, and it starts another installation, which is there."""
    GONE = "gone"
    """There is an entry, but what it starts is there no more: the installation was moved."""


@dataclass(frozen=True, slots=True)
class AutostartReading:
    """The state, and what the entry starts ("" where there is none)."""

    state: AutostartState
    program: str = ""


class Autostart(Protocol):
    """The entry of this user."""

    def read(self) -> AutostartReading:
        """How things stand now."""
        ...

    def enable(self) -> None:
        """Starts this installation at login. Raises AutostartError."""
        ...

    def disable(self) -> None:
        """Starts nothing. Raises AutostartError."""
        ...


def start_command() -> tuple[str, ...]:
    """What starts this installation, from any folder and without a console window."""
    python = Path(sys.executable)
    if sys.platform == "win32" and python.with_name("pythonw.exe").is_file():
        python = python.with_name("pythonw.exe")
    return (str(python), "-P", "-m", "app")


def open_autostart() -> Autostart:
    """The entry of this system."""
    if sys.platform == "win32":
        import winreg

        return WindowsAutostart(winreg, start_command())
    base = os.environ.get("XDG_CONFIG_HOME", "")
    folder = Path(base) if os.path.isabs(base) else Path.home() / ".config"
    return XdgAutostart(folder / "autostart" / "deskinfer.desktop", start_command())


def repair(entry: Autostart) -> bool:
    """Lets an entry whose program is gone start this installation instead; whether it did. Raises AutostartError."""
    if entry.read().state is not AutostartState.GONE:
        return False
    entry.enable()
    return True


class XdgAutostart:
    """A .desktop file in the autostart folder."""

    def __init__(self, path: Path, command: tuple[str, ...]) -> None:
        self._path, self._command = path, command

    def read(self) -> AutostartReading:
        """How things stand now."""
        try:
            lines = self._path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return AutostartReading(AutostartState.OFF)
        entry = {key.strip(): value.strip() for key, _, value in (line.partition("=") for line in lines)}
        program = entry.get("TryExec") or entry.get("Exec", "").split(" ")[0].strip('"')
        if entry.get("Hidden") == "true" or entry.get("X-GNOME-Autostart-enabled") == "false":
            state = AutostartState.BLOCKED
        elif entry.get("Exec") == exec_line(self._command):
            state = AutostartState.ON
        else:
            state = AutostartState.OTHER if _is_there(program) else AutostartState.GONE
        return AutostartReading(state, program)

    def enable(self) -> None:
        """Writes the file."""
        lines = [
            "[Desktop Entry]",
            "Type=Application",
            f"Name={NAME}",
            "Icon=deskinfer",
            f"TryExec={self._command[0]}",
            f"Exec={exec_line(self._command)}",
            "Terminal=false",
            "X-GNOME-Autostart-enabled=true",
        ]
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        except OSError as error:
            raise _file_error(self._path, error) from error

    def disable(self) -> None:
        """Removes the file."""
        try:
            self._path.unlink(missing_ok=True)
        except OSError as error:
            raise _file_error(self._path, error) from error


class WindowsAutostart:
    """A value of the Run key of this user."""

    def __init__(self, winreg: Any, command: tuple[str, ...]) -> None:
        """`winreg` is the module of that name; tests pass their own."""
        self._winreg, self._command = winreg, command

    def read(self) -> AutostartReading:
        """How things stand now."""
        line = self._value(_RUN)
        if not isinstance(line, str) or not line:
            return AutostartReading(AutostartState.OFF)
        program = line[1:].partition('"')[0] if line.startswith('"') else line.split(" ")[0]
        approved = self._value(_APPROVED)
        if isinstance(approved, bytes) and approved[:1] and approved[0] & 1:
            state = AutostartState.BLOCKED  # switched off in the task manager
        elif line == subprocess.list2cmdline(self._command):
            state = AutostartState.ON
        else:
            state = AutostartState.OTHER if _is_there(program) else AutostartState.GONE
        return AutostartReading(state, program)

    def enable(self) -> None:
        """Writes the value, and takes away that the task manager has switched it off."""
        registry = self._winreg
        try:
            with registry.CreateKeyEx(registry.HKEY_CURRENT_USER, _RUN, 0, registry.KEY_SET_VALUE) as key:
                registry.SetValueEx(key, NAME, 0, registry.REG_SZ, subprocess.list2cmdline(self._command))
            self._delete(_APPROVED)
        except OSError as error:
            raise _registry_error(error) from error

    def disable(self) -> None:
        """Removes the value."""
        try:
            self._delete(_RUN)
            self._delete(_APPROVED)
        except OSError as error:
            raise _registry_error(error) from error

    def _value(self, path: str) -> object:
        registry = self._winreg
        try:
            with registry.OpenKey(registry.HKEY_CURRENT_USER, path, 0, registry.KEY_READ) as key:
                value: object = registry.QueryValueEx(key, NAME)[0]
                return value
        except OSError:
            return None

    def _delete(self, path: str) -> None:
        registry = self._winreg
        try:
            with registry.OpenKey(registry.HKEY_CURRENT_USER, path, 0, registry.KEY_SET_VALUE) as key:
                registry.DeleteValue(key, NAME)
        except FileNotFoundError:
            return


def _is_there(program: str) -> bool:
    return bool(program) and Path(program).is_file()


def exec_line(command: tuple[str, ...]) -> str:
    """The command as the value of Exec: quoted by the rules of desktop entries."""
    return " ".join(_quoted(part) for part in command)


def _quoted(part: str) -> str:
    part = part.replace("%", "%%")
    if not _RESERVED & set(part):
        return part
    for character in '\\"`$':
        part = part.replace(character, f"\\{character}")
    # Values of desktop entries are read with their escapes first, and split into arguments then.
    return '"' + part.replace("\\", "\\\\") + '"'


def _file_error(path: Path, error: OSError) -> AutostartError:
    return AutostartError(
        UserText(
            "{file} cannot be changed: {reason}. Correct the folder's rights, or add the program to the desktop's list "
            "of autostart programs.",
            file=str(path),
            reason=error.strerror or str(error),
        )
    )


def _registry_error(error: OSError) -> AutostartError:
    return AutostartError(
        UserText(
            "Windows does not let this program change what starts at login: {reason}. "
            "Put a shortcut into the folder shell:startup instead.",
            reason=error.strerror or str(error),
        )
    )
