"""The entry among the programs of the desktop."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from app.desktop.desktop_entry import APP_ID, entry_path, entry_text, install_entry

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no such entries")


def test_it_is_written_once_and_after_a_move(monkeypatch: pytest.MonkeyPatch) -> None:
    install_entry()
    path = entry_path()
    assert path.name == "org.deskinfer.DeskInfer.desktop"
    assert path.is_relative_to(os.environ["XDG_DATA_HOME"])
    text = path.read_text(encoding="utf-8")
    assert f"TryExec={sys.executable}" in text
    stamp = path.stat().st_mtime_ns
    install_entry()
    assert path.stat().st_mtime_ns == stamp
    monkeypatch.setattr("app.desktop.desktop_entry.start_command", lambda: ("/a b/python", "-m", "app"))
    install_entry()
    assert 'Exec="/a b/python" -m app' in path.read_text(encoding="utf-8")
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_desktops_take_its_name() -> None:
    """The portal wants a dot, and no dash before the last one."""
    assert "." in APP_ID
    assert "-" not in APP_ID


def test_it_is_a_valid_entry() -> None:
    if shutil.which("desktop-file-validate") is None:
        pytest.skip("desktop-file-validate is not installed")
    install_entry()
    done = subprocess.run(["desktop-file-validate", entry_path()], capture_output=True, text=True, check=False)
    assert done.stdout == ""
    assert entry_text(("x",)).endswith("\n")
