"""A display of one's own for tests: Xvfb on a free number, a window manager, keys pressed like on a real keyboard."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

START_TIMEOUT_S = 15.0
# A loaded machine of two cores needs this at times; nothing waits longer than it must.
WAIT_TIMEOUT_S = 10.0
_KEY_PRESS, _KEY_RELEASE, _MOTION, _BUTTON_PRESS, _BUTTON_RELEASE = 2, 3, 6, 4, 5

# Keycodes of Xvfb's keyboard (evdev), named by what a US keyboard prints on the key: positions, whatever the layout.
KEYCODES: dict[str, int] = {
    "esc": 9, "tab": 23, "return": 36, "ctrl": 37, "shift": 50, "alt": 64, "space": 65, "capslock": 66, "numlock": 77,
    "home": 110, "end": 115, "insert": 118, "delete": 119, "super": 133, "left": 113, "right": 114,
    **{key: 10 + i for i, key in enumerate("1234567890")},
    **{key: 24 + i for i, key in enumerate("qwertyuiop")},
    **{key: 38 + i for i, key in enumerate("asdfghjkl")},
    **{key: 52 + i for i, key in enumerate("zxcvbnm")},
    **{f"f{i}": 66 + i for i in range(1, 11)},
}  # fmt: skip


def need(*programs: str) -> None:
    """Skips the test where a program is missing."""
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


def wait_for(condition: Callable[[], Any], what: str | Callable[[], str], timeout_s: float = WAIT_TIMEOUT_S) -> Any:
    """Asks again and again until the answer is true; fails the test after the timeout."""
    deadline = time.monotonic() + timeout_s
    while not (answer := condition()):
        if time.monotonic() > deadline:
            pytest.fail(f"waited {timeout_s:.0f} s in vain for {what if isinstance(what, str) else what()}")
        time.sleep(0.005)
    return answer


def end(process: subprocess.Popen[Any], grace_s: float = 3.0) -> None:
    """Ends a process and reaps it."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(grace_s)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait(grace_s)
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()


class XDisplay:
    """A running display.

    Attributes:
        name: for DISPLAY, e.g. ":7".
        environment: for programs on this display.
    """

    def __init__(self, name: str) -> None:
        # Not at import: there is no libxcb on every system that collects these tests.
        import xcffib
        import xcffib.xkb
        import xcffib.xtest

        self.name = name
        self.environment = _environment(name)
        self._connection: Any = xcffib.connect(display=name)
        self._root: int = self._connection.get_setup().roots[0].root
        self._xtest: Any = self._connection(xcffib.xtest.key)
        self._xkb: Any = self._connection(xcffib.xkb.key)
        self._xkb.UseExtension(1, 0).reply()
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self, *command: str, **environment: str) -> subprocess.Popen[bytes]:
        """Starts a program on this display; it is ended with the display at the latest."""
        process = subprocess.Popen(
            command,
            env=self.environment | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._processes.append(process)
        return process

    def run(self, *command: str) -> str:
        """Runs a program on this display to its end and returns what it wrote."""
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=20, check=False)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout.strip()

    def close(self) -> None:
        """Ends what was started here."""
        for process in reversed(self._processes):
            end(process)
        self._connection.disconnect()

    def start_window_manager(self) -> None:
        """Starts openbox and waits until it manages the display."""
        need("openbox")
        self.start("openbox", "--sm-disable")
        # The last thing that it sets up; windows that are mapped before may be forgotten.
        wait_for(lambda: self.root_property("_NET_CLIENT_LIST") is not None, "the window manager")

    def root_property(self, name: str) -> tuple[int, ...] | None:
        """A property of the root window as 32-bit numbers, None where it is not set."""
        core = self._connection.core
        atom = core.InternAtom(False, len(name), name).reply().atom
        reply = core.GetProperty(False, self._root, atom, 0, 0, 1024).reply()
        value = bytes(reply.value.buf())
        return (
            tuple(int.from_bytes(value[i : i + 4], "little") for i in range(0, len(value), 4)) if reply.type else None
        )

    def active_window(self) -> int:
        """The window that the window manager calls active, 0 where there is none."""
        return (self.root_property("_NET_ACTIVE_WINDOW") or (0,))[0]

    def active_class(self) -> str:
        """The program of the active window, "" where there is none."""
        import xcffib.xproto

        try:
            reply = self._connection.core.GetProperty(False, self.active_window(), 67, 0, 0, 64).reply()  # WM_CLASS
        except xcffib.xproto.WindowError:
            return ""
        return bytes(reply.value.buf()).decode().strip("\0").rpartition("\0")[2]

    def geometry(self, window: int) -> tuple[int, int, int, int]:
        """Left, top, width and height of a window on the screen."""
        size = self._connection.core.GetGeometry(window).reply()
        place = self._connection.core.TranslateCoordinates(window, self._root, 0, 0).reply()
        return place.dst_x, place.dst_y, size.width, size.height

    def selection_owner(self, name: str) -> int:
        """The window that owns a selection, "PRIMARY" for example, 0 where none does."""
        core = self._connection.core
        atom = core.InternAtom(False, len(name), name).reply().atom
        return int(core.GetSelectionOwner(atom).reply().owner)

    def tray_owner(self) -> int:
        """The window of the tray, 0 where there is none."""
        return self.selection_owner("_NET_SYSTEM_TRAY_S0")

    def tray_icons(self) -> int:
        """How many icons of other programs are shown in the tray."""
        return self._icons_below(self._root, ~self._connection.get_setup().resource_id_mask, self.tray_owner())

    def _icons_below(self, window: int, client_mask: int, tray: int) -> int:
        import xcffib
        import xcffib.xproto

        count, viewable = 0, xcffib.xproto.MapState.Viewable
        try:
            for child in self._connection.core.QueryTree(window).reply().children:
                if window & client_mask == tray & client_mask != child & client_mask:
                    count += self._connection.core.GetWindowAttributes(child).reply().map_state == viewable
                else:
                    count += self._icons_below(child, client_mask, tray)
        except xcffib.XcffibException:  # a window that has just gone
            return 0
        return count

    def time_to_next_window(self, combination: str, hold_s: float = 0.03) -> float:
        """Milliseconds from the press of a combination's last key until the next window is on the screen.

        Args:
            hold_s: how long the keys stay down.
        """
        import xcffib
        import xcffib.xproto

        watcher: Any = xcffib.connect(display=self.name)
        attributes, mask = xcffib.xproto.CW.EventMask, xcffib.xproto.EventMask.SubstructureNotify
        watcher.core.ChangeWindowAttributesChecked(self._root, attributes, [mask]).check()
        *modifiers, key = combination.split("+")
        self.press(*modifiers)
        begin = time.monotonic()
        self.press(key)
        deadline = begin + WAIT_TIMEOUT_S
        while not isinstance(watcher.poll_for_event(), xcffib.xproto.MapNotifyEvent):
            if time.monotonic() > deadline:
                pytest.fail("no window came")
            if time.monotonic() > begin + hold_s and modifiers:
                self.release(key, *reversed(modifiers))
                modifiers = []
            time.sleep(0.0005)
        end = time.monotonic()
        self.release(key, *reversed(modifiers))
        watcher.disconnect()
        return (end - begin) * 1000

    def focus(self) -> int:
        """The window that gets the keys; it may follow the active window with a delay."""
        return int(self._connection.core.GetInputFocus().reply().focus)

    def _fake(self, kind: int, detail: int, x: int = 0, y: int = 0) -> None:
        self._xtest.FakeInput(kind, detail, 0, self._root if kind == _MOTION else 0, x, y, 0)

    def _round_trip(self) -> None:
        """Returns when the server has worked through all that was sent."""
        self._connection.core.GetInputFocus().reply()

    def press(self, *keys: str) -> None:
        """Puts keys down, in order."""
        for key in keys:
            self._fake(_KEY_PRESS, KEYCODES[key])
        self._round_trip()

    def release(self, *keys: str) -> None:
        """Lets keys up, in order."""
        for key in keys:
            self._fake(_KEY_RELEASE, KEYCODES[key])
        self._round_trip()

    def tap(self, combination: str, hold_s: float = 0.02) -> None:
        """Presses "ctrl+shift+e" as a person does: down in order, a moment, up in reverse."""
        keys = combination.split("+")
        self.press(*keys)
        time.sleep(hold_s)
        self.release(*reversed(keys))

    def type(self, keys: str) -> None:
        """Taps a-z, 0-9 and spaces one after the other."""
        for key in keys:
            self.tap("space" if key == " " else key, hold_s=0.0)

    def click(self, x: int, y: int) -> None:
        """Clicks with the left button."""
        self._fake(_MOTION, 0, x, y)
        self._fake(_BUTTON_PRESS, 1)
        self._fake(_BUTTON_RELEASE, 1)
        self._round_trip()

    def move_mouse(self, x: int, y: int) -> None:
        """Puts the mouse somewhere."""
        self._fake(_MOTION, 0, x, y)
        self._round_trip()

    def drag(self, start: tuple[int, int], end: tuple[int, int], steps: int = 10) -> None:
        """Pulls with the left button down."""
        self.move_mouse(*start)
        self._fake(_BUTTON_PRESS, 1)
        self._round_trip()
        for step in range(1, steps + 1):
            time.sleep(0.02)
            self.move_mouse(*(a + (b - a) * step // steps for a, b in zip(start, end, strict=True)))
        time.sleep(0.05)
        self._fake(_BUTTON_RELEASE, 1)
        self._round_trip()

    def set_layouts(self, layouts: str, active: int = 0) -> None:
        """Sets keyboard layouts, e.g. "us,ru", and makes one of them active, counted from 0."""
        need("setxkbmap")
        self.run("setxkbmap", "-layout", layouts)
        self.set_active_layout(active)

    def set_active_layout(self, active: int) -> None:
        """Switches to one of the layouts, as the user's layout key does."""
        self._xkb.LatchLockState(0x100, 0, 0, True, active, 0, 0, 0)
        self._round_trip()

    def set_locks(self, caps: bool = False, num: bool = False) -> None:
        """Sets Caps Lock and Num Lock."""
        self._xkb.LatchLockState(0x100, 0x12, (0x02 if caps else 0) | (0x10 if num else 0), False, 0, 0, 0, 0)
        self._round_trip()


def _environment(display: str) -> Mapping[str, str]:
    dropped = {"WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "SESSION_MANAGER", "PYTEST_CURRENT_TEST"}
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return kept | {"DISPLAY": display, "XDG_SESSION_TYPE": "x11", "QT_QPA_PLATFORM": "xcb", "LC_ALL": "C.UTF-8"}


@contextmanager
def x_display(folder: Path, size: str = "1280x800x24") -> Iterator[XDisplay]:
    """Starts Xvfb on the first free number and ends it; skips the test where Xvfb is missing.

    Args:
        folder: for the server's log.
    """
    need("Xvfb")
    read_end, write_end = os.pipe()
    # Without -noreset the server forgets layouts and locks whenever its last client leaves.
    command = ["Xvfb", "-displayfd", str(write_end), "-screen", "0", size, "-nolisten", "tcp", "-noreset"]
    with (folder / "xvfb.log").open("wb") as log:
        server = subprocess.Popen(command, pass_fds=(write_end,), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    os.close(write_end)
    try:
        ready, _, _ = select.select([read_end], [], [], START_TIMEOUT_S)
        number = os.read(read_end, 32).decode().strip() if ready else ""
        assert number, f"Xvfb did not start: {(folder / 'xvfb.log').read_text()}"
        display = XDisplay(f":{number}")
        try:
            yield display
        finally:
            display.close()
    finally:
        os.close(read_end)
        end(server)
