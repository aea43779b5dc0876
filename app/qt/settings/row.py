"""Rows of the settings dialog: what something is at the left, how to change it at the right, what is wrong below."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from app.qt.look.icons import svg_icon
from app.qt.look.theme import SPACE_L, SPACE_S, SPACE_XS, colors_of, scaled, set_styled
from app.qt.settings.controls import Control, ModelChoice, control_for
from app.qt.settings.values import value_text
from app.settings.settings import Setting, Value
from app.translation import Translator

CONTROL_EM = 14.5
_WIDE = ("text", "path", "model", "programs")
SMALL = 0.9


def text_label(text: str = "", role: str = "", small: bool = False) -> QLabel:
    """Plain text that wraps."""
    label = QLabel(text)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setWordWrap(True)
    label.setProperty("role", role)
    if small:
        label.setFont(scaled(label.font(), SMALL))
    policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
    policy.setHeightForWidth(True)
    label.setSizePolicy(policy)
    return label


class Row(QWidget):
    """Title, help and a control. A wide control stands below its text, the others at the right, in one column.

    Attributes:
        words: what a search looks through, in lower case.
    """

    def __init__(self, title: str, help_text: str, control: QWidget, is_wide: bool = False) -> None:
        super().__init__()
        self.title = text_label(title)
        self.help = text_label(help_text, "muted", small=True)
        self.help.setVisible(bool(help_text))
        self.status = text_label(role="muted", small=True)
        self.status.hide()
        self.error = text_label(role="danger", small=True)
        self.error.hide()
        self.words = f"{title}\n{help_text}".lower()
        self.reset_button = QToolButton()
        self.reset_button.setIconSize(QSize(16, 16))
        self.reset_button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        policy = self.reset_button.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self.reset_button.setSizePolicy(policy)
        self.reset_button.hide()
        self._lay_out(control, is_wide)

    def _lay_out(self, control: QWidget, is_wide: bool) -> None:
        texts = QVBoxLayout()
        texts.setSpacing(SPACE_XS // 2)
        for label in (self.title, self.help, self.status):
            texts.addWidget(label)
        self._control_line = QHBoxLayout()
        self._control_line.setSpacing(SPACE_XS)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, SPACE_S, 0, SPACE_S)
        layout.setSpacing(SPACE_S if is_wide else SPACE_XS)
        if is_wide:
            self._control_line.addWidget(control, 1)
            self._control_line.addWidget(self.reset_button)
            layout.addLayout(texts)
            layout.addLayout(self._control_line)
        else:
            holder = QWidget()
            holder.setFixedWidth(round(CONTROL_EM * self.fontMetrics().height()))
            right = QHBoxLayout(holder)
            right.setContentsMargins(0, 0, 0, 0)
            right.addStretch() if _keeps_its_width(control) else None
            right.addWidget(control)
            self._control_line.addLayout(texts, 1)
            self._control_line.addSpacing(SPACE_L)
            self._control_line.addWidget(holder, 0, Qt.AlignmentFlag.AlignTop)
            self._control_line.addWidget(self.reset_button, 0, Qt.AlignmentFlag.AlignTop)
            layout.addLayout(self._control_line)
        layout.addWidget(self.error)

    def matches(self, words: Sequence[str]) -> bool:
        """Whether each of the words, in lower case, is found in title, help or values."""
        return all(word in self.words for word in words)

    def show_error(self, text: str) -> None:
        """Says why something was refused; "" takes it away."""
        self.error.setText(text)
        self.error.setVisible(bool(text))

    def show_status(self, text: str, role: str = "muted") -> None:
        """Says how things stand, below the help."""
        self.status.setText(text)
        self.status.setVisible(bool(text))
        set_styled(self.status, "role", role)


def _keeps_its_width(control: QWidget) -> bool:
    return control.property("role") == "fits" or control.sizePolicy().horizontalPolicy() in (
        QSizePolicy.Policy.Fixed,
        QSizePolicy.Policy.Maximum,
    )


class SettingRow(Row):
    """One setting.

    Attributes:
        key: of the setting.
        control: what it is changed with.

    Signals:
        edited: key and the value that the user wants.
    """

    edited = Signal(str, object)

    def __init__(
        self, setting: Setting, translator: Translator, models: Sequence[ModelChoice] = (), with_help: bool = True
    ) -> None:
        """Shows the default; `show_value` shows what is in force.

        Args:
            with_help: False where the group says it already.
        """
        self.setting, self.key, self._translator = setting, setting.key, translator
        self.control: Control = control_for(setting, translator, models)
        assert isinstance(self.control, QWidget)
        if setting.kind == "flag":
            self.control.setProperty("role", "fits")
        help_text = translator.pick(setting.help)
        super().__init__(
            translator.pick(setting.title), help_text if with_help else "", self.control, setting.kind in _WIDE
        )
        said = (setting.title, setting.help, setting.zero, *setting.choices.values())
        self.words = "\n".join([*(text for each in said for text in each.values()), setting.key]).lower()
        target = self.control.target()
        target.setAccessibleName(translator.pick(setting.title))
        target.setAccessibleDescription(help_text)
        default = value_text(setting, setting.default, translator)
        tip = translator.tr("Back to the default: {value}", value=default)
        self.reset_button.setToolTip(tip)
        self.reset_button.setAccessibleName(f"{translator.pick(setting.title)}: {tip}")
        self.reset_button.clicked.connect(lambda: self.edited.emit(self.key, setting.default))
        self.control.edited.connect(lambda value: self.edited.emit(self.key, value))
        self.show_value(setting.default)
        self.color()

    def show_value(self, value: Value) -> None:
        """Shows what is in force."""
        self.control.show_value(value)
        self.reset_button.setVisible(value != self.setting.default)
        self._mark_refused("")

    def refuse(self, text: str) -> None:
        """Says why what the user has put in does not hold; it stays in the field, to be corrected."""
        self._mark_refused(text)
        if QAccessible.isActive():
            QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self, text))

    def color(self) -> None:
        """Takes up the colours of the palette."""
        self.reset_button.setIcon(svg_icon("reset", colors_of(self.palette()).muted))

    def _mark_refused(self, text: str) -> None:
        self.show_error(text)
        set_styled(self.control.target(), "invalid", bool(text))
