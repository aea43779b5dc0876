"""Shows where the keyboard is in views that do not show it themselves: answers, lists, what can only be scrolled."""

from __future__ import annotations

import contextlib

from PySide6.QtCore import QEvent, QObject, QRectF, Qt
from PySide6.QtGui import QGuiApplication, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractScrollArea, QApplication, QPlainTextEdit, QTextEdit, QWidget

from app.qt.look.theme import colors_of

# Outside of the view, so that no text is covered.
GAP_PX = 2
RADIUS_PX = 4.0


class _Frame(QWidget):
    """A line around another widget, as its sibling, so that both scroll together."""

    def __init__(self, target: QWidget) -> None:
        super().__init__(target.parentWidget())
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.follow(target)
        self.show()

    def follow(self, target: QWidget) -> None:
        """Lies around the target."""
        self.setGeometry(target.geometry().adjusted(-GAP_PX, -GAP_PX, GAP_PX, GAP_PX))
        self.raise_()

    def paintEvent(self, event: QPaintEvent) -> None:
        """A rounded line in the accent's colour."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(colors_of(QGuiApplication.palette()).accent, 1.5))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), RADIUS_PX, RADIUS_PX)
        painter.end()


class FocusFrame(QObject):
    """One for all windows of the app."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._target: QWidget | None = None
        self._frame: _Frame | None = None
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        application.focusChanged.connect(self._on_focus_changed)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Moves with the view, and goes with it."""
        if watched is self._target and self._frame is not None and isinstance(watched, QWidget):
            if event.type() in (QEvent.Type.Move, QEvent.Type.Resize):
                self._frame.follow(watched)
            elif event.type() in (QEvent.Type.Hide, QEvent.Type.ParentChange):
                self._leave()
        return super().eventFilter(watched, event)

    def _on_focus_changed(self, _before: QWidget | None, now: QWidget | None) -> None:
        self._leave()
        # Who clicks knows where he has clicked.
        if now is not None and _needs_frame(now) and not QGuiApplication.mouseButtons():
            self._target, self._frame = now, _Frame(now)
            now.installEventFilter(self)
            now.destroyed.connect(self._forget)

    def _leave(self) -> None:
        target, frame = self._target, self._frame
        self._forget()
        # Either may have gone with its window, and not always is that told.
        if target is not None:
            with contextlib.suppress(RuntimeError):
                target.removeEventFilter(self)
                target.destroyed.disconnect(self._forget)
        if frame is not None:
            with contextlib.suppress(RuntimeError):
                frame.hide()
                frame.deleteLater()

    def _forget(self) -> None:
        """The view is gone, and its sibling with their parent."""
        self._target = self._frame = None


def _needs_frame(widget: QWidget) -> bool:
    if isinstance(widget, QTextEdit | QPlainTextEdit):
        return widget.isReadOnly()
    # The pages of the settings are a short list whose row shows it.
    return isinstance(widget, QAbstractScrollArea) and widget.property("role") != "pages"
