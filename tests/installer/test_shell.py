"""The real shell, with harmless commands."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from installer.shell import Shell


def test_capture_joins_both_streams() -> None:
    code = "import sys; print('out', flush=True); print('err', file=sys.stderr); sys.exit(3)"
    result = Shell().capture([sys.executable, "-c", code])
    assert (result.code, result.last_line) == (3, "err")
    assert "out" in result.output


def test_missing_command_is_a_result(tmp_path: Path) -> None:
    assert Shell().capture([str(tmp_path / "none")]).code == 127
    assert Shell().follow([str(tmp_path / "none")], tmp_path / "log", print).code == 127


def test_follow_hands_over_lines_and_keeps_a_log(tmp_path: Path) -> None:
    lines: list[str] = []
    result = Shell().follow([sys.executable, "-c", "print('a'); print('b')"], tmp_path / "log", lines.append)
    assert (result.code, lines) == (0, ["a", "b"])
    assert (tmp_path / "log").read_text().endswith("a\nb\n")


def test_foreign_python_paths_are_not_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "somewhere")
    result = Shell().capture([sys.executable, "-c", "import os; print(os.environ.get('PYTHONPATH'))"])
    assert result.last_line == "None"
