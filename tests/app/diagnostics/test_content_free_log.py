"""The log of the diagnostics bundle holds what our source says, and nothing that a user wrote."""

from __future__ import annotations

import ast
import logging
import sys
from pathlib import Path

import pytest

from app.diagnostics.content_free_log import ContentFreeFormatter

SECRET = "xyzzy-secret"
LEVELS = {"debug", "info", "warning", "error", "exception", "critical", "log"}


def line(name: str, message: object, *args: object, exc_info: bool = False) -> str:
    info = sys.exc_info() if exc_info else None
    record = logging.LogRecord(name, logging.WARNING, "x.py", 1, message, args, info)  # type: ignore[arg-type]
    return ContentFreeFormatter().format(record)


def test_constants_numbers_and_names_of_errors_stay() -> None:
    assert line("app.qt", "up after %.0f ms", 812.4).endswith("WARNING app.qt: up after 812 ms")
    assert line("inference.x", "%s met %s.", SECRET, "ValueError").endswith(": … met ValueError.")


@pytest.mark.parametrize("value", [SECRET, f"/home/{SECRET}/model.gguf", ValueError(SECRET), {"a": SECRET}, "名字"])
def test_values_are_hidden(value: object) -> None:
    assert SECRET not in line("app.x", "no file %s here", value)
    assert line("app.x", "no file %s here", value).endswith("no file … here")


def test_other_programs_messages_are_hidden_whole() -> None:
    assert line("huggingface_hub", SECRET).endswith("huggingface_hub: …")
    assert SECRET not in line("application", SECRET)


def test_tracebacks_keep_places_in_our_code_only(project_root: Path) -> None:
    trace = f'  File "{project_root}/app/qt/popup/popup.py", line 12, in show\n    x = "{SECRET}"\n'
    trace += f'  File "/home/app/{SECRET}/plugin.py", line 3, in run\n'
    trace += f'  File "{project_root}/{SECRET}.py", line 3, in run\n'
    text = line("app.x", "%s met:\n%s", "KeyError", trace)
    assert "app/qt/popup/popup.py:12 show" in text
    assert SECRET not in text
    try:
        raise ValueError(SECRET)
    except ValueError:
        text = line("app.x", "failed", exc_info=True)
    assert "ValueError" in text
    assert SECRET not in text


def test_a_template_that_does_not_fit_is_no_error() -> None:
    assert line("app.x", "%d of %d", 1).endswith("%d of %d")


def test_every_message_of_ours_is_a_constant(project_root: Path) -> None:
    found, wrong = 0, []
    for package in ("app", "inference", "kernels"):
        for path in (project_root / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
                    continue
                owner = node.func.value
                if node.func.attr in LEVELS and isinstance(owner, ast.Name) and owner.id in ("log", "_log", "logger"):
                    found += 1
                    if not (isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)):
                        wrong.append(f"{path}:{node.lineno}")
    assert found > 10
    assert wrong == []
