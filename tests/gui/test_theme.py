"""Colours: everything that is read can be read, on light, dark and grey desktops."""

import pytest
from PySide6.QtGui import QColor, QFont, QPalette

from app.qt.theme import MIN_CONTRAST, Colors, colors_of, contrast, legible, scaled

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
