"""What the tests of the windows share: translators, a popup, and an app put together around a scripted engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.desktop import DesktopSession
from app.engine_client import ScriptedAnswer
from app.fake_desktop import FakeDesktop
from app.qt.popup import Popup
from app.translation import Translator
from tests.gui.rig import EDITOR, FakeGrabber, Rig

OFF_SCREEN_WARNINGS = ("This plugin does not support (raise|propagateSizeHints)", "No such signal .*systemTrayWindowChanged")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What Qt's off-screen platform cannot do is no defect of ours."""
    for item in items:
        item.add_marker(pytest.mark.qt_log_ignore(*OFF_SCREEN_WARNINGS, extend=True))


@pytest.fixture(autouse=True)
def with_application(qapp: QApplication) -> None:
    """Pictures and windows need an application."""


@pytest.fixture
def translator() -> Translator:
    return Translator("en")


@pytest.fixture
def popup(qtbot: QtBot, translator: Translator) -> Popup:
    popup = Popup(translator)
    qtbot.addWidget(popup)
    return popup


@pytest.fixture
def fake_session() -> DesktopSession:
    return DesktopSession("x11", FakeDesktop(EDITOR), FakeGrabber())


@pytest.fixture
def make_rig(qtbot: QtBot, popup: Popup, translator: Translator) -> Iterator[Callable[..., Rig]]:
    rigs: list[Rig] = []

    def make(*answers: ScriptedAnswer) -> Rig:
        QGuiApplication.clipboard().clear()
        rigs.append(Rig(qtbot, popup, translator, answers))
        return rigs[-1]

    yield make
    for rig in rigs:
        rig.controller.close()
        rig.clipboard.close()
        QGuiApplication.clipboard().clear()
