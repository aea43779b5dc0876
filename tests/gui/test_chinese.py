"""No English is left in the Chinese windows: every text that they hold is looked at, hidden or shown.

Names, keys and units are the same in both languages; what else has Latin words is English that was forgotten.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QComboBox,
    QLabel,
    QLineEdit,
    QListWidget,
    QMenu,
    QMessageBox,
    QPlainTextEdit,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.actions.registry import ActionRegistry
from app.desktop.protocols import DesktopSession
from app.diagnostics.bundle import DiagnosticFile
from app.engine_client import ScriptedAnswer
from app.qt.remote.dialog import RemoteChoice, RemoteDialog
from app.qt.settings.diagnostics_window import DiagnosticsWindow
from app.qt.settings.guide_window import GuideWindow
from app.qt.settings.values import value_text
from app.translation import Translator, read_catalogs
from inference.store.catalog import load_catalog
from tests.gui.remote.test_dialog import Keys
from tests.gui.test_application import RunningApp

pytestmark = pytest.mark.gui

TEXT = "安娜周五前送报告，共3份。"
TODOS = '{"source": "安娜周五前送报告", "task": "送报告", "owner": "安娜", "due": "周五"}\n'
# Latin words that Chinese windows keep: addresses, files, keys, products, abbreviations, sizes, the names of the test.
KEPT = re.compile(
    r"\b\w+://\S*|[\w./*-]*\.(?:gguf|md|toml|ics|json|zip)\b|localhost\S*|https?"
    r"|(?:Ctrl|Shift|Alt|Super|Meta|Esc|Enter|Tab|F\d+)(?:\+\w+)*|deskinfer(?: --?\w+)*"
    r"|DeskInfer|OpenAI|Ollama|vLLM|SGLang|llama\.cpp|NVIDIA|PyTorch|Markdown|Wayland|X11|Windows|GNOME"
    r"|API|GPU|CPU|PATH|JSON|Top-[kp]|BF16|F16|Q\d\w*|[\d.,]+[ \u00a0]?[KMGT]?i?B\b|\d+[BM]\b"
    r"|English|python|keepassxc|1password|default-model|fake\b"
)
CHINESE = re.compile(r"[\u3000-\u9fff\uff00-\uffef]")
WORD = re.compile(r"[A-Za-z]{2,}")


def english_in(text: str) -> list[str]:
    """The words of a text that are neither Chinese nor kept."""
    names = [name for entry in load_catalog().entries.values() for name in (entry.id, entry.title.split(" (")[0])]
    for name in sorted({*names, *(entry.licence for entry in load_catalog().entries.values())}, key=len, reverse=True):
        text = text.replace(name, "")
    return WORD.findall(KEPT.sub("", re.sub(r"<[^>]+>|&\w+;", "", text)))


def _texts_of(widget: QWidget) -> Iterator[str]:
    yield from (widget.toolTip(), widget.accessibleName(), widget.accessibleDescription())
    if widget.isWindow():
        yield widget.windowTitle()
    if isinstance(widget, QLabel | QAbstractButton):
        yield widget.text()
    elif isinstance(widget, QLineEdit):
        yield widget.placeholderText()
    elif isinstance(widget, QPlainTextEdit):
        yield widget.placeholderText()
    elif isinstance(widget, QAbstractSpinBox):
        yield widget.text()
    elif isinstance(widget, QComboBox):
        yield from (widget.itemText(place) for place in range(widget.count()))
    elif isinstance(widget, QListWidget):
        yield from (widget.item(place).text() for place in range(widget.count()))
    elif isinstance(widget, QMenu):
        yield from _entries_of(widget)
    elif isinstance(widget, QMessageBox):
        yield widget.text()
        yield widget.informativeText()


def _entries_of(menu: QMenu) -> Iterator[str]:
    actions: list[QAction] = menu.actions()
    for action in actions:
        yield action.text()


def english_left(window: QWidget) -> dict[str, list[str]]:
    """Texts of a window that hold English, with the words."""
    texts = {text for widget in (window, *window.findChildren(QWidget)) for text in _texts_of(widget) if text}
    return {text: words for text in sorted(texts) if (words := english_in(text))}


@pytest.fixture
def running(
    qtbot: QtBot, fake_session: DesktopSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[RunningApp]:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    running = RunningApp(qtbot, fake_session, tmp_path, "zh").start()
    running.play()
    yield running
    running.app.close()
    QGuiApplication.clipboard().clear()


def test_the_search_finds_english_and_lets_names_be() -> None:
    assert english_in("SmolLM2 135M Instruct, for tests") == ["for", "tests"]
    assert english_in("按 Ctrl+Shift+1，由 NVIDIA GPU 计算，需要 1.04 GB；见 https://example.org/a") == []
    assert english_in("Suits this machine") == ["Suits", "this", "machine"]


def test_home_and_tray(running: RunningApp, qtbot: QtBot) -> None:
    window = running.app.window
    window.set_only_home(True)
    window.bring_to_front()
    qtbot.wait(30)
    assert english_left(window) == {}
    assert english_left(running.app.tray.menu) == {}
    assert english_in(running.app.tray.icon.toolTip()) == []
    window.close()
    assert english_left(window) == {}  # with the message that it goes on
    for message in window.findChildren(QMessageBox):
        message.close()


@pytest.mark.parametrize(
    ("action", "answer"), [("summarize", "好。"), ("rewrite", "安娜送3份报告。"), ("todos", TODOS)]
)
def test_the_popup(running: RunningApp, qtbot: QtBot, action: str, answer: str) -> None:
    running.client._answers = [ScriptedAnswer(answer)]
    running.app.controller.run_text(action, TEXT)
    running.play()
    qtbot.wait(30)
    assert english_left(running.app.popup) == {}


def test_the_popup_with_nothing_selected(running: RunningApp, qtbot: QtBot) -> None:
    QGuiApplication.clipboard().setText("剪贴板上的文字")
    running.grabber.held["Ctrl+Shift+1"]()
    qtbot.waitUntil(running.app.popup.isVisible, timeout=5000)
    qtbot.waitUntil(running.app.popup.notice.isVisible, timeout=5000)
    assert english_left(running.app.popup) == {}


def test_the_chat(running: RunningApp, qtbot: QtBot) -> None:
    running.app.history.add_answer("summarize", TEXT, "好", "fake")
    running.app.chat.open()
    qtbot.wait(30)
    assert english_left(running.app.chat.window) == {}
    running.app.chat.continue_answer("总结", TEXT, "# 好\n\n```python\nprint(1)\n```\n")
    qtbot.wait(30)
    assert english_left(running.app.chat.window) == {}


def test_models(running: RunningApp, qtbot: QtBot) -> None:
    running.app.models.open()
    window = running.app.models.owner.window
    assert window is not None
    qtbot.waitUntil(lambda: len(window.rows) >= len(load_catalog().entries), timeout=5000)
    qtbot.wait(100)
    assert english_left(window) == {}


def test_settings(running: RunningApp, qtbot: QtBot) -> None:
    running.app.open_settings()
    dialog = running.app.settings_owner.dialog
    assert dialog is not None
    qtbot.wait(30)
    assert english_left(dialog) == {}
    for setting in running.settings.registry.values():
        assert english_in(value_text(setting, setting.default, Translator("zh"))) == [], setting.key


def test_welcome(running: RunningApp, qtbot: QtBot) -> None:
    running.app.welcome.open()
    window = running.app.welcome.window
    assert window is not None
    qtbot.wait(30)
    assert english_left(window) == {}


def test_a_server(running: RunningApp, qtbot: QtBot) -> None:
    dialog = RemoteDialog(RemoteChoice("", "", False), Keys(), Translator("zh"), running.bridge.post_call)
    qtbot.addWidget(dialog)
    assert english_left(dialog) == {}


def test_diagnostics_and_guide(qtbot: QtBot, tmp_path: Path) -> None:
    window = DiagnosticsWindow(Translator("zh"), lambda: [DiagnosticFile("a.json", "{}")])
    (tmp_path / "guide.md").write_text("# 指南", encoding="utf-8")
    guide = GuideWindow(tmp_path / "guide.md", Translator("zh"))
    for each in (window, guide):
        qtbot.addWidget(each)
        assert english_left(each) == {}
    qtbot.waitUntil(lambda: window.list.count() == 1)


def test_the_actions(tmp_path: Path) -> None:
    for action in ActionRegistry(user_dir=tmp_path).all():
        assert english_in(action.title("zh")) == []
        assert english_in(action.description("zh")) == []


def test_every_translation_is_chinese() -> None:
    # "{size} {place}" and the like are translated by what stands in them; commands and keys are quoted as they are.
    texts = {source: re.sub(r"\{\w+\}", "", text) for source, text in read_catalogs("zh").items()}
    assert {source: text for source, text in texts.items() if english_in(text) and not CHINESE.search(text)} == {}
