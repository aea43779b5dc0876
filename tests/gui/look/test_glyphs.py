"""No boxes in place of text: all characters that the windows show have a glyph in a font that Qt falls back on.

Where no font for a language is installed its test is skipped; installer/system_packages.py installs one for each.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtGui import QFont, QFontDatabase, QGuiApplication, QTextLayout
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.actions.registry import ActionRegistry
from app.qt.popup.popup import Popup
from app.settings.registry import setting_registry
from app.translation import Translator, read_catalogs

pytestmark = pytest.mark.gui

WRITING = {"en": QFontDatabase.WritingSystem.Latin, "zh": QFontDatabase.WritingSystem.SimplifiedChinese}
IN_NO_FONT = "\U0010fffd"


def boxes(text: str, font: QFont) -> set[str]:
    """The characters of a text that are drawn as a box, since no font has them."""
    return {character for character in text if _is_box(character, font)}


def _is_box(character: str, font: QFont) -> bool:
    layout = QTextLayout(character, font)
    layout.beginLayout()
    layout.createLine()
    layout.endLayout()
    return any(0 in run.glyphIndexes() for run in layout.glyphRuns())


def _texts(language: str) -> Iterator[str]:
    """Everything that the windows say by themselves."""
    catalog, actions = read_catalogs("zh"), ActionRegistry().all()
    yield from catalog.keys() if language == "en" else catalog.values()
    for action in actions:
        yield from (action.title(language), action.description(language))
    for setting in setting_registry(actions):
        # Each language of the windows names itself, in its own script.
        choices = [] if setting.key == "language.ui" else setting.choices.values()
        for text in (setting.title, setting.help, setting.zero, *choices):
            yield text.get(language, "")


@pytest.fixture(params=["en", "zh"])
def language(request: pytest.FixtureRequest) -> str:
    """A language of the windows that a font is installed for."""
    language = str(request.param)
    if not QFontDatabase.families(WRITING[language]):
        pytest.skip(f"no font for {WRITING[language].name} is installed")
    return language


def test_a_character_of_no_font_is_found() -> None:
    if not QFontDatabase.families(WRITING["en"]):
        pytest.skip("no font is installed")
    assert boxes(f"a{IN_NO_FONT}b", QGuiApplication.font()) == {IN_NO_FONT}


def _fonts(window: QWidget) -> dict[str, QFont]:
    """The fonts that a window's parts have, by a text that tells them apart."""
    return {widget.font().toString(): widget.font() for widget in (window, *window.findChildren(QWidget))}


def test_every_character_has_a_glyph(language: str, qtbot: QtBot) -> None:
    popup = Popup(Translator(language))
    qtbot.addWidget(popup)
    popup.show()
    fixed = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    characters = "".join(
        sorted({character for text in _texts(language) for character in text if character.isprintable()})
    )
    assert len(characters) > 60
    fonts = {**_fonts(popup), "application": QGuiApplication.font(), "fixed": fixed}
    assert {name: found for name, font in fonts.items() if (found := boxes(characters, font))} == {}
