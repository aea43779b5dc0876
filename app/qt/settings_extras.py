"""Rows of the settings dialog that are no settings: what the system knows, and what is done once."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QPushButton, QSizePolicy, QWidget

from app.autostart import Autostart, AutostartError, AutostartState
from app.qt.settings_controls import FlagControl
from app.qt.settings_row import Row
from app.qt.theme import SPACE_S
from app.translation import Translator


class AutostartRow(Row):
    """Whether the app starts at login; reads what the system has whenever it is shown."""

    def __init__(self, entry: Autostart, translator: Translator) -> None:
        tr = self._tr = translator.tr
        self._entry = entry
        self.switch = FlagControl()
        self.switch.setProperty("role", "fits")
        self.switch.setAccessibleName(tr("Start at login"))
        super().__init__(
            tr("Start at login"),
            tr("The tray icon and the hotkeys are there once you have logged in. The model loads in the background."),
            self.switch,
        )
        self.switch.edited.connect(self._on_edited)
        self.refresh()

    def refresh(self) -> None:
        """Shows what the system has."""
        reading = self._entry.read()
        texts = {
            AutostartState.BLOCKED: self._tr(
                "There is an entry, but the system's list of autostart programs has it switched off."
            ),
            AutostartState.OTHER: self._tr(
                "Another installation is started: {program}. Switch this on to start this one instead.",
                program=reading.program,
            ),
            AutostartState.GONE: self._tr("What is started is not there any more: {program}", program=reading.program),
        }
        self.switch.show_value(reading.state is AutostartState.ON)
        self.show_status(texts.get(reading.state, ""))

    def _on_edited(self, is_on: object) -> None:
        self.show_error("")
        try:
            if is_on:
                self._entry.enable()
            else:
                self._entry.disable()
        except AutostartError as error:
            self.show_error(self._tr(error.text))
        self.refresh()


class ButtonRow(Row):
    """Something that is done on demand.

    Attributes:
        button: what does it.
    """

    def __init__(self, title: str, help_text: str, label: str) -> None:
        self.button = QPushButton(label)
        self.button.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.button.setAccessibleName(title)
        super().__init__(title, help_text, self.button)


class KeyRow(Row):
    """The key of a server: it goes into the system's keyring, never into the settings file, and is never shown.

    Signals:
        entered: the key that the user has put in, "" to forget it.
    """

    entered = Signal(str)

    def __init__(self, translator: Translator) -> None:
        tr = self._tr = translator.tr
        self.field = QLineEdit()
        self.field.setEchoMode(QLineEdit.EchoMode.Password)
        self.field.setPlaceholderText(tr("Paste a key, then press Enter"))
        self.field.setAccessibleName(tr("Key of the server"))
        self.forget_button = QPushButton(tr("Forget"))
        self.forget_button.setAccessibleName(tr("Forget the key of the server"))
        holder = QWidget()
        layout = QHBoxLayout(holder)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_S)
        layout.addWidget(self.field, 1)
        layout.addWidget(self.forget_button)
        super().__init__(
            tr("Key of the server"),
            tr("Kept in the system's keyring; it is never written into the settings file. Not every server wants one."),
            holder,
            is_wide=True,
        )
        self.field.editingFinished.connect(self._on_finished)
        self.forget_button.clicked.connect(lambda: self.entered.emit(""))

    def show_kept(self, is_kept: bool, outlives: bool = True) -> None:
        """Says whether there is a key, and whether it is still there after the next start."""
        self.forget_button.setEnabled(is_kept)
        if is_kept and not outlives:
            text = self._tr("This system has no keyring, so the key is forgotten when the app ends.")
        else:
            text = self._tr("A key is kept.") if is_kept else self._tr("No key is kept.")
        self.show_status(text)

    def _on_finished(self) -> None:
        text = self.field.text().strip()
        if text:
            self.field.clear()
            self.entered.emit(text)
