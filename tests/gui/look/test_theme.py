"""Colours: everything that is read can be read, on light, dark and grey desktops."""

from collections.abc import Iterator

import pytest
from PySide6.QtGui import QColor, QFont, QPalette
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.qt.home.main_window import MainWindow
from app.qt.look.theme import MIN_CONTRAST, Colors, apply_scheme, colors_of, contrast, legible, scaled
from app.qt.memory.feed import MemoryFeed
from app.translation import Translator

pytestmark = pytest.mark.gui


def _palette(base: str, text: str, accent: str) -> QPalette:
    palette = QPalette(QColor(base))
    for role, color in (
        (QPalette.ColorRole.Base, base),
        (QPalette.ColorRole.Window, base),
        (QPalette.ColorRole.Text, text),
        (QPalette.ColorRole.Accent, accent),
    ):
        palette.setColor(role, QColor(color))
    return palette


@pytest.mark.parametrize(
    ("base", "text"), [("#ffffff", "#000000"), ("#1e1e22", "#e6e6e6"), ("#000000", "#ffffff"), ("#fdf6e3", "#586e75")]
)
@pytest.mark.parametrize("accent", ["#308cc6", "#ffe000", "#202020", "#808080", "#ff0000"])
def test_every_pair_that_is_read_has_enough_contrast(base: str, text: str, accent: str):
    colors: Colors = colors_of(_palette(base, text, accent))
    for ink, ground in (
        (colors.muted, colors.page),
        (colors.danger, colors.page),
        (colors.accent, colors.page),
        (colors.on_accent, colors.accent),
    ):
        assert contrast(ink, ground) >= MIN_CONTRAST


def test_dark_is_known_by_its_colours():
    assert colors_of(_palette("#1e1e22", "#eeeeee", "#308cc6")).is_dark
    assert not colors_of(_palette("#ffffff", "#111111", "#308cc6")).is_dark


def test_contrast_is_that_of_the_standard():
    assert contrast(QColor("white"), QColor("black")) == pytest.approx(21)
    assert contrast(QColor("#767676"), QColor("white")) == pytest.approx(4.54, abs=0.01)


def test_a_colour_that_can_be_read_is_left_alone():
    assert legible(QColor("#003366"), QColor("white")) == QColor("#003366")


def test_fonts_in_points_and_in_pixels_are_scaled():
    points, pixels = QFont("Sans", 10), QFont("Sans")
    pixels.setPixelSize(20)
    assert scaled(points, 1.5).pointSizeF() == pytest.approx(15)
    assert scaled(pixels, 0.5).pixelSize() == 10


@pytest.fixture
def system_scheme() -> Iterator[None]:
    yield
    apply_scheme("system")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_scheme_changes_every_window_at_once_and_system_takes_it_back(
    qtbot: QtBot, translator: Translator, memory_feed: MemoryFeed, system_scheme: None, scheme: str
):
    window = MainWindow(translator, memory_feed)
    qtbot.addWidget(window)
    before = colors_of(QApplication.palette())
    apply_scheme(scheme)
    colors = colors_of(QApplication.palette())
    assert colors.is_dark == (scheme == "dark")
    assert contrast(colors.muted, colors.page) >= 4.5
    assert contrast(colors.on_accent, colors.accent) >= 4.5
    qtbot.waitUntil(lambda: colors.page.name() in window.styleSheet())
    apply_scheme("system")
    assert colors_of(QApplication.palette()) == before
