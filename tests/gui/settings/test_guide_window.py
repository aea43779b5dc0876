"""The user guide in its window: its size, its pictures, its sections, other pages and the way back."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt, QUrl
from PySide6.QtGui import QDesktopServices, QImage
from pytestqt.qtbot import QtBot

from app.qt.look.placement import FRAME_SIZE
from app.qt.settings.guide_window import GuideWindow
from app.translation import Translator
from tests.gui.test_accessibility import nameless

pytestmark = pytest.mark.gui

GUIDE = """# Guide

[Other](other.md) [Web](https://example.org) [Missing](missing.md) [Section](#a-server-for-you)

![A picture](images/wide.png)

{filler}

### A server, for you

{filler}
"""


@pytest.fixture
def window(qtbot: QtBot, tmp_path: Path) -> GuideWindow:
    filler = "\n\n".join(f"Paragraph {number}." for number in range(200))
    (tmp_path / "guide.md").write_text(GUIDE.format(filler=filler), encoding="utf-8")
    (tmp_path / "other.md").write_text("# Other page", encoding="utf-8")
    (tmp_path / "images").mkdir()
    image = QImage(3000, 100, QImage.Format.Format_RGB32)
    image.fill(Qt.GlobalColor.red)
    image.save(str(tmp_path / "images" / "wide.png"))
    window = GuideWindow(tmp_path / "guide.md", Translator("en"))
    qtbot.addWidget(window)
    window.show()
    return window


def test_a_picture_keeps_to_the_width_of_the_window(window: GuideWindow):
    viewport = window.text.viewport().rect()
    shown = window.grab().toImage()
    reds = [x for x in range(shown.width()) for y in range(0, 300, 5) if shown.pixelColor(x, y) == Qt.GlobalColor.red]
    assert min(reds) < 40
    assert viewport.width() - 40 < max(reds) < viewport.width()
    assert window.text.horizontalScrollBar().maximum() == 0


def test_a_link_leads_to_its_section(window: GuideWindow):
    window.follow(QUrl("#a-server-for-you"))
    assert window.text.cursorForPosition(QPoint(9, 9)).block().text() == "A server, for you"
    assert not window.back_button.isVisible()


def test_another_page_opens_here_and_there_is_a_way_back(window: GuideWindow):
    window.text.verticalScrollBar().setValue(77)
    window.follow(QUrl("other.md"))
    assert window.text.toPlainText() == "Other page"
    assert window.back_button.isVisible()
    window.back_button.click()
    assert window.page.name == "guide.md"
    assert window.text.verticalScrollBar().value() == 77
    assert not window.back_button.isVisible()


def test_a_page_that_is_not_there_changes_nothing(window: GuideWindow):
    window.follow(QUrl("missing.md"))
    assert window.page.name == "guide.md"


def test_the_web_is_the_browsers(window: GuideWindow, monkeypatch: pytest.MonkeyPatch):
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toString()))
    window.follow(QUrl("https://example.org"))
    assert opened == ["https://example.org"]
    assert window.page.name == "guide.md"


def test_it_opens_whole_on_a_small_screen_with_its_title_bar(window: GuideWindow):
    assert window.height() <= window.screen().availableSize().height() - FRAME_SIZE.height()


def test_it_is_named_and_escape_closes_it(window: GuideWindow, qtbot: QtBot):
    assert nameless(window) == []
    qtbot.keyClick(window.text, Qt.Key.Key_Escape)
    assert not window.isVisible()
