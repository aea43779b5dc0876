"""The memory meter: ours, the others' and what is free, now and over the last minutes."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QFont,
    QGuiApplication,
    QHideEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPolygonF,
    QShowEvent,
    QWindow,
)
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from app.memory.reading import HISTORY_S, MemoryHistory, MemoryReading
from app.qt.look.elided_label import ElidedLabel
from app.qt.look.theme import SPACE_S, SPACE_XS, Colors, blend, colors_of, scaled
from app.qt.memory.feed import MemoryFeed
from app.translation import Translator
from inference.byte_size import size_text

GRAPH_HEIGHT_EM = 5.0
BAR_HEIGHT_EM = 0.6
RADIUS_PX = 4.0
GRID_LINES = 3


class Shares:
    """The parts of the memory from the bottom up, and the colours they are shown in."""

    def __init__(self, colors: Colors) -> None:
        self.ours = colors.accent
        self.driver = blend(colors.accent, colors.page, 0.5)
        self.others = blend(colors.text, colors.page, 0.36)
        # Panels have grounds of their own, which shine through.
        self.ground, self.grid, self.frame = (_veil(colors.text, share) for share in (0.07, 0.12, 0.34))
        self.free = colors.border

    def parts(self, reading: MemoryReading) -> list[tuple[QColor, float]]:
        """Colour and share of the total of each part; [] where the total is not known."""
        if not reading.total_bytes or reading.others_bytes is None:
            return []
        counts = (
            (self.ours, reading.ours_bytes),
            (self.driver, reading.driver_bytes),
            (self.others, reading.others_bytes),
        )
        return [(color, min(1.0, count / reading.total_bytes)) for color, count in counts]


def _veil(color: QColor, share: float) -> QColor:
    veil = QColor(color)
    veil.setAlphaF(share)
    return veil


def current_shares() -> Shares:
    """For the desktop's palette of now."""
    return Shares(colors_of(QGuiApplication.palette()))


class _Graph(QWidget):
    """The last minutes as stacked areas."""

    def __init__(self, history: MemoryHistory) -> None:
        super().__init__()
        self._history = history
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def sizeHint(self) -> QSize:
        """In terms of the font."""
        em = self.fontMetrics().height()
        return QSize(20 * em, round(GRAPH_HEIGHT_EM * em))

    def minimumSizeHint(self) -> QSize:
        """Half of it still shows something."""
        return QSize(8 * self.fontMetrics().height(), round(0.5 * self.sizeHint().height()))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Frame and areas; where nothing is known the page shows."""
        shares, painter = current_shares(), QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        frame = QPainterPath()
        frame.addRoundedRect(area, RADIUS_PX, RADIUS_PX)
        painter.setClipPath(frame)
        runs = [(self._places(area, run), run) for run in self._history.runs()]
        for places, _run in runs:
            painter.fillRect(QRectF(places[0], area.top(), places[-1] - places[0], area.height()), shares.ground)
        painter.setPen(shares.grid)
        for line in range(1, GRID_LINES + 1):
            y = round(area.bottom() - area.height() * line / (GRID_LINES + 1)) + 0.5
            painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
        painter.setPen(Qt.PenStyle.NoPen)
        for places, run in runs:
            _paint_run(painter, area, places, [shares.parts(reading) for reading in run])
        painter.setClipping(False)
        painter.setPen(shares.frame)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPath(frame)
        painter.end()

    def _places(self, area: QRectF, run: Sequence[MemoryReading]) -> list[float]:
        """Where the readings of a run stand; a single one is given a second, so that the first is seen at once."""
        last = self._history.last
        now_s = run[-1].at_s if last is None else last.at_s
        second = area.width() / self._history.span_s
        places = [area.right() - second * (now_s - reading.at_s) for reading in run]
        return places if len(places) > 1 else [places[0] - second, places[0]]


def _paint_run(
    painter: QPainter, area: QRectF, places: Sequence[float], stacks: list[list[tuple[QColor, float]]]
) -> None:
    """One stretch of known readings, one part upon the other."""
    if len(stacks) < len(places):
        stacks = stacks * len(places)
    floor = [area.bottom()] * len(places)
    for part in range(len(stacks[0])):
        top = [low - area.height() * stack[part][1] for low, stack in zip(floor, stacks, strict=True)]
        points = [QPointF(x, y) for x, y in zip(places, top, strict=True)]
        points += [QPointF(x, y) for x, y in zip(reversed(places), reversed(floor), strict=True)]
        painter.setBrush(stacks[0][part][0])
        painter.drawPolygon(QPolygonF(points))
        floor = top


class _Bar(QWidget):
    """The present moment as one bar."""

    def __init__(self, history: MemoryHistory) -> None:
        super().__init__()
        self._history = history
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        """In terms of the font."""
        em = self.fontMetrics().height()
        return QSize(12 * em, max(6, round(BAR_HEIGHT_EM * em)))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Ground and parts, from the left; from the right where the language is written so."""
        shares, painter = current_shares(), QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self.layoutDirection() is Qt.LayoutDirection.RightToLeft:
            painter.translate(self.width(), 0)
            painter.scale(-1, 1)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(shares.grid)
        painter.drawRoundedRect(QRectF(self.rect()), RADIUS_PX, RADIUS_PX)
        x, last = 0.0, self._history.last
        for color, share in shares.parts(last) if last is not None else ():
            width = self.width() * share
            painter.setClipRect(QRectF(x, 0, width, self.height()))
            painter.setBrush(color)
            painter.drawRoundedRect(QRectF(self.rect()), RADIUS_PX, RADIUS_PX)
            x += width
        painter.end()


class VramMeter(QWidget):
    """Shows the readings of a feed, and asks for them only while it is on the screen.

    Args:
        compact: a bar of the present moment instead of the graph, and no note of what it is shown for.
    """

    def __init__(
        self, feed: MemoryFeed, translator: Translator, compact: bool = False, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._feed, self._translator, self._is_compact = feed, translator, compact
        self._handle: QWindow | None = None
        self._title, self._name = QLabel(), ElidedLabel()
        self._title.setFont(scaled(self.font(), 1.0, QFont.Weight.DemiBold))
        self._name.setProperty("role", "muted")
        self._picture: QWidget = _Bar(feed.history) if compact else _Graph(feed.history)
        self._span = QLabel("" if compact else translator.tr("last {minutes} minutes", minutes=round(HISTORY_S / 60)))
        self._span.setProperty("role", "muted")
        self._legend, self._reason = QLabel(), QLabel()
        self._legend.setTextFormat(Qt.TextFormat.RichText)
        self._reason.setTextFormat(Qt.TextFormat.PlainText)
        self._reason.setProperty("role", "muted")
        for label in (self._legend, self._reason):
            label.setWordWrap(True)
        self._lay_out()
        self._feed.changed.connect(self._on_reading)
        self._refresh()

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.setSpacing(SPACE_S)
        head.addWidget(self._title)
        head.addWidget(self._name, 1)
        head.addWidget(self._span)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_XS)
        layout.addLayout(head)
        layout.addWidget(self._picture, 1)
        layout.addWidget(self._legend)
        layout.addWidget(self._reason)

    def showEvent(self, event: QShowEvent) -> None:
        """Readings begin."""
        super().showEvent(event)
        handle = self.window().windowHandle()
        if handle is not self._handle:
            self._handle = handle
            handle.windowStateChanged.connect(self._follow_window)
        self._follow_window()

    def hideEvent(self, event: QHideEvent) -> None:
        """Readings end, unless another meter is seen."""
        super().hideEvent(event)
        self._follow_window()

    def _follow_window(self) -> None:
        """A window that lies in the taskbar is not looked at."""
        is_seen = self.isVisible() and not self.window().isMinimized()
        if is_seen:
            self._feed.watch(self, self._is_compact)
        else:
            self._feed.unwatch(self)

    def sentence(self) -> str:
        """All that the picture shows, in words; what a screen reader says of it."""
        last = self._feed.history.last
        parts = [text for _, text in self._parts(last)]
        words = [self._place(), "" if last is None else last.name, *parts, self._reason_text(last)]
        return ", ".join(word for word in words if word)

    def event(self, event: QEvent) -> bool:
        """The colours of the legend stand in its text."""
        if event.type() is QEvent.Type.ApplicationPaletteChange and hasattr(self, "_reason"):
            self._refresh()
        return super().event(event)

    def _on_reading(self) -> None:
        """The words change seldom: a second's work is the picture alone."""
        self._picture.update()
        if self.sentence() != self._picture.accessibleDescription():
            self._refresh()

    def _refresh(self) -> None:
        last = self._feed.history.last
        self._title.setText(self._place())
        self._name.set_full_text("" if last is None else last.name)
        self._legend.setText(self._legend_text(last))
        self._legend.setVisible(last is not None)
        self._reason.setText(self._reason_text(last))
        is_note = last is not None and last.unknown is None
        self._reason.setVisible(bool(self._reason.text()) and not (is_note and self._is_compact))
        self._legend.setAccessibleName(", ".join(text for _, text in self._parts(last)))
        self._picture.setAccessibleName(self._title.text())
        self._picture.setAccessibleDescription(self.sentence())

    def _place(self) -> str:
        tr, last = self._translator.tr, self._feed.history.last
        return tr("GPU memory") if last is None or last.place == "gpu" else tr("Main memory")

    def _legend_text(self, reading: MemoryReading | None) -> str:
        """Each part with a square of its colour; lines break between parts alone."""
        shares, entries = current_shares(), []
        for part, text in self._parts(reading):
            square, color = ("□" if part == "free" else "■"), getattr(shares, part).name()
            words = escape(text).replace(" ", "\u00a0")
            entries.append(f'<span style="color:{color}">{square}</span>\u00a0{words}')
        return " &nbsp; ".join(entries)

    def _parts(self, reading: MemoryReading | None) -> list[tuple[str, str]]:
        """Names of colours and what they stand for."""
        if reading is None:
            return []
        tr = self._translator.tr
        ours = tr("DeskInfer {size}", size=size_text(reading.ours_bytes))
        if reading.place == "ram" and 0 < reading.model_bytes <= reading.ours_bytes:
            # In main memory the program itself counts too, so that this is more than the model's size elsewhere.
            ours = tr("{ours}, {size} of it the model", ours=ours, size=size_text(reading.model_bytes))
        parts = [("ours", ours)]
        if reading.driver_bytes:
            parts.append(("driver", tr("its driver {size}", size=size_text(reading.driver_bytes))))
        if reading.total_bytes is None or reading.others_bytes is None or reading.free_bytes is None:
            return [*parts, ("others", tr("Others unknown"))]
        free, total = size_text(reading.free_bytes), size_text(reading.total_bytes)
        return [
            *parts,
            ("others", tr("Others {size}", size=size_text(reading.others_bytes))),
            ("free", tr("Free {size} of {total}", size=free, total=total)),
        ]

    def _reason_text(self, reading: MemoryReading | None) -> str:
        tr = self._translator.tr
        if reading is None:
            return tr("The memory is being read")
        if reading.unknown is not None:
            return tr("Not known: {reason}.", reason=reading.unknown)
        return "" if reading.note is None else tr(reading.note)
