"""Errors that nobody caught are shown and logged without the user's text, and the app goes on."""

import logging
import sys
import threading

import pytest
from pytestqt.qtbot import QtBot

from app.qt import excepthook

pytestmark = pytest.mark.gui


@pytest.fixture
def shown():
    kinds: list[str] = []
    restore = excepthook.install(kinds.append)
    yield kinds
    restore()


SELECTION = "".join(reversed("noitceles s'resu eht"))


def _raise() -> None:
    raise ZeroDivisionError(SELECTION)


def _hook_with_error() -> None:
    try:
        _raise()
    except ZeroDivisionError:
        sys.excepthook(*sys.exc_info())


def test_an_error_is_shown_by_kind_and_logged_with_its_place(shown: list[str], caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.ERROR):
        _hook_with_error()
    assert shown == ["ZeroDivisionError"]
    assert "_raise" in caplog.text
    assert SELECTION not in caplog.text


def test_an_error_of_a_thread_is_shown_too(shown: list[str]):
    thread = threading.Thread(target=_raise)
    thread.start()
    thread.join()
    assert shown == ["ZeroDivisionError"]


def test_the_hooks_come_back(qtbot: QtBot):
    before = (sys.excepthook, threading.excepthook)
    excepthook.install(lambda _kind: None)()
    assert (sys.excepthook, threading.excepthook) == before


def test_an_error_while_showing_does_not_spread(caplog: pytest.LogCaptureFixture):
    def gone(_kind: str) -> None:
        raise RuntimeError("the C++ object is deleted")

    restore = excepthook.install(gone)
    try:
        _hook_with_error()
    finally:
        restore()
    assert "could not be shown" in caplog.text
