"""The three parts of the chat beside each other; in a narrow window one of them at a time."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtGui import QFontInfo, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

SIDE_EM, OPTIONS_EM = 19, 22
# Narrower than this, one part is shown at a time.
NARROW_EM = 46
LARGEST_PX = 16_777_215


class Panels(QWidget):
    """Conversations at the left, the chat in the middle, options at the right.

    Signals:
        arranged: parts came, went or changed their width.
    """

    arranged = Signal()

    def __init__(self, side: QWidget, main: QWidget, options: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._em = QFontInfo(self.font()).pixelSize()
        self._wants_side, self._side_over, self._wants_options = True, False, False
        self._main = main
        self._side, self._options = _framed(side, "sideframe"), _framed(options, "optionsframe")
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self._side)
        layout.addWidget(main, 1)
        layout.addWidget(self._options)
        self.setMinimumSize(24 * self._em, 26 * self._em)
        self.arrange()

    @property
    def is_narrow(self) -> bool:
        """Whether there is room for one part only."""
        return self.width() < NARROW_EM * self._em

    @property
    def shows_side(self) -> bool:
        """Whether the conversations are shown."""
        return not self._side.isHidden()

    @property
    def shows_options(self) -> bool:
        """Whether the options are shown."""
        return not self._options.isHidden()

    @property
    def main_width(self) -> int:
        """Width of the middle, in pixels."""
        beside = sum(frame.maximumWidth() for frame in (self._side, self._options) if not frame.isHidden())
        return self.width() - (0 if self.is_narrow else beside)

    def toggle_side(self) -> None:
        """Shows or hides the conversations."""
        if self.is_narrow:
            self._side_over = not self._side_over
        else:
            self._wants_side = not self._wants_side
        self.arrange()

    def show_side(self) -> None:
        """Shows the conversations."""
        self._wants_side = self._side_over = True
        if self.is_narrow:
            self._wants_options = False
        self.arrange()

    def toggle_options(self) -> None:
        """Shows or hides the options."""
        self._wants_options = not self._wants_options
        self.arrange()

    def show_main(self) -> None:
        """Makes sure that the chat is seen."""
        self._side_over = False
        if self.is_narrow:
            self._wants_options = False
        self.arrange()

    def arrange(self) -> None:
        """Shows what is wanted and has room."""
        narrow = self.is_narrow
        shows_side = (self._side_over and not self._wants_options) if narrow else self._wants_side
        for frame, em in ((self._side, SIDE_EM), (self._options, OPTIONS_EM)):
            frame.setMinimumWidth(0 if narrow else em * self._em)
            frame.setMaximumWidth(LARGEST_PX if narrow else em * self._em)
        self._side.setVisible(shows_side)
        self._options.setVisible(self._wants_options)
        self._main.setVisible(not narrow or not (shows_side or self._wants_options))
        self.arranged.emit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Another width may have room for more or for less."""
        super().resizeEvent(event)
        self.arrange()


def _framed(widget: QWidget, name: str) -> QFrame:
    frame = QFrame()
    frame.setObjectName(name)
    layout = QVBoxLayout(frame)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.addWidget(widget)
    return frame
