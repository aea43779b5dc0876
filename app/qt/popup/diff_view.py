"""A text with the changes of an answer in it, each of which can be taken or left."""

from __future__ import annotations

import bisect
import time
from collections.abc import Iterator
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QPoint, QPointF, Qt, QTimer, Signal
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QColor,
    QGuiApplication,
    QKeyEvent,
    QMouseEvent,
    QTextCharFormat,
    QTextCursor,
)
from PySide6.QtWidgets import QToolTip, QWidget

from app.qt.look.stream_view import StreamView
from app.qt.look.theme import Colors, blend, colors_of, legible
from app.text.checks import Loss
from app.text.word_diff import Change, apply
from app.translation import Translator

ADDED = "#1a7f37"
LINE_BREAK = "↵"
# Of the colour on the page: behind a change, and behind the one that the keys act on.
GROUND_SHARE, CURRENT_SHARE = 0.1, 0.26
# A long text is written in pieces of this time, so that the windows stay fluent.
SLICE_S = 0.008


@dataclass(slots=True)
class _Shown:
    """Where a change stands in the view, in positions of the document."""

    start: int
    middle: int
    end: int


class DiffView(StreamView):
    """Removed text is struck through, added text is underlined; what the user keeps as it was is grey the other way.

    Up to its end the text is the same whatever is accepted, so nothing moves when a change is taken or left.

    Signals:
        choice_changed: another change is accepted, or the current one is another.
    """

    choice_changed = Signal()

    def __init__(self, translator: Translator, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._tr = translator.tr
        self._source = ""
        self._changes: tuple[Change, ...] = ()
        self._shown: list[_Shown] = []
        self.accepted: set[int] = set()
        self.current = -1
        self._pieces: Iterator[tuple[int, str, str]] = iter(())
        self._pressed_at: QPointF | None = None
        self._timer = QTimer(self, interval=0)
        self._timer.timeout.connect(self._write_some)
        self.viewport().setMouseTracking(True)

    @property
    def changes(self) -> tuple[Change, ...]:
        """All changes, in their order."""
        return self._changes

    def show_changes(self, source: str, changes: tuple[Change, ...]) -> None:
        """Shows a text and its changes, all of them accepted."""
        self.clear_text()
        self._source, self._changes, self._shown = source, changes, []
        self.accepted, self.current = set(range(len(changes))), -1
        self._is_following = False
        self._pieces = self._pieces_of(source, changes)
        self._write_some()
        self._to_start()
        self.choice_changed.emit()

    def result(self) -> str:
        """The text with the changes that are accepted."""
        return apply(self._source, self._changes, self.accepted)

    # --- choosing -----------------------------------------------------------------------------------------------

    def go(self, step: int) -> None:
        """Makes the next change the current one, or the previous one; at the end it goes on at the beginning."""
        if self._changes:
            at = self.current + step if self.current >= 0 else (0 if step > 0 else -1)
            self.select(at % len(self._changes))

    def select(self, index: int) -> None:
        """Makes a change the current one and scrolls to it."""
        while len(self._shown) <= index and self._timer.isActive():
            self._write_some()
        before, self.current = self.current, index
        for changed in {before, index} - {-1}:
            self._paint(changed)
        cursor = QTextCursor(self.document())
        cursor.setPosition(self._shown[index].start)
        self.setTextCursor(cursor)
        self._show_around(cursor)
        self._announce()
        self.choice_changed.emit()

    def toggle_current(self) -> None:
        """Takes the current change, or leaves it; without one, the first becomes the current one."""
        if self.current < 0:
            self.go(1)
        else:
            self.accepted ^= {self.current}
            self._paint(self.current)
            self._announce()
            self.choice_changed.emit()

    def accept_all(self, accepts: bool) -> None:
        """Takes all changes, or leaves all."""
        self.accepted = set(range(len(self._changes))) if accepts else set()
        for index in range(len(self._shown)):
            self._paint(index)
        self.choice_changed.emit()

    def go_to_loss(self, loss: Loss) -> bool:
        """Makes the change that a loss is in the current one; False where it is in none."""
        for index, change in enumerate(self._changes):
            spans = ((loss.source_span, change.source_span), (loss.answer_span, change.answer_span))
            if any(one and one[0] < other[1] and other[0] < one[1] for one, other in spans):
                self.select(index)
                return True
        return False

    def describe(self, index: int) -> str:
        """A change in words, for screen readers and the tool tip."""
        tr, change = self._tr, self._changes[index]
        if not change.before:
            text = tr("Added: {text}", text=change.after)
        elif not change.after:
            text = tr("Removed: {text}", text=change.before)
        else:
            text = tr("{before} becomes {after}", before=change.before, after=change.after)
        state = tr("used") if index in self.accepted else tr("not used")
        place = tr("Change {number} of {count}", number=index + 1, count=len(self._changes))
        return f"{place}, {state}. {text}"

    def _announce(self) -> None:
        self.setAccessibleDescription(self.describe(self.current))
        if QAccessible.isActive():
            event = QAccessibleAnnouncementEvent(self, self.describe(self.current))
            QAccessible.updateAccessibility(event)

    # --- writing ------------------------------------------------------------------------------------------------

    @staticmethod
    def _pieces_of(source: str, changes: tuple[Change, ...]) -> Iterator[tuple[int, str, str]]:
        """Index of the change, -1 for none, then what was and what is there."""
        end = 0
        for index, change in enumerate(changes):
            if change.source_span[0] > end:
                yield -1, source[end : change.source_span[0]], ""
            yield index, _with_breaks(change.before), _with_breaks(change.after)
            end = change.source_span[1]
        yield -1, source[end:], ""

    def _write_some(self) -> None:
        until_s = time.monotonic() + SLICE_S
        cursor = QTextCursor(self.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        colors = colors_of(QGuiApplication.palette())
        cursor.beginEditBlock()
        for index, before, after in self._pieces:
            start = cursor.position()
            cursor.insertText(before, self._format(colors, index, is_added=False))
            middle = cursor.position()
            cursor.insertText(after, self._format(colors, index, is_added=True))
            if index >= 0:
                self._shown.append(_Shown(start, middle, cursor.position()))
            if time.monotonic() > until_s:
                self._timer.start()
                break
        else:
            self._timer.stop()
        cursor.endEditBlock()

    def _format(self, colors: Colors, index: int, is_added: bool) -> QTextCharFormat:
        result = QTextCharFormat()
        if index < 0:
            return result
        is_used, is_current = index in self.accepted, index == self.current
        color = legible(QColor(ADDED), colors.page) if is_added else colors.danger
        if is_used == is_added:  # it will stand in the result
            result.setForeground(color if is_used else colors.text)
            result.setFontUnderline(is_added)
        else:
            result.setForeground(color if is_used else colors.muted)
            result.setFontStrikeOut(True)
        ground = color if is_used else colors.text
        result.setBackground(blend(ground, colors.page, CURRENT_SHARE if is_current else GROUND_SHARE))
        return result

    def _paint(self, index: int) -> None:
        if index >= len(self._shown):
            return
        shown, colors = self._shown[index], colors_of(QGuiApplication.palette())
        cursor = QTextCursor(self.document())
        for start, end, is_added in ((shown.start, shown.middle, False), (shown.middle, shown.end, True)):
            cursor.setPosition(start)
            cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
            cursor.setCharFormat(self._format(colors, index, is_added))

    def _follow(self) -> None:
        """Changes are read from the beginning."""

    # --- mouse and keys -----------------------------------------------------------------------------------------

    def _change_at(self, point: QPoint) -> int:
        """The change under a point of the viewport, -1 for none."""
        position = (
            self.document()
            .documentLayout()
            .hitTest(QPointF(point) + QPointF(0, self.verticalScrollBar().value()), Qt.HitTestAccuracy.ExactHit)
        )
        index = bisect.bisect_right([shown.start for shown in self._shown], position) - 1
        return index if index >= 0 and position < self._shown[index].end else -1

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Notes where a click may begin."""
        self._pressed_at = event.position() if event.button() is Qt.MouseButton.LeftButton else None
        super().mousePressEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """A click on a change takes it or leaves it; a pull selects text."""
        super().mouseReleaseEvent(event)
        if self._pressed_at is None or self.textCursor().hasSelection():
            return
        index = self._change_at(event.position().toPoint())
        if index >= 0 and index == self._change_at(self._pressed_at.toPoint()):
            self.select(index)
            self.toggle_current()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """A hand over what can be clicked."""
        super().mouseMoveEvent(event)
        is_over = not event.buttons() and self._change_at(event.position().toPoint()) >= 0
        self.viewport().setCursor(Qt.CursorShape.PointingHandCursor if is_over else Qt.CursorShape.IBeamCursor)

    def viewportEvent(self, event: QEvent) -> bool:
        """The tool tip of a change says what a click does."""
        if event.type() is QEvent.Type.ToolTip:
            point = self.viewport().mapFromGlobal(self.cursor().pos())
            index = self._change_at(point)
            texts = {True: self._tr("Click to keep your own words here"), False: self._tr("Click to use this change")}
            QToolTip.showText(self.cursor().pos(), texts[index in self.accepted] if index >= 0 else "", self)
            return True
        return super().viewportEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Space takes the current change or leaves it."""
        if event.key() == Qt.Key.Key_Space and self._changes:
            self.toggle_current()
            event.accept()
        else:
            super().keyPressEvent(event)

    def changeEvent(self, event: QEvent) -> None:
        """Follows the desktop between light and dark."""
        super().changeEvent(event)
        if event.type() is QEvent.Type.PaletteChange and self._shown:
            for index in range(len(self._shown)):
                self._paint(index)


def _with_breaks(text: str) -> str:
    """Line breaks that were added or removed can be seen."""
    return text.replace("\n", f"{LINE_BREAK}\n")
