"""One Chinese word for one thing, in windows, actions, README and guide: the words, and those not to be used."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.actions.registry import ActionRegistry
from app.paths import assets_dir
from app.settings.registry import setting_registry
from app.translation import read_catalogs


@dataclass(frozen=True, slots=True)
class Term:
    """A thing that the windows speak of.

    Attributes:
        english: a pattern of it in the English texts.
        chinese: the word, one of which stands wherever the pattern does; only forms of one word are listed together.
        avoided: patterns of other words for it.
    """

    english: str
    chinese: tuple[str, ...]
    avoided: tuple[str, ...] = ()


# What is written as it is: what stands for a value, keys of settings, commands.
CODE = re.compile(r"\{\w+\}|\[[\w.]+\]|`[^`]+`")
TERMS = [
    Term(r"\bhotkeys?\b", ("快捷键",), ("热键", "快速键")),
    Term(r"\bclipboard\b", ("剪贴板",), ("剪切板", "粘贴板")),
    Term(r"\bGPU(?:'s)? memory\b", ("显存",), ("GPU 内存", "显卡内存")),
    Term(r"\bmain memory\b", ("内存",), ("主内存", "主存")),
    Term(r"\btokens?\b", ("词元",), ("令牌", "标记符", r"(?<![a-z_{])tokens?(?![a-z_}])")),
    Term(r"\b(?:re)?load(?:ed|ing)?\b", ("加载",), ("载入", "装载")),
    Term(r"\bcontext\b", ("上下文",), ("语境",)),
    Term(r"\bmodels?\b", ("模型",), ("大模型",)),
    Term(r"\bkeyring\b", ("密钥环",), ("钥匙串", "钥匙环")),
    Term(r"\bserver\b", ("服务器",), ("服务端", "伺服器")),
    Term(r"\bconversations?\b", ("对话",), ("(?<!桌面)会话",)),
    Term(r"\bto-dos?\b", ("待办",)),
    Term(r"\bhistory\b", ("历史记录",)),
    Term(r"\bsettings\b", ("设置",), ("选项设置", "首选项")),
    Term(r"\blicences?\b", ("许可证",), ("授权",)),
    Term(r"\b(?:system )?prompts?\b", ("提示词",), ("提示(?!词|[中（：])",)),
    Term(r"\bClick\b", ("单击",), ("(?<!单|双)击", "点选")),
    Term(r"\btray icons?\b", ("托盘图标",), ("系统托盘", "通知区域")),
    Term(r"\bsleep\b|\bslept\b|\basleep\b", ("休眠",), ("睡眠",)),
    Term(r"\bdownload(?:ed|ing|s)?\b", ("下载",)),
    Term(r"\bDelete\b", ("删除",), ("刪除",)),
    Term(r"\bthis (?:machine|computer)\b", ("本机",), ("电脑", "计算机", "本地")),
    Term(r"\bthe app\b", ("程序", "DeskInfer"), ("应用(?!程序)", "本应用")),
    Term(r"\bnote apps?\b", ("笔记软件",), ("笔记应用",)),
    Term(r"\b(?:folders?|director(?:y|ies))\b", ("文件夹",), ("目录(?!中)",)),
    Term(r"\bcatalog\b(?! id)", ("目录",)),
    Term(r"\b(?:next|this|own) actions?\b", ("操作",), ("动作",)),
    Term(r"\b(?:previous|next|this|last) change\b", ("更改",), ("改动",)),
    Term(r"\bother programs?\b|\banother program\b", ("程序",)),
]


def _of_settings() -> Iterator[tuple[str, str]]:
    """Every text of the settings, English and Chinese."""
    for setting in setting_registry(ActionRegistry().all()):
        for text in (setting.title, setting.help, setting.zero, *setting.choices.values()):
            if text:
                yield text["en"], text["zh"]


def _chinese(project_root: Path) -> Iterator[tuple[str, str]]:
    yield from (("translations", text) for text in read_catalogs("zh").values())
    yield from (("settings", chinese) for _, chinese in _of_settings())
    documents = [project_root / "README.zh-CN.md", project_root / "docs" / "user-guide.zh-CN.md"]
    for path in [*sorted(assets_dir("actions").glob("*.toml")), *documents]:
        lines = path.read_text(encoding="utf-8").splitlines()
        yield from ((f"{path.name}:{number}", CODE.sub("", line)) for number, line in enumerate(lines, 1))


@pytest.mark.parametrize("term", TERMS, ids=lambda term: term.chinese[0])
def test_a_thing_has_its_word_wherever_it_is_spoken_of(term: Term) -> None:
    speaking = {
        source: text
        for source, text in [*read_catalogs("zh").items(), *_of_settings()]
        if re.search(term.english, CODE.sub("", source))
    }
    assert speaking, "nothing speaks of it any more"
    assert {source: text for source, text in speaking.items() if not any(each in text for each in term.chinese)} == {}


@pytest.mark.parametrize("term", TERMS, ids=lambda term: term.chinese[0])
def test_no_second_word_is_used_for_it(term: Term, project_root: Path) -> None:
    lines = list(_chinese(project_root))
    assert [line for line in lines for word in term.avoided if re.search(word, line[1])] == []
