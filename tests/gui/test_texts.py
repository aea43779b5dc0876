"""Every text that the windows show has a Chinese translation with the same placeholders."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.translation import placeholders, read_catalogs

CALLS = {"tr", "_tr", "UserText"}


def _texts(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            first = node.args[0]
            if name in CALLS and isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value


@pytest.fixture(scope="module")
def catalog() -> dict[str, str]:
    return read_catalogs("zh")


def test_every_text_of_the_windows_is_translated(project_root: Path, catalog: dict[str, str]):
    texts = set(_texts(project_root / "app" / "qt"))
    assert len(texts) > 400
    assert sorted(texts - set(catalog)) == []


def test_translations_keep_the_placeholders(catalog: dict[str, str]):
    wrong = {source: text for source, text in catalog.items() if placeholders(source) != placeholders(text)}
    assert wrong == {}
