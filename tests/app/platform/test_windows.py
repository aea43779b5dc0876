"""WindowsDesktop over a model of user32, and the layout of its structures."""

from __future__ import annotations

import ctypes
import logging
import sys

import pytest

from app.desktop.protocols import Modifier, Window
from app.platform import windows_calls as win
from app.platform.windows import WindowsDesktop, open_windows
from tests.app.platform.fake_windows import FakeWindow, FakeWindows

UP, EXTENDED = win.KEYEVENTF_KEYUP, win.KEYEVENTF_EXTENDEDKEY
COPY = [
    (win.VK_CONTROL, 0x1D, 0),
    (win.VK_INSERT, 0x52, EXTENDED),
    (win.VK_INSERT, 0x52, EXTENDED | UP),
    (win.VK_CONTROL, 0x1D, UP),
]
PASTE = [(win.VK_CONTROL, 0x1D, 0), (ord("V"), 0x2F, 0), (ord("V"), 0x2F, UP), (win.VK_CONTROL, 0x1D, UP)]
TERMINAL_PASTE = [
    (win.VK_SHIFT, 0x2A, 0),
    (win.VK_INSERT, 0x52, EXTENDED),
    (win.VK_INSERT, 0x52, EXTENDED | UP),
    (win.VK_SHIFT, 0x2A, UP),
]


@pytest.fixture
def system() -> FakeWindows:
    windows = {
        1: FakeWindow("Notepad", "Notepad.exe"),
        2: FakeWindow("CASCADIA_HOSTING_WINDOW_CLASS", "WindowsTerminal.exe", process_id=200),
        3: FakeWindow("ConsoleWindowClass", "cmd.exe", process_id=300, elevated=True),
        4: FakeWindow("Window Class", "alacritty.exe", process_id=400, minimized=True),
    }
    return FakeWindows(windows, foreground=1)


@pytest.fixture
def desktop(system: FakeWindows) -> WindowsDesktop:
    return WindowsDesktop(system.calls())


@pytest.mark.skipif(ctypes.sizeof(ctypes.c_void_p) != 8, reason="sizes of 64-bit Windows")
def test_structures_have_the_layout_of_64_bit_windows() -> None:
    assert ctypes.sizeof(win.Message) == 48
    assert win.Message.wParam.offset == 16
    assert win.Message.pt.offset == 36
    assert ctypes.sizeof(win.Input) == 40
    assert win.Input.u.offset == 8
    assert ctypes.sizeof(win.KeyboardInput) == 24


@pytest.mark.parametrize(
    ("handle", "window"),
    [
        (1, Window(1, "notepad.exe")),
        (2, Window(2, "windowsterminal.exe", is_terminal=True)),
        (3, Window(3, "consolewindowclass", is_terminal=True)),
        (4, Window(4, "alacritty.exe", is_terminal=True)),
        (0, None),
    ],
)
def test_foreground_window(system: FakeWindows, desktop: WindowsDesktop, handle: int, window: Window | None) -> None:
    system.foreground = handle
    assert desktop.foreground_window() == window
    assert system.open_handles == 0


def test_activate(system: FakeWindows, desktop: WindowsDesktop) -> None:
    desktop.activate(Window(4))
    assert system.foreground == 4
    assert not system.windows[4].minimized
    desktop.activate(Window(99))
    assert system.foreground == 4


def test_activate_when_windows_hesitates(system: FakeWindows, desktop: WindowsDesktop) -> None:
    system.may_take_foreground = False
    desktop.activate(Window(2))
    assert system.foreground == 2
    assert system.attached == set()


def test_held_keys(system: FakeWindows, desktop: WindowsDesktop) -> None:
    assert desktop.held_modifiers() == frozenset()
    assert desktop.any_key_held() is False
    system.keys_down = {win.VK_CONTROL, win.VK_RWIN}
    assert desktop.held_modifiers() == {Modifier.CTRL, Modifier.META}
    system.keys_down = {ord("E")}
    assert desktop.held_modifiers() == frozenset()
    assert desktop.any_key_held() is True
    # A left mouse button, and a key that was pressed and let go, are not held.
    system.keys_down, system.pressed_since_asked = {0x01}, {win.VK_SHIFT, ord("E")}
    assert desktop.any_key_held() is False


def test_keystrokes(system: FakeWindows, desktop: WindowsDesktop) -> None:
    desktop.send_copy()
    assert system.sent == COPY
    system.sent.clear()
    desktop.send_paste()
    assert system.sent == PASTE
    assert system.keys_down == set()


@pytest.mark.parametrize("handle", [2, 3, 4])
def test_terminals_get_no_copy_keystroke(system: FakeWindows, desktop: WindowsDesktop, handle: int) -> None:
    system.foreground = handle
    desktop.send_copy()
    assert system.sent == []
    desktop.send_paste()
    assert system.sent == TERMINAL_PASTE


def test_blocked_input_is_logged(
    system: FakeWindows, desktop: WindowsDesktop, caplog: pytest.LogCaptureFixture
) -> None:
    system.input_blocked = True
    with caplog.at_level(logging.WARNING):
        desktop.send_copy()
    assert "Windows took 0 of 4 key events" in caplog.text


def test_session(system: FakeWindows) -> None:
    session = open_windows(system.calls())
    assert session.kind == "windows"
    assert session.limits == ()
    assert session.desktop.owns_primary(Window(1)) is False
    session.desktop.close()
    session.grabber.close()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has it")
def test_load_elsewhere() -> None:
    with pytest.raises(OSError, match="Windows alone"):
        win.load()


@pytest.mark.parametrize(("state", "fills"), [(5, False), (2, True), (3, True), (4, False), (1, False), (-1, False)])
def test_full_screen_is_what_the_shell_says(state: int, fills: bool) -> None:
    windows = FakeWindows({1: FakeWindow("unreal", "C:\\Games\\Game.exe")}, foreground=1, notification_state=state)
    desktop = WindowsDesktop(windows.calls())
    assert desktop.full_screen_window() == (Window(1, "game.exe") if fills else None)
