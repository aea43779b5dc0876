"""Translation without Qt, and the completeness of the Chinese catalog."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

import app
from app.translation import (
    CatalogError,
    Translator,
    UserText,
    placeholders,
    read_catalog,
    read_catalogs,
    system_locale,
    system_ui_language,
    ui_language_of,
)

CATALOG = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_CN" sourcelanguage="en">
<context><name>deskinfer</name>
<message><source>Hello {name}</source><translation>{name}，你好</translation></message>
<message><source>the file</source><translation>该文件</translation></message>
<message><source>Draft</source><translation type="unfinished">草稿</translation></message>
<message><source>Empty</source><translation></translation></message>
<message><source>Bare</source></message>
</context>
</TS>
"""
_MARKS = {"tr", "_tr", "UserText"}
_PLACEHOLDER = re.compile(r"\{\w+\}")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "deskinfer_zh_CN.ts").write_text(CATALOG, encoding="utf-8")
    return tmp_path


def test_text_is_translated_and_filled(directory: Path) -> None:
    chinese, english = Translator("zh", directory), Translator("en", directory)
    assert (chinese.language, english.language) == ("zh", "en")
    assert chinese.tr("Hello {name}", name="Li") == "Li，你好"
    assert english.tr("Hello {name}", name="Li") == "Hello Li"


@pytest.mark.parametrize("source", ["Draft", "Empty", "Bare", "Never seen"])
def test_what_is_not_translated_stays_english(directory: Path, source: str) -> None:
    assert Translator("zh", directory).tr(source) == source


def test_a_user_text_is_english_as_a_string_and_translated_by_the_translator(directory: Path) -> None:
    text = UserText("Hello {name}", name=UserText("the file"))
    assert str(text) == "Hello the file"
    assert repr(text) == "UserText('Hello the file')"
    assert Translator("zh", directory).tr(text) == "该文件，你好"
    assert Translator("zh", directory).tr("Hello {name}", name=UserText("the file")) == "该文件，你好"
    assert text == UserText("Hello {name}", name=UserText("the file"))
    assert hash(text) == hash(UserText("Hello {name}", name=1))
    assert text != UserText("Hello {name}", name=1)


@given(st.text(), st.text())
def test_values_are_never_expanded(first: str, second: str) -> None:
    text = UserText("<{a}|{b}>", a=first + "{b}", b=second)
    assert str(text) == f"<{first}{{b}}|{second}>"


def test_an_unknown_placeholder_stays(directory: Path) -> None:
    assert Translator("en", directory).tr("Hello {name} {other}", other=1) == "Hello {name} 1"


def test_any_other_language_speaks_english(directory: Path) -> None:
    assert Translator("fr", directory).language == "en"


def test_a_text_in_several_languages_is_picked(directory: Path) -> None:
    texts = {"en": "Yes", "zh": "是"}
    assert Translator("zh", directory).pick(texts) == "是"
    assert Translator("en", directory).pick(texts) == "Yes"
    assert Translator("zh", directory).pick({"en": "Yes"}) == "Yes"
    assert Translator("en", directory).pick({"zh": "是"}) == "是"
    assert Translator("en", directory).pick({}) == ""


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("zh_CN.UTF-8", "zh"),
        ("zh_TW", "zh"),
        ("Chinese (Simplified)_China", "zh"),
        ("en_US.UTF-8", "en"),
        ("de_DE", "en"),
        ("C", "en"),
        ("", "en"),
    ],
)
def test_the_language_of_a_locale(name: str, language: str) -> None:
    assert ui_language_of(name) == language


def test_auto_follows_the_system(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    assert system_locale() == "zh_CN.UTF-8"
    assert Translator("auto", directory).language == system_ui_language() == "zh"
    monkeypatch.setenv("LC_ALL", "en_GB.UTF-8")
    assert Translator("auto", directory).language == "en"


def test_without_a_locale_in_the_environment_the_system_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("locale.getlocale", lambda: ("Chinese (Simplified)_China", "936"))
    assert system_ui_language() == "zh"
    monkeypatch.setattr("locale.getlocale", lambda: (None, None))
    assert system_locale() == ""


def test_a_broken_catalog_is_named(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="deskinfer_zh_CN"):
        Translator("zh", tmp_path)
    (tmp_path / "deskinfer_zh_CN.ts").write_text("<TS>")
    with pytest.raises(CatalogError, match="deskinfer_zh_CN"):
        Translator("zh", tmp_path)


def test_one_source_has_one_translation(directory: Path) -> None:
    double = "<message><source>the file</source><translation>文件</translation></message></context>"
    path = directory / "deskinfer_zh_CN.ts"
    path.write_text(CATALOG.replace("</context>", double), encoding="utf-8")
    with pytest.raises(CatalogError, match="two translations"):
        read_catalog(path)


def test_each_room_may_have_a_catalog_of_its_own(directory: Path) -> None:
    other = CATALOG.replace("Hello {name}", "Bye {name}").replace("，你好", "，再见").replace("该文件", "文件")
    (directory / "chat_zh_CN.ts").write_text(other.replace("the file", "a chat's file"), encoding="utf-8")
    chinese = Translator("zh", directory)
    assert chinese.tr("Hello {name}", name="Li") == "Li，你好"
    assert chinese.tr("Bye {name}", name="Li") == "Li，再见"
    (directory / "chat_zh_CN.ts").write_text(other, encoding="utf-8")
    with pytest.raises(CatalogError, match=r"'the file' has another translation"):
        Translator("zh", directory)


def _sources_in(tree: ast.AST) -> Iterator[str]:
    """The source texts of tr("..."), self._tr("..."), UserText("...") and of both arms of a condition in them."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in _MARKS:
            first = node.args[0]
            arms = [first.body, first.orelse] if isinstance(first, ast.IfExp) else [first]
            yield from (arm.value for arm in arms if isinstance(arm, ast.Constant) and isinstance(arm.value, str))


def used_sources() -> dict[str, str]:
    """Every source text of the app and the first file that uses it."""
    root = Path(app.__file__).parent
    found: dict[str, str] = {}
    for path in sorted(root.rglob("*.py")):
        for source in _sources_in(ast.parse(path.read_text(encoding="utf-8"))):
            found.setdefault(source, path.relative_to(root.parent).as_posix())
    return found


def test_the_collector_sees_every_way_of_marking() -> None:
    code = 'tr("a"); self._tr("b"); t.tr("c" if x else "d"); UserText("e", k=1); tr(name); other("f"); tr()'
    assert list(_sources_in(ast.parse(code))) == ["a", "b", "c", "d", "e"]


def test_every_text_of_the_app_is_translated_into_chinese() -> None:
    catalog = read_catalogs("zh")
    used = used_sources()
    missing = [
        f"<!-- {file} --><message><source>{escape(source)}</source><translation></translation></message>"
        for source, file in used.items()
        # A frame around values only, such as "{reason}", reads the same everywhere.
        if source not in catalog and any(char.isalpha() for char in _PLACEHOLDER.sub("", source))
    ]
    assert not missing, "Add these to assets/translations/deskinfer_zh_CN.ts:\n" + "\n".join(missing)


def test_every_translation_has_the_placeholders_of_its_source() -> None:
    catalog = read_catalogs("zh")
    wrong = [source for source, text in catalog.items() if placeholders(source) != placeholders(text)]
    assert wrong == []


def test_the_catalog_holds_nothing_that_the_app_does_not_say() -> None:
    catalog = read_catalogs("zh")
    assert sorted(set(catalog) - set(used_sources())) == []
