"""Start at login: what the system has is what counts, also after the installation was moved."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from types import TracebackType

import pytest

from app.desktop.autostart import (
    NAME,
    AutostartError,
    AutostartState,
    WindowsAutostart,
    XdgAutostart,
    open_autostart,
    repair,
    start_command,
)

RUN = r"Software\Microsoft\Windows\CurrentVersion\Run"
APPROVED = r"Software\Microsoft\Windows\CurrentVersion\Explorer\StartupApproved\Run"


class FakeKey:
    def __init__(self, values: dict[str, object]) -> None:
        self.values = values

    def __enter__(self) -> FakeKey:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        pass


class FakeRegistry:
    """What `winreg` does, for HKEY_CURRENT_USER."""

    HKEY_CURRENT_USER, KEY_READ, KEY_SET_VALUE, REG_SZ = 1, 2, 3, 4

    def __init__(self) -> None:
        self.keys: dict[str, dict[str, object]] = {RUN: {}}
        self.refuses = False

    def OpenKey(self, root: int, path: str, reserved: int, access: int) -> FakeKey:
        if path not in self.keys:
            raise FileNotFoundError(2, "not found")
        return FakeKey(self.keys[path])

    def CreateKeyEx(self, root: int, path: str, reserved: int, access: int) -> FakeKey:
        if self.refuses:
            raise PermissionError(13, "Access is denied")
        return FakeKey(self.keys.setdefault(path, {}))

    def QueryValueEx(self, key: FakeKey, name: str) -> tuple[object, int]:
        if name not in key.values:
            raise FileNotFoundError(2, "not found")
        return key.values[name], 1

    def SetValueEx(self, key: FakeKey, name: str, reserved: int, kind: int, value: str) -> None:
        key.values[name] = value

    def DeleteValue(self, key: FakeKey, name: str) -> None:
        if name not in key.values:
            raise FileNotFoundError(2, "not found")
        del key.values[name]


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "a folder" / "python"
    path.parent.mkdir()
    path.touch()
    return str(path)


def test_xdg_on_and_off(tmp_path: Path, program: str) -> None:
    path = tmp_path / "config" / "autostart" / "deskinfer.desktop"
    entry = XdgAutostart(path, (program, "-P", "-m", "app"))
    assert entry.read().state is AutostartState.OFF
    entry.disable()
    entry.enable()
    assert entry.read().state is AutostartState.ON
    assert entry.read().program == program
    entry.disable()
    assert not path.exists()


def test_xdg_arguments_survive_the_quoting(tmp_path: Path) -> None:
    command = (f'{tmp_path}/a $b `c` "d" 50% e\\f', "-m", "app")
    path = tmp_path / "deskinfer.desktop"
    XdgAutostart(path, command).enable()
    line = next(line for line in path.read_text().splitlines() if line.startswith("Exec="))
    # As launchers read it: escapes of the value first, then the arguments, then the field codes.
    value = line.removeprefix("Exec=").replace("\\\\", "\\")
    parts = [part.replace("\\$", "$").replace("\\`", "`").replace("%%", "%") for part in shlex.split(value)]
    assert tuple(parts) == command


@pytest.mark.parametrize("line", ["Hidden=true", "X-GNOME-Autostart-enabled=false"])
def test_xdg_switched_off_by_the_desktop_is_seen(tmp_path: Path, program: str, line: str) -> None:
    path = tmp_path / "deskinfer.desktop"
    entry = XdgAutostart(path, (program,))
    entry.enable()
    path.write_text(path.read_text().replace("X-GNOME-Autostart-enabled=true", line))
    assert entry.read().state is AutostartState.BLOCKED
    entry.enable()
    assert entry.read().state is AutostartState.ON


def test_a_moved_installation_is_repaired_and_another_one_is_left(tmp_path: Path, program: str) -> None:
    path = tmp_path / "deskinfer.desktop"
    ours = XdgAutostart(path, ("/new/python", "-m", "app"))
    XdgAutostart(path, (program, "-m", "app")).enable()
    assert ours.read().state is AutostartState.OTHER
    assert not repair(ours)
    Path(program).unlink()
    assert ours.read().state is AutostartState.GONE
    assert repair(ours)
    assert ours.read().state is AutostartState.ON


@pytest.mark.skipif(sys.platform == "win32", reason="rights are another matter there")
def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "autostart").write_text("a file")
    with pytest.raises(AutostartError, match="autostart"):
        XdgAutostart(tmp_path / "autostart" / "deskinfer.desktop", ("x",)).enable()


def test_windows_on_off_and_the_task_manager(program: str) -> None:
    registry = FakeRegistry()
    entry = WindowsAutostart(registry, (program, "-P", "-m", "app"))
    assert entry.read().state is AutostartState.OFF
    entry.enable()
    assert registry.keys[RUN][NAME] == f'"{program}" -P -m app'
    assert entry.read().state is AutostartState.ON
    registry.keys[APPROVED] = {NAME: bytes([3, 0, 0, 0])}
    assert entry.read().state is AutostartState.BLOCKED
    entry.enable()
    assert entry.read().state is AutostartState.ON
    registry.keys[APPROVED] = {NAME: bytes([2, 0, 0, 0])}
    assert entry.read().state is AutostartState.ON
    entry.disable()
    entry.disable()
    assert registry.keys[RUN] == {}


def test_windows_a_moved_installation(program: str) -> None:
    registry = FakeRegistry()
    registry.keys[RUN][NAME] = f'"{program}" -m app'
    entry = WindowsAutostart(registry, ("C:\\new\\pythonw.exe", "-m", "app"))
    assert entry.read().state is AutostartState.OTHER
    registry.keys[RUN][NAME] = "C:\\gone\\pythonw.exe -m app"
    assert repair(entry)
    assert registry.keys[RUN][NAME] == "C:\\new\\pythonw.exe -m app"


def test_windows_refuses(program: str) -> None:
    registry = FakeRegistry()
    registry.refuses = True
    with pytest.raises(AutostartError, match="Access is denied"):
        WindowsAutostart(registry, (program,)).enable()


@pytest.mark.skipif(sys.platform == "win32", reason="the real registry is not ours to change")
def test_the_entry_of_this_system(own_folders: None) -> None:
    entry = open_autostart()
    assert entry.read().state is AutostartState.OFF
    entry.enable()
    assert entry.read().state is AutostartState.ON
    assert start_command()[0] == entry.read().program
