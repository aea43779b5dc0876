"""The panel of what is in memory: nothing of a part that has gone stays on the screen."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QPaintEvent, QRegion
from PySide6.QtWidgets import QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.qt.models.resident import ResidentPanel
from app.translation import Translator
from inference.request import ModelPlan

pytestmark = pytest.mark.gui


class Painted(QObject):
    """Collects where a widget is painted."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self.region = QRegion()
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QPaintEvent):
            self.region = self.region.united(event.region())
        return False


def _plan(largest: int) -> ModelPlan:
    return ModelPlan("tiny", "cpu", 4096, 1, 1, 1, 1 << 30, largest, trained_context_tokens=32768)


def test_a_part_that_goes_has_all_of_the_panel_painted_anew(qtbot: QtBot) -> None:
    window, panel = QWidget(), ResidentPanel(Translator("en"))
    layout = QVBoxLayout(window)
    layout.addWidget(panel)
    layout.addStretch()
    qtbot.addWidget(window)
    panel.show_context(4096, _plan(32768))
    window.resize(700, 400)
    window.show()
    assert panel.largest_button.isVisible()
    qtbot.wait(50)
    painted = Painted(panel)
    panel.show_context(4096, _plan(0))
    assert not panel.largest_button.isVisible()
    qtbot.waitUntil(lambda: painted.region.united(QRegion(panel.rect())) == painted.region, timeout=2000)
