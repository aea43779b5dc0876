"""The running app: it owns the windows and connects them with commands, hotkeys, settings and the engine.

`Application` puts the tray icon up and nothing else; `start` does the rest once the event loop runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from PySide6.QtCore import QObject, QTimer, QUrl, Signal
from PySide6.QtGui import QCursor, QDesktopServices, QFont, QGuiApplication
from PySide6.QtWidgets import QWidget

from app import engine_setup
from app.actions.commands import Source
from app.actions.registry import ActionRegistry
from app.desktop.protocols import DesktopSession, Window
from app.engine_client import EngineClient
from app.language import needs_identifier, preload
from app.memory.reading import free_memory_bytes
from app.qt.bridge import Bridge
from app.qt.command_list import action_group, commands_of
from app.qt.error_text import error_notice
from app.qt.file_watch import FileWatch
from app.qt.hotkeys.binding import HotkeyStatus
from app.qt.look.theme import apply_scheme
from app.qt.settings.engine_settings import EngineSettings
from app.qt.status import Status
from app.qt.tray import Tray
from app.settings.registry import setting_registry
from app.settings.settings import Settings, Value, program_names
from app.translation import Translator, UserText
from inference.engine.options import EngineOptions
from inference.request import ModelEvent, ModelState

# Panels may start after us; a window that flashes up at every login would be worse than one that comes a moment later.
TRAY_GRACE_MS = 800


class Application(QObject):
    """Everything on the UI thread. It is what the commands act on.

    Signals:
        ended: all windows are closed; the event loop may end.
    """

    ended = Signal()

    def __init__(
        self,
        *,
        settings: Settings,
        actions: ActionRegistry,
        translator: Translator,
        bridge: Bridge,
        client: EngineClient,
        default_model: Callable[[], str],
        engine_options: Callable[[], EngineOptions] | None = None,
    ) -> None:
        super().__init__()
        self._settings, self._actions, self._translator = settings, actions, translator
        self._bridge, self._client, self._default_model = bridge, client, default_model
        self.engine_settings = EngineSettings(
            settings, client, engine_options or partial(engine_setup.engine_options, settings), default_model, self
        )
        self._languages = partial(engine_setup.user_languages, settings)
        self.wants_restart = False
        self._status = Status()
        self._session: DesktopSession | None = None
        self._is_ending, self._busy = False, set[str]()
        self._told_problems = list[str]()
        self._commands = commands_of(self, actions, translator)
        self.tray = Tray(self._commands, translator, free_memory_bytes)
        self.tray.opened.connect(self.show_window)
        self.tray.availability_changed.connect(self._on_tray_availability)
        self.tray.show()

    def start(self, session: DesktopSession) -> None:
        """Makes the windows, grabs the hotkeys, and loads the default model.

        Args:
            session: owned from here on; closed by `close`.
        """
        self._session = session
        apply_scheme(self._settings.text("appearance.theme"))
        self._make_owners()
        self._make_home(session)
        self._make_answers(session)
        self._watch = FileWatch([self._actions.user_dir, self._settings.path.parent], parent=self)
        self._connect()
        self._apply_settings()
        self._show_status()
        self.hotkeys.bind()
        self._tell_problems()
        self.history.tell_problem()
        self._offer(session)
        if needs_identifier(((languages := self._languages()).first, languages.second)):
            threading.Thread(target=preload, name="language-preload", daemon=True).start()
        self._client.listen(self._bridge.post_event)
        if self.welcome.begin() or self._settings.flag("remote.enabled"):
            self.load_model()
        else:
            self._status = replace(self._status, is_missing=True)
            self._show_status()
        QTimer.singleShot(TRAY_GRACE_MS, self, self._show_home_without_tray)

    def _make_owners(self) -> None:
        """What keeps windows that are opened later."""
        from app.qt import windows

        settings, translator, bridge = self._settings, self._translator, self._bridge
        self.settings_owner = windows.SettingsOwner(settings, translator, self.engine_settings, bridge.post_call, self)
        self.models = windows.ModelBinding(settings, translator, self._client, self._default_model, bridge, self)
        self.models.free_requested.connect(self.unload_model)
        self.history = windows.HistoryBinding(settings, translator, self.show_error)

    def _make_answers(self, session: DesktopSession) -> None:
        """The popup, the chat, and what runs the actions."""
        from app.qt import windows

        self.clipboard = windows.QtClipboard()
        self.popup = windows.Popup(self._translator)
        self.controller = windows.AnswerController(
            client=self._client,
            actions=self._actions,
            languages=self._languages,
            desktop=session.desktop,
            clipboard=self.clipboard,
            popup=self.popup,
            bridge=self._bridge,
            translator=self._translator,
            show_popup=self._show_popup,
            focus_capture=windows.FocusCapture(self.clipboard, self.popup.isActiveWindow) if session.portal else None,
        )
        self.popup.header.remote_badge.follow(self._bridge, self._client.reading().model)
        self.chat = windows.ChatDesk(
            self._client, self._bridge, self.history, self.clipboard, self._translator, self._actions, self._activate
        )
        self.hotkeys = windows.HotkeyDesk(session, self._commands, self._settings, self._translator, self._bridge, self)
        windows.AfterAnswer(
            self._settings, self.controller, self.popup, session.desktop, self, session.portal is not None
        )

    def _offer(self, session: DesktopSession) -> None:
        """What the settings lead to, and the welcome of the first start."""
        from app.qt import windows

        owner = self.settings_owner
        windows.DiagnosticsDesk(owner, self._actions, self._client, self._bridge, session.kind, self.tray.is_available)
        owner.offer_clearing(self.history.ask_to_clear)
        owner.offer_server(self.models.remote.set_up)
        self.gateway = windows.GatewayDesk(
            owner, self._client, self._default_model, self._bridge.post_call, self._on_gateway, self.show_error
        )
        self.welcome = windows.WelcomeOwner(owner, self._default_model, self._bridge.post_call)
        self.welcome.model_arrived.connect(self.load_model)
        self.welcome.closed.connect(self._show_home_without_tray)

    def _make_home(self, session: DesktopSession) -> None:
        """The home window, and what its memory meter and that of the models read."""
        from app.qt import windows

        self.memory_feed = windows.MemoryFeed(windows.MemoryReader(self._client.reading), self)
        self.keeper = windows.MemoryKeeper(self._client, self._settings, session.desktop, parent=self)
        self.keeper.told.connect(self._show_note)
        self.models.meter = partial(windows.VramMeter, self.memory_feed, self._translator)
        self.window = windows.MainWindow(self._translator, self.memory_feed)
        self.window.set_actions(self._actions.all())
        self.window.set_commands(self._commands.all())
        windows.FocusFrame(self)

    def _connect(self) -> None:
        self._bridge.hotkey_pressed.connect(self._on_hotkey)
        self._bridge.model_event.connect(self._on_model_event)
        self.controller.busy_changed.connect(self._on_busy_changed)
        self.controller.answered.connect(self.history.add_answer)
        self.controller.chat_wanted.connect(self.chat.continue_answer)
        self.controller.models_wanted.connect(self.models.open)
        self.chat.busy_changed.connect(self._on_busy_changed)
        self.window.action_requested.connect(self.controller.run_text)
        self.window.hotkeys_retry_requested.connect(self.hotkeys.bind)
        self.window.quit_requested.connect(self.quit)
        self.window.command_requested.connect(self._commands.run)
        self._watch.changed.connect(self._on_files_changed)
        self.settings_owner.file_requested.connect(self.open_settings_file)
        self.settings_owner.restart_requested.connect(self.restart)
        self.settings_owner.pause_requested.connect(self.hotkeys.pause)
        self.settings_owner.retry_requested.connect(self.hotkeys.bind)
        self.hotkeys.bound.connect(self._show_hotkeys)
        self.hotkeys.failed.connect(self.show_error)
        self.hotkeys.mended.connect(partial(self.window.show_message, ""))
        self._settings.listen("", self._on_setting)

    # --- what the commands do -----------------------------------------------------------------------------------

    def run_action(self, action_id: str, source: Source) -> None:
        """Runs an action and shows its answer. Raises UnknownActionError."""
        self.controller.run(action_id, source)

    def focus_popup(self) -> None:
        """Gives the keyboard to the popup, if it is open."""
        if self.popup.isVisible():
            self.popup.take_focus()
            self._activate(self.popup)

    def load_model(self) -> None:
        """Loads the default model in the background."""
        self._client.load(self._default_model())

    def unload_model(self) -> None:
        """Gives the model's memory back; the next action loads it again."""
        if self._session is not None:
            self.keeper.free_now()

    def open_actions_folder(self) -> None:
        """Shows the user's own actions in the file manager."""
        self._actions.user_dir.mkdir(parents=True, exist_ok=True)
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._actions.user_dir)))

    def open_settings(self) -> None:
        """Opens the settings dialog."""
        self.settings_owner.open()

    def open_settings_file(self) -> None:
        """Opens the settings in the user's editor."""
        self.settings_owner.open_file(self.show_error)

    def clear_history(self) -> None:
        """Removes conversations and answers, once the user has confirmed it."""
        self.history.ask_to_clear()

    def show_window(self) -> None:
        """Opens the window, or brings it to the front."""
        self.window.bring_to_front()
        self._activate(self.window)

    def hotkey_report(self) -> list[dict[str, str]]:
        """What became of the hotkeys, in English, for the doctor."""
        return self.hotkeys.report()

    def restart(self) -> None:
        """Ends the app; its owner starts it again where `wants_restart` is set."""
        self.wants_restart = True
        self.quit()

    def quit(self) -> None:
        """Ends the app, once what called this has returned."""
        QTimer.singleShot(0, self, self.close)

    def close(self) -> None:
        """Takes windows, hotkeys and desktop down; the engine is its owner's to close. May be called twice."""
        if self._is_ending:
            return
        self._is_ending = True
        self.engine_settings.close()
        self.tray.close()
        if self._session is not None:
            self.popup.hide()
            self.window.hide()
            for part in (self.memory_feed, self.keeper, self.settings_owner, self.welcome, self.models, self.chat):
                part.close()
            self.gateway.close()
            self.hotkeys.close()
            self.controller.close()
            self.clipboard.close()
            self.history.close()
            self._session.grabber.close()
            if self._session.portal is not None:
                self._session.portal.close()
            self._session.desktop.close()
        self.ended.emit()

    def _activate(self, window: QWidget) -> None:
        """Asks the window manager as well: it may refuse a program that was not used last, as after a hotkey."""
        assert self._session is not None
        self._session.desktop.activate(Window(int(window.winId())))

    def show_error(self, title: str, text: str) -> None:
        """Shows an error where the user sees it: by the tray, else in the window."""
        if not self.tray.show_message(title, text, is_error=True) and self._session is not None:
            self.window.show_message(f"{title}: {text}")
            self.window.show_quietly()

    def _show_note(self, title: UserText, text: UserText) -> None:
        tr = self._translator.tr
        if not self.tray.show_message(tr(title), tr(text)):
            self.window.show_message(f"{tr(title)}: {tr(text)}", is_error=False)

    def show_unexpected(self, kind: str) -> None:
        """Shows that something of ours went wrong. Any thread."""
        tr = self._translator.tr
        text = tr("Something unexpected happened ({kind}). The program goes on; the log has the details.", kind=kind)
        self._bridge.post_call(lambda: self.show_error("DeskInfer", text))

    def _show_popup(self) -> None:
        self.popup.show_near(QCursor.pos(), [screen.availableGeometry() for screen in QGuiApplication.screens()])

    def _show_home_without_tray(self) -> None:
        if not self.tray.is_available() and not self._is_ending and self.welcome.window is None:
            self.window.set_only_home(True)
            self.window.show_quietly()
            if self.settings_owner.dialog is not None:  # they came back after "Restart now"
                self.settings_owner.dialog.raise_()

    def _on_tray_availability(self, is_available: bool) -> None:
        if self._session is not None:
            self.window.set_only_home(not is_available)
            if not is_available:
                self.window.show_quietly()

    def _show_status(self) -> None:
        self.tray.set_status(self._status)
        self.window.set_status(self._status)
        self.models.set_status(self._status)

    def _on_gateway(self, address: str) -> None:
        self._status = replace(self._status, gateway=address)
        self._show_status()

    def _on_busy_changed(self, is_busy: bool, who: str = "popup") -> None:
        self.keeper.note_use()
        (self._busy.add if is_busy else self._busy.discard)(who)
        self._status = replace(self._status, is_busy=bool(self._busy))
        self._show_status()

    def _on_model_event(self, event: ModelEvent) -> None:
        heading = ""
        if event.error is not None:
            notice = error_notice(event.error, self._translator)
            heading = notice.heading
            if not self._status.is_busy:  # a request that waits for the model shows the error in the popup
                self.show_error(heading, notice.text)
            self.window.show_message(notice.text)
        elif event.state is ModelState.READY:
            self.window.show_message("")
        self.keeper.on_model_event(event)
        self._status = self._status.after(event, heading, self._client.reading(), self.keeper.reason)
        self._show_status()

    # --- settings, actions, hotkeys -----------------------------------------------------------------------------

    def _on_setting(self, key: str, _value: Value) -> None:
        if key.startswith("hotkey."):
            self.hotkeys.bind()
        elif key == "appearance.theme":
            apply_scheme(self._settings.text(key))
        else:
            self._apply_settings()

    def _apply_settings(self) -> None:
        self.controller.set_restores(self._settings.flag("clipboard.restore"))
        self.controller.set_left_alone(program_names(self._settings.text("privacy.leave_alone")))
        size = self._settings.integer("popup.font_size")
        font = QFont(self.popup.font())
        if size > 0:
            font.setPointSize(size)
        self.popup.set_text_font(font)

    def _on_files_changed(self) -> None:
        self._settings.reload_if_changed()
        if self._actions.reload_if_changed():
            self._settings.set_registry(setting_registry(self._actions.all()))
            self.window.set_actions(self._actions.all())
            self._commands.replace_group("action", action_group(self.run_action, self._actions, self._translator))
            self.settings_owner.rebuild()
        self._tell_problems()

    def _tell_problems(self) -> None:
        tr = self._translator.tr
        problems = [tr(each.text) for each in self._actions.problems] + [tr(each) for each in self._settings.problems]
        if problems and problems != self._told_problems:
            self.show_error(tr("Your files need a correction"), "\n".join(problems))
        elif self._told_problems and not problems:
            self.window.show_message("")
        self._told_problems = problems

    def _on_hotkey(self, command_id: str) -> None:
        if not self.settings_owner.take_hotkey(command_id):
            self._commands.run(command_id)

    def _show_hotkeys(self, statuses: Sequence[HotkeyStatus], limits: Sequence[str]) -> None:
        self.tray.set_hotkeys(self.hotkeys.working())
        self.window.set_hotkeys(statuses, limits)
        self.settings_owner.set_hotkeys(statuses, limits, {c.id: c.hotkey_setting for c in self._commands.all()})
