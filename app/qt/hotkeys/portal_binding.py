"""Hotkeys of a desktop that gives them out itself: asked for once, and only what it has confirmed counts as working."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from app.desktop import hotkeys
from app.desktop.protocols import DesktopSession, PortalAnswer, Shortcut, ShortcutPortal
from app.qt.bridge import Bridge
from app.qt.hotkeys.binding import HotkeyBinding, HotkeyState, HotkeyStatus
from app.translation import UserText

# Qt hands it to the compositor with the next window that it brings to the front.
ACTIVATION_TOKEN = "XDG_ACTIVATION_TOKEN"

ASKED = UserText("The desktop has been asked for this shortcut; it may show a question.")
NO_KEY = UserText("The desktop has given no key to this shortcut. Choose one in its keyboard settings.")
NOT_GIVEN = UserText("The desktop has not given out this shortcut.")
NEXT_START = UserText("The desktop is asked for this shortcut when the app is started again.")
KEYS_OF_DESKTOP = UserText("This desktop decides which keys start what; change them in its keyboard settings.")


def hotkeys_of(session: DesktopSession, bridge: Bridge, on_change: Callable[[], None]) -> HotkeyBinding | PortalBinding:
    """What binds the hotkeys of a desktop: it grabs them, or asks for them where the desktop gives them out."""
    if session.portal is None:
        return HotkeyBinding(session.grabber, bridge.post_hotkey, session.limits)
    return PortalBinding(session.portal, bridge.post_hotkey, bridge.post_call, on_change, session.limits)


class PortalBinding:
    """What HotkeyBinding is elsewhere. UI thread only.

    Attributes:
        statuses: of the last `bind`.
    """

    def __init__(
        self,
        portal: ShortcutPortal,
        post_hotkey: Callable[[str], None],
        post_call: Callable[[Callable[[], object]], None],
        on_change: Callable[[], None],
        limits: Sequence[UserText],
    ) -> None:
        """Asks for nothing yet.

        Args:
            post_hotkey: takes the command id of a press; any thread.
            post_call: runs a function on the UI thread; any thread.
            on_change: called on the UI thread when `bind` would give something new.
            limits: what holds where the portal gives nothing.
        """
        self._portal, self._post_hotkey, self._post_call = portal, post_hotkey, post_call
        self._on_change, self._limits = on_change, tuple(limits)
        self._asked: frozenset[str] | None = None
        self._answer: PortalAnswer | None = None
        self._is_paused = False
        self.statuses: list[HotkeyStatus] = []

    @property
    def limits(self) -> tuple[UserText, ...]:
        """Sentences for the user on what is not possible here, as far as it is known."""
        if self._answer is None:
            return ()
        if self._answer.problem is not None:
            return (self._answer.problem, *self._limits)
        return (KEYS_OF_DESKTOP, *self._limits[1:])

    def bind(self, wanted: Mapping[str, tuple[str, str]]) -> list[HotkeyStatus]:
        """Asks the desktop, the first time that something is wanted; afterwards only tells how things stand.

        Args:
            wanted: for each command id its title and the hotkey's text, "" for none.
        """
        self._is_paused = False
        parsed: dict[str, Shortcut] = {}
        self.statuses = []
        for command_id, (title, text) in wanted.items():
            if not text.strip():
                continue
            try:
                parsed[command_id] = Shortcut(command_id, title, hotkeys.parse(text))
            except hotkeys.HotkeyFormatError as error:
                self.statuses.append(HotkeyStatus(command_id, title, text, HotkeyState.INVALID, error.text))
        if self._asked is None and parsed:
            self._asked = frozenset(parsed)
            self._portal.ask(tuple(parsed.values()), self._on_answer, self._on_press)
        self.statuses += [self._status(shortcut) for shortcut in parsed.values()]
        return self.statuses

    def working(self) -> dict[str, str]:
        """The combinations in force, by command id, in the desktop's words."""
        return {s.command_id: s.hotkey for s in self.statuses if s.state is HotkeyState.REGISTERED}

    def release_all(self) -> None:
        """Presses are ignored until the next `bind`; the desktop keeps its keys."""
        self._is_paused = True

    def _status(self, shortcut: Shortcut) -> HotkeyStatus:
        wish = str(shortcut.hotkey)
        if self._asked is None or shortcut.id not in self._asked:
            return HotkeyStatus(shortcut.id, shortcut.title, wish, HotkeyState.IMPOSSIBLE, NEXT_START)
        if self._answer is None:
            return HotkeyStatus(shortcut.id, shortcut.title, wish, HotkeyState.ASKED, ASKED)
        if self._answer.problem is not None:
            return HotkeyStatus(shortcut.id, shortcut.title, wish, HotkeyState.IMPOSSIBLE, self._answer.problem)
        keys = self._answer.keys.get(shortcut.id)
        if not keys:
            reason = NOT_GIVEN if keys is None else NO_KEY
            return HotkeyStatus(shortcut.id, shortcut.title, wish, HotkeyState.IMPOSSIBLE, reason)
        return HotkeyStatus(shortcut.id, shortcut.title, keys, HotkeyState.REGISTERED)

    def _on_answer(self, answer: PortalAnswer) -> None:
        """On the portal's thread."""

        def take() -> None:
            self._answer = answer
            self._on_change()

        self._post_call(take)

    def _on_press(self, command_id: str, token: str) -> None:
        """On the portal's thread."""

        def take() -> None:
            if not self._is_paused:
                if token:
                    os.environ[ACTIVATION_TOKEN] = token
                self._post_hotkey(command_id)

        self._post_call(take)
