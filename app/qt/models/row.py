"""One model in the window of models: what it is, whether it fits, and what can be done with it."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction, QFont
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QMenu,
    QProgressBar,
    QPushButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.memory.holders import MemoryHolder
from app.models.download import Download, DownloadState
from app.models.model_list import ListedModel, Origin
from app.qt.error_text import error_notice
from app.qt.look.theme import SPACE_L, SPACE_M, SPACE_S, SPACE_XS, scaled, set_styled
from app.qt.models.text import advice_line, cure_line, download_line, facts_line, fit_line, licence_note
from app.remote.address import is_this_machine, remote_parts
from app.translation import Translator
from inference.engine.memory_plan import LEAST_CONTEXT_TOKENS
from inference.errors import InferenceError
from inference.request import ModelPlan

PROGRESS_STEPS = 1000


class RowAction(enum.Enum):
    """What a row's buttons and menu ask for."""

    USE = "use"
    USE_SHORTER = "use_shorter"
    DOWNLOAD = "download"
    PAUSE = "pause"
    CANCEL = "cancel"
    CHECK = "check"
    REVEAL = "reveal"
    FORGET = "forget"
    DELETE = "delete"
    SET_UP = "set_up"


@dataclass(frozen=True, slots=True)
class RowState:
    """Everything that a row shows.

    Attributes:
        is_in_use: it answers now; or it is chosen, and the next action loads it.
        is_resident: it is in memory.
        loading: share of its load that is done; None where it does not load.
        plan: what it would take; None while that is not known.
        leaves: title of the resident model that would leave for it.
        checking: what a check of its files says, "" where none was made.
    """

    model: ListedModel
    is_in_use: bool = False
    is_resident: bool = False
    loading: float | None = None
    plan: ModelPlan | InferenceError | None = None
    download: Download | None = None
    leaves: str = ""
    total_ram_bytes: int = 0
    holders: Sequence[MemoryHolder] = ()
    checking: str = ""

    @property
    def problem(self) -> InferenceError | None:
        """Why it cannot be used."""
        if self.model.problem is not None:
            return self.model.problem
        return self.plan if isinstance(self.plan, InferenceError) else None

    @property
    def refused(self) -> ModelPlan | None:
        """The plan, where it does not fit."""
        return self.plan if isinstance(self.plan, ModelPlan) and not self.plan.fits else None


def _label(role: str = "", wraps: bool = True) -> QLabel:
    label = QLabel()
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setWordWrap(wraps)
    if role:
        label.setProperty("role", role)
    return label


class ModelRow(QFrame):
    """Shows a RowState.

    Signals:
        requested: a RowAction.
    """

    requested = Signal(object)

    def __init__(self, translator: Translator, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._translator = translator
        self.state: RowState | None = None
        self.setProperty("role", "card")
        self.title, self.chip = _label(), _label("chip", wraps=False)
        self.title.setFont(scaled(self.font(), 1.04, QFont.Weight.DemiBold))
        self.facts, self.fit, self.cure, self.note = _label("muted"), _label(), _label("muted"), _label("muted")
        self.progress = QProgressBar()
        self.progress.setTextVisible(False)
        self.progress.setRange(0, PROGRESS_STEPS)
        self.progress_text = _label("muted")
        self.primary, self.secondary = QPushButton(), QPushButton()
        self.more = QToolButton()
        self.more.setText("⋯")
        self.more.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.more.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.menu = QMenu(self.more)
        self.more.setMenu(self.menu)
        self._primary_action, self._secondary_action = RowAction.USE, RowAction.CANCEL
        self.primary.clicked.connect(lambda: self.requested.emit(self._primary_action))
        self.secondary.clicked.connect(lambda: self.requested.emit(self._secondary_action))
        self._lay_out()

    def _lay_out(self) -> None:
        words = QVBoxLayout()
        words.setSpacing(SPACE_XS)
        words.addWidget(self.title)
        words.addWidget(self.facts)
        head = QHBoxLayout()
        head.setSpacing(SPACE_S)
        head.addLayout(words, 1)
        for widget in (self.chip, self.secondary, self.primary, self.more):
            head.addWidget(widget, 0, Qt.AlignmentFlag.AlignVCenter)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_L, SPACE_M, SPACE_M, SPACE_M)
        layout.setSpacing(SPACE_XS)
        layout.addLayout(head)
        for label in (self.fit, self.cure, self.note):
            layout.addWidget(label)
        layout.addWidget(self.progress)
        layout.addWidget(self.progress_text)

    def show_state(self, state: RowState) -> None:
        """Replaces what is shown; nothing happens where nothing has changed."""
        if state == self.state:
            return
        self.state = state
        model = state.model
        self.title.setText(model.title)
        self.setAccessibleName(model.title)
        self._show_chip(state)
        self._set(self.facts, facts_line(model, self._translator))
        self._show_fit(state)
        notes = (licence_note(model, self._translator), state.checking)
        self._set(self.note, "\n".join(note for note in notes if note))
        self._show_progress(state)
        self._show_buttons(state)
        self._fill_menu(state)

    def _show_chip(self, state: RowState) -> None:
        tr = self._translator.tr
        text = ""
        if state.loading is not None:
            text = tr("Loading")
        elif state.is_in_use and state.model.origin is Origin.REMOTE:
            text = tr("In use")
        elif state.is_resident:
            text = tr("In use") if state.is_in_use else tr("In memory")
        elif state.is_in_use:
            text = tr("Chosen") if state.model.is_here else tr("Recommended")
        self._set(self.chip, text)

    def _show_fit(self, state: RowState) -> None:
        tr, plan = self._translator.tr, state.plan
        role, text, cure = "", "", ""
        if state.problem is not None:
            notice = error_notice(state.problem, self._translator)
            role, text, cure = (
                "danger",
                "✗ " + (tr("Cannot be used") if state.model.problem else notice.heading),
                notice.text,
            )
        elif state.model.origin is Origin.REMOTE:
            stays = is_this_machine(remote_parts(state.model.id)[0])
            there = tr("Another program on this machine; text is given to it when this is in use")
            role, text = "warning", "↗ " + (there if stays else tr("Text leaves this machine when this is in use"))
        elif state.is_resident or state.loading is not None:
            pass  # the panel above tells it
        elif isinstance(plan, ModelPlan):
            role = "good" if plan.fits else "danger"
            text = ("✓ " if plan.fits else "✗ ") + fit_line(plan, state.leaves, self._translator)
            cure = "" if plan.fits else cure_line(plan, state.holders, self._translator)
        elif not state.model.is_here:
            text, role = advice_line(state.model, state.total_ram_bytes, self._translator), "muted"
            if text and state.model.min_ram_bytes > state.total_ram_bytes:
                text, role = f"✗ {text}", "danger"
        set_styled(self.fit, "role", role)
        self._set(self.fit, text)
        self._set(self.cure, cure)

    def _show_progress(self, state: RowState) -> None:
        tr, download = self._translator.tr, state.download
        share: float | None = None
        text = ""
        if state.loading is not None:
            share, text = state.loading, tr("Loading into memory: {percent} %", percent=int(100 * state.loading))
        elif download is not None and download.state is not DownloadState.DONE:
            text = download_line(download, self._translator)
            share = download.done_bytes / download.total_bytes if download.total_bytes else 0.0
            if download.state is DownloadState.FAILED and download.error is not None:
                text += "\n" + error_notice(download.error, self._translator).text
        self.progress.setVisible(share is not None)
        self.progress.setValue(round(PROGRESS_STEPS * (share or 0.0)))
        is_unknown = download is not None and download.state is DownloadState.RUNNING and not download.done_bytes
        self.progress.setRange(0, 0 if is_unknown and state.loading is None else PROGRESS_STEPS)
        self.progress.setAccessibleName(tr("Progress of {model}", model=state.model.title))
        self._set(self.progress_text, text)

    def _show_buttons(self, state: RowState) -> None:
        tr = self._translator.tr
        download, refused = state.download, state.refused
        primary: tuple[str, RowAction] | None = None
        secondary: tuple[str, RowAction] | None = None
        can_use = True
        if download is not None and download.state.is_active:
            primary, secondary = (tr("Pause"), RowAction.PAUSE), (tr("Cancel"), RowAction.CANCEL)
            can_use = download.state is DownloadState.RUNNING
        elif not state.model.is_here:
            has_part = state.model.partial_bytes > 0 or (download is not None and download.done_bytes > 0)
            primary = (tr("Go on") if has_part else tr("Download"), RowAction.DOWNLOAD)
            secondary = (tr("Cancel"), RowAction.CANCEL) if has_part else None
        elif state.model.origin is Origin.REMOTE:
            secondary = (tr("Set up…"), RowAction.SET_UP)
            primary = None if state.is_in_use else (tr("Use"), RowAction.USE)
        elif state.is_in_use and (state.is_resident or state.loading is not None):
            primary = None
        elif refused is not None and refused.largest_context_tokens >= LEAST_CONTEXT_TOKENS:
            shorter = tr("Use with {tokens} tokens", tokens=f"{refused.largest_context_tokens:,}")
            primary = (shorter, RowAction.USE_SHORTER)
        else:
            primary = (tr("Load") if state.is_in_use else tr("Use"), RowAction.USE)
            can_use = state.problem is None and refused is None
        if primary is not None:
            self._primary_action = primary[1]
            self._name(self.primary, primary[0], state)
            self.primary.setEnabled(can_use)
            leads = primary[1] is RowAction.DOWNLOAD and state.is_in_use
            set_styled(self.primary, "role", "primary" if leads else "")
        if secondary is not None:
            self._secondary_action = secondary[1]
            self._name(self.secondary, secondary[0], state)
        self.primary.setVisible(primary is not None)
        self.secondary.setVisible(secondary is not None)

    def _name(self, button: QPushButton, text: str, state: RowState) -> None:
        button.setText(text)
        button.setAccessibleName(f"{text}: {state.model.title}")

    def _fill_menu(self, state: RowState) -> None:
        tr, model = self._translator.tr, state.model
        self.menu.clear()
        items: list[tuple[str, RowAction]] = []
        if model.path is not None:
            items.append((tr("Check the files"), RowAction.CHECK))
            items.append((tr("Show in the file manager"), RowAction.REVEAL))
        if model.origin is Origin.ADDED:
            items.append((tr("Take off the list"), RowAction.FORGET))
        if model.can_be_deleted and model.path is not None:
            items.append((tr("Delete from the disk…"), RowAction.DELETE))
        for text, action in items:
            entry = QAction(text, self.menu)
            entry.setObjectName(action.value)
            entry.triggered.connect(lambda _checked=False, action=action: self.requested.emit(action))
            self.menu.addAction(entry)
        self.more.setVisible(bool(items))
        self.more.setAccessibleName(tr("More for {model}", model=model.title))

    @staticmethod
    def _set(label: QLabel, text: str) -> None:
        label.setText(text)
        label.setVisible(bool(text))
