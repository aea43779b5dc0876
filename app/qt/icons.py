"""Icons drawn from the SVG files in assets/icons, at every size and in the palette's colour."""

from __future__ import annotations

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from app.paths import assets_dir
from app.qt.status import TrayState

SIZES_PX = (16, 20, 22, 24, 32, 40, 48, 64, 128)


def svg_icon(name: str, color: QColor | None = None) -> QIcon:
    """An icon with one picture for each usual size.

    Args:
        name: file name without ".svg".
        color: what `currentColor` in the file stands for.
    """
    source = (assets_dir("icons") / f"{name}.svg").read_bytes()
    if color is not None:
        source = source.replace(b"currentColor", color.name().encode())
    renderer = QSvgRenderer(QByteArray(source))
    icon = QIcon()
    for size in SIZES_PX:
        pixmap = QPixmap(size, size)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter = QPainter(pixmap)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        renderer.render(painter, QRectF(0, 0, size, size))
        painter.end()
        icon.addPixmap(pixmap)
    return icon


def tray_icon(state: TrayState) -> QIcon:
    """The tray's picture of a state; it carries its own ground, so it shows on light and on dark panels."""
    return svg_icon(f"tray-{state.value}")


def app_icon() -> QIcon:
    """The program's icon."""
    return svg_icon("deskinfer")
