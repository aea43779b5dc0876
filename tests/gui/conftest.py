"""What the tests of the windows share: translators, a popup, and an app put together around a scripted engine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.desktop.fake_desktop import FakeDesktop
from app.desktop.protocols import DesktopSession
from app.engine_client import ScriptedAnswer
from app.memory.reading import MemoryReading
from app.qt.memory.feed import MemoryFeed
from app.qt.popup.popup import Popup
from app.translation import Translator
from tests.gui.rig import EDITOR, FakeGrabber, Rig

OFF_SCREEN_WARNINGS = (
    "This plugin does not support (raise|propagateSizeHints)",
    "No such signal .*systemTrayWindowChanged",
)


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


class ScriptedSource:
    """Gives one reading of the memory again and again; says whether it is held."""

    def __init__(self, reading: MemoryReading) -> None:
        self.reading = reading
        self.reads = 0
        self.closed = threading.Event()

    def read(self) -> MemoryReading:
        self.closed.clear()
        self.reads += 1
        return self.reading

    def close(self) -> None:
        self.closed.set()


@pytest.fixture
def memory_source() -> ScriptedSource:
    return ScriptedSource(MemoryReading(0.0, "gpu", "RTX 3050", 4 << 30, 1 << 30, 1 << 28, 1 << 29))


@pytest.fixture
def memory_feed(memory_source: ScriptedSource) -> Iterator[MemoryFeed]:
    """For windows with a meter."""
    feed = MemoryFeed(memory_source)
    yield feed
    feed.close()


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
