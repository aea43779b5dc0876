"""One page of the settings dialog: groups of rows under their headings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtGui import QFont
from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget

from app.qt.look.theme import SPACE_L, SPACE_M, SPACE_S, scaled
from app.qt.settings.controls import ModelChoice
from app.qt.settings.row import Row, SettingRow, text_label
from app.settings.pages import Group, Page
from app.translation import Translator

# Lines that are longer are hard to follow from a title to its control.
WIDEST_EM = 60


def hairline() -> QFrame:
    """A thin line between rows."""
    line = QFrame()
    line.setProperty("role", "hairline")
    return line


class GroupBox(QWidget):
    """Rows under one heading.

    Attributes:
        rows: in their order.
    """

    def __init__(
        self, group: Group, translator: Translator, models: Sequence[ModelChoice], extra: Sequence[QWidget]
    ) -> None:
        """Makes the rows.

        Args:
            extra: stands below the settings: rows, or anything else.
        """
        super().__init__()
        heading = text_label(translator.tr(group.title))
        heading.setFont(scaled(heading.font(), 1.08, QFont.Weight.DemiBold))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, SPACE_L)
        layout.setSpacing(0)
        layout.addWidget(heading)
        helps = {translator.pick(setting.help) for setting in group.settings}
        is_shared = len(group.settings) > 1 and len(helps) == 1
        if is_shared:
            layout.addWidget(text_label(helps.pop(), "muted", small=True))
        layout.addSpacing(SPACE_S)
        self.rows: list[Row] = [SettingRow(each, translator, models, not is_shared) for each in group.settings]
        self.rows += [widget for widget in extra if isinstance(widget, Row)]
        self._lines: list[QFrame] = []
        for widget in [*self.rows, *(each for each in extra if not isinstance(each, Row))]:
            self._lines.append(hairline())
            layout.addWidget(self._lines[-1])
            layout.addWidget(widget)

    def show_matching(self, words: Sequence[str]) -> int:
        """Shows the rows that match, all of them where there are no words; how many that are."""
        shown = 0
        for row, line in zip(self.rows, self._lines, strict=False):
            matches = row.matches(words)
            row.setVisible(matches)
            line.setVisible(matches)
            shown += matches
        self.setVisible(bool(shown) or not words)
        return shown


class SettingsPage(QWidget):
    """The groups of one page, one below the other."""

    def __init__(
        self,
        page: Page,
        translator: Translator,
        models: Sequence[ModelChoice],
        extras: Mapping[str, Sequence[QWidget]],
    ) -> None:
        super().__init__()
        self.page = page
        self.setObjectName("page")
        self.setMaximumWidth(WIDEST_EM * self.fontMetrics().height())
        self._head = QVBoxLayout()
        self._head.setSpacing(SPACE_S)
        self.groups = [GroupBox(group, translator, models, extras.get(group.id, ())) for group in page.groups]
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_M)
        layout.addLayout(self._head)
        for box in self.groups:
            layout.addWidget(box)

    @property
    def rows(self) -> list[Row]:
        """Every row, from the top."""
        return [row for group in self.groups for row in group.rows]

    def add_head(self, widget: QWidget) -> None:
        """Puts something above the groups."""
        self._head.addWidget(widget)

    def show_matching(self, words: Sequence[str]) -> int:
        """Shows the rows that match; how many that are."""
        shown = sum(group.show_matching(words) for group in self.groups)
        self.setVisible(bool(shown) or not words)
        return shown
