"""The sign that text leaves this machine: an arrow and the server's name, wherever a text is sent or shown."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QColor, QGuiApplication
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from app.qt.bridge import Bridge
from app.qt.look.theme import Colors, blend, colors_of, legible
from app.remote.address import is_this_machine, remote_parts
from app.translation import Translator
from inference.request import ModelEvent

LONGEST_HOST = 24


class RemoteBadge(QLabel):
    """Hidden while everything stays here; else names where text goes.

    Signals:
        host_changed: the server's name, "" where text stays here.
    """

    host_changed = Signal(str)

    def __init__(self, translator: Translator, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._translator = translator
        self.host = ""
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Maximum)
        self.set_host("")

    def set_host(self, host: str) -> None:
        """Shows that text goes to a server; "" where it stays here."""
        tr, self.host = self._translator.tr, host
        shown = host if len(host) <= LONGEST_HOST else host[: LONGEST_HOST - 1] + "…"
        self.setText(f"↗ {tr('to {host}', host=shown)}" if host else "")
        sentence = tr("Text leaves this machine: it is sent to {host}.", host=host)
        if is_this_machine(host):
            sentence = tr("Text is given to another program on this machine, {host}.", host=host)
        self.setAccessibleName(sentence if host else "")
        self.setToolTip(sentence if host else "")
        self.setVisible(bool(host))
        self._apply_theme()
        self.host_changed.emit(host)

    def follow(self, bridge: Bridge, model: str = "") -> None:
        """Keeps up with the engine by itself.

        Args:
            model: that is in use now.
        """
        self.set_host(remote_parts(model)[0])
        bridge.model_event.connect(self._on_model_event)

    def _on_model_event(self, event: ModelEvent) -> None:
        if event.model:
            self.set_host(remote_parts(event.model)[0])

    def changeEvent(self, event: QEvent) -> None:
        """Follows the desktop between light and dark."""
        super().changeEvent(event)
        if event.type() is QEvent.Type.PaletteChange:
            self._apply_theme()

    def _apply_theme(self) -> None:
        text, ground = warning_colors(colors_of(QGuiApplication.palette()))
        style = f"color: {text}; background: {ground}; border-radius: 4px; padding: 1px 6px; font-weight: 600;"
        if style != self.styleSheet():
            self.setStyleSheet(style)


def warning_colors(colors: Colors) -> tuple[str, str]:
    """Text and ground of what must not be overlooked, and is no error."""
    ground = blend(QColor("#f0a020"), colors.page, 0.30 if colors.is_dark else 0.24)
    return legible(QColor("#8a4b00"), ground).name(), ground.name()
