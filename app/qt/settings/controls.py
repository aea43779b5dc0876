"""The controls of the settings dialog, one for each kind of setting. They show and tell; the setting itself checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from PySide6.QtCore import QRectF, QSize, Qt, Signal, SignalInstance
from PySide6.QtGui import QColor, QKeyEvent, QPainter, QPaintEvent, QWheelEvent
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QFileDialog,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QSpinBox,
    QWidget,
)

from app.qt.hotkeys.edit import HotkeyEdit
from app.qt.look.theme import SPACE_S, colors_of
from app.qt.settings.values import choice_text, unit_text
from app.settings.settings import Setting, Value
from app.translation import Translator

_WIDEST_INTEGER = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model that can be chosen.

    Attributes:
        name: catalog id or path, as the setting has it.
        label: name, size and whether it is here.
    """

    name: str
    label: str


class Control(Protocol):
    """What a row needs of its control."""

    @property
    def edited(self) -> SignalInstance:
        """A signal: the value that the user wants; the control does not judge it."""
        ...

    def show_value(self, value: Value) -> None:
        """Shows a value without telling."""
        ...

    def target(self) -> QWidget:
        """The widget that gets keyboard, name and the mark of a value that is refused."""
        ...


class Switch(QCheckBox):
    """On or off, as a sliding knob."""

    def sizeHint(self) -> QSize:
        """Two letters high and four wide, whatever the font."""
        height = round(self.fontMetrics().height() * 1.15)
        return QSize(round(height * 1.85) + 4, height + 4)

    def hitButton(self, _position: object) -> bool:
        """The whole area switches."""
        return True

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draws track, knob and the mark of the keyboard focus."""
        colors = colors_of(self.palette())
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        height = self.height() - 4.0
        track = QRectF(2, 2, self.width() - 4, height)
        on = self.isChecked()
        painter.setPen(QColor(colors.accent if on or self.hasFocus() else colors.border))
        painter.setBrush(colors.accent if on else colors.hover)
        painter.drawRoundedRect(track, height / 2, height / 2)
        knob = height - 6
        left = track.right() - knob - 3 if on else track.left() + 3
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colors.on_accent if on else colors.muted)
        painter.drawEllipse(QRectF(left, track.top() + 3, knob, knob))
        if self.hasFocus():
            painter.setPen(colors.accent)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(0.5, 0.5, self.width() - 1, self.height() - 1), height / 2, height / 2)


class FlagControl(Switch):
    """A flag."""

    edited = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.clicked.connect(lambda: self.edited.emit(self.isChecked()))

    def show_value(self, value: Value) -> None:
        """Shows a value without telling."""
        self.setChecked(bool(value))

    def target(self) -> QWidget:
        """Itself."""
        return self


class _Combo(QComboBox):
    """Leaves the wheel to the page, unless the user works with it: scrolling must change nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(8)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """See the class."""
        super().wheelEvent(event) if self.hasFocus() else event.ignore()


class ChoiceControl(_Combo):
    """One of several values."""

    edited = Signal(object)

    def __init__(self, setting: Setting, translator: Translator) -> None:
        super().__init__()
        for value in setting.choices:
            self.addItem(choice_text(setting, value, translator), value)
        self.activated.connect(lambda index: self.edited.emit(self.itemData(index)))

    def show_value(self, value: Value) -> None:
        """Shows a value without telling."""
        self.setCurrentIndex(self.findData(value))

    def target(self) -> QWidget:
        """Itself."""
        return self


class _Integer(QSpinBox):
    """Takes any number, so that one beyond the limits can be named instead of silently changed; steps keep to them.

    A 0 that is no number is shown in words, which are typed over as a whole.
    """

    def __init__(self, setting: Setting, zero: str) -> None:
        super().__init__()
        self._setting = setting
        self.lineEdit().setTextMargins(SPACE_S - 1, 0, 0, 0)
        self.setRange(0 if zero else -_WIDEST_INTEGER, _WIDEST_INTEGER)
        self.setSpecialValueText(zero)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setKeyboardTracking(False)
        self.setCorrectionMode(QAbstractSpinBox.CorrectionMode.CorrectToPreviousValue)
        if setting.minimum is not None and setting.minimum >= 100:
            self.setSingleStep(int(setting.minimum))

    def stepBy(self, steps: int) -> None:
        """Ends at the limits."""
        low, high = self._setting.minimum, self._setting.maximum
        value = self.value() + steps * self.singleStep()
        value = value if low is None else max(value, int(low))
        self.setValue(value if high is None else min(value, int(high)))
        self.selectAll()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Words are no part of a number."""
        if event.text() and self.text() == self.specialValueText():
            self.lineEdit().selectAll()
        super().keyPressEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leaves the wheel to the page, unless the user works with it."""
        super().wheelEvent(event) if self.hasFocus() else event.ignore()


class _Number(QDoubleSpinBox):
    """The same for numbers with a fraction."""

    def __init__(self, setting: Setting) -> None:
        super().__init__()
        self._setting = setting
        self.lineEdit().setTextMargins(SPACE_S - 1, 0, 0, 0)
        self.setRange(-1e12, 1e12)
        self.setDecimals(2)
        self.setSingleStep(0.05 if (setting.maximum or 0) <= 2 else 1.0)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setKeyboardTracking(False)

    def stepBy(self, steps: int) -> None:
        """Ends at the limits."""
        low, high = self._setting.minimum, self._setting.maximum
        value = self.value() + steps * self.singleStep()
        value = value if low is None else max(value, low)
        self.setValue(value if high is None else min(value, high))
        self.selectAll()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leaves the wheel to the page, unless the user works with it."""
        super().wheelEvent(event) if self.hasFocus() else event.ignore()


class NumberControl(QWidget):
    """A number with its unit."""

    edited = Signal(object)

    def __init__(self, setting: Setting, translator: Translator) -> None:
        super().__init__()
        zero, unit = translator.pick(setting.zero), unit_text(setting, translator)
        self.box: _Integer | _Number = _Integer(setting, zero) if setting.kind == "integer" else _Number(setting)
        if unit:
            self.box.setSuffix(f" {unit}")
        self.box.valueChanged.connect(lambda value: self.edited.emit(value))
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.box)
        self.setFocusProxy(self.box)

    def show_value(self, value: Value) -> None:
        """Shows a value without telling."""
        self.box.blockSignals(True)
        if isinstance(self.box, QSpinBox):
            self.box.setValue(int(value))
        else:
            self.box.setValue(float(value))
        self.box.blockSignals(False)

    def target(self) -> QWidget:
        """The field."""
        return self.box


class TextControl(QLineEdit):
    """A line of text; it counts once Enter is pressed or the field is left."""

    edited = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._shown = ""
        self.editingFinished.connect(self._on_finished)

    def show_value(self, value: Value) -> None:
        """Shows a value without telling."""
        self._shown = str(value)
        self.setText(self._shown)

    def target(self) -> QWidget:
        """Itself."""
        return self

    def _on_finished(self) -> None:
        if self.text() != self._shown:
            self._shown = self.text()
            self.edited.emit(self.text())


class PathControl(QWidget):
    """A path, typed or chosen."""

    edited = Signal(object)

    def __init__(self, setting: Setting, translator: Translator) -> None:
        super().__init__()
        self._translator = translator
        self.field = TextControl()
        self.field.edited.connect(self.edited)
        self.button = QPushButton(translator.tr("Choose…"))
        self.button.setAccessibleName(translator.tr("{title}: choose a file", title=translator.pick(setting.title)))
        self.button.clicked.connect(self._choose)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_S)
        layout.addWidget(self.field, 1)
        layout.addWidget(self.button)
        self.setFocusProxy(self.field)

    def show_value(self, value: Value) -> None:
        """Shows a value without telling."""
        self.field.show_value(value)

    def target(self) -> QWidget:
        """The field."""
        return self.field

    def _choose(self) -> None:
        path = ask_for_file(self, self._translator.tr("Choose a file"), "")
        if path:
            self.show_value(path)
            self.edited.emit(path)


class ModelControl(QWidget):
    """A model: of the catalog, by a path that is typed, or by a file that is chosen."""

    edited = Signal(object)

    def __init__(self, setting: Setting, translator: Translator, models: Sequence[ModelChoice]) -> None:
        super().__init__()
        tr = self._tr = translator.tr
        self._value = ""
        self.box = _Combo()
        self.box.addItem(tr("Chosen by this machine's memory"), "")
        for model in models:
            self.box.addItem(model.label, model.name)
        self.box.activated.connect(lambda index: self._choose(self.box.itemData(index)))
        self.button = QPushButton(tr("Use a file…"))
        self.button.setAccessibleName(tr("{title}: choose a file", title=translator.pick(setting.title)))
        self.button.clicked.connect(self._ask)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_S)
        layout.addWidget(self.box, 1)
        layout.addWidget(self.button)
        self.setFocusProxy(self.box)

    def show_value(self, value: Value) -> None:
        """Shows a value without telling; a model that is not listed is added to the list."""
        self._value = str(value)
        if self.box.findData(value) < 0:
            self.box.addItem(str(value), value)
        self.box.setCurrentIndex(self.box.findData(value))

    def target(self) -> QWidget:
        """The list."""
        return self.box

    def _choose(self, name: str) -> None:
        if name != self._value:
            self._value = name
            self.edited.emit(name)

    def _ask(self) -> None:
        path = ask_for_file(self, self._tr("Choose a model"), self._tr("Models (*.gguf)"))
        if path:
            self.show_value(path)
            self.edited.emit(path)


class HotkeyControl(HotkeyEdit):
    """A combination."""

    def show_value(self, value: Value) -> None:
        """Shows a value without telling."""
        self.set_hotkey(str(value))

    def target(self) -> QWidget:
        """Itself."""
        return self


def ask_for_file(parent: QWidget, title: str, kinds: str) -> str:
    """The path of a file that the user chooses, "" where there is none."""
    return QFileDialog.getOpenFileName(parent, title, "", kinds)[0]


def control_for(setting: Setting, translator: Translator, models: Sequence[ModelChoice]) -> Control:
    """The control of a setting's kind."""
    made: Control
    if setting.choices:
        made = ChoiceControl(setting, translator)
    elif setting.kind == "flag":
        made = FlagControl()
    elif setting.kind in ("integer", "number"):
        made = NumberControl(setting, translator)
    elif setting.kind == "hotkey":
        made = HotkeyControl(translator)
    elif setting.kind == "model":
        made = ModelControl(setting, translator, models)
    elif setting.kind == "path":
        made = PathControl(setting, translator)
    else:
        made = TextControl()
    return made
