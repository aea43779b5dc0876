"""The chat between light and dark: what stands in the window is written in the new colours, seen or not."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QAbstractButton, QApplication
from pytestqt.qtbot import QtBot

from app.engine_client import ScriptedAnswer
from app.qt.chat.message import AnswerView
from app.qt.look.theme import apply_scheme, colors_of
from tests.gui.chat.chat_rig import ChatRig


def inks(button: QAbstractButton) -> set[str]:
    """Colours of the opaque pixels of a button's icon."""
    image = button.icon().pixmap(64, 64).toImage()
    pixels = [image.pixelColor(x, y) for x in range(image.width()) for y in range(image.height())]
    return {pixel.name() for pixel in pixels if pixel.alpha() == 255}


def test_answers_follow_the_colours(qtbot: QtBot, tmp_path: Path) -> None:
    rig = ChatRig(qtbot, tmp_path, ScriptedAnswer("Some words.\n\n```python\nx = 1\n```\n"))
    rig.window.session.send("Hello")
    rig.play()
    view = rig.window.findChildren(AnswerView)[-1].view
    try:
        for is_seen, scheme in ((True, "dark"), (True, "light"), (False, "dark"), (False, "light")):
            rig.window.setVisible(is_seen)
            apply_scheme(scheme)
            rig.settle()
            shown = QTextCursor(view.document()).charFormat().foreground().color()
            page = colors_of(QApplication.palette())
            assert page.is_dark == (scheme == "dark")
            assert inks(rig.window.options_button) == {page.muted.name()}, (is_seen, scheme)
            assert shown.lightnessF() == pytest.approx(page.text.lightnessF(), abs=0.05), (is_seen, scheme)
    finally:
        apply_scheme("system")
        rig.settle()
