"""How the blocks of a Markdown text look: fonts, colours and distances, all out of one font and one palette."""

from __future__ import annotations

import unicodedata

from PySide6.QtCore import Qt
from PySide6.QtGui import (
    QBrush,
    QFont,
    QFontDatabase,
    QFontInfo,
    QFontMetricsF,
    QTextBlockFormat,
    QTextCharFormat,
    QTextFrameFormat,
    QTextLength,
    QTextOption,
    QTextTableCellFormat,
    QTextTableFormat,
)

from app.qt.look.theme import LINE_HEIGHT_EM, Colors, blend, scaled
from app.qt.markdown.code_highlight import role_formats
from app.text.markdown import QUOTE, Alignment, Block, Run

HEADING_SCALES = (1.45, 1.25, 1.1, 1.0, 1.0, 1.0)
CODE_SCALE = 0.92
CODE_LINE_EM = 1.4
LIST_INDENT_EM, QUOTE_INDENT_EM = 1.6, 1.1
PARAGRAPH_GAP_EM, ITEM_GAP_EM, HEADING_GAP_EM = 0.65, 0.2, 1.1
CODE_PADDING_EM = 0.7
CODE_HEADER_EM = 2.3


def is_right_to_left(text: str) -> bool:
    """Whether the first letter that has a direction is of a script that runs to the left."""
    for letter in text:
        direction = unicodedata.bidirectional(letter)
        if direction in ("L", "R", "AL"):
            return direction != "L"
    return False


class Look:
    """The formats of blocks and runs. Made anew when the font or the palette changes.

    Attributes:
        em: the size of the font, in pixels; distances are told in it.
    """

    def __init__(self, font: QFont, colors: Colors) -> None:
        self.font, self.colors = font, colors
        self.em = float(QFontInfo(font).pixelSize())
        mono = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
        self.code_font = scaled(font, CODE_SCALE)
        self.code_font.setFamilies([*mono.families(), *font.families()])
        self.code_font.setFixedPitch(True)
        self.code_font.setStyleHint(QFont.StyleHint.Monospace)
        self.code_ground = blend(colors.text, colors.page, 0.05)
        self.roles = role_formats(colors, self.code_ground)
        self._metrics = QFontMetricsF(font)
        self._char_formats: dict[tuple[Run, int, bool, bool], QTextCharFormat] = {}

    @property
    def code_padding(self) -> float:
        """Between the edge of a block of code and its letters."""
        return CODE_PADDING_EM * self.em

    @property
    def code_header(self) -> float:
        """Height of the line above the code, with its language and its button."""
        return CODE_HEADER_EM * self.em

    def offset(self, containers: str) -> float:
        """How far what stands in these containers is moved to the right, or to the left where text runs to the left."""
        return sum(self.em * (QUOTE_INDENT_EM if each == QUOTE else LIST_INDENT_EM) for each in containers)

    def gap(self, block: Block, before: Block | None) -> float:
        """Room above a block."""
        if before is None:
            return 0.0
        if block.kind == "heading":
            return self.em * HEADING_GAP_EM
        is_next_item = block.marker and block.containers and before.containers and before.kind == "paragraph"
        return self.em * (ITEM_GAP_EM if is_next_item else PARAGRAPH_GAP_EM)

    # --- blocks -------------------------------------------------------------------------------------------------

    def text_format(self, block: Block, before: Block | None) -> QTextBlockFormat:
        """Of a paragraph or heading."""
        result = QTextBlockFormat()
        result.setTopMargin(self.gap(block, before))
        is_rtl = is_right_to_left(block.text)
        result.setLayoutDirection(Qt.LayoutDirection.RightToLeft if is_rtl else Qt.LayoutDirection.LeftToRight)
        offset = self.offset(block.containers)
        (result.setRightMargin if is_rtl else result.setLeftMargin)(offset)
        size = self.em * (HEADING_SCALES[block.level - 1] if block.kind == "heading" else 1.0)
        height = size * (1.3 if block.kind == "heading" else LINE_HEIGHT_EM)
        result.setLineHeight(round(height), QTextBlockFormat.LineHeightTypes.MinimumHeight.value)
        if block.kind == "heading":
            result.setHeadingLevel(block.level)
        if block.marker and not is_rtl:
            width = max(self.em * LIST_INDENT_EM, self._metrics.horizontalAdvance(block.marker) + self.em * 0.4)
            result.setTextIndent(-min(width, offset))
            result.setTabPositions([QTextOption.Tab(min(width, offset), QTextOption.TabType.LeftTab)])
        return result

    def code_format(self, block: Block, before: Block | None, is_first: bool, is_last: bool) -> QTextBlockFormat:
        """Of one line of a block of code."""
        result = QTextBlockFormat()
        result.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        result.setLeftMargin(self.offset(block.containers) + self.code_padding)
        result.setRightMargin(self.code_padding)
        result.setTopMargin(self.gap(block, before) + self.code_header if is_first else 0)
        result.setBottomMargin(self.code_padding + self.em * PARAGRAPH_GAP_EM if is_last else 0)
        height = round(self.em * CODE_SCALE * CODE_LINE_EM)
        result.setLineHeight(height, QTextBlockFormat.LineHeightTypes.MinimumHeight.value)
        result.setNonBreakableLines(False)
        return result

    def rule_format(self, block: Block, before: Block | None) -> QTextBlockFormat:
        """Of the empty line in which a rule is drawn."""
        result = QTextBlockFormat()
        result.setTopMargin(self.gap(block, before))
        result.setLeftMargin(self.offset(block.containers))
        result.setLineHeight(round(self.em), QTextBlockFormat.LineHeightTypes.FixedHeight.value)
        return result

    def table_format(self, block: Block, before: Block | None) -> QTextTableFormat:
        """Thin lines between the cells, none around it all but the box."""
        result = QTextTableFormat()
        result.setBorder(1)
        result.setBorderBrush(QBrush(self.colors.hairline))
        result.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
        result.setBorderCollapse(True)
        result.setCellSpacing(0)
        result.setCellPadding(round(0.4 * self.em))
        result.setTopMargin(self.gap(block, before))
        result.setBottomMargin(self.em * PARAGRAPH_GAP_EM)
        result.setLeftMargin(self.offset(block.containers))
        result.setHeaderRowCount(1)
        columns = len(block.rows[0]) if block.rows else 1
        result.setColumnWidthConstraints([QTextLength()] * columns)
        is_rtl = is_right_to_left(block.text)
        result.setLayoutDirection(Qt.LayoutDirection.RightToLeft if is_rtl else Qt.LayoutDirection.LeftToRight)
        return result

    def cell_ground(self, is_head: bool) -> QTextTableCellFormat:
        """Of a cell itself; those of the first row stand out."""
        result = QTextTableCellFormat()
        if is_head:
            result.setBackground(self.code_ground)
        return result

    def cell_format(self, alignment: Alignment, text: str) -> QTextBlockFormat:
        """Of the text in a cell."""
        result = QTextBlockFormat()
        is_rtl = is_right_to_left(text)
        result.setLayoutDirection(Qt.LayoutDirection.RightToLeft if is_rtl else Qt.LayoutDirection.LeftToRight)
        result.setAlignment(
            {
                "right": Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignAbsolute,
                "left": Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignAbsolute,
                "center": Qt.AlignmentFlag.AlignHCenter,
                "": Qt.AlignmentFlag.AlignLeading,
            }[alignment]
        )
        return result

    def marker_text(self, block: Block) -> str:
        """What stands before the words of an item. Qt puts a tab to no use where text runs to the left."""
        if not block.marker:
            return ""
        return f"{block.marker}\u00a0\u00a0" if is_right_to_left(block.text) else f"{block.marker}\t"

    # --- letters ------------------------------------------------------------------------------------------------

    def code_char_format(self) -> QTextCharFormat:
        """Of code that stands alone; what colours it comes on top."""
        result = QTextCharFormat()
        result.setFont(self.code_font)
        result.setForeground(self.colors.text)
        return result

    def char_format(self, run: Run, level: int = 0, is_head: bool = False, is_muted: bool = False) -> QTextCharFormat:
        """Of a run of text.

        Args:
            level: of the heading that it is in, 0 in none.
            is_head: whether it is in the first row of a table.
            is_muted: whether it is in a quotation.
        """
        style = Run("", run.bold, run.italic, run.strike, run.code, run.href)
        key = (style, level, is_head, is_muted)
        if key not in self._char_formats:
            self._char_formats[key] = self._new_char_format(*key)
        return self._char_formats[key]

    def _new_char_format(self, run: Run, level: int, is_head: bool, is_muted: bool) -> QTextCharFormat:
        font = scaled(self.font, HEADING_SCALES[level - 1] if level else 1.0)
        if run.code:
            font = scaled(self.code_font, HEADING_SCALES[level - 1] if level else 1.0)
        if run.bold or level or is_head:
            font.setWeight(QFont.Weight.DemiBold)
        font.setItalic(run.italic)
        font.setStrikeOut(run.strike)
        result = QTextCharFormat()
        result.setFont(font)
        result.setForeground(self.colors.muted if is_muted else self.colors.text)
        if run.code:
            result.setBackground(blend(self.colors.text, self.colors.page, 0.08))
        if run.href:
            result.setAnchor(True)
            result.setAnchorHref(run.href)
            result.setForeground(self.colors.accent)
            result.setFontUnderline(True)
            result.setToolTip(run.href)
        return result
