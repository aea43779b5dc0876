"""Rows of the settings dialog that are no settings: what the system knows, and what is done once."""

from __future__ import annotations

from PySide6.QtWidgets import QPushButton, QSizePolicy

from app.desktop.autostart import Autostart, AutostartError, AutostartState
from app.qt.settings.controls import FlagControl
from app.qt.settings.row import Row
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
