"""The hotkeys of the commands: bound anew whenever commands or settings change, and what became of them is told."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.actions.commands import CommandRegistry
from app.desktop.protocols import DesktopSession
from app.qt.bridge import Bridge
from app.qt.hotkeys.binding import HotkeyState
from app.qt.hotkeys.portal_binding import hotkeys_of
from app.settings.settings import Settings
from app.translation import Translator


class HotkeyDesk(QObject):
    """Brings commands, settings and the desktop together. UI thread only; the desktop is its owner's to close.

    Signals:
        bound: the statuses (a list of HotkeyStatus), and what is not possible on this desktop, in the user's language
            (a list of str).
        failed: title and text, for the user: some do not work.
        mended: all of them work again.
    """

    bound = Signal(object, object)
    failed = Signal(str, str)
    mended = Signal()

    def __init__(
        self,
        session: DesktopSession,
        commands: CommandRegistry,
        settings: Settings,
        translator: Translator,
        bridge: Bridge,
        parent: QObject | None = None,
    ) -> None:
        """Binds nothing yet, and again whenever the commands change."""
        super().__init__(parent)
        self._commands, self._settings, self._translator = commands, settings, translator
        self._binding = hotkeys_of(session, bridge, self.bind)
        self._has_failed, self._is_closed = False, False
        commands.listen(self.bind)

    def bind(self) -> None:
        """Puts what the settings ask for in force."""
        if self._is_closed:
            return
        tr, known = self._translator.tr, self._settings.registry
        wanted = {
            command.id: (command.title, self._settings.text(command.hotkey_setting))
            for command in self._commands.all()
            if command.hotkey_setting in known
        }
        statuses = self._binding.bind(wanted)
        limits = [tr(limit) for limit in self._binding.limits]
        self.bound.emit(statuses, limits)
        failed = [s for s in statuses if s.state in (HotkeyState.TAKEN, HotkeyState.INVALID)]
        lines = [f"{s.hotkey} ({s.title}): {tr(s.reason)}" for s in failed if s.reason is not None]
        if limits and not self.working():
            lines = limits
        if lines:
            self.failed.emit(tr("Not all hotkeys work"), "\n".join(lines))
        elif self._has_failed:
            self.mended.emit()
        self._has_failed = bool(lines)

    def pause(self, is_paused: bool) -> None:
        """Gives every combination back while others are pressed in, or puts them in force again."""
        if is_paused:
            self._binding.release_all()
        else:
            self.bind()

    def working(self) -> dict[str, str]:
        """The combinations in force, by command id."""
        return self._binding.working()

    def report(self) -> list[dict[str, str]]:
        """What became of them, in English, for other processes."""
        return [status.report() for status in self._binding.statuses]

    def close(self) -> None:
        """Binds nothing any more."""
        self._is_closed = True
