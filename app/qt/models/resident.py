"""The upper part of the window of models: what is in memory, how much text it holds, and a way to free it all."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QComboBox, QFrame, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app.qt.look.theme import SPACE_L, SPACE_M, SPACE_S, SPACE_XS, scaled
from app.qt.models.text import context_text, resident_line
from app.qt.remote.badge import RemoteBadge
from app.qt.status import Status, model_name
from app.translation import Translator
from inference.request import EngineReading, ModelPlan, ModelState

CONTEXT_STEPS = (1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072)


class ResidentPanel(QFrame):
    """Shows what the engine holds.

    Signals:
        free_requested: the memory is to be given back.
        context_chosen: another context, in tokens.
    """

    free_requested = Signal()
    context_chosen = Signal(int)

    def __init__(self, translator: Translator, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._translator = translator
        self._largest = 0
        tr = translator.tr
        self.setProperty("role", "panel")
        self.caption, self.title, self.line = QLabel(), QLabel(), QLabel()
        self.caption.setProperty("role", "muted")
        self.line.setProperty("role", "muted")
        self.title.setFont(scaled(self.font(), 1.25, QFont.Weight.DemiBold))
        for label in (self.title, self.line):
            label.setWordWrap(True)
            label.setTextFormat(Qt.TextFormat.PlainText)
        self.badge = RemoteBadge(translator)
        self.free_button = QPushButton(tr("Free the memory now"))
        self.free_button.setToolTip(tr("Takes the model out of memory; the next action loads it again."))
        self.free_button.clicked.connect(self.free_requested)
        self.context = QComboBox()
        self.context.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.context.setAccessibleName(tr("Context"))
        self.context.activated.connect(lambda index: self.context_chosen.emit(self.context.itemData(index)))
        self.largest_button = QPushButton()
        self.largest_button.setProperty("role", "link")
        self.largest_button.clicked.connect(lambda: self.context_chosen.emit(self._largest))
        self.largest_button.hide()
        self.meter_place = QVBoxLayout()
        self._lay_out()

    def _lay_out(self) -> None:
        words = QVBoxLayout()
        words.setSpacing(SPACE_XS)
        for widget in (self.caption, self.title, self.badge, self.line):
            words.addWidget(widget)
        head = QHBoxLayout()
        head.setSpacing(SPACE_L)
        head.addLayout(words, 1)
        head.addWidget(self.free_button, 0, Qt.AlignmentFlag.AlignTop)
        label = QLabel(self._translator.tr("Context"))
        label.setBuddy(self.context)
        label.setToolTip(self._translator.tr("How much text and answer fit together; more takes more memory."))
        self.chooser = QWidget()
        chooser = QHBoxLayout(self.chooser)
        chooser.setContentsMargins(0, 0, 0, 0)
        chooser.setSpacing(SPACE_S)
        chooser.addWidget(label)
        chooser.addWidget(self.context)
        chooser.addWidget(self.largest_button)
        chooser.addStretch()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_L, SPACE_L, SPACE_L, SPACE_M)
        layout.setSpacing(SPACE_M)
        layout.addLayout(head)
        layout.addLayout(self.meter_place)
        layout.addWidget(self.chooser)

    def show_engine(self, status: Status, reading: EngineReading, title: str, is_here: bool = True) -> None:
        """Shows where the engine stands.

        Args:
            title: of the model that is meant.
            is_here: whether it is on this machine as a whole.
        """
        tr, state = self._translator.tr, status.model_state
        self.badge.set_host(status.remote_host)
        self.chooser.setVisible(not status.remote_host)
        held = reading.weight_bytes + reading.kv_bytes + reading.workspace_bytes
        place = tr("on the GPU") if reading.backend == "cuda" else tr("on the CPU")
        if status.remote_host:
            caption, line = tr("Answers come from a server"), tr("Every text that you work on is sent there.")
        elif not is_here and state in (ModelState.EMPTY, ModelState.FAILED):
            caption, line = tr("Not on this machine yet"), tr("Download it below; it is used as soon as it is here.")
        elif state is ModelState.LOADING:
            caption, line = tr("Coming into memory"), tr("{percent} % are loaded", percent=int(100 * status.progress))
        elif state is ModelState.READY:
            caption = tr("In memory now")
            line = f"{resident_line(reading, self._translator)} · {place}" if held else place
        elif state is ModelState.FAILED:
            caption, line = tr("Not in memory"), status.error
        else:
            caption, line = tr("Nothing is in memory"), tr("The next action loads it.")
        self.caption.setText(caption)
        self.title.setText(title or model_name(status.model) or tr("No model is chosen"))
        self.line.setText(line)
        self.free_button.setEnabled(held > 0 or (state is ModelState.LOADING and not status.remote_host))

    def show_context(self, chosen: int, plan: ModelPlan | None) -> None:
        """Shows the context that is chosen, and the largest that would fit.

        Args:
            plan: of the model that is meant; None where there is none.
        """
        tr = self._translator.tr
        trained = plan.trained_context_tokens if plan is not None else 0
        # What the model was not trained for is not given to it, whatever the settings say.
        chosen = min(chosen, trained) if trained else chosen
        steps = {step for step in CONTEXT_STEPS if not trained or step <= trained} | {chosen}
        if [self.context.itemData(index) for index in range(self.context.count())] != sorted(steps):
            self.context.clear()
            for step in sorted(steps):
                self.context.addItem(context_text(step, self._translator), step)
        self.context.setCurrentIndex(self.context.findData(chosen))
        self._largest = plan.largest_context_tokens if plan is not None else 0
        is_other = self._largest > 0 and plan is not None and self._largest != plan.context_tokens
        self.largest_button.setVisible(is_other)
        self.largest_button.setText(tr("Largest that fits: {tokens}", tokens=f"{self._largest:,}"))

    def event(self, event: QEvent) -> bool:
        """Paints itself whole where its parts move: of one that has moved and gone a line would stay on the screen."""
        if event.type() is QEvent.Type.LayoutRequest:
            self.update()
        return super().event(event)

    def set_meter(self, meter: QWidget) -> None:
        """Puts the memory meter into its place."""
        self.meter_place.addWidget(meter)
