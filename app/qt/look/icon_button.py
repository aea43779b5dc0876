"""Small buttons with an icon that follows the palette."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QToolButton, QWidget

from app.qt.look.icons import svg_icon
from app.qt.look.theme import colors_of

ICON_PX = 16


class IconButton(QToolButton):
    """A flat button that is told by its icon, by its tool tip and, to a screen reader, by its name."""

    def __init__(self, icon: str, name: str, keys: str = "", role: str = "", parent: QWidget | None = None) -> None:
        """Makes the button.

        Args:
            icon: file in assets/icons, without ".svg".
            keys: its shortcut, shown in the tool tip.
            role: for the style sheet; "send" stands on the accent.
        """
        super().__init__(parent)
        self._icon = icon
        self.setProperty("role", role)
        self.setIconSize(QSize(ICON_PX, ICON_PX))
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.set_name(name, keys)
        self._paint_icon()

    def set_name(self, name: str, keys: str = "") -> None:
        """What it does."""
        self.setAccessibleName(name)
        self.setToolTip(f"{name} ({keys})" if keys else name)

    def set_icon(self, icon: str) -> None:
        """Another picture."""
        if icon != self._icon:
            self._icon = icon
            self._paint_icon()

    def _paint_icon(self) -> None:
        colors = colors_of(QGuiApplication.palette())
        is_on_accent = self.property("role") == "send" and self.isEnabled()
        self.setIcon(svg_icon(self._icon, colors.on_accent if is_on_accent else colors.muted))

    def event(self, event: QEvent) -> bool:
        """Follows the desktop between light and dark, and whether it can be pressed."""
        # Where the window has a style sheet, its change is what is told, and not the application's palette.
        if event.type() in (QEvent.Type.ApplicationPaletteChange, QEvent.Type.StyleChange, QEvent.Type.EnabledChange):
            self._paint_icon()
        return super().event(event)
