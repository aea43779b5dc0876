"""The commands of the windows: actions, model, window, quit. Holds no widget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from app.actions.commands import Command, CommandRegistry, Source, action_commands
from app.actions.registry import ActionRegistry
from app.translation import Translator

POPUP_HOTKEY_SETTING = "hotkey.popup"
CHAT_HOTKEY_SETTING = "hotkey.chat"


class Opener(Protocol):
    """A window that may not have been made yet."""

    def open(self) -> None:
        """Shows it, or brings it to the front."""
        ...


class Host(Protocol):
    """What the commands do. UI thread only."""

    @property
    def chat(self) -> Opener:
        """The chat."""
        ...

    @property
    def models(self) -> Opener:
        """The window of models."""
        ...

    def run_action(self, action_id: str, source: Source) -> None:
        """Runs an action and shows its answer."""
        ...

    def focus_popup(self) -> None:
        """Gives the keyboard to the popup."""
        ...

    def load_model(self) -> None:
        """Loads the default model."""
        ...

    def unload_model(self) -> None:
        """Gives the model's memory back."""
        ...

    def open_actions_folder(self) -> None:
        """Shows the user's own actions in the file manager."""
        ...

    def open_settings(self) -> None:
        """Opens the settings dialog."""
        ...

    def clear_history(self) -> None:
        """Removes conversations and answers, once the user has confirmed it."""
        ...

    def show_window(self) -> None:
        """Opens the window."""
        ...

    def quit(self) -> None:
        """Ends the app."""
        ...


def commands_of(host: Host, actions: ActionRegistry, translator: Translator) -> CommandRegistry:
    """All commands in the order of the tray's menu."""
    tr = translator.tr
    return CommandRegistry(
        [
            *action_group(host.run_action, actions, translator),
            Command("popup.focus", tr("Go to the answer"), host.focus_popup, POPUP_HOTKEY_SETTING, in_tray=False),
            Command("chat.open", tr("Open the chat"), lambda: host.chat.open(), CHAT_HOTKEY_SETTING, group="chat"),
            Command("models.open", tr("Models"), lambda: host.models.open(), group="model"),
            Command("model.load", tr("Load the model"), host.load_model, group="model"),
            Command("model.unload", tr("Free the memory now"), host.unload_model, group="model"),
            Command("window.open", tr("Open the window"), host.show_window, group="app"),
            Command("settings.open", tr("Settings"), host.open_settings, group="app"),
            Command("actions.folder", tr("Open the folder of your own actions"), host.open_actions_folder, group="app"),
            Command("history.clear", tr("Clear the history…"), host.clear_history, group="app"),
            Command("app.quit", tr("Quit"), host.quit, group="quit"),
        ]
    )


def action_group(run: Callable[[str, Source], None], actions: ActionRegistry, translator: Translator) -> list[Command]:
    """The commands of group "action"; made anew when the user's actions change."""
    return action_commands(
        actions.all(),
        translator.language,
        run,
        lambda title: translator.tr("{action} (clipboard)", action=title),
    )
