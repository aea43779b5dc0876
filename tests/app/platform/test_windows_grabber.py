"""WindowsHotkeyGrabber over a model of user32."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from app.desktop import hotkeys
from app.desktop.protocols import Hotkey, HotkeyError, HotkeyTakenError, Modifier
from app.platform import windows_calls as win
from app.platform.windows_calls import virtual_key
from app.platform.windows_grabber import WindowsHotkeyGrabber
from tests.app.platform.fake_windows import FakeWindows
from tests.x_display import wait_for

CTRL_SHIFT = frozenset({Modifier.CTRL, Modifier.SHIFT})
HOTKEY = Hotkey(CTRL_SHIFT, "1")
PLACE = (win.MOD_CONTROL | win.MOD_SHIFT, ord("1"))


@pytest.fixture
def system() -> FakeWindows:
    return FakeWindows()


@pytest.fixture
def grabber(system: FakeWindows) -> Iterator[WindowsHotkeyGrabber]:
    grabber = WindowsHotkeyGrabber(system.calls())
    yield grabber
    grabber.close()


def test_press_fires_on_the_grabbers_thread(system: FakeWindows, grabber: WindowsHotkeyGrabber) -> None:
    threads: list[str] = []
    grabber.grab(HOTKEY, lambda: threads.append(threading.current_thread().name))
    system.press(*PLACE)
    wait_for(lambda: threads, "the callback")
    assert threads == ["hotkeys"]


def test_held_key_fires_once(system: FakeWindows, grabber: WindowsHotkeyGrabber) -> None:
    pressed: list[int] = []
    grabber.grab(HOTKEY, lambda: pressed.append(1))
    system.press(*PLACE, repeats=20)
    system.press(*PLACE)
    wait_for(lambda: len(pressed) >= 2, "two callbacks")
    time.sleep(0.05)
    assert len(pressed) == 2


def test_each_hotkey_has_its_own_callback(system: FakeWindows, grabber: WindowsHotkeyGrabber) -> None:
    pressed: list[str] = []
    grabber.grab(HOTKEY, lambda: pressed.append("1"))
    grabber.grab(Hotkey(frozenset({Modifier.META, Modifier.ALT}), "F5"), lambda: pressed.append("F5"))
    system.press(win.MOD_WIN | win.MOD_ALT, 0x74)
    system.press(*PLACE)
    wait_for(lambda: len(pressed) == 2, "both callbacks")
    assert pressed == ["F5", "1"]


def test_taken_combination_is_named(system: FakeWindows, grabber: WindowsHotkeyGrabber) -> None:
    system.registered[PLACE] = (-1, 1)
    with pytest.raises(HotkeyTakenError, match=r"^Ctrl\+Shift\+1: another program uses this combination"):
        grabber.grab(HOTKEY, lambda: None)
    del system.registered[PLACE]
    grabber.grab(HOTKEY, lambda: None)
    assert PLACE in system.registered


def test_other_refusals_tell_the_code(system: FakeWindows, grabber: WindowsHotkeyGrabber) -> None:
    system.refused_virtual_keys.add(0x7B)
    with pytest.raises(HotkeyError, match=r"^F12: Windows refused this combination \(error 87\)") as caught:
        grabber.grab(Hotkey(frozenset(), "F12"), lambda: None)
    assert not isinstance(caught.value, HotkeyTakenError)


def test_unknown_key(grabber: WindowsHotkeyGrabber) -> None:
    with pytest.raises(HotkeyError, match="has no key F25; choose another one"):
        grabber.grab(Hotkey(CTRL_SHIFT, "F25"), lambda: None)


def test_release_and_replace(system: FakeWindows, grabber: WindowsHotkeyGrabber) -> None:
    pressed: list[str] = []
    grabber.grab(HOTKEY, lambda: pressed.append("old"))
    grabber.grab(HOTKEY, lambda: pressed.append("new"))
    system.press(*PLACE)
    wait_for(lambda: pressed, "the callback")
    assert pressed == ["new"]
    grabber.release(HOTKEY)
    grabber.release(HOTKEY)
    assert system.registered == {}


def test_callback_may_grab_and_release(system: FakeWindows, grabber: WindowsHotkeyGrabber) -> None:
    def swap() -> None:
        grabber.release(HOTKEY)
        grabber.grab(Hotkey(CTRL_SHIFT, "2"), lambda: None)

    grabber.grab(HOTKEY, swap)
    system.press(*PLACE)
    wait_for(lambda: list(system.registered) == [(PLACE[0], ord("2"))], "the other hotkey")


def test_close_unregisters_and_ends_the_thread(system: FakeWindows) -> None:
    grabber = WindowsHotkeyGrabber(system.calls())
    grabber.grab(HOTKEY, lambda: None)
    grabber.close()
    grabber.close()
    assert system.registered == {}
    assert not any(thread.name == "hotkeys" for thread in threading.enumerate())
    with pytest.raises(HotkeyError, match="restart the app"):
        grabber.grab(HOTKEY, lambda: None)
    grabber.release(HOTKEY)


def test_every_key_name_of_the_app_has_a_virtual_key() -> None:
    keys = [virtual_key(name) for name in hotkeys.KEY_NAMES]
    assert None not in keys
    assert len(set(keys)) == len(keys)
    assert virtual_key("É") is virtual_key("F0") is None
