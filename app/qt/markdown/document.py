"""Writes blocks of Markdown into a text document and, when they change, no more than what differs.

What the document shows is a function of the blocks alone, never of the way in which they came: each block is written
by itself and by the one before it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from PySide6.QtGui import (
    QTextBlock,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextLayout,
    QTextTable,
)

from app.qt.markdown.code_highlight import Span, line_spans, utf16_length
from app.qt.markdown.look import Look, is_right_to_left
from app.text.markdown import QUOTE, Block, Cell, Change, Run

LINE_SEPARATOR = "\u2028"
# Code that is still being written is coloured as often as this share of the time allows.
COLORING_SHARE = 0.1


class DocumentWriter:
    """The blocks of one document.

    Attributes:
        blocks: what is written.
        starts: the position in the document at which each of them begins.
        look: how they are written.
    """

    def __init__(self, document: QTextDocument, look: Look) -> None:
        self.blocks: list[Block] = []
        self.starts: list[int] = []
        self._document, self.look = document, look
        # Whether the document ends with an empty line that the next block is written into.
        self._is_fresh = True
        self._colored: list[tuple[Span, ...]] = []
        self._next_coloring_s = 0.0
        self._is_coloring_due = False

    def restyle(self, look: Look) -> None:
        """Writes everything again in another look."""
        blocks = tuple(self.blocks)
        self._truncate(0)
        self.look = look
        self.apply(Change(0, blocks))
        self.finish()

    def apply(self, change: Change) -> None:
        """Writes what a change brings."""
        at = change.start
        new = change.blocks
        while at < len(self.blocks) and at - change.start < len(new) and self.blocks[at] == new[at - change.start]:
            at += 1
        new = new[at - change.start :]
        if not new and at == len(self.blocks):
            return
        edit = QTextCursor(self._document)
        edit.beginEditBlock()
        if new and at == len(self.blocks) - 1 and self._extend(self.blocks[at], new[0]):
            at, new = at + 1, new[1:]
        elif at < len(self.blocks):
            self._truncate(at)
        for block in new:
            self._write(block)
        edit.endEditBlock()
        self._color(is_last=False)

    def finish(self) -> None:
        """There is no more to come for now: what is still plain is coloured."""
        self._color(is_last=True)

    def code_lines(self, index: int) -> tuple[QTextBlock, QTextBlock]:
        """The first and the last line of a block of code."""
        first = self._document.findBlock(self.starts[index])
        last = first
        for _ in range(self.blocks[index].code.count("\n")):
            last = last.next()
        return first, last

    # --- writing ------------------------------------------------------------------------------------------------

    def _end(self) -> QTextCursor:
        cursor = QTextCursor(self._document)
        cursor.movePosition(QTextCursor.MoveOperation.End)
        return cursor

    def _truncate(self, index: int) -> None:
        """Removes the blocks from `index` on."""
        if index >= len(self.blocks):
            return
        cursor = QTextCursor(self._document)
        cursor.setPosition(self.starts[index])
        cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()
        cursor.block().layout().setFormats([])
        _empty(cursor)
        self._is_fresh = True
        self._is_coloring_due = False
        del self.blocks[index:], self.starts[index:]

    def _write(self, block: Block) -> None:
        if self.blocks and self.blocks[-1].kind == "code" and self._is_coloring_due:
            self._color(is_last=True)
        before = self.blocks[-1] if self.blocks else None
        cursor = self._end()
        if not self._is_fresh:
            cursor.insertBlock()
        self._is_fresh = False
        self.starts.append(cursor.position())
        if block.kind == "code":
            self._write_code(cursor, block, before)
        elif block.kind == "table":
            self._write_table(cursor, block, before)
        elif block.kind == "rule":
            cursor.setBlockFormat(self.look.rule_format(block, before))
            cursor.setBlockCharFormat(self.look.char_format(Run("")))
        else:
            cursor.setBlockFormat(self.look.text_format(block, before))
            cursor.setBlockCharFormat(self.look.char_format(Run(""), block.level))
            self._insert(cursor, block, (Run(self.look.marker_text(block)), *block.runs))
        self.blocks.append(block)

    def _insert(self, cursor: QTextCursor, block: Block, runs: Sequence[Run]) -> None:
        is_muted = QUOTE in block.containers
        for run in runs:
            text = run.text.replace("\n", LINE_SEPARATOR)
            if text:
                cursor.insertText(text, self.look.char_format(run, block.level, is_muted=is_muted))

    def _write_code(self, cursor: QTextCursor, block: Block, before: Block | None) -> None:
        cursor.setBlockFormat(self.look.code_format(block, before, is_first=False, is_last=False))
        cursor.setBlockCharFormat(self.look.code_char_format())
        cursor.insertText(block.code, self.look.code_char_format())
        self._colored, self._is_coloring_due, self._next_coloring_s = [], True, 0.0
        self._frame_code(block, before, self._document.findBlock(self.starts[-1]), cursor.block())

    def _frame_code(self, block: Block, before: Block | None, first: QTextBlock, last: QTextBlock) -> None:
        for line in {first.blockNumber(): first, last.blockNumber(): last}.values():
            is_first, is_last = line == first, line == last
            QTextCursor(line).setBlockFormat(self.look.code_format(block, before, is_first, is_last))

    def _write_table(self, cursor: QTextCursor, block: Block, before: Block | None) -> None:
        _empty(cursor)
        table = cursor.insertTable(len(block.rows), len(block.rows[0]), self.look.table_format(block, before))
        for row, cells in enumerate(block.rows):
            for column, runs in enumerate(cells):
                self._write_cell(table, block, row, column, runs)
        _empty(self._end())
        self._is_fresh = True

    def _write_cell(self, table: QTextTable, block: Block, row: int, column: int, runs: Cell) -> None:
        cell = table.cellAt(row, column)
        is_head = row == 0
        cell.setFormat(self.look.cell_ground(is_head))
        cursor = cell.firstCursorPosition()
        cursor.setPosition(cell.lastCursorPosition().position(), QTextCursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()
        text = "".join(run.text for run in runs)
        cursor.setBlockFormat(self.look.cell_format(block.alignments[column], text))
        for run in runs:
            cursor.insertText(run.text.replace("\n", LINE_SEPARATOR), self.look.char_format(run, is_head=is_head))

    # --- adding to the last block ---------------------------------------------------------------------------------

    def _extend(self, old: Block, new: Block) -> bool:
        """Adds to the last block what its new state has more; False where it is not just longer."""
        is_same_kind = replace(new, runs=old.runs, code=old.code, rows=old.rows) == old
        if not is_same_kind or (old.kind == "table" and is_right_to_left(old.text) != is_right_to_left(new.text)):
            return False
        extended = {"code": self._extend_code, "table": self._extend_table}.get(old.kind, self._extend_text)(old, new)
        if extended:
            self.blocks[-1] = new
        return extended

    def _extend_text(self, old: Block, new: Block) -> bool:
        if is_right_to_left(old.text) != is_right_to_left(new.text):
            return False
        kept = next((at for at, run in enumerate(old.runs) if new.runs[at : at + 1] != (run,)), len(old.runs))
        more = list(new.runs[kept:])
        if kept == len(old.runs) - 1 and more and _is_longer(old.runs[kept], more[0]):
            more[0] = replace(more[0], text=more[0].text[len(old.runs[kept].text) :])
        elif kept < len(old.runs):
            before = self.look.marker_text(old) + "".join(run.text for run in old.runs[:kept])
            cursor = QTextCursor(self._document)
            cursor.setPosition(self.starts[-1] + utf16_length(before))
            cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
            cursor.removeSelectedText()
        self._insert(self._end(), new, more)
        return True

    def _extend_code(self, old: Block, new: Block) -> bool:
        if not new.code.startswith(old.code):
            return False
        before = self.blocks[-2] if len(self.blocks) > 1 else None
        cursor = self._end()
        was_last = cursor.block()
        cursor.insertText(new.code[len(old.code) :], self.look.code_char_format())
        first = self._document.findBlock(self.starts[-1])
        if was_last != cursor.block():
            if was_last != first:
                inner = self.look.code_format(new, before, is_first=False, is_last=False)
                QTextCursor(was_last).setBlockFormat(inner)
            line = was_last.next()
            while line.isValid() and line != cursor.block():
                QTextCursor(line).setBlockFormat(self.look.code_format(new, before, is_first=False, is_last=False))
                line = line.next()
            self._frame_code(new, before, first, cursor.block())
        self._is_coloring_due = True
        return True

    def _extend_table(self, old: Block, new: Block) -> bool:
        kept = len(old.rows) - 1
        if len(new.rows) < len(old.rows) or new.rows[:kept] != old.rows[:kept]:
            return False
        cursor = QTextCursor(self._document)
        cursor.setPosition(self.starts[-1] + 1)
        table = cursor.currentTable()
        if len(new.rows) > len(old.rows):
            table.appendRows(len(new.rows) - len(old.rows))
        for row in range(kept, len(new.rows)):
            for column, runs in enumerate(new.rows[row]):
                if row > kept or runs != old.rows[row][column]:
                    self._write_cell(table, new, row, column, runs)
        return True

    # --- colours ------------------------------------------------------------------------------------------------

    def _color(self, is_last: bool) -> None:
        """Colours the last block of code; while it is being written, only now and then."""
        now_s = time.monotonic()
        if not self._is_coloring_due or (not is_last and now_s < self._next_coloring_s):
            return
        block = self.blocks[-1]
        self._is_coloring_due = False
        spans = line_spans(block.code, block.language)
        line = self._document.findBlock(self.starts[-1])
        for number, of_line in enumerate(spans):
            if number >= len(self._colored) or self._colored[number] != of_line:
                self._color_line(line, of_line)
            line = line.next()
        self._colored = spans
        self._next_coloring_s = now_s + (time.monotonic() - now_s) / COLORING_SHARE

    def _color_line(self, line: QTextBlock, spans: Sequence[Span]) -> None:
        ranges = []
        for span in spans:
            each = QTextLayout.FormatRange()
            each.start, each.length, each.format = span.start, span.length, self.look.roles[span.role]
            ranges.append(each)
        line.layout().setFormats(ranges)
        self._document.markContentsDirty(line.position(), line.length())


def _empty(cursor: QTextCursor) -> None:
    """Makes an empty line like any other: the one before and the one behind a table, which are not shown."""
    cursor.setBlockFormat(QTextBlockFormat())
    cursor.setBlockCharFormat(QTextCharFormat())


def _is_longer(old: Run, new: Run) -> bool:
    return replace(new, text=old.text) == old and new.text.startswith(old.text)
