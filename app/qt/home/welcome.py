"""The window of the very first start: languages, a model, and the hotkeys with a text to try them on.

It decides nothing and fetches nothing (app/qt/home/welcome_owner.py does), and every step can be passed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QCloseEvent, QFont, QGuiApplication, QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QComboBox,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.models.download import Download, DownloadState
from app.qt.error_text import error_notice
from app.qt.hotkeys.binding import HotkeyState, HotkeyStatus
from app.qt.look.icons import app_icon
from app.qt.look.placement import first_size
from app.qt.look.scrolled import ScrolledPage
from app.qt.look.theme import SPACE_L, SPACE_M, SPACE_S, colors_of, scaled, set_styled, style_sheet
from app.qt.models.text import download_line
from app.qt.settings.row import SettingRow, text_label
from app.translation import Translator
from inference.byte_size import size_text

DEFAULT_SIZE = QSize(600, 470)
MINIMUM_SIZE = QSize(480, 330)
STEPS, MODEL_STEP = 3, 1
SHOWN_HOTKEYS = 6


@dataclass(frozen=True, slots=True)
class OfferedModel:
    """A model that can be fetched or is here.

    Attributes:
        num_bytes: of the download, 0 where only the hub knows.
        about_bytes: what it has about in that case.
    """

    id: str
    title: str
    licence: str
    licence_note: str
    num_bytes: int
    about_bytes: int
    is_here: bool


class LanguageStep(QWidget):
    """What this is, and the two languages as they were found.

    Attributes:
        rows: of the language settings.
    """

    def __init__(self, translator: Translator, rows: Sequence[SettingRow]) -> None:
        super().__init__()
        tr = translator.tr
        self.rows = rows
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_S)
        layout.addWidget(
            text_label(
                tr(
                    "Select a text in any program and press a hotkey: a language model on this computer summarizes, "
                    "translates or rewrites it. Nothing leaves the machine."
                )
            )
        )
        kept = tr("Texts and answers are kept on this computer; Settings › Privacy switches that off.")
        layout.addWidget(text_label(kept, "muted"))
        layout.addSpacing(SPACE_M)
        for row in rows:
            layout.addWidget(row)
        layout.addStretch()


class ModelStep(QWidget):
    """Which model; it is fetched only when its button is pressed.

    Signals:
        chosen: id of the model that the user has turned to.
        download_requested, pause_requested: id of the model.
        file_requested: a file is to be used instead.
        refreshed: what is shown has changed.
    """

    chosen = Signal(str)
    download_requested = Signal(str)
    pause_requested = Signal(str)
    file_requested = Signal()
    refreshed = Signal()

    def __init__(self, translator: Translator) -> None:
        super().__init__()
        tr = self._tr = translator.tr
        self._translator, self._uses_file = translator, False
        self._models: Sequence[OfferedModel] = ()
        self._download: Download | None = None
        self.box = QComboBox()
        self.box.setAccessibleName(tr("Model"))
        self.box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.box.activated.connect(lambda _place: self._on_chosen())
        self.facts, self.state = text_label(role="muted"), text_label()
        self.progress = QProgressBar()
        self.progress.setTextVisible(False)
        self.progress.setAccessibleName(tr("Progress"))
        self.get_button = QPushButton()
        self.get_button.clicked.connect(self._on_get)
        self.file_button = QPushButton(tr("Use a file…"))
        self.file_button.clicked.connect(self.file_requested)
        buttons = QHBoxLayout()
        buttons.setSpacing(SPACE_S)
        buttons.addWidget(self.get_button)
        buttons.addWidget(self.file_button)
        buttons.addStretch()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_M)
        explanation = tr(
            "The answers come from a model that is downloaded once. The first of the list suits this machine's memory."
        )
        for widget in (text_label(explanation), self.box, self.facts, self.progress, self.state):
            layout.addWidget(widget)
        layout.addLayout(buttons)
        layout.addStretch()

    def set_models(self, models: Sequence[OfferedModel]) -> None:
        """Offers models, the recommended one first."""
        chosen = self.box.currentData()
        self._models = models
        self.box.clear()
        for model in models:
            self.box.addItem(model.title, model.id)
        self.box.setCurrentIndex(max(0, self.box.findData(chosen)))
        self._refresh()

    def show_download(self, download: Download) -> None:
        """Shows how a download goes."""
        self._download = download
        self._refresh()

    @property
    def wants_download(self) -> bool:
        """Whether the step is not done: no model is here or on its way."""
        if not self._models or self._uses_file or self._model().is_here:
            return False
        download = self._running()
        settled = (DownloadState.RUNNING, DownloadState.CHECKING, DownloadState.DONE)
        return download is None or download.state not in settled

    def show_file(self, path: str) -> None:
        """Says that a file is used, so that no download is needed."""
        self._uses_file = True
        self.show_text(self._tr("This file is used: {file}", file=path))
        self.refreshed.emit()

    def show_text(self, text: str, role: str = "") -> None:
        """Says something below the model."""
        self.state.setText(text)
        self.state.setVisible(bool(text))
        set_styled(self.state, "role", role)

    def _model(self) -> OfferedModel:
        return self._models[max(0, self.box.currentIndex())]

    def _running(self) -> Download | None:
        """The download of the model that is shown, where there is one."""
        is_ours = self._download is not None and self._download.model == self._model().id
        return self._download if is_ours else None

    def _refresh(self) -> None:
        tr, model, download = self._tr, self._model(), self._running()
        size = size_text(model.num_bytes or model.about_bytes)
        size = size if model.num_bytes else tr("about {size}", size=size)
        licence = tr("licence {licence}", licence=model.licence)
        note = [tr(model.licence_note)] if model.licence_note else []
        self.facts.setText("\n".join([f"{size} · {licence}", *note]))
        is_active = download is not None and download.state.is_active
        is_here = model.is_here or (download is not None and download.state is DownloadState.DONE)
        has_begun = download is not None and download.state in (DownloadState.PAUSED, DownloadState.FAILED)
        self.progress.setVisible(is_active or has_begun)
        self.get_button.setVisible(not is_here)
        label = tr("Pause") if is_active else tr("Go on") if has_begun else tr("Download ({size})", size=size)
        self.get_button.setText(label)
        if is_here:
            self.show_text(tr("✓ It is on this computer."), "accent")
        elif download is None:
            self.show_text("")
        else:
            self.progress.setRange(0, 1000 if download.total_bytes else 0)
            self.progress.setValue(round(1000 * download.done_bytes / max(1, download.total_bytes)))
            text = download_line(download, self._translator)
            if download.error is not None:
                text += "\n" + error_notice(download.error, self._translator).text
            self.show_text(text, "muted" if download.error is None else "danger")
        self.refreshed.emit()

    def _on_chosen(self) -> None:
        self._uses_file = False
        self._refresh()
        self.chosen.emit(self._model().id)

    def _on_get(self) -> None:
        download = self._running()
        is_active = download is not None and download.state.is_active
        (self.pause_requested if is_active else self.download_requested).emit(self._model().id)


class HotkeyStep(QWidget):
    """The hotkeys of the actions, which of them work, and a text to try them on.

    Signals:
        settings_requested: another combination is to be chosen.
    """

    settings_requested = Signal()

    def __init__(self, translator: Translator, sample: str) -> None:
        super().__init__()
        tr = self._tr = translator.tr
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(SPACE_L)
        self._grid.setVerticalSpacing(SPACE_S)
        self._grid.setColumnStretch(2, 1)
        self.change_button = QPushButton(tr("Choose other combinations…"))
        self.change_button.clicked.connect(self.settings_requested)
        self.hint = text_label()
        self.sample = QPlainTextEdit(sample)
        self.sample.setProperty("role", "field")
        self.sample.setTabChangesFocus(True)
        self.sample.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Ignored)
        self.sample.setMinimumHeight(5 * self.sample.fontMetrics().lineSpacing())
        self.sample.setAccessibleName(tr("A text to try the hotkeys on"))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_M)
        layout.addLayout(self._grid)
        layout.addWidget(self.change_button, 0, Qt.AlignmentFlag.AlignLeft)
        layout.addWidget(self.hint)
        layout.addWidget(self.sample, 1)

    def set_hotkeys(self, statuses: Sequence[HotkeyStatus], limits: Sequence[str]) -> None:
        """Shows what became of them.

        Args:
            limits: what is not possible on this desktop, in the user's language.
        """
        tr = self._tr
        while (item := self._grid.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.deleteLater()
        for place, status in enumerate(statuses[:SHOWN_HOTKEYS]):
            works = status.state is HotkeyState.REGISTERED
            keys = QLabel(status.hotkey)
            keys.setProperty("role", "keys")
            told = tr("works") if status.reason is None else tr(status.reason)
            middle = Qt.AlignmentFlag.AlignVCenter
            self._grid.addWidget(QLabel(status.title), place, 0, middle)
            self._grid.addWidget(keys, place, 1, middle | Qt.AlignmentFlag.AlignLeft)
            self._grid.addWidget(
                text_label(f"{'✓' if works else '✗'} {told}", "muted" if works else "danger"), place, 2
            )
        first = next((status for status in statuses if status.state is HotkeyState.REGISTERED), None)
        if first is None:
            self.hint.setText("\n".join(limits) or tr("No hotkey works here; the tray menu runs the actions as well."))
        else:
            self.hint.setText(tr("Try it: the text below is selected. Press {hotkey}.", hotkey=first.hotkey))
        self.change_button.setVisible(any(status.state is HotkeyState.TAKEN for status in statuses))

    def select_sample(self) -> None:
        """Selects the text, so that a hotkey finds it."""
        self.sample.setFocus()
        self.sample.selectAll()


class Welcome(QWidget):
    """Three steps; closing it at any of them is an end as well.

    Signals:
        finished: it was closed, by whatever way.
    """

    finished = Signal()

    def __init__(self, translator: Translator, rows: Sequence[SettingRow], sample: str) -> None:
        super().__init__(None, Qt.WindowType.Window)
        tr = self._tr = translator.tr
        self.setObjectName("page")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAttribute(Qt.WidgetAttribute.WA_QuitOnClose, False)
        self.setWindowTitle("DeskInfer")
        self.setWindowIcon(app_icon())
        self.languages, self.model = LanguageStep(translator, rows), ModelStep(translator)
        self.hotkeys = HotkeyStep(translator, sample)
        self._headings = (tr("Welcome"), tr("A model"), tr("Hotkeys"))
        self.heading, self.place = text_label(), text_label(role="muted")
        self.heading.setFont(scaled(self.heading.font(), 1.4, QFont.Weight.DemiBold))
        self.pages = QStackedWidget()
        for step in (self.languages, self.model, self.hotkeys):
            step.setObjectName("page")
            self.pages.addWidget(ScrolledPage(step))
        self.skip_button, self.back_button, self.next_button = (
            QPushButton(tr("Skip")),
            QPushButton(tr("Back")),
            QPushButton(),
        )
        self.skip_button.clicked.connect(self.close)
        self.back_button.clicked.connect(lambda: self.show_step(self.pages.currentIndex() - 1))
        self.next_button.clicked.connect(self._on_next)
        self.model.refreshed.connect(self._mark_main)
        self._lay_out()
        for button in self.findChildren(QPushButton):
            button.setAutoDefault(True)  # Enter presses it, outside of dialogs too
        self._color()
        self.setMinimumSize(MINIMUM_SIZE)
        self.resize(first_size(DEFAULT_SIZE, self.screen().availableSize()))
        QShortcut(QKeySequence(Qt.Key.Key_Escape), self).activated.connect(self.close)
        self.show_step(0)

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.addWidget(self.heading, 1)
        head.addWidget(self.place)
        foot = QHBoxLayout()
        foot.setSpacing(SPACE_S)
        foot.addWidget(self.skip_button)
        foot.addStretch()
        foot.addWidget(self.back_button)
        foot.addWidget(self.next_button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_L * 2, SPACE_L + SPACE_S, SPACE_L * 2, SPACE_L)
        layout.setSpacing(SPACE_L)
        layout.addLayout(head)
        layout.addWidget(self.pages, 1)
        layout.addLayout(foot)

    def show_step(self, step: int) -> None:
        """Turns to a step, from 0."""
        self.pages.setCurrentIndex(step)
        self.heading.setText(self._headings[step])
        self.place.setText(self._tr("{step} of {steps}", step=step + 1, steps=STEPS))
        self.back_button.setVisible(step > 0)
        is_last = step == STEPS - 1
        self.skip_button.setVisible(not is_last)
        self.next_button.setText(self._tr("Done") if is_last else self._tr("Next"))
        self._mark_main()
        if is_last:
            self.hotkeys.select_sample()
        else:
            self._main_button().setFocus()

    def _main_button(self) -> QPushButton:
        """What Enter is to press: on the step of the model the download, until it runs or is done."""
        wants_download = self.pages.currentIndex() == MODEL_STEP and self.model.wants_download
        return self.model.get_button if wants_download else self.next_button

    def _mark_main(self) -> None:
        main, buttons = self._main_button(), (self.model.get_button, self.next_button)
        had_focus = any(button.hasFocus() for button in buttons)
        for button in buttons:
            set_styled(button, "role", "primary" if button is main else "")
        if had_focus:  # a second Enter would pause what the first has begun
            main.setFocus()

    def _on_next(self) -> None:
        step = self.pages.currentIndex() + 1
        if step < STEPS:
            self.show_step(step)
        else:
            self.close()

    def _color(self) -> None:
        self.setStyleSheet(style_sheet(colors_of(QGuiApplication.palette())))

    def event(self, event: QEvent) -> bool:
        """Follows the choice between light and dark."""
        if event.type() is QEvent.Type.ApplicationPaletteChange:
            self._color()
        return super().event(event)

    def closeEvent(self, event: QCloseEvent) -> None:
        """Tells the owner."""
        super().closeEvent(event)
        self.finished.emit()
