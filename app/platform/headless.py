"""A desktop about which nothing is known and on which nothing can be grabbed."""

from __future__ import annotations

from collections.abc import Callable

from app.desktop.protocols import Hotkey, HotkeyError, Modifier, Window
from app.translation import UserText


class UnknownDesktop:
    """Desktop that knows no window and sends no key: the clipboard is all that is left."""

    def foreground_window(self) -> Window | None:
        """Not known."""
        return None

    def full_screen_window(self) -> Window | None:
        """Not known."""
        return None

    def activate(self, window: Window) -> None:
        """Not possible."""

    def held_modifiers(self) -> frozenset[Modifier]:
        """Not known."""
        return frozenset()

    def any_key_held(self) -> bool:
        """Not known."""
        return False

    def send_copy(self) -> None:
        """Not possible."""

    def send_paste(self) -> None:
        """Not possible."""

    def owns_primary(self, window: Window) -> bool:
        """Not known."""
        return False

    def close(self) -> None:
        """Nothing is open."""


class RefusingGrabber:
    """HotkeyGrabber where no program may grab: it says why, and what to do instead."""

    def __init__(self, reason: UserText) -> None:
        """Refuses every combination for this reason, which names the cure."""
        self._reason = reason

    def grab(self, hotkey: Hotkey, on_press: Callable[[], None]) -> None:
        """Raises HotkeyError, always."""
        raise HotkeyError(hotkey, self._reason)

    def release(self, hotkey: Hotkey) -> None:
        """Nothing was grabbed."""

    def close(self) -> None:
        """Nothing is open."""
