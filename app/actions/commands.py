"""Commands: one list of what the app can do; it feeds tray, hotkeys, settings and the running instance."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from app.actions.action import Action

Source = Literal["selection", "clipboard"]


@dataclass(frozen=True, slots=True)
class Command:
    """One thing that a user can start from the tray, by hotkey or from another process.

    Attributes:
        id: dotted, e.g. "action.summarize", "action.summarize.clipboard", "model.unload".
        title: in the language of the windows.
        handler: runs it; UI thread.
        hotkey_setting: key of the setting that holds its hotkey, "" where it cannot have one.
        in_tray: whether the tray's menu lists it.
        group: commands of one group stand together in menus and settings.
    """

    id: str
    title: str
    handler: Callable[[], None]
    hotkey_setting: str = ""
    in_tray: bool = True
    group: str = "app"


class UnknownCommandError(LookupError):
    """There is no command of this id; the message names near ones."""

    def __init__(self, command_id: str, known: list[str]) -> None:
        near = difflib.get_close_matches(command_id, known, n=2)
        cure = f"Did you mean {' or '.join(near)}?" if near else f"Known are: {', '.join(sorted(known))}."
        super().__init__(f"There is no command {command_id!r}. {cure}")


class CommandRegistry:
    """All commands by id, in the order they were added. UI thread only."""

    def __init__(self, commands: Iterable[Command] = ()) -> None:
        self._commands: dict[str, Command] = {}
        self._listeners: list[Callable[[], None]] = []
        for command in commands:
            self.add(command)

    def add(self, command: Command) -> None:
        """Adds a command; an id that is taken is a mistake of ours and raises ValueError."""
        if command.id in self._commands:
            raise ValueError(f"The command {command.id!r} exists twice.")
        self._commands[command.id] = command

    def replace_group(self, group: str, commands: Iterable[Command]) -> None:
        """Puts new commands in the place of a group, e.g. after a change of the actions, and tells the listeners."""
        present = self.all()
        at = next((place for place, command in enumerate(present) if command.group == group), len(present))
        merged = CommandRegistry(command for command in present[:at] if command.group != group)
        for command in [*commands, *(command for command in present[at:] if command.group != group)]:
            merged.add(command)
        self._commands = merged._commands
        for listener in list(self._listeners):
            listener()

    def all(self) -> list[Command]:
        """Every command."""
        return list(self._commands.values())

    def in_tray(self) -> list[Command]:
        """The commands of the tray's menu."""
        return [command for command in self._commands.values() if command.in_tray]

    def get(self, command_id: str) -> Command:
        """Raises UnknownCommandError, which names near ids."""
        if command_id not in self._commands:
            raise UnknownCommandError(command_id, list(self._commands))
        return self._commands[command_id]

    def run(self, command_id: str) -> None:
        """Runs a command. Raises UnknownCommandError, which names near ids."""
        self.get(command_id).handler()

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Calls `listener` after the list changed; the result removes it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None


def action_command_id(action_id: str, source: Source) -> str:
    """The id of the command that runs an action on the selection or on the clipboard's text."""
    return f"action.{action_id}" if source == "selection" else f"action.{action_id}.clipboard"


def hotkey_setting(action_id: str, source: Source) -> str:
    """The key of the setting that holds an action's hotkey."""
    return f"hotkey.{action_id}" if source == "selection" else f"hotkey.{action_id}.clipboard"


def action_commands(
    actions: Sequence[Action],
    ui_language: str,
    run: Callable[[str, Source], None],
    clipboard_title: Callable[[str], str],
) -> list[Command]:
    """Two commands for each action: on the selection (group "action") and on the clipboard's text (the same group).

    Args:
        run: starts the action of an id on a source.
        clipboard_title: makes "Summarize the clipboard" or the like out of the action's title.
    """
    made = []
    sources: tuple[Source, ...] = ("selection", "clipboard")
    for source in sources:
        for action in actions:
            title = action.title(ui_language)
            made.append(
                Command(
                    id=action_command_id(action.id, source),
                    title=title if source == "selection" else clipboard_title(title),
                    handler=_start(run, action.id, source),
                    hotkey_setting=hotkey_setting(action.id, source),
                    group="action",
                )
            )
    return made


def _start(run: Callable[[str, Source], None], action_id: str, source: Source) -> Callable[[], None]:
    return lambda: run(action_id, source)
