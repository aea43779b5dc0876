"""Hotkeys of commands: grabbed once, given back, and every failure named."""

import pytest

from app.qt.hotkeys.binding import HotkeyBinding, HotkeyState
from tests.gui.rig import FakeGrabber


@pytest.fixture
def grabber() -> FakeGrabber:
    return FakeGrabber()


@pytest.fixture
def pressed() -> list[str]:
    return []


@pytest.fixture
def binding(grabber: FakeGrabber, pressed: list[str]) -> HotkeyBinding:
    return HotkeyBinding(grabber, pressed.append)


def test_a_press_runs_its_command(binding: HotkeyBinding, grabber: FakeGrabber, pressed: list[str]):
    binding.bind({"a": ("A", "ctrl+shift+1"), "b": ("B", "Ctrl+Shift+2"), "c": ("C", "")})
    grabber.held["Ctrl+Shift+2"]()
    assert pressed == ["b"]
    assert binding.working() == {"a": "Ctrl+Shift+1", "b": "Ctrl+Shift+2"}


def test_each_failure_has_its_state_and_reason(binding: HotkeyBinding, grabber: FakeGrabber):
    grabber.taken.add("Ctrl+Shift+1")
    statuses = binding.bind(
        {"a": ("A", "Ctrl+Shift+1"), "b": ("B", "Ctrl+Nokey"), "c": ("C", "Ctrl+F9"), "d": ("D", "F9+Ctrl")}
    )
    assert [status.state for status in statuses] == [
        HotkeyState.TAKEN,
        HotkeyState.INVALID,
        HotkeyState.REGISTERED,
        HotkeyState.TAKEN,
    ]
    assert "another program" in str(statuses[0].reason)
    assert "Nokey" in str(statuses[1].reason)
    assert '"C"' in str(statuses[3].reason)


def test_a_freed_combination_works_at_the_next_try(binding: HotkeyBinding, grabber: FakeGrabber):
    grabber.taken.add("Ctrl+Shift+1")
    binding.bind({"a": ("A", "Ctrl+Shift+1")})
    grabber.taken.clear()
    binding.bind({"a": ("A", "Ctrl+Shift+1")})
    assert binding.working() == {"a": "Ctrl+Shift+1"}


def test_changes_release_what_is_no_longer_wanted_and_keep_the_rest(binding: HotkeyBinding, grabber: FakeGrabber):
    binding.bind({"a": ("A", "Ctrl+F1"), "b": ("B", "Ctrl+F2")})
    kept = grabber.held["Ctrl+F1"]
    binding.bind({"a": ("A", "Ctrl+F1"), "b": ("B", "Ctrl+F3")})
    assert grabber.held["Ctrl+F1"] is kept
    assert set(grabber.held) == {"Ctrl+F1", "Ctrl+F3"}


def test_two_commands_may_swap_their_combinations(binding: HotkeyBinding, grabber: FakeGrabber, pressed: list[str]):
    binding.bind({"a": ("A", "Ctrl+F1"), "b": ("B", "Ctrl+F2")})
    binding.bind({"a": ("A", "Ctrl+F2"), "b": ("B", "Ctrl+F1")})
    grabber.held["Ctrl+F1"]()
    assert pressed == ["b"]


def test_all_are_given_back(binding: HotkeyBinding, grabber: FakeGrabber):
    binding.bind({"a": ("A", "Ctrl+F1")})
    binding.release_all()
    assert grabber.held == {}
