"""A part of a screen as a small PNG: few colours, which a picture of windows does not miss."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PySide6.QtGui import QColor, QImage

from tests.x_display import XDisplay

PNG_SMALLEST = 0
MOST_COLORS = 256


def take_picture(display: XDisplay, rect: tuple[int, int, int, int], edge: str, path: Path) -> None:
    """Takes a picture of a part of the screen.

    Args:
        edge: colour of a line around it, "" for none.
    """
    z_pixmap, all_planes = 2, 0xFFFFFFFF
    reply = display._connection.core.GetImage(z_pixmap, display._root, *rect, all_planes).reply()
    pixels = np.frombuffer(bytes(reply.data.buf()), np.uint32).reshape(rect[3], rect[2]) & 0xFFFFFF
    if edge:
        pixels = np.pad(pixels, 1, constant_values=QColor(edge).rgb() & 0xFFFFFF)
    assert small_image(pixels).save(str(path), "PNG", PNG_SMALLEST), path


def small_image(pixels: np.ndarray) -> QImage:
    """An image of the most frequent colours, each kept as it is; the others become the nearest of these."""
    colors, places, counts = np.unique(pixels, return_inverse=True, return_counts=True)
    kept = colors[np.argsort(-counts, kind="stable")[:MOST_COLORS]]
    parts = np.stack([colors >> 16, colors >> 8, colors], 1).astype(np.int64) & 0xFF
    kept_parts = np.stack([kept >> 16, kept >> 8, kept], 1).astype(np.int64) & 0xFF
    nearest = ((parts[:, None] - kept_parts[None]) ** 2).sum(2).argmin(1).astype(np.uint8)
    indexes = np.ascontiguousarray(nearest[places].reshape(pixels.shape))
    height, width = indexes.shape
    image = QImage(indexes.tobytes(), width, height, width, QImage.Format.Format_Indexed8)
    image.setColorTable([0xFF000000 | int(color) for color in kept])
    return image.copy()
