"""Makes the settings dialog on demand and connects it with the app: hotkeys, autostart, history, engine, restart."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QWidget

from app.desktop.autostart import open_autostart
from app.desktop.hotkeys import HotkeyFormatError, parse, warnings
from app.desktop.protocols import TAKEN, Hotkey
from app.paths import guide_file
from app.platform.desktop_shortcuts import Shortcut, known_shortcuts
from app.qt.hotkeys.binding import HotkeyState, HotkeyStatus
from app.qt.hotkeys.edit import HotkeyEdit
from app.qt.settings.banner import Banner
from app.qt.settings.dialog import SettingsDialog
from app.qt.settings.engine_settings import EngineSettings
from app.qt.settings.extras import AutostartRow, ButtonRow
from app.qt.settings.models import model_choices
from app.qt.settings.row import Row, SettingRow, text_label
from app.settings.settings import Settings, SettingsFileError, Value
from app.settings.template import settings_template
from app.translation import Translator, UserText
from app.version import installed_version

if TYPE_CHECKING:
    from app.qt.settings.guide_window import GuideWindow

ARRIVED_SHOWN_MS = 2500
HOTKEY_PAGE = "hotkeys"
PostCall = Callable[[Callable[[], object]], None]


class SettingsOwner(QObject):
    """Owns the one settings dialog. UI thread only.

    Attributes:
        dialog: while it is open.
        guide: the window of the user guide, once it was opened.
        statuses: what became of each hotkey.
        limits: what is not possible on this desktop, in the user's language.
        extras: makes further rows by the id of their group, each time the dialog is opened; the app adds to it.

    Signals:
        file_requested: the user wants to see the settings file.
        restart_requested: the user wants the app started anew.
        pause_requested: whether the app's hotkeys must be free, since a combination is being pressed in.
        retry_requested: the combinations are to be tried again.
        hotkeys_changed: `statuses` or `limits` did.
    """

    file_requested = Signal()
    restart_requested = Signal()
    pause_requested = Signal(bool)
    retry_requested = Signal()
    hotkeys_changed = Signal()

    def __init__(
        self,
        settings: Settings,
        translator: Translator,
        engine: EngineSettings,
        post_call: PostCall,
        parent: QObject | None = None,
    ) -> None:
        """Opens nothing yet.

        Args:
            post_call: runs a function on the UI thread.
        """
        super().__init__(parent)
        self.settings, self.translator, self._engine = settings, translator, engine
        self._post_call = post_call
        self.dialog: SettingsDialog | None = None
        self.guide: GuideWindow | None = None
        self.extras: dict[str, Callable[[], QWidget]] = {
            "start": lambda: AutostartRow(open_autostart(), translator),
            "about": self._about,
        }
        self.statuses: Sequence[HotkeyStatus] = ()
        self.limits: Sequence[str] = ()
        self._keys: Mapping[str, str] = {}
        self._shortcuts: dict[Hotkey, Shortcut] | None = None
        self._is_looking = False
        self._arrived: dict[str, QTimer] = {}
        self._language = settings.get("language.ui")
        settings.listen("language.ui", self._on_language)
        engine.waiting_changed.connect(self._on_waiting)

    def offer(self, group_id: str, title: str, help_text: str, label: str, act: Callable[[QWidget], object]) -> None:
        """Adds a row with a button to a group of the dialog (app/settings/pages.py).

        Args:
            act: what the button does; gets the dialog.
        """

        def make() -> QWidget:
            row = ButtonRow(title, help_text, label)
            row.button.clicked.connect(lambda: act(row.window()))
            return row

        self.extras[group_id] = make

    def offer_clearing(self, ask: Callable[[QWidget], object]) -> None:
        """Adds the row that clears the history; `ask` asks the user, in front of a window, and clears it."""
        tr = self.translator.tr
        help_text = tr("Removes every conversation and every kept answer from this computer, for good.")
        self.offer("history", tr("Clear the history"), help_text, tr("Clear…"), ask)

    def offer_server(self, set_up: Callable[[QWidget], object]) -> None:
        """Adds the row that sets a server up, with its key; `set_up` opens its dialog in front of a window."""
        tr = self.translator.tr
        help_text = tr(
            "Address, model and key in one place. The key goes into the system's keyring, not into the file."
        )
        self.offer("remote", tr("Set the server up"), help_text, tr("Set up…"), set_up)

    # --- the dialog ---------------------------------------------------------------------------------------------

    def open(self, page_id: str = "") -> None:
        """Opens the dialog, or brings it to the front."""
        if self.dialog is None:
            self.dialog = self._make()
        if page_id:
            self.dialog.show_page(page_id)
        self.dialog.show()
        self.dialog.raise_()
        self.dialog.activateWindow()

    def open_file(self, show_error: Callable[[str, str], None]) -> None:
        """Opens the settings in the user's editor; the first time, a file that lists them all."""
        tr = self.translator.tr
        try:
            self.settings.create(settings_template(self.settings.registry.values(), self.translator))
        except SettingsFileError as error:
            show_error(tr("Your files need a correction"), tr(error.text))
            return
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(self.settings.path)))

    def rebuild(self) -> None:
        """The registry has changed: an open dialog is made anew, on the same page."""
        if self.dialog is not None:
            page_id, place = self.dialog.page_id, self.dialog.geometry()
            self._drop()
            self.open(page_id)
            assert self.dialog is not None
            self.dialog.setGeometry(place)

    def close(self) -> None:
        """Closes the dialog and the user guide."""
        for window in (self.dialog, self.guide):
            if window is not None:
                window.close()

    def _about(self) -> Row:
        """The version, and the way to the user guide where that is here."""
        tr, path = self.translator.tr, guide_file(self.translator.language)
        title = tr("Version {version}", version=installed_version() or "?")
        if path is None:
            return Row(title, "", QWidget())
        row = ButtonRow(title, tr("The user guide shows in pictures how everything works."), tr("User guide"))
        row.button.clicked.connect(lambda: self._open_guide(path))
        return row

    def _open_guide(self, path: Path) -> None:
        # Seldom asked for.
        from app.qt.settings.guide_window import GuideWindow

        if self.guide is None:
            self.guide = GuideWindow(path, self.translator)
        self.guide.show()
        self.guide.raise_()
        self.guide.activateWindow()

    def _make(self) -> SettingsDialog:
        tr = self.translator.tr
        extras = {group_id: [make()] for group_id, make in self.extras.items()}
        dialog = SettingsDialog(self.settings, self.translator, model_choices(self.translator), extras)
        dialog.file_requested.connect(self.file_requested)
        dialog.closed.connect(self._drop)
        self._waiting = Banner(button=tr("Load it now"))
        self._waiting.accepted.connect(self._engine.apply_now)
        self._restart = Banner(button=tr("Restart now"))
        self._restart.accepted.connect(self.restart_requested)
        self._head = text_label(role="muted")
        self._taken = Banner("danger", tr("Try again"))
        self._taken.accepted.connect(self.retry_requested)
        for banner in (self._waiting, self._restart):
            dialog.banners.addWidget(banner)
        page = dialog.page(HOTKEY_PAGE)
        page.add_head(self._head)
        page.add_head(self._taken)
        for row in page.rows:
            if isinstance(row, SettingRow) and isinstance(row.control, HotkeyEdit):
                row.control.recording_changed.connect(self.pause_requested)
        self.dialog = dialog
        self._on_waiting(self._engine.is_waiting)
        self._on_language("language.ui", self.settings.get("language.ui"))
        self._show_hotkeys()
        return dialog

    def _drop(self) -> None:
        if self.dialog is not None:
            self.dialog.release()
            self.dialog.hide()
            self.dialog.deleteLater()
            self.dialog = self._shortcuts = None
            self._arrived.clear()

    def _on_waiting(self, is_waiting: bool) -> None:
        if self.dialog is not None:
            text = self.translator.tr("The model is loaded anew once the answer that is being written has ended.")
            self._waiting.show_text(text if is_waiting else "")

    def _on_language(self, _key: str, value: Value) -> None:
        if self.dialog is not None:
            text = self.translator.tr("The language of the windows changes when the app is started again.")
            self._restart.show_text(text if value != self._language else "")

    # --- hotkeys ------------------------------------------------------------------------------------------------

    def set_hotkeys(self, statuses: Sequence[HotkeyStatus], limits: Sequence[str], keys: Mapping[str, str]) -> None:
        """Takes what became of the hotkeys.

        Args:
            limits: what is not possible on this desktop, in the user's language.
            keys: for each command id the key of the setting that holds its hotkey.
        """
        self.statuses, self.limits, self._keys = statuses, limits, keys
        self._show_hotkeys()
        self.hotkeys_changed.emit()

    def hotkey_states(self) -> dict[str, str]:
        """The state of each hotkey, by the key of its setting."""
        return {self._keys.get(each.command_id, each.command_id): each.state.value for each in self.statuses}

    def take_hotkey(self, command_id: str) -> bool:
        """Shows that a hotkey has arrived while its page is in front; False where it is to run its command."""
        dialog = self.dialog
        if dialog is None or dialog.page_id != HOTKEY_PAGE or not (dialog.isVisible() and dialog.isActiveWindow()):
            return False
        row = dialog.rows().get(self._keys.get(command_id, ""))
        if row is None:
            return False
        row.show_status(self.translator.tr("✓ It has arrived."), "accent")
        dialog.area.ensureWidgetVisible(row)
        timer = self._arrived.get(row.key)
        if timer is None:
            timer = self._arrived[row.key] = QTimer(dialog, interval=ARRIVED_SHOWN_MS, singleShot=True)
            timer.timeout.connect(self._show_hotkeys)
        timer.start()
        return True

    def _show_hotkeys(self) -> None:
        if self.dialog is None:
            return
        tr = self.translator.tr
        rows = self.dialog.rows()
        works = any(status.state is HotkeyState.REGISTERED for status in self.statuses)
        text = tr("Press a combination to see that it arrives; nothing is run while this page is in front.")
        self._head.setText("\n".join([*self.limits, text] if works else self.limits))
        by_key = {self._keys.get(status.command_id, ""): status for status in self.statuses}
        for key, row in rows.items():
            if row.setting.kind == "hotkey" and not (key in self._arrived and self._arrived[key].isActive()):
                self._show_status(row, by_key.get(key))
        is_taken = any(status.state is HotkeyState.TAKEN for status in self.statuses)
        self._taken.show_text(tr("Some combinations are taken.") if is_taken else "")
        if is_taken and not self._is_looking and self._shortcuts is None:
            self._is_looking = True
            threading.Thread(target=self._look_for_holders, name="desktop-shortcuts", daemon=True).start()

    def _show_status(self, row: SettingRow, status: HotkeyStatus | None) -> None:
        tr = self.translator.tr
        if status is None:
            row.show_status("")
        elif status.reason is None:
            warned = [tr(warning) for warning in _warnings(status.hotkey)]
            row.show_status("\n".join(["✓ " + tr("works"), *warned]))
        elif status.state is HotkeyState.ASKED:
            row.show_status(f"… {tr(status.reason)}")
        else:
            row.show_status(f"✗ {tr(status.reason)}{self._holder(status)}", "danger")

    def _holder(self, status: HotkeyStatus) -> str:
        """What the desktop's own settings say about a combination that is taken, with a space before it."""
        if status.reason != TAKEN or self._shortcuts is None:
            return ""
        tr, shortcut = self.translator.tr, self._shortcuts.get(parse(status.hotkey))
        if shortcut is None:
            return " " + tr("The system does not tell which one.")
        text = tr('In the settings of {desktop} it is "{purpose}".', desktop=shortcut.desktop, purpose=shortcut.purpose)
        return f" {text}"

    def _look_for_holders(self) -> None:
        """On a thread: a desktop may take a second to tell."""
        found = known_shortcuts()

        def take() -> None:
            self._shortcuts, self._is_looking = found, False
            self._show_hotkeys()

        self._post_call(take)


def _warnings(text: str) -> list[UserText]:
    try:
        return warnings(parse(text))
    except HotkeyFormatError:
        return []
