"""A display for the tests of app/platform, and a program on it that notes the keys it sees."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.x_display import XDisplay, wait_for, x_display


@pytest.fixture(scope="module")
def module_display(tmp_path_factory: pytest.TempPathFactory) -> Iterator[XDisplay]:
    """One display with a window manager for the tests of a file."""
    with x_display(tmp_path_factory.mktemp("display")) as display:
        display.start_window_manager()
        yield display


@pytest.fixture
def display(module_display: XDisplay) -> Iterator[XDisplay]:
    """The display with a US keyboard, no lock and no key down."""
    module_display.set_locks()
    module_display.set_layouts("us")
    yield module_display
    module_display.set_locks()
    module_display.set_layouts("us")


class KeyLogger:
    """A top-level window that notes the keycodes pressed while it has the focus."""

    def __init__(self, display: XDisplay, window_class: str) -> None:
        import xcffib
        import xcffib.xproto

        self.display = display
        self.connection: Any = xcffib.connect(display=display.name)
        core, screen = self.connection.core, self.connection.get_setup().roots[0]
        self.window_id: int = self.connection.generate_id()
        mask = xcffib.xproto.EventMask.KeyPress
        core.CreateWindow(
            screen.root_depth,
            self.window_id,
            screen.root,
            50,
            50,
            300,
            200,
            0,
            1,
            0,
            xcffib.xproto.CW.EventMask,
            [mask],
        )
        name = f"{window_class.lower()}\0{window_class}\0"
        core.ChangeProperty(
            0, self.window_id, xcffib.xproto.Atom.WM_CLASS, xcffib.xproto.Atom.STRING, 8, len(name), name
        )
        core.MapWindow(self.window_id)
        core.GetInputFocus().reply()
        wait_for(lambda: self.window_id == display.active_window() == display.focus(), "the focus")

    def seen(self, settle_s: float = 0.1) -> list[int]:
        """Keycodes pressed since the last call."""
        import xcffib.xproto

        time.sleep(settle_s)
        self.connection.core.GetInputFocus().reply()
        keycodes = []
        while (event := self.connection.poll_for_event()) is not None:
            if isinstance(event, xcffib.xproto.KeyPressEvent):
                keycodes.append(event.detail)
        return keycodes

    def own_primary(self) -> None:
        """Takes the primary selection, as a program does whose text is selected."""
        core = self.connection.core
        core.SetSelectionOwner(self.window_id, 1, 0)  # PRIMARY is the predefined atom 1
        core.GetInputFocus().reply()

    def close(self) -> None:
        """Ends the program; the next one may get the same window id."""
        self.connection.disconnect()
        wait_for(lambda: self.window_id != self.display.focus(), "the window's end")


@pytest.fixture
def key_logger(display: XDisplay) -> Iterator[KeyLogger]:
    """A program with the focus."""
    logger = KeyLogger(display, "Editor")
    yield logger
    logger.close()
