"""The engine's sentences in the user's language: they are its own, and nothing of their values is lost."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.qt.error_words import TEMPLATES, translated
from app.translation import Translator
from inference.engine.device_lock import DeviceLock
from inference.errors import InferenceError, ModelNotFoundError, ModelResidentError
from inference.formats.transfer import Transfer
from inference.store.model_store import ModelStore

CHINESE = Translator("zh")
PLACE = re.compile(r"\{\w*\}")


def _sentences(tree: ast.AST) -> Iterator[str]:
    """Every text of a source, with {} for what is put into it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = node.values
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@pytest.fixture(scope="module")
def said(project_root: Path) -> set[str]:
    """What the engine says, and those who stand between it and the windows."""
    names = ("inference", "kernels/device", "app/models", "app/actions", "app/remote")
    folders = [project_root / name for name in names]
    paths = [*(path for folder in folders for path in folder.rglob("*.py")), project_root / "app" / "engine_client.py"]
    return {text for path in paths for text in _sentences(ast.parse(path.read_text(encoding="utf-8")))}


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: template.source[:40])
def test_each_template_is_a_sentence_of_the_engine(said: set[str], template):
    assert PLACE.sub("{}", template.source) in said


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: template.source[:40])
def test_each_sentence_is_found_again_and_keeps_its_values(template):
    names = PLACE.findall(template.source)
    words = template.source
    for place, name in enumerate(names):
        words = words.replace(name, f"<{place}>")
    found = translated(words, CHINESE)
    assert found is not None
    assert any("\u4e00" <= char <= "\u9fff" for char in found)
    assert all(f"<{place}>" in found for place in range(len(names)))


def test_what_the_engine_has_not_said_is_not_translated():
    assert translated("Nobody said so. Ever.", CHINESE) is None


def _raised(kind: type[InferenceError], run) -> str:
    with pytest.raises(kind) as caught:
        run()
    return str(caught.value)


def test_a_model_that_another_process_holds(tmp_path: Path):
    holder = DeviceLock(tmp_path)
    holder.acquire("tiny")
    try:
        words = _raised(ModelResidentError, lambda: DeviceLock(tmp_path).acquire("other"))
    finally:
        holder.release()
    found = translated(words, CHINESE)
    assert found is not None
    assert "模型 tiny" in found
    assert re.search(r"进程 \d+", found)
    assert not re.search("[a-z]+ [a-z]+ [a-z]+", found)


@pytest.mark.parametrize("name", ["qwen2.5-coder-1.5b", "qwen2.5-3b-instruct", "no/such/file.gguf", "zzz"])
def test_a_model_that_is_not_there(tmp_path: Path, name: str):
    words = _raised(ModelNotFoundError, lambda: ModelStore(tmp_path).resolve(name))
    found = translated(words, CHINESE)
    assert found is not None
    assert "模型" in found


def test_a_disk_without_room(tmp_path: Path):
    transfer = Transfer("tiny", tmp_path)
    words = _raised(InferenceError, lambda: transfer.require_space(1 << 60))
    found = translated(words, CHINESE)
    assert found is not None
    assert "还需要" in found
