"""A scrolled page ends where its last words end, whatever room they would want in a narrow window."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QLabel, QPlainTextEdit, QPushButton, QSizePolicy, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.qt.look.scrolled import ScrolledPage
from app.qt.settings.row import text_label

pytestmark = pytest.mark.gui

SENTENCE = "Words that are broken into many short lines where the window is narrow, and into few where it is wide. "


def _page(rows: int, wraps: bool = True) -> QWidget:
    page = QWidget()
    layout = QVBoxLayout(page)
    layout.setContentsMargins(0, 0, 0, 0)
    for _ in range(rows):
        layout.addWidget(text_label(SENTENCE) if wraps else QLabel("A short line"))
    layout.addWidget(QPushButton("The last one"))
    return page


@pytest.mark.parametrize("wraps", [True, False])
@pytest.mark.parametrize("rows", [10, 80])
def test_it_scrolls_to_the_last_words_and_not_beyond(qtbot: QtBot, rows: int, wraps: bool):
    page = _page(rows, wraps)
    area = ScrolledPage(page)
    qtbot.addWidget(area)
    area.resize(700, 330)
    area.show()
    qtbot.wait(10)
    bar, last = area.verticalScrollBar(), page.findChildren(QPushButton)[-1]
    assert (bar.maximum() > 0) == (rows == 80)
    bar.setValue(bar.maximum())
    bottom = last.mapTo(area.viewport(), last.rect().bottomLeft()).y()
    assert bottom < area.viewport().height()
    if rows == 80:
        assert bottom == area.viewport().height() - 1
    assert area.horizontalScrollBar().maximum() == 0


def test_a_field_keeps_its_smallest_height_and_words_are_not_cut(qtbot: QtBot):
    page = _page(6)
    field = QPlainTextEdit()
    field.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Ignored)
    field.setMinimumHeight(120)
    layout = page.layout()
    assert layout is not None
    layout.addWidget(field)
    area = ScrolledPage(page)
    qtbot.addWidget(area)
    area.resize(400, 150)
    area.show()
    qtbot.wait(10)
    assert field.height() == 120
    for label in page.findChildren(QLabel):
        assert label.height() >= label.heightForWidth(label.width())
