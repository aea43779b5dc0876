"""System prompt and sampling of one conversation, in a panel at the side."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QFont
from PySide6.QtWidgets import (
    QDoubleSpinBox,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QSizePolicy,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from app.qt.look.icon_button import IconButton
from app.qt.look.theme import SPACE_M, SPACE_S, SPACE_XS, scaled
from app.translation import Translator
from inference.request import SamplingParams

APPLY_AFTER_MS = 400
MOST_TOKENS = 1_000_000


class OptionsPanel(QWidget):
    """What the next answers of a conversation are made with.

    Signals:
        changed: system prompt and SamplingParams.
        closed: the panel's own close button.
    """

    changed = Signal(str, object)
    closed = Signal()

    def __init__(self, defaults: SamplingParams, translator: Translator, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._defaults, self._sampling, self._tr = defaults, defaults, translator.tr
        self._is_filling = False
        self.setProperty("role", "side")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._build()
        self._lay_out()
        self._timer = QTimer(self, interval=APPLY_AFTER_MS, singleShot=True)
        self._timer.timeout.connect(self.apply)
        self.system.textChanged.connect(self._on_edited)
        for box in (self.temperature, self.top_p, self.top_k, self.longest, self.seed):
            box.valueChanged.connect(self._on_edited)

    def _build(self) -> None:
        tr = self._tr
        self.system = QPlainTextEdit()
        self.system.setProperty("role", "field")
        self.system.setTabChangesFocus(True)
        self.system.setPlaceholderText(tr("How should it answer? For example: short, in simple words, as a teacher."))
        self.system.setAccessibleName(tr("Instructions"))
        self.temperature = self._decimal(
            2.0, tr("Temperature"), tr("0 always takes the likeliest word; more is freer.")
        )
        self.top_p = self._decimal(1.0, tr("Top-p"), tr("Leaves out the unlikeliest words; 1 leaves out none."), 0.05)
        self.top_k = self._whole(1000, tr("Top-k"), tr("Only so many words are in question; 0 is without a limit."))
        self.longest = self._whole(
            MOST_TOKENS, tr("Longest answer"), tr("In tokens; 0 is as long as the context allows.")
        )
        self.seed = self._whole(
            2**31 - 1, tr("Seed"), tr("The same seed gives the same answer to the same conversation.")
        )
        self.seed.setMinimum(-1)
        self.seed.setSpecialValueText(tr("random"))
        self.longest.setSpecialValueText(tr("as needed"))
        self.top_k.setSpecialValueText(tr("off"))
        self.reset_button = QPushButton(tr("Back to the usual"))
        self.reset_button.clicked.connect(self._on_reset)
        self.close_button = IconButton("close", tr("Close the panel"))
        self.close_button.clicked.connect(self.closed)

    def _decimal(self, most: float, name: str, tip: str, least: float = 0.0) -> QDoubleSpinBox:
        box = QDoubleSpinBox(minimum=least, maximum=most, singleStep=0.05, decimals=2)
        box.setAccessibleName(name)
        box.setToolTip(tip)
        return box

    def _whole(self, most: int, name: str, tip: str) -> QSpinBox:
        box = QSpinBox(minimum=0, maximum=most)
        box.setAccessibleName(name)
        box.setToolTip(tip)
        return box

    def _lay_out(self) -> None:
        tr = self._tr
        heading = QLabel(tr("This conversation"))
        heading.setFont(scaled(self.font(), 1.05, QFont.Weight.DemiBold))
        head = QHBoxLayout()
        head.addWidget(heading, 1)
        head.addWidget(self.close_button)
        label = QLabel(tr("Instructions"))
        label.setBuddy(self.system)
        form = QGridLayout()
        form.setSpacing(SPACE_S)
        form.setColumnStretch(1, 1)
        for row, box in enumerate((self.temperature, self.top_p, self.top_k, self.longest, self.seed)):
            name = QLabel(box.accessibleName())
            name.setBuddy(box)
            box.lineEdit().setTextMargins(SPACE_XS, 0, 0, 0)
            box.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
            form.addWidget(name, row, 0)
            form.addWidget(box, row, 1)
        note = QLabel(tr("Changes hold from the next answer on."))
        note.setProperty("role", "muted")
        note.setWordWrap(True)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_M, SPACE_S, SPACE_M, SPACE_M)
        layout.setSpacing(SPACE_S)
        layout.addLayout(head)
        layout.addWidget(label)
        layout.addWidget(self.system, 1)
        layout.addSpacing(SPACE_XS)
        layout.addLayout(form)
        layout.addWidget(note)
        layout.addWidget(self.reset_button)
        layout.addStretch()

    def show_options(self, system: str, sampling: SamplingParams) -> None:
        """Shows those of another conversation; what is being typed here is left alone."""
        self._timer.stop()
        self._is_filling = True
        self._sampling = sampling
        if self.system.toPlainText() != system:
            self.system.setPlainText(system)
        self.temperature.setValue(sampling.temperature)
        self.top_p.setValue(sampling.top_p)
        self.top_k.setValue(sampling.top_k)
        self.longest.setValue(sampling.max_new_tokens or 0)
        self.seed.setValue(-1 if sampling.seed is None else sampling.seed)
        self._is_filling = False

    def apply(self) -> None:
        """Tells what is chosen at once, if that was not told yet."""
        self._timer.stop()
        chosen = replace(
            self._sampling,
            temperature=round(self.temperature.value(), 2),
            top_p=round(self.top_p.value(), 2),
            top_k=self.top_k.value(),
            max_new_tokens=self.longest.value() or None,
            seed=None if self.seed.value() < 0 else self.seed.value(),
        )
        self._sampling = chosen
        self.changed.emit(self.system.toPlainText(), chosen)

    @property
    def is_pending(self) -> bool:
        """Whether something was changed and not told yet."""
        return self._timer.isActive()

    def _on_edited(self) -> None:
        if not self._is_filling:
            self._timer.start()

    def _on_reset(self) -> None:
        self.show_options("", self._defaults)
        self.apply()
