"""The tray icon: state, tooltip, menu, and messages that come from the background."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtGui import QAction, QIcon, QKeySequence
from PySide6.QtWidgets import QMenu, QSystemTrayIcon

from app.actions.commands import Command, CommandRegistry
from app.qt.look.icons import tray_icon
from app.qt.status import Status, TrayState
from app.translation import Translator
from inference.byte_size import size_text
from inference.request import ModelState

APP_TITLE = "DeskInfer"
AVAILABILITY_CHECK_MS = 3000
MESSAGE_SHOWN_MS = 10_000
CLIPBOARD_SUFFIX = ".clipboard"
# Menus close before their action runs, but the program below gets its focus back a moment later.
FOCUS_RETURN_MS = 80
LONGEST_TOOLTIP = 120  # Windows cuts at 127


class Tray(QObject):
    """The icon in the desktop's tray.

    Signals:
        opened: the icon was clicked; the user wants the window.
        availability_changed: a tray appeared on the desktop, or the only one went away.
    """

    opened = Signal()
    availability_changed = Signal(bool)

    def __init__(
        self,
        commands: CommandRegistry,
        translator: Translator,
        free_memory_bytes: Callable[[], int],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._commands = commands
        self._translator = translator
        self._free_memory_bytes = free_memory_bytes
        self._icons: dict[tuple[TrayState, bool], QIcon] = {
            (state, leaves): tray_icon(state, leaves) for state in TrayState for leaves in (False, True)
        }
        self._status = Status()
        self._hotkeys: Mapping[str, str] = {}
        self.menu = QMenu()
        self._state_line = QAction(self)
        self._memory_line = QAction(self)
        self.icon = QSystemTrayIcon(self)
        self.icon.setContextMenu(self.menu)
        self.icon.activated.connect(self._on_activated)
        self.menu.aboutToShow.connect(self._refresh_memory)
        commands.listen(self.rebuild_menu)
        self._is_available = self.is_available()
        self._availability_timer = QTimer(self)
        self._availability_timer.setInterval(AVAILABILITY_CHECK_MS)
        self._availability_timer.timeout.connect(self.check_availability)
        self.set_status(self._status)
        self.rebuild_menu()

    def show(self) -> None:
        """Shows the icon; where there is no tray yet, Qt adds it once one appears."""
        self.icon.show()
        self._availability_timer.start()

    def close(self) -> None:
        """Takes the icon away at once instead of when the process has ended."""
        self._availability_timer.stop()
        self.icon.hide()

    def is_available(self) -> bool:
        """Whether the desktop has a tray now."""
        return QSystemTrayIcon.isSystemTrayAvailable()

    def check_availability(self) -> None:
        """Reports when a tray came or went: panels start late, and can be restarted."""
        is_available = self.is_available()
        if is_available != self._is_available:
            self._is_available = is_available
            self.availability_changed.emit(is_available)

    def set_status(self, status: Status) -> None:
        """Shows a status by picture, tooltip and the first line of the menu."""
        shown = (self._status.tray_state, bool(self._status.remote_host))
        picture = (status.tray_state, bool(status.remote_host))
        if picture != shown or self.icon.icon().isNull():
            self.icon.setIcon(self._icons[picture])
        self._status = status
        self._refresh_text()
        self._refresh_enabled()

    def set_hotkeys(self, hotkeys: Mapping[str, str]) -> None:
        """Shows the combinations that work, by command id."""
        self._hotkeys = hotkeys
        self.rebuild_menu()
        self._refresh_text()

    def show_message(self, title: str, text: str, is_error: bool = False) -> bool:
        """Shows a notification; False where there is no tray to show one, so that the window must."""
        if not self.is_available():
            return False
        if is_error:
            self.icon.showMessage(title, text, QSystemTrayIcon.MessageIcon.Warning, MESSAGE_SHOWN_MS)
        else:
            self.icon.showMessage(title, text, self._icons[TrayState.READY, False], MESSAGE_SHOWN_MS)
        return True

    def rebuild_menu(self) -> None:
        """Makes the menu out of the commands: actions, the same on the clipboard in a submenu, then the rest."""
        self.menu.clear()
        self._state_line.setEnabled(False)
        self._memory_line.setEnabled(False)
        self.menu.addActions([self._state_line, self._memory_line])
        clipboard_menu: QMenu | None = None
        group = ""
        for command in self._commands.in_tray():
            if command.group != group:
                self.menu.addSeparator()
                clipboard_menu, group = None, command.group
            if group == "action" and command.id.endswith(CLIPBOARD_SUFFIX):
                if clipboard_menu is None:
                    clipboard_menu = self.menu.addMenu(self._translator.tr("On the clipboard's text"))
                clipboard_menu.addAction(self._action(command, clipboard_menu))
            else:
                self.menu.addAction(self._action(command, self.menu))
        self._refresh_enabled()

    def _action(self, command: Command, menu: QMenu) -> QAction:
        action = QAction(command.title.replace("&", "&&"), menu)
        action.setObjectName(command.id)
        if command.id in self._hotkeys:
            action.setShortcut(QKeySequence(self._hotkeys[command.id]))
        action.triggered.connect(lambda: QTimer.singleShot(FOCUS_RETURN_MS, self, command.handler))
        return action

    def _refresh_enabled(self) -> None:
        """Only what would change something can be chosen."""
        usable = {
            "model.load": self._status.model_state in (ModelState.EMPTY, ModelState.FAILED),
            "model.unload": not self._status.remote_host
            and self._status.model_state in (ModelState.LOADING, ModelState.READY),
        }
        for action in self.menu.actions():
            action.setEnabled(usable.get(action.objectName(), action.isEnabled()))

    def _refresh_text(self) -> None:
        sentence = self._status.sentence(self._translator)
        self._state_line.setText(_shortened(sentence))
        about = (self._status.memory(self._translator), self._status.served(self._translator))
        lines = [APP_TITLE, sentence, *filter(None, about)]
        lines += [f"{self._hotkeys[c.id]}  {c.title}" for c in self._commands.all() if c.id in self._hotkeys]
        while len(lines) > 2 and len("\n".join(lines)) > LONGEST_TOOLTIP:
            lines.pop()
        self.icon.setToolTip(_shortened("\n".join(lines), LONGEST_TOOLTIP))

    def _refresh_memory(self) -> None:
        tr = self._translator.tr
        self._memory_line.setText(tr("Free memory: {size}", size=size_text(self._free_memory_bytes())))

    def _on_activated(self, reason: QSystemTrayIcon.ActivationReason) -> None:
        if reason is QSystemTrayIcon.ActivationReason.Trigger:
            self.opened.emit()


def _shortened(text: str, limit: int = 60) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
