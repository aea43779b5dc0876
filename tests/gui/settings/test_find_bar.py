"""Finding words in the user guide: all places are marked and counted, one is gone to, Esc lets go."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.qt.settings.guide_window import GuideWindow
from app.translation import Translator
from tests.gui.accessibility_walk import doubles, nameless

pytestmark = pytest.mark.gui

PLACES = 3


@pytest.fixture
def window(qtbot: QtBot, tmp_path: Path) -> GuideWindow:
    filler = "\n\n".join(f"Paragraph {number}." for number in range(100))
    guide = "\n\n".join(["# Guide", "A Hotkey here.", filler, "A hotkey there.", filler, "The last HOTKEY.", filler])
    (tmp_path / "guide.md").write_text(guide, encoding="utf-8")
    (tmp_path / "other.md").write_text("# Other page\n\nOne hotkey.", encoding="utf-8")
    window = GuideWindow(tmp_path / "guide.md", Translator("en"))
    qtbot.addWidget(window)
    window.show()
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    qtbot.keyClick(window.text, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    assert QApplication.focusWidget() is window.find_bar.field
    return window


def _seen(window: GuideWindow) -> bool:
    """Whether the place that is gone to is on the screen."""
    bar = window.find_bar
    return window.text.viewport().rect().contains(window.text.cursorRect(bar.places[bar.current]))


def test_all_places_are_marked_and_counted_whatever_their_case(window: GuideWindow, qtbot: QtBot):
    qtbot.keyClicks(window.find_bar.field, "hotkey")
    assert window.find_bar.count.text() == f"1 of {PLACES}"
    assert len(window.text.extraSelections()) == PLACES
    assert [place.selectedText() for place in window.find_bar.places] == ["Hotkey", "hotkey", "HOTKEY"]


def test_enter_and_the_buttons_lead_to_each_place_and_around(window: GuideWindow, qtbot: QtBot):
    bar = window.find_bar
    qtbot.keyClicks(bar.field, "hotkey")
    for expected in ("2 of 3", "3 of 3", "1 of 3"):
        qtbot.keyClick(bar.field, Qt.Key.Key_Return)
        assert bar.count.text() == expected
        assert _seen(window)
    qtbot.keyClick(bar.field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert bar.count.text() == "3 of 3"
    bar.previous_button.click()
    assert bar.count.text() == "2 of 3"
    bar.next_button.click()
    assert bar.count.text() == "3 of 3"
    qtbot.keyClick(window.text, Qt.Key.Key_F3)
    assert bar.count.text() == "1 of 3"


def test_it_begins_where_the_reader_is(window: GuideWindow, qtbot: QtBot):
    window.text.verticalScrollBar().setValue(window.text.verticalScrollBar().maximum() // 2)
    qtbot.keyClicks(window.find_bar.field, "hotkey")
    assert window.find_bar.count.text() == "3 of 3"
    assert _seen(window)


def test_what_is_not_there_is_said(window: GuideWindow, qtbot: QtBot):
    qtbot.keyClicks(window.find_bar.field, "zeppelin")
    assert window.find_bar.count.text() == "not found"
    assert not window.find_bar.next_button.isEnabled()
    qtbot.keyClick(window.find_bar.field, Qt.Key.Key_Return)
    assert window.text.extraSelections() == []


def test_escape_lets_go_of_the_words_and_then_closes(window: GuideWindow, qtbot: QtBot):
    qtbot.keyClicks(window.find_bar.field, "hotkey")
    qtbot.keyClick(window.find_bar.field, Qt.Key.Key_Escape)
    assert window.isVisible()
    assert window.find_bar.count.text() == ""
    assert window.text.extraSelections() == []
    qtbot.keyClick(window.text, Qt.Key.Key_Escape)
    assert not window.isVisible()


def test_another_page_is_looked_through_anew(window: GuideWindow, qtbot: QtBot):
    qtbot.keyClicks(window.find_bar.field, "hotkey")
    window.find_bar.go(2)
    window.follow(QUrl("other.md"))
    assert window.find_bar.count.text() == "1 of 1"
    assert window.text.extraSelections()[0].cursor.selectedText() == "hotkey"


def test_its_controls_have_names_of_their_own(window: GuideWindow, qtbot: QtBot):
    qtbot.keyClicks(window.find_bar.field, "hotkey")
    assert nameless(window) == []
    assert doubles(window) == []
