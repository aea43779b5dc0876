"""Icons drawn from the SVG files in assets/icons, at every size and in the palette's colour."""

from __future__ import annotations

from collections.abc import Sequence

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
    return _drawn([_source(name, color)])


def _source(name: str, color: QColor | None = None) -> bytes:
    source = (assets_dir("icons") / f"{name}.svg").read_bytes()
    return source if color is None else source.replace(b"currentColor", color.name().encode())


def _drawn(layers: Sequence[bytes]) -> QIcon:
    """Drawings upon one another, at every usual size."""
    renderers = [QSvgRenderer(QByteArray(layer)) for layer in layers]
    icon = QIcon()
    for size in SIZES_PX:
        pixmap = QPixmap(size, size)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter = QPainter(pixmap)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for renderer in renderers:
            renderer.render(painter, QRectF(0, 0, size, size))
        painter.end()
        icon.addPixmap(pixmap)
    return icon


def tray_icon(state: TrayState, leaves_machine: bool = False) -> QIcon:
    """The tray's picture of a state; it carries its own ground, so it shows on light and on dark panels.

    Args:
        leaves_machine: text is sent to a server; a mark says so whatever the state is.
    """
    layers = [_source(f"tray-{state.value}")]
    return _drawn([*layers, _source("badge-remote")] if leaves_machine else layers)


def app_icon() -> QIcon:
    """The program's icon."""
    return svg_icon("deskinfer")
