"""Composition root of `python -m app` and `deskinfer run`: builds, wires, starts.

The order is what makes the start quick: the tray icon needs Qt, the settings and the actions only; the desktop, the
windows and the engine's thread follow once the event loop turns, and heavy libraries are imported on that thread.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from logging.handlers import RotatingFileHandler

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from app import engine_setup
from app.actions.registry import ActionRegistry
from app.desktop.autostart import AutostartError, open_autostart, repair
from app.desktop.desktop_entry import APP_ID
from app.diagnostics.bundle import EVENT_LOG
from app.diagnostics.content_free_log import ContentFreeFormatter
from app.engine_client import EngineClient
from app.instance.instance import AlreadyRunningError, InstanceError, InstanceServer, Message, send_to_running
from app.paths import log_dir, settings_file
from app.platform.session import open_session
from app.qt import excepthook
from app.qt.application import Application
from app.qt.bridge import Bridge
from app.qt.instance_commands import InstanceCommands
from app.qt.look.icons import app_icon
from app.qt.shutdown import SignalWatch, end_hard_after
from app.settings.registry import setting_registry
from app.settings.settings import SettingError, Settings
from app.translation import Translator
from inference.engine.options import EngineOptions
from inference.errors import InvalidRequestError

_log = logging.getLogger(__name__)

LOG_BYTES = 500_000
# How long the engine's thread may go on while the UI thread waits for the interpreter. A turn of the event loop waits
# several times, so with Python's own 5 ms the windows would stand still while modules are imported or a model loads.
SWITCH_INTERVAL_S = 0.0005

# Tells a start that it is the second half of "Restart now", which was pressed in the settings.
RESTARTED_VARIABLE = "DESKINFER_RESTARTED"

# Builds the engine out of the settings, and tells which model they mean.
EngineBuilder = Callable[[Settings], tuple[EngineClient, Callable[[], str]]]


def parse(arguments: Sequence[str]) -> Message:
    """What a start asks for, as a command for the running app."""
    parser = argparse.ArgumentParser(prog="deskinfer run", description="Starts the tray app, or reaches it.")
    parser.add_argument("--action", metavar="ID", help="run an action as if its hotkey had been pressed")
    parser.add_argument("--clipboard", action="store_true", help="run it on the clipboard's text")
    options = parser.parse_args(arguments)
    if options.action:
        source = "clipboard" if options.clipboard else "selection"
        return {"command": "action", "action": options.action, "source": source}
    return {"command": "show"}


def build_worker(settings: Settings) -> tuple[EngineClient, Callable[[], str]]:
    """The engine of this process. Its heavy libraries are imported on its own thread."""
    return engine_setup.build_engine(settings)


def has_display(environment: Mapping[str, str], platform: str = sys.platform) -> bool:
    """Whether Qt can show windows; without a display it would abort the process instead of saying so."""
    names = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    return not platform.startswith("linux") or any(environment.get(name) for name in names)


def put_in_force(settings: Settings, choice: engine_setup.EngineChoice) -> None:
    """Has the windows show the backend of the command line as the one that is set, so that it can be changed there."""
    if choice.backend:
        with contextlib.suppress(SettingError):  # of a name that is none the engine says so
            settings.override("engine.backend", choice.backend)


def options_after_change(settings: Settings, choice: engine_setup.EngineChoice | None) -> EngineOptions:
    """What the settings say about the engine; the command line's limit of the GPU's memory stays, where it is used."""
    is_on_host = settings.text("engine.backend") in ("cpu", "torch")
    left = None if choice is None or is_on_host else replace(choice, backend="")
    return engine_setup.engine_options(settings, left)


def set_up_log() -> None:
    """Warnings and errors go to a small file; prompts, selections and answers never get there.

    A second one, for the diagnostics bundle, leaves out every value, such as the path in an error.
    """
    try:
        log_dir().mkdir(parents=True, exist_ok=True)
        handler: logging.Handler = RotatingFileHandler(
            log_dir() / "deskinfer.log", maxBytes=LOG_BYTES, backupCount=1, encoding="utf-8"
        )
        events: logging.Handler = RotatingFileHandler(
            log_dir() / EVENT_LOG, maxBytes=LOG_BYTES, backupCount=1, encoding="utf-8"
        )
    except OSError:
        handler, events = logging.StreamHandler(), logging.NullHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    events.setFormatter(ContentFreeFormatter())
    root = logging.getLogger()
    root.addHandler(handler)
    root.addHandler(events)
    root.setLevel(logging.INFO)


def reach_running(command: Message) -> int | None:
    """Hands a command to the app that runs already; None where none does."""
    try:
        reply = send_to_running(command)
    except InstanceError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if reply is None:
        return None
    if "error" in reply:
        sys.stderr.write(f"{reply['error']}\n")
        return 1
    return 0


def ended_before_windows(command: Message) -> int | None:
    """The exit status where another process shows the windows, or nothing can; None where this one is to do it."""
    status = reach_running(command)
    if status is None and not has_display(os.environ):
        sys.stderr.write(
            "There is no display here, so the app cannot show its tray icon. Start it in a desktop session, or use"
            " `deskinfer ask` in the terminal.\n"
        )
        return 2
    return status


def main(
    arguments: Sequence[str] | None = None,
    build_engine: EngineBuilder = build_worker,
    choice: engine_setup.EngineChoice | None = None,
) -> int:
    """Runs the app until it is ended, or reaches the running one. Returns the exit status.

    Args:
        arguments: of the command line; this process's by default.
        build_engine: tests pass a scripted engine.
        choice: what the command line said about the engine, in force until the settings are changed.
    """
    started_s = time.monotonic()
    command = parse(sys.argv[1:] if arguments is None else arguments)
    is_restarted = bool(os.environ.pop(RESTARTED_VARIABLE, ""))  # popped: it is not meant for what we start
    status = ended_before_windows(command)
    if status is not None:
        return status
    set_up_log()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    qt = _qt()
    actions = ActionRegistry()
    settings = Settings.load(settings_file(), setting_registry(actions.all()))
    if choice is not None:
        put_in_force(settings, choice)
    try:
        client, default_model = engine_setup.with_server(settings, *build_engine(settings))
    except InvalidRequestError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    bridge = Bridge()
    commands = InstanceCommands(client, bridge.post_call)
    try:
        server = InstanceServer(commands)
    except AlreadyRunningError:  # it started between our look and now
        client.close()
        return reach_running(command) or 0
    except InstanceError as error:
        client.close()
        sys.stderr.write(f"{error}\n")
        return 1
    application = Application(
        settings=settings,
        actions=actions,
        translator=Translator(settings.text("language.ui")),
        bridge=bridge,
        client=client,
        default_model=default_model,
        engine_options=lambda: options_after_change(settings, choice),
    )
    _log.info("the tray icon is up after %.0f ms", 1000 * (time.monotonic() - started_s))
    _run(qt, application, commands, command, is_restarted)
    _end(client, server)
    if application.wants_restart:
        _start_anew()
    return 0


def _qt() -> QApplication:
    """Qt, with the names that desktops show."""
    qt = QApplication(sys.argv[:1])
    qt.setApplicationName("deskinfer")
    qt.setApplicationDisplayName("DeskInfer")
    qt.setDesktopFileName(APP_ID)
    qt.setQuitOnLastWindowClosed(False)
    qt.setWindowIcon(app_icon())
    return qt


def _end(client: EngineClient, server: InstanceServer) -> None:
    """What the user sees is gone. The engine goes first: open lines to other processes wait for its last events."""
    hard_end = end_hard_after()
    client.close()
    server.close()
    hard_end.cancel()


def _start_anew() -> None:
    """Starts this program with the command line that has started this process, whatever that was."""
    environment = {**os.environ, RESTARTED_VARIABLE: "1"}
    subprocess.Popen([sys.executable, *sys.orig_argv[1:]], close_fds=True, env=environment)


def _run(
    qt: QApplication, application: Application, commands: InstanceCommands, command: Message, is_restarted: bool
) -> None:
    """The event loop, from the tray icon to the end of the windows.

    Args:
        is_restarted: the settings come back, where the user has asked for it; the command was run before.
    """
    restore_hooks = excepthook.install(application.show_unexpected)
    signals = SignalWatch(application.quit)
    application.ended.connect(qt.quit)
    qt.commitDataRequest.connect(lambda _manager: application.quit())

    def start() -> None:
        application.start(open_session())
        with contextlib.suppress(AutostartError):  # then the settings dialog says what is wrong with the entry
            repair(open_autostart())
        commands.attach(application)
        if is_restarted:
            application.open_settings()
        elif command["command"] == "action":
            application.run_action(command["action"], command["source"])

    QTimer.singleShot(0, application, start)
    qt.exec()
    application.close()
    signals.close()
    restore_hooks()


if __name__ == "__main__":
    sys.exit(main())
