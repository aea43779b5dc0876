"""The line around views that have the keyboard: it comes, moves and goes with them, however they go."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QObject
from PySide6.QtWidgets import QLineEdit, QTextBrowser, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.qt.look.focus_frame import GAP_PX, FocusFrame, _Frame

pytestmark = pytest.mark.gui


@pytest.fixture
def window(qtbot: QtBot) -> QWidget:
    """A view and a field, in this order."""
    window = QWidget()
    qtbot.addWidget(window)
    layout = QVBoxLayout(window)
    layout.addWidget(QTextBrowser())
    layout.addWidget(QLineEdit())
    window.show()
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    return window


def frames(window: QWidget) -> list[_Frame]:
    return [frame for frame in window.findChildren(_Frame) if frame.isVisible()]


def delete(widget: QObject) -> None:
    widget.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def test_it_lies_around_the_view_that_has_the_keyboard_and_leaves_with_it(window: QWidget, qapp: QObject) -> None:
    keeper = FocusFrame(qapp)
    view, field = window.findChild(QTextBrowser), window.findChild(QLineEdit)
    assert view is not None
    assert field is not None
    field.setFocus()
    assert frames(window) == []
    view.setFocus()
    (frame,) = frames(window)
    assert frame.geometry() == view.geometry().adjusted(-GAP_PX, -GAP_PX, GAP_PX, GAP_PX)
    window.resize(window.width() + 50, window.height() + 50)
    QCoreApplication.processEvents()
    assert frame.geometry() == view.geometry().adjusted(-GAP_PX, -GAP_PX, GAP_PX, GAP_PX)
    field.setFocus()
    assert frames(window) == []
    delete(keeper)


@pytest.mark.parametrize("is_told", [True, False])
def test_a_view_that_goes_while_it_has_the_keyboard_does_no_harm(window: QWidget, qapp: QObject, is_told: bool) -> None:
    keeper = FocusFrame(qapp)
    view, field = window.findChild(QTextBrowser), window.findChild(QLineEdit)
    assert view is not None
    assert field is not None
    field.setFocus()
    view.setFocus()
    assert len(frames(window)) == 1
    view.blockSignals(not is_told)
    delete(view)
    field.setFocus()
    field.clearFocus()
    field.setFocus()
    assert frames(window) == []
    delete(keeper)
