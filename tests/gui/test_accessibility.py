"""Every control that the keyboard can reach has a name that a screen reader can say."""

from pathlib import Path

import pytest
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.actions import ActionRegistry
from app.qt.main_window import MainWindow
from app.qt.memory_feed import MemoryFeed
from app.qt.notice import Notice
from app.qt.popup import Popup
from app.translation import Translator

pytestmark = pytest.mark.gui

# Roles of parts that belong to a named control, and of containers.
PARTS = {QAccessible.Role.ScrollBar, QAccessible.Role.Client, QAccessible.Role.Window, QAccessible.Role.Dialog}


def nameless(widget: QWidget) -> list[str]:
    """Focusable things below a widget without a name."""
    found, queue = [], [QAccessible.queryAccessibleInterface(widget)]
    while queue:
        item = queue.pop()
        if item is None or item.state().invisible:
            continue
        queue += [item.child(index) for index in range(item.childCount())]
        name = item.text(QAccessible.Text.Name)
        if item.state().focusable and item.role() not in PARTS and not name:
            found.append(f"{item.role()} {item.object()}")
    return found


def test_popup(qtbot: QtBot):
    popup = Popup(Translator("en"))
    qtbot.addWidget(popup)
    popup.show()
    popup.begin("Summarize")
    popup.append("text")
    assert nameless(popup) == []
    popup.set_retryable(True)
    popup.show_notice(Notice("Nothing is selected", "A text", "A quotation", "Use this text"))
    assert nameless(popup) == []


def test_window(qtbot: QtBot, memory_feed: MemoryFeed):
    window = MainWindow(Translator("en"), memory_feed)
    qtbot.addWidget(window)
    window.set_actions(ActionRegistry(user_dir=Path("no-such-folder")).all())
    window.show()
    assert nameless(window) == []


def test_the_walk_finds_what_has_no_name(qtbot: QtBot):
    popup = Popup(Translator("en"))
    qtbot.addWidget(popup)
    popup.show()
    popup.close_button.setAccessibleName("")
    popup.close_button.setToolTip("")
    assert len(nameless(popup)) == 1
