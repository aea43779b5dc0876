"""The documentation: pictures, links and the two languages agree with what is there."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from pathlib import Path
from urllib.parse import unquote

import pytest

from app.actions.registry import ActionRegistry
from app.desktop.hotkeys import parse, warnings
from app.settings.registry import setting_registry
from app.translation import read_catalogs
from inference.gateway.openapi import description
from installer import system_packages

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
PAIRS = [("README.md", "README.zh-CN.md"), ("docs/user-guide.md", "docs/user-guide.zh-CN.md")]
WIDEST_CODE = 98
LARGEST_PICTURE_BYTES, LARGEST_TOTAL_BYTES = 120_000, 4_000_000

_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_SOURCE = re.compile(r"""(?:src|srcset)=["']([^"']+)["']""")


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def targets(page: Path) -> list[str]:
    text = re.sub(r"`[^`\n]*`", "", prose(page))
    return [*_LINK.findall(text), *_SOURCE.findall(text)]


def headings(page: Path) -> list[str]:
    return re.findall(r"^#+ .*$", prose(page), re.MULTILINE)


def anchor(heading: str) -> str:
    """As the usual renderers of Markdown make it."""
    kept = re.sub(r"[^\w\- ]", "", heading.lstrip("#").strip().lower().replace("`", ""))
    return kept.replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in targets(page):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, fragment = unquote(target).partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{page.name}: {target}"
        if fragment:
            assert fragment in [anchor(heading) for heading in headings(file)], f"{page.name}: {target}"


def test_every_picture_is_shown_and_small() -> None:
    shown = {(page.parent / target).resolve() for page in PAGES for target in targets(page) if target.endswith(".png")}
    there = set(IMAGES.glob("*.png"))
    assert there == shown
    sizes = {path.name: path.stat().st_size for path in there}
    assert not {name: size for name, size in sizes.items() if size > LARGEST_PICTURE_BYTES}
    assert sum(sizes.values()) < LARGEST_TOTAL_BYTES


@pytest.mark.parametrize(("english", "chinese"), PAIRS)
def test_both_languages_have_the_same_parts(english: str, chinese: str) -> None:
    levels = [[heading.split(" ")[0] for heading in headings(ROOT / name)] for name in (english, chinese)]
    assert levels[0] == levels[1]
    for name, other in ((english, chinese), (chinese, english)):
        assert Path(other).name in targets(ROOT / name), f"{name} does not point at {other}"


@pytest.mark.parametrize(("english", "chinese"), PAIRS)
def test_both_languages_show_the_same_pictures(english: str, chinese: str) -> None:
    names = [
        [Path(target).stem.rpartition("-")[0] for target in targets(ROOT / name) if target.endswith(".png")]
        for name in (english, chinese)
    ]
    assert names[0] == names[1]
    for name, language in ((english, "en"), (chinese, "zh")):
        ends = {Path(target).stem.rpartition("-")[2] for target in targets(ROOT / name) if target.endswith(".png")}
        assert ends == {language}


def code_blocks(page: Path, language: str | None = None) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [code for name, code in found if language in (None, name)]


def columns(line: str) -> int:
    """Places of a line in a font of one width, in which Chinese characters take two."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in line)


@pytest.mark.parametrize("name", ["user-guide.md", "user-guide.zh-CN.md", "clients.md"])
def test_lines_of_code_are_as_wide_as_the_window_of_the_guide_at_most(name: str) -> None:
    lines = [line for code in code_blocks(ROOT / "docs" / name) for line in code.split("\n")]
    assert len(lines) > 15
    assert [line for line in lines if columns(line) > WIDEST_CODE] == []


@pytest.mark.parametrize("name", ["user-guide.md", "user-guide.zh-CN.md"])
def test_hotkeys_in_examples_are_none_that_the_app_warns_of(name: str) -> None:
    files = [tomllib.loads(code) for code in code_blocks(ROOT / "docs" / name, "toml")]
    asked = [file.get("hotkey", "") for file in files]
    hotkeys = [text for each in asked for text in (each.values() if isinstance(each, dict) else [each]) if text]
    assert len(hotkeys) == 2
    assert [hotkey for hotkey in hotkeys if warnings(parse(hotkey))] == []


def test_every_path_of_the_gateway_is_explained() -> None:
    page = (ROOT / "docs" / "clients.md").read_text(encoding="utf-8")
    paths = {f"{method.upper()} {path}" for path, methods in description()["paths"].items() for method in methods}
    assert len(paths) > 5
    assert {path for path in paths if f"`{path}`" not in page} == set()


def test_no_pictures_are_made_of_boxes(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.pictures import make_pictures

    monkeypatch.setattr(system_packages, "has_font", lambda _shell, language: language == "en")
    assert make_pictures.fonts_lacking(["en"]) == []
    assert make_pictures.fonts_lacking(["en", "zh"]) == ["fonts-wqy-microhei"]
    assert set(make_pictures.FONT_LANGUAGES) == set(make_pictures.TEXTS)


# What the guides stress or quote that is no label of a window.
NO_LABELS = {
    *(
        "checkpoint",
        "outputs",
        "Checks",
        "Names",
        "Replace by itself",
        "Sure, here is",
        "three",
        "torch",
        "CUDA is not used",
    ),
    *("Every text that you run an action on is then sent there", "Model, context, engine, threads, GPU memory"),
    *(
        "检查点",
        "输出",
        "核对",
        "人名",
        "自动替换",
        "好的，以下是",
        "三",
        "[您的姓名]",
        "模型、上下文长度、引擎、线程数、显存上限",
    ),
    *("此后您对其执行操作的每段文字都会发送到那里",),
}
_STRESSED = re.compile(r'(?<!\*)\*([^*\n]+)\*(?!\*)|\*\*([^*]+)\*\*|“([^”\n]+)”|"([^"\n]+)"')


def _labels(language: str) -> set[str]:
    """What the windows say, up to the first value in it or the end of the sentence."""
    catalog = read_catalogs("zh")
    texts = set(catalog if language == "en" else catalog.values())
    for setting in setting_registry(ActionRegistry().all()):
        texts |= {text[language] for text in (setting.title, setting.zero, *setting.choices.values()) if text}
    return texts


@pytest.mark.parametrize(("name", "language"), [("user-guide.md", "en"), ("user-guide.zh-CN.md", "zh")])
def test_labels_that_the_guide_names_are_those_of_the_windows(name: str, language: str) -> None:
    text = re.sub(r"`[^`\n]*`", "", prose(ROOT / "docs" / name))
    named = {"".join(groups).replace("\n", "").rstrip("….:。") for groups in _STRESSED.findall(text)} - NO_LABELS
    labels = _labels(language)
    # Of a text with values at least a word must be its own.
    templates = [label for label in labels if "{" in label and re.search(r"\w\w", re.sub(r"\{\w+\}", "", label))]
    patterns = [re.compile(re.sub(r"\\\{\w+\\\}", ".+", re.escape(label))) for label in templates]
    assert len(named) > 15
    assert {
        label
        for label in named
        if not any(known.startswith(label) for known in labels) and not any(p.fullmatch(label) for p in patterns)
    } == set()
