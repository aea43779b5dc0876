"""What the app needs of an operating system's desktop, as protocols: windows and keys, hotkey grabs, the clipboard.

Implementations: app/platform (Desktop, HotkeyGrabber) and app/qt/clipboard (Clipboard). Capture and paste-back are
written against these alone, so they are tested with fakes.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from app.translation import UserText


class Modifier(enum.Enum):
    """Keys that are held while another is pressed."""

    CTRL = "Ctrl"
    ALT = "Alt"
    SHIFT = "Shift"
    META = "Meta"


@dataclass(frozen=True, slots=True)
class Hotkey:
    """A normalised combination. `key` is an upper-case name: "A", "7", "F5", "SPACE", "INSERT", ..."""

    modifiers: frozenset[Modifier]
    key: str

    def __str__(self) -> str:
        return "+".join([m.value for m in Modifier if m in self.modifiers] + [self.key.capitalize()])


@dataclass(frozen=True, slots=True)
class Window:
    """A top-level window of some program.

    Attributes:
        window_id: XID or HWND.
        program: name of the program or window class, lower case, "" where unknown.
        is_terminal: Ctrl+C would interrupt what runs in it, so no copy keystroke is ever sent.
    """

    window_id: int
    program: str = ""
    is_terminal: bool = False


class HotkeyError(Exception):
    """A combination could not be grabbed; the message names it, the reason and the cure.

    Attributes:
        hotkey: the combination.
        reason: reason and cure, for the user.
    """

    def __init__(self, hotkey: Hotkey, reason: UserText) -> None:
        self.hotkey = hotkey
        self.reason = reason
        super().__init__(f"{hotkey}: {reason}")


TAKEN = UserText(
    "another program uses this combination; choose another one in the settings, or free it there and try again."
)


class HotkeyTakenError(HotkeyError):
    """Another program holds the combination."""

    def __init__(self, hotkey: Hotkey, reason: UserText = TAKEN) -> None:
        super().__init__(hotkey, reason)


class HotkeyGrabber(Protocol):
    """Global hotkeys that the focused program does not see. Thread-safe; callbacks run on the grabber's thread."""

    def grab(self, hotkey: Hotkey, on_press: Callable[[], None]) -> None:
        """Raises HotkeyTakenError, or HotkeyError where the key does not exist or grabs are impossible here."""
        ...

    def release(self, hotkey: Hotkey) -> None:
        """Gives a combination back; unknown ones are ignored."""
        ...

    def close(self) -> None:
        """Gives all back and ends the thread."""
        ...


@dataclass(frozen=True, slots=True)
class Shortcut:
    """A combination that is wished for, from a desktop that gives out the keys itself.

    Attributes:
        id: of the command.
        title: what the user reads in the desktop's settings.
    """

    id: str
    title: str
    hotkey: Hotkey


@dataclass(frozen=True, slots=True)
class PortalAnswer:
    """What a desktop has given.

    Attributes:
        keys: by shortcut id, in the desktop's words; "" where the shortcut is known but has no key.
        problem: why there is nothing; None where the desktop has answered.
    """

    keys: Mapping[str, str] = field(default_factory=dict)
    problem: UserText | None = None


class ShortcutPortal(Protocol):
    """Shortcuts from a desktop that lets no program grab keys. Callbacks run on the portal's thread."""

    def ask(
        self,
        shortcuts: Sequence[Shortcut],
        on_answer: Callable[[PortalAnswer], None],
        on_press: Callable[[str, str], None],
    ) -> None:
        """Asks once for all shortcuts; returns at once, and the user may take minutes to answer.

        Args:
            on_answer: called with the answer, and again when the keys change or the portal goes away.
            on_press: called with a shortcut's id and the token that lets a window come to the front, "" without one.
        """
        ...

    def close(self) -> None:
        """Gives all back and ends the thread."""
        ...


class Desktop(Protocol):
    """Windows and keys. Every call is quick (a few milliseconds) and may be made from the UI thread."""

    def foreground_window(self) -> Window | None:
        """The window with the keyboard focus, None where there is none or it cannot be known."""
        ...

    def full_screen_window(self) -> Window | None:
        """The window with the focus where it fills the whole screen, None where it does not or cannot be known."""
        ...

    def activate(self, window: Window) -> None:
        """Asks the window manager to focus a window; check with foreground_window."""
        ...

    def held_modifiers(self) -> frozenset[Modifier]:
        """Modifiers that are physically down."""
        ...

    def any_key_held(self) -> bool:
        """Whether any key, modifier or not, is physically down.

        Wait for False before sending keys: while the hotkey's own key is down, the grab (X11) would swallow them, and a
        held modifier would change their meaning. False where it cannot be known.
        """
        ...

    def send_copy(self) -> None:
        """Sends the copy keystroke to the focused window by key position, whatever the keyboard layout."""
        ...

    def send_paste(self) -> None:
        """Sends the paste keystroke to the focused window."""
        ...

    def owns_primary(self, window: Window) -> bool:
        """Whether the primary selection belongs to the program of this window (X11; False elsewhere)."""
        ...

    def close(self) -> None:
        """Closes the connection to the display."""
        ...


class Clipboard(Protocol):
    """The clipboard with all its formats. UI thread only."""

    def serial(self) -> int:
        """Grows with every change of the clipboard, by whomever."""
        ...

    def text(self) -> str:
        """Plain text, "" where there is none."""
        ...

    def primary_text(self) -> str:
        """Plain text of the primary selection (X11), "" elsewhere."""
        ...

    def is_secret(self) -> bool:
        """Whether its owner marked the content as a password."""
        ...

    def snapshot(self) -> Any:
        """Everything that lies on the clipboard, in every format."""
        ...

    def restore(self, snapshot: Any) -> None:
        """Puts a snapshot back."""
        ...

    def offer(self, text: str, on_fetched: Callable[[], None] | None = None) -> None:
        """Puts text on the clipboard, marked to stay out of clipboard histories.

        Args:
            on_fetched: called once another program has really fetched the text.
        """
        ...


@dataclass(frozen=True, slots=True)
class DesktopSession:
    """What this desktop can do.

    Attributes:
        kind: "x11", "wayland", "windows" or "none".
        limits: sentences for the user on what is not possible here and what to do instead.
        portal: where the desktop gives out the keys itself; `grabber` can do nothing then.
    """

    kind: str
    desktop: Desktop
    grabber: HotkeyGrabber
    limits: tuple[UserText, ...] = field(default=())
    portal: ShortcutPortal | None = None
