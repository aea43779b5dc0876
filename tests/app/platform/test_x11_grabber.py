"""X11HotkeyGrabber against a real server with real key presses."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from app.desktop.protocols import Hotkey, HotkeyError, HotkeyTakenError, Modifier
from tests.app.platform.conftest import KeyLogger
from tests.x_display import KEYCODES, XDisplay, wait_for

pytest.importorskip("xcffib", exc_type=ImportError)
from app.platform.x11 import connect
from app.platform.x11_grabber import X11HotkeyGrabber

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]

CTRL_SHIFT = frozenset({Modifier.CTRL, Modifier.SHIFT})
HOTKEY = Hotkey(CTRL_SHIFT, "E")


class Presses:
    """Counts callbacks."""

    def __init__(self) -> None:
        self.count = 0
        self.threads: set[str] = set()

    def __call__(self) -> None:
        self.count += 1
        self.threads.add(threading.current_thread().name)

    def settled(self) -> int:
        """The count once nothing more comes."""
        time.sleep(0.15)
        return self.count


@pytest.fixture
def make_grabber(display: XDisplay) -> Iterator[Callable[[], X11HotkeyGrabber]]:
    grabbers: list[X11HotkeyGrabber] = []

    def make() -> X11HotkeyGrabber:
        grabbers.append(X11HotkeyGrabber(connect(display.name)))
        return grabbers[-1]

    yield make
    for grabber in grabbers:
        grabber.close()


@pytest.fixture
def grabber(make_grabber: Callable[[], X11HotkeyGrabber]) -> X11HotkeyGrabber:
    return make_grabber()


def test_press_fires_once_and_the_focused_program_does_not_see_the_key(
    display: XDisplay, key_logger: KeyLogger, grabber: X11HotkeyGrabber
) -> None:
    presses = Presses()
    grabber.grab(HOTKEY, presses)
    display.tap("ctrl+shift+e")
    assert presses.settled() == 1
    assert presses.threads == {"hotkeys"}
    assert KEYCODES["e"] not in key_logger.seen()
    display.tap("e")
    assert presses.settled() == 1
    assert key_logger.seen() == [KEYCODES["e"]]


@pytest.mark.parametrize("caps", [False, True])
@pytest.mark.parametrize("num", [False, True])
def test_lock_keys_do_not_matter(display: XDisplay, grabber: X11HotkeyGrabber, caps: bool, num: bool) -> None:
    presses = Presses()
    grabber.grab(HOTKEY, presses)
    display.set_locks(caps=caps, num=num)
    display.tap("ctrl+shift+e")
    assert presses.settled() == 1


def test_other_modifiers_do_not_fire(display: XDisplay, key_logger: KeyLogger, grabber: X11HotkeyGrabber) -> None:
    presses = Presses()
    grabber.grab(HOTKEY, presses)
    for combination in ("ctrl+e", "shift+e", "alt+e", "ctrl+shift+alt+e", "ctrl+shift+super+e"):
        display.tap(combination)
    assert presses.settled() == 0
    assert key_logger.seen().count(KEYCODES["e"]) == 5


@pytest.mark.parametrize(
    ("hotkey", "combination"),
    [
        (Hotkey(CTRL_SHIFT, "SPACE"), "ctrl+shift+space"),
        (Hotkey(frozenset({Modifier.META}), "7"), "super+7"),
        (Hotkey(frozenset(), "F8"), "f8"),
        (Hotkey(frozenset(Modifier), "INSERT"), "ctrl+alt+shift+super+insert"),
    ],
)
def test_kinds_of_keys(display: XDisplay, grabber: X11HotkeyGrabber, hotkey: Hotkey, combination: str) -> None:
    presses = Presses()
    grabber.grab(hotkey, presses)
    display.tap(combination)
    assert presses.settled() == 1


@pytest.mark.parametrize("active", [0, 1, 2])
def test_second_layout(display: XDisplay, grabber: X11HotkeyGrabber, active: int) -> None:
    """Under Russian the key of the Latin letter counts; under French the letter is elsewhere, and the grab follows."""
    presses, other = Presses(), Presses()
    display.set_layouts("us,ru,fr")
    grabber.grab(HOTKEY, presses)
    grabber.grab(Hotkey(CTRL_SHIFT, "A"), other)
    display.set_active_layout(active)
    time.sleep(0.2)
    display.tap("ctrl+shift+e")
    display.tap("ctrl+shift+q" if active == 2 else "ctrl+shift+a")
    assert (presses.settled(), other.settled()) == (1, 1)


@pytest.mark.parametrize("layouts", ["ru", "gr", "il", "ru,us", "de"])
def test_layout_set_after_the_grab(display: XDisplay, grabber: X11HotkeyGrabber, layouts: str) -> None:
    presses = Presses()
    grabber.grab(HOTKEY, presses)
    display.set_layouts(layouts)
    time.sleep(0.2)
    display.tap("ctrl+shift+e")
    assert presses.settled() == 1


def test_remapped_key_is_followed(display: XDisplay, key_logger: KeyLogger, grabber: X11HotkeyGrabber) -> None:
    """Dvorak has the letter on another key; the old one belongs to the program again."""
    presses = Presses()
    grabber.grab(HOTKEY, presses)
    display.run("setxkbmap", "-layout", "us", "-variant", "dvorak")
    time.sleep(0.2)
    display.tap("ctrl+shift+d")
    assert presses.settled() == 1
    key_logger.seen()
    display.tap("ctrl+shift+e")
    assert presses.settled() == 1
    assert KEYCODES["e"] in key_logger.seen()


def test_conflict_is_named_and_leaves_nothing_behind(make_grabber: Callable[[], X11HotkeyGrabber]) -> None:
    first, second = make_grabber(), make_grabber()
    first.grab(HOTKEY, Presses())
    with pytest.raises(HotkeyTakenError, match=r"^Ctrl\+Shift\+E: another program uses this combination; choose"):
        second.grab(HOTKEY, Presses())
    first.release(HOTKEY)
    second.grab(HOTKEY, Presses())
    with pytest.raises(HotkeyTakenError):
        first.grab(HOTKEY, Presses())


def test_key_of_the_window_manager_is_a_conflict(grabber: X11HotkeyGrabber) -> None:
    hotkey = Hotkey(frozenset({Modifier.ALT}), "SPACE")

    def refusal() -> str:
        """The window manager lets its keys go for a moment whenever the keyboard map changes."""
        try:
            grabber.grab(hotkey, Presses())
        except HotkeyTakenError as error:
            return str(error)
        grabber.release(hotkey)
        return ""

    assert wait_for(refusal, "the conflict").startswith("Alt+Space: another program uses this combination")


def test_partly_taken_combination_is_undone(
    display: XDisplay, key_logger: KeyLogger, make_grabber: Callable[[], X11HotkeyGrabber]
) -> None:
    """Another program grabbed it without thinking of Num Lock: ours takes all variants or none."""
    connection, grabber = connect(display.name), make_grabber()
    root = connection.get_setup().roots[0].root
    connection.core.GrabKeyChecked(False, root, 1 | 4, KEYCODES["e"], 1, 1).check()
    with pytest.raises(HotkeyTakenError):
        grabber.grab(HOTKEY, Presses())
    display.set_locks(num=True)
    display.tap("ctrl+shift+e")
    assert KEYCODES["e"] in key_logger.seen()
    connection.disconnect()


def test_unknown_key(grabber: X11HotkeyGrabber) -> None:
    with pytest.raises(HotkeyError, match=r"^Ctrl\+Shift\+F35: this keyboard has no key F35; choose another one"):
        grabber.grab(Hotkey(CTRL_SHIFT, "F35"), Presses())


def test_two_names_of_one_key(grabber: X11HotkeyGrabber) -> None:
    grabber.grab(Hotkey(CTRL_SHIFT, "RETURN"), Presses())
    with pytest.raises(HotkeyTakenError, match=r"same key as Ctrl\+Shift\+Return"):
        grabber.grab(Hotkey(CTRL_SHIFT, "ENTER"), Presses())


def test_ten_presses_in_a_second(display: XDisplay, grabber: X11HotkeyGrabber) -> None:
    presses = Presses()
    grabber.grab(HOTKEY, presses)
    for _ in range(10):
        display.tap("ctrl+shift+e", hold_s=0.03)
        time.sleep(0.03)
    assert presses.settled() == 10


def test_held_key_fires_once(display: XDisplay, key_logger: KeyLogger, grabber: X11HotkeyGrabber) -> None:
    """Autorepeat starts after 0.66 s here; the program sees none of it, also when Ctrl and Shift go up first."""
    presses = Presses()
    grabber.grab(HOTKEY, presses)
    display.press("ctrl", "shift", "e")
    time.sleep(1.0)
    display.release("shift", "ctrl")
    time.sleep(0.3)
    display.release("e")
    assert presses.settled() == 1
    assert KEYCODES["e"] not in key_logger.seen()
    display.tap("ctrl+shift+e")
    assert presses.settled() == 2


def test_release_gives_the_key_back(display: XDisplay, key_logger: KeyLogger, grabber: X11HotkeyGrabber) -> None:
    presses = Presses()
    grabber.grab(HOTKEY, presses)
    grabber.release(HOTKEY)
    grabber.release(HOTKEY)
    display.tap("ctrl+shift+e")
    assert presses.settled() == 0
    assert KEYCODES["e"] in key_logger.seen()


def test_grabbing_again_replaces_the_callback(display: XDisplay, grabber: X11HotkeyGrabber) -> None:
    old, new = Presses(), Presses()
    grabber.grab(HOTKEY, old)
    grabber.grab(HOTKEY, new)
    display.tap("ctrl+shift+e")
    assert (old.settled(), new.count) == (0, 1)


def test_callback_may_grab_and_release(display: XDisplay, grabber: X11HotkeyGrabber) -> None:
    presses = Presses()

    def swap() -> None:
        grabber.release(HOTKEY)
        grabber.grab(Hotkey(CTRL_SHIFT, "D"), presses)

    grabber.grab(HOTKEY, swap)
    display.tap("ctrl+shift+e")
    time.sleep(0.1)
    display.tap("ctrl+shift+d")
    assert presses.settled() == 1


def test_close_ends_the_thread_and_frees_the_keys(make_grabber: Callable[[], X11HotkeyGrabber]) -> None:
    first, second = make_grabber(), make_grabber()
    first.grab(HOTKEY, Presses())
    threads = sum(thread.name == "hotkeys" for thread in threading.enumerate())
    first.close()
    first.close()
    assert sum(thread.name == "hotkeys" for thread in threading.enumerate()) == threads - 1
    second.grab(HOTKEY, Presses())
    with pytest.raises(HotkeyError, match="the display does not answer"):
        first.grab(HOTKEY, Presses())
    first.release(HOTKEY)


def test_lost_display(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The server dies: the thread ends, and grabbing says so."""
    from tests.x_display import x_display

    with x_display(tmp_path_factory.mktemp("dying")) as dying:
        grabber = X11HotkeyGrabber(connect(dying.name))
        grabber.grab(HOTKEY, Presses())
    wait_for(lambda: not grabber._thread.is_alive(), "the end of the thread")
    with pytest.raises(HotkeyError, match="the display does not answer"):
        grabber.grab(HOTKEY, Presses())
    grabber.close()
