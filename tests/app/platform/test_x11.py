"""X11Desktop against a real server, a window manager and programs on it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.desktop.protocols import Modifier, Window
from tests.app.platform.conftest import KeyLogger
from tests.x_display import KEYCODES, XDisplay, need, wait_for, x_display

pytest.importorskip("xcffib", exc_type=ImportError)
from app.platform.x11 import X11Desktop, connect

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]

CTRL, SHIFT, V, C, INSERT = (KEYCODES[key] for key in ("ctrl", "shift", "v", "c", "insert"))


@pytest.fixture
def desktop(display: XDisplay) -> Iterator[X11Desktop]:
    desktop = X11Desktop(connect(display.name))
    yield desktop
    desktop.close()


def test_foreground_window(display: XDisplay, desktop: X11Desktop, key_logger: KeyLogger) -> None:
    assert desktop.foreground_window() == Window(key_logger.window_id, "editor", is_terminal=False)


def test_no_window(desktop: X11Desktop) -> None:
    assert desktop.foreground_window() is None


@pytest.mark.parametrize(
    ("window_class", "program"), [("XTerm", "xterm"), ("Gnome-terminal", "gnome-terminal"), ("konsole", "konsole")]
)
def test_terminal_classes(display: XDisplay, desktop: X11Desktop, window_class: str, program: str) -> None:
    logger = KeyLogger(display, window_class)
    assert desktop.foreground_window() == Window(logger.window_id, program, is_terminal=True)
    logger.close()


def test_real_terminal_with_another_title(display: XDisplay, desktop: X11Desktop) -> None:
    need("xterm")
    terminal = display.start("xterm", "-T", "notes", "-e", "sleep", "60")
    wait_for(lambda: (window := desktop.foreground_window()) and window.is_terminal, "the terminal")
    terminal.terminate()
    terminal.wait()
    wait_for(lambda: desktop.foreground_window() is None, "the terminal's end")


def test_activate(display: XDisplay, desktop: X11Desktop, key_logger: KeyLogger) -> None:
    second = KeyLogger(display, "Browser")
    desktop.activate(Window(key_logger.window_id))
    wait_for(lambda: display.focus() == key_logger.window_id, "the focus")
    desktop.activate(Window(second.window_id))
    wait_for(lambda: display.focus() == second.window_id, "the focus")
    second.close()


def test_vanished_window(display: XDisplay, desktop: X11Desktop) -> None:
    logger = KeyLogger(display, "Editor")
    window = desktop.foreground_window()
    assert window is not None
    logger.close()
    desktop.activate(window)
    assert desktop.owns_primary(window) is False
    assert desktop.foreground_window() is None


@pytest.mark.parametrize(
    ("keys", "held"),
    [
        ((), frozenset()),
        (("ctrl", "shift"), frozenset({Modifier.CTRL, Modifier.SHIFT})),
        (("alt",), frozenset({Modifier.ALT})),
        (("super", "f9"), frozenset({Modifier.META})),
        (("f9",), frozenset()),
    ],
)
def test_held_keys(display: XDisplay, desktop: X11Desktop, keys: tuple[str, ...], held: frozenset[Modifier]) -> None:
    display.set_locks(caps=True, num=True)
    display.press(*keys)
    try:
        assert desktop.held_modifiers() == held
        assert desktop.any_key_held() == bool(keys)
    finally:
        display.release(*keys)
    assert desktop.held_modifiers() == frozenset()
    assert desktop.any_key_held() is False


@pytest.mark.parametrize(("layouts", "active"), [("us", 0), ("us,ru", 1), ("gr", 0)])
def test_copy_and_paste_keystrokes(
    display: XDisplay, desktop: X11Desktop, key_logger: KeyLogger, layouts: str, active: int
) -> None:
    display.set_layouts(layouts, active)
    desktop.send_copy()
    assert key_logger.seen() == [CTRL, INSERT]
    desktop.send_paste()
    assert key_logger.seen() == [CTRL, V]
    assert desktop.any_key_held() is False


def test_paste_follows_the_letter(display: XDisplay, desktop: X11Desktop, key_logger: KeyLogger) -> None:
    """Dvorak has V where a US keyboard has the period."""
    display.run("setxkbmap", "-layout", "us", "-variant", "dvorak")
    desktop.send_paste()
    assert key_logger.seen() == [CTRL, 60]


@pytest.mark.parametrize(("window_class", "pasted"), [("XTerm", []), ("konsole", [CTRL, SHIFT, V])])
def test_terminals_get_no_copy_keystroke(
    display: XDisplay, desktop: X11Desktop, window_class: str, pasted: list[int]
) -> None:
    logger = KeyLogger(display, window_class)
    desktop.send_copy()
    assert logger.seen() == []
    desktop.send_paste()
    assert logger.seen() == pasted
    logger.close()


def test_primary_belongs_to_the_program(display: XDisplay, desktop: X11Desktop, key_logger: KeyLogger) -> None:
    window = desktop.foreground_window()
    assert window is not None
    assert desktop.owns_primary(window) is False
    key_logger.own_primary()
    assert desktop.owns_primary(window) is True
    other = KeyLogger(display, "Browser")
    # Both windows belong to this process, so they are one program; a window of another process is not.
    assert desktop.owns_primary(Window(other.window_id)) is True
    other.close()
    need("xterm")
    terminal = display.start("xterm", "-e", "sleep", "60")
    found = wait_for(lambda: (w := desktop.foreground_window()) and w.is_terminal and w, "the terminal")
    assert desktop.owns_primary(found) is False
    terminal.terminate()
    terminal.wait()


def test_no_window_manager(tmp_path: Path) -> None:
    """Without one the input focus tells the window, and is set directly."""
    with x_display(tmp_path) as display:
        desktop = X11Desktop(connect(display.name))
        assert desktop.foreground_window() is None
        terminal = display.start("xterm", "-e", "sleep", "60")
        window_id = int(wait_for(lambda: _search(display), "the terminal's window"))
        desktop.activate(Window(window_id))
        wait_for(lambda: desktop.foreground_window() == Window(window_id, "xterm", is_terminal=True), "the focus")
        terminal.terminate()
        terminal.wait()
        desktop.close()


def _search(display: XDisplay) -> str:
    need("xdotool", "xterm")
    import subprocess

    command = ["xdotool", "search", "--onlyvisible", "--class", "xterm"]
    done = subprocess.run(command, env=display.environment, capture_output=True, text=True, timeout=20, check=False)
    return done.stdout.split()[0] if done.stdout else ""


def test_lost_display(tmp_path: Path) -> None:
    with x_display(tmp_path) as display:
        desktop = X11Desktop(connect(display.name))
    assert desktop.foreground_window() is None
    assert desktop.held_modifiers() == frozenset()
    assert desktop.any_key_held() is False
    assert desktop.owns_primary(Window(1)) is False
    desktop.activate(Window(1))
    desktop.send_copy()
    desktop.send_paste()
    desktop.close()


def test_no_display() -> None:
    with pytest.raises(ConnectionError, match=":4711"):
        connect(":4711")


def test_calls_are_quick(display: XDisplay, desktop: X11Desktop, key_logger: KeyLogger) -> None:
    """They are made from the UI thread, which may not stand still for 50 ms."""
    window = Window(key_logger.window_id)
    calls = (
        desktop.foreground_window,
        desktop.held_modifiers,
        desktop.any_key_held,
        desktop.send_copy,
        desktop.send_paste,
        lambda: desktop.owns_primary(window),
    )
    for call in calls:
        durations = []
        for _ in range(5):
            start = time.perf_counter()
            call()
            durations.append(time.perf_counter() - start)
        assert min(durations) < 0.02


def set_full_screen(logger: KeyLogger, is_on: bool) -> None:
    """Asks the window manager, as a player does when its key is pressed."""
    import xcffib
    import xcffib.xproto

    core = logger.connection.core
    state, full = (
        core.InternAtom(False, len(name), name).reply().atom for name in ("_NET_WM_STATE", "_NET_WM_STATE_FULLSCREEN")
    )
    data = xcffib.xproto.ClientMessageData.synthetic([int(is_on), full, 0, 1, 0], "IIIII")
    event = xcffib.xproto.ClientMessageEvent.synthetic(32, logger.window_id, state, data)
    mask = xcffib.xproto.EventMask.SubstructureRedirect | xcffib.xproto.EventMask.SubstructureNotify
    core.SendEventChecked(False, logger.connection.get_setup().roots[0].root, mask, event.pack()).check()


def test_full_screen(desktop: X11Desktop, key_logger: KeyLogger) -> None:
    assert desktop.full_screen_window() is None
    set_full_screen(key_logger, True)
    window = wait_for(desktop.full_screen_window, "the full screen")
    assert window == Window(key_logger.window_id, "editor")
    set_full_screen(key_logger, False)
    wait_for(lambda: desktop.full_screen_window() is None, "the end of the full screen")
