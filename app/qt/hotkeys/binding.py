"""Which hotkey runs which command, and whether it does. Holds no widget."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from app.desktop import hotkeys
from app.desktop.protocols import Hotkey, HotkeyError, HotkeyGrabber, HotkeyTakenError
from app.translation import UserText


class HotkeyState(enum.Enum):
    """What became of a hotkey that the settings ask for."""

    REGISTERED = "registered"
    TAKEN = "taken"
    ASKED = "asked"
    """The desktop decides, and has not answered yet."""
    IMPOSSIBLE = "impossible"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True)
class HotkeyStatus:
    """One line of the list of hotkeys.

    Attributes:
        title: of the command.
        hotkey: the combination in its normal form; as the settings have it where it cannot be read.
        reason: why it does not work and what to do, None where it works.
    """

    command_id: str
    title: str
    hotkey: str
    state: HotkeyState
    reason: UserText | None = None

    def report(self) -> dict[str, str]:
        """Itself in English, for other processes."""
        told = {"hotkey": self.hotkey, "title": self.title, "state": self.state.value}
        return told if self.reason is None else {**told, "reason": str(self.reason)}


class HotkeyBinding:
    """Grabs the hotkeys of the commands and knows the state of each. UI thread only.

    Attributes:
        limits: sentences for the user on what is not possible here.
    """

    def __init__(
        self, grabber: HotkeyGrabber, on_press: Callable[[str], None], limits: tuple[UserText, ...] = ()
    ) -> None:
        """Binds nothing yet.

        Args:
            on_press: gets the command id; runs on the grabber's thread.
        """
        self.limits = limits
        self._grabber = grabber
        self._on_press = on_press
        self._held: dict[Hotkey, str] = {}
        self.statuses: list[HotkeyStatus] = []

    def bind(self, wanted: Mapping[str, tuple[str, str]]) -> list[HotkeyStatus]:
        """Puts the hotkeys in force; those that are held already for the same command are left alone.

        Args:
            wanted: for each command id its title and the hotkey's text, "" for none.

        Returns:
            One status for each command that asks for a hotkey, also kept in `statuses`.
        """
        parsed: dict[str, Hotkey] = {}
        invalid: dict[str, UserText] = {}
        for command_id, (_title, text) in wanted.items():
            if not text.strip():
                continue
            try:
                parsed[command_id] = hotkeys.parse(text)
            except hotkeys.HotkeyFormatError as error:
                invalid[command_id] = error.text
        for hotkey, command_id in list(self._held.items()):
            if parsed.get(command_id) != hotkey:
                self._grabber.release(hotkey)
                del self._held[hotkey]
        losers = self._losers(parsed, {command_id: title for command_id, (title, _text) in wanted.items()})
        self.statuses = []
        for command_id, (title, text) in wanted.items():
            if command_id in invalid:
                status = HotkeyStatus(command_id, title, text, HotkeyState.INVALID, invalid[command_id])
            elif command_id in losers:
                status = HotkeyStatus(command_id, title, str(parsed[command_id]), HotkeyState.TAKEN, losers[command_id])
            elif command_id in parsed:
                status = self._grab(command_id, title, parsed[command_id])
            else:
                continue
            self.statuses.append(status)
        return self.statuses

    def working(self) -> dict[str, str]:
        """The combinations in force, by command id."""
        return {s.command_id: s.hotkey for s in self.statuses if s.state is HotkeyState.REGISTERED}

    def release_all(self) -> None:
        """Gives every combination back."""
        for hotkey in self._held:
            self._grabber.release(hotkey)
        self._held.clear()
        self.statuses = []

    def _grab(self, command_id: str, title: str, hotkey: Hotkey) -> HotkeyStatus:
        if self._held.get(hotkey) == command_id:
            return HotkeyStatus(command_id, title, str(hotkey), HotkeyState.REGISTERED)
        try:
            self._grabber.grab(hotkey, lambda: self._on_press(command_id))
        except HotkeyTakenError as error:
            return HotkeyStatus(command_id, title, str(hotkey), HotkeyState.TAKEN, error.reason)
        except HotkeyError as error:
            return HotkeyStatus(command_id, title, str(hotkey), HotkeyState.IMPOSSIBLE, error.reason)
        self._held[hotkey] = command_id
        return HotkeyStatus(command_id, title, str(hotkey), HotkeyState.REGISTERED)

    @staticmethod
    def _losers(parsed: Mapping[str, Hotkey], titles: Mapping[str, str]) -> dict[str, UserText]:
        """Commands whose combination an earlier command of ours has already."""
        losers: dict[str, UserText] = {}
        for conflict in hotkeys.conflicts(parsed):
            winner, *others = conflict.names
            for command_id in others:
                losers[command_id] = UserText(
                    'It already runs "{action}". Choose another combination in the settings.', action=titles[winner]
                )
        return losers
