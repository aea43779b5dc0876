"""A desktop and a clipboard without a display: what tests and trials of capture, paste-back and windows stand on."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from app.desktop.protocols import Modifier, Window

EDITOR = Window(1, "editor")
TEXT = "text/plain"
SECRET = "x-password-hint"


class FakeClipboard:
    """`app.desktop.protocols.Clipboard` in memory.

    Attributes:
        formats: what lies there, by format.
        primary: text of the primary selection.
        restores: every snapshot that was put back.
    """

    def __init__(self, formats: Mapping[str, bytes] | None = None) -> None:
        self.formats: dict[str, bytes] = dict(formats or {})
        self.primary = ""
        self.restores: list[dict[str, bytes]] = []
        self._serial = 0
        self._on_fetched: Callable[[], None] | None = None

    def put(self, formats: Mapping[str, bytes]) -> None:
        """Another program copies something."""
        self.formats = dict(formats)
        self._on_fetched = None
        self._serial += 1

    def put_text(self, text: str) -> None:
        """Another program copies text."""
        self.put({TEXT: text.encode()})

    def fetch(self) -> str:
        """Another program pastes."""
        if self._on_fetched is not None:
            self._on_fetched()
        return self.text()

    def serial(self) -> int:
        """Grows with every change."""
        return self._serial

    def text(self) -> str:
        """Plain text, "" where there is none."""
        return self.formats.get(TEXT, b"").decode()

    def primary_text(self) -> str:
        """Plain text of the primary selection."""
        return self.primary

    def is_secret(self) -> bool:
        """Whether the content carries the mark of a password."""
        return SECRET in self.formats

    def snapshot(self) -> dict[str, bytes]:
        """A copy of all formats."""
        return dict(self.formats)

    def restore(self, snapshot: dict[str, bytes]) -> None:
        """Puts a snapshot back."""
        self.restores.append(snapshot)
        self.put(snapshot)

    def offer(self, text: str, on_fetched: Callable[[], None] | None = None) -> None:
        """Puts our text there."""
        self.put_text(text)
        self._on_fetched = on_fetched


class FakeDesktop:
    """The `Desktop` protocol in memory: the test moves the focus, holds keys and decides what a keystroke does.

    Attributes:
        window: that has the focus.
        key_held: whether any key is down.
        modifiers: that are down; they count as held keys.
        primary_owner: the window whose program owns the primary selection.
        sent: "copy" and "paste", in order.
        on_copy: what the focused program does with a copy keystroke.
        on_paste: what it does with a paste keystroke.
        activated: windows that were asked to the front.
        obeys_activate: whether `activate` moves the focus.
        is_full_screen: whether the focused window fills the screen.
    """

    def __init__(self, window: Window | None = EDITOR) -> None:
        self.window = window
        self.key_held = False
        self.modifiers: frozenset[Modifier] = frozenset()
        self.primary_owner: Window | None = None
        self.sent: list[str] = []
        self.on_copy: Callable[[], None] = _nothing
        self.on_paste: Callable[[], None] = _nothing
        self.activated: list[Window] = []
        self.obeys_activate = True
        self.is_full_screen = False
        self.is_closed = False

    def foreground_window(self) -> Window | None:
        """The window with the focus."""
        return self.window

    def full_screen_window(self) -> Window | None:
        """The window with the focus where `is_full_screen`."""
        return self.window if self.is_full_screen else None

    def activate(self, window: Window) -> None:
        """Moves the focus where `obeys_activate`."""
        self.activated.append(window)
        if self.obeys_activate:
            self.window = window

    def held_modifiers(self) -> frozenset[Modifier]:
        """Modifiers that are down."""
        return self.modifiers

    def any_key_held(self) -> bool:
        """Whether any key is down."""
        return self.key_held or bool(self.modifiers)

    def send_copy(self) -> None:
        """The focused program copies, or does not."""
        self.sent.append("copy")
        self.on_copy()

    def send_paste(self) -> None:
        """The focused program pastes, or does not."""
        self.sent.append("paste")
        self.on_paste()

    def owns_primary(self, window: Window) -> bool:
        """Whether the test made the window's program its owner."""
        return self.primary_owner == window

    def close(self) -> None:
        """Marks it closed."""
        self.is_closed = True


def _nothing() -> None:
    """The program ignores the keystroke."""
