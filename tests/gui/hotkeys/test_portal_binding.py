"""Hotkeys that the desktop gives out: never called working before it has said so."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import pytest

from app.desktop.protocols import PortalAnswer, Shortcut
from app.qt.hotkeys.binding import HotkeyState
from app.qt.hotkeys.portal_binding import ACTIVATION_TOKEN, KEYS_OF_DESKTOP, PortalBinding
from app.translation import UserText

pytestmark = pytest.mark.gui

ADVICE, CLIPBOARD = UserText("Bind the command."), UserText("Copy first.")
PROBLEM = UserText("No shortcuts here.")
WANTED = {"one": ("One", "Ctrl+Shift+1"), "none": ("None", ""), "two": ("Two", "ctrl+shift+2")}


class FakePortal:
    """`app.desktop.protocols.ShortcutPortal` in memory."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def ask(
        self,
        shortcuts: Sequence[Shortcut],
        on_answer: Callable[[PortalAnswer], None],
        on_press: Callable[[str, str], None],
    ) -> None:
        self.asked.append([f"{each.id}: {each.title}, {each.hotkey}" for each in shortcuts])
        self.answer, self.press = on_answer, on_press

    def close(self) -> None:
        pass


class Bound:
    """A binding whose UI thread is the caller's."""

    def __init__(self) -> None:
        self.portal = FakePortal()
        self.pressed: list[str] = []
        self.changes = 0
        self.binding = PortalBinding(
            self.portal, self.pressed.append, lambda function: function(), self._on_change, (ADVICE, CLIPBOARD)
        )

    def _on_change(self) -> None:
        self.changes += 1

    def states(self, wanted: dict[str, tuple[str, str]] = WANTED) -> dict[str, tuple[str, str]]:
        return {s.command_id: (s.state.name, s.hotkey) for s in self.binding.bind(wanted)}


@pytest.fixture
def bound() -> Bound:
    return Bound()


def test_nothing_works_before_the_desktop_has_answered(bound: Bound) -> None:
    assert bound.states() == {"one": ("ASKED", "Ctrl+Shift+1"), "two": ("ASKED", "Ctrl+Shift+2")}
    assert bound.portal.asked == [["one: One, Ctrl+Shift+1", "two: Two, Ctrl+Shift+2"]]
    assert bound.binding.working() == {}
    assert bound.binding.limits == (), "nothing is known to be impossible yet"


def test_what_the_desktop_gave_works_in_its_words(bound: Bound) -> None:
    bound.states()
    bound.portal.answer(PortalAnswer({"one": "Strg+Umschalt+1", "two": ""}))
    assert bound.changes == 1
    assert bound.states() == {"one": ("REGISTERED", "Strg+Umschalt+1"), "two": ("IMPOSSIBLE", "Ctrl+Shift+2")}
    assert "given no key" in str(bound.binding.statuses[1].reason)
    assert bound.binding.working() == {"one": "Strg+Umschalt+1"}
    assert bound.binding.limits == (KEYS_OF_DESKTOP, CLIPBOARD)
    bound.portal.answer(PortalAnswer({"two": "Meta+2"}))
    assert bound.states() == {"one": ("IMPOSSIBLE", "Ctrl+Shift+1"), "two": ("REGISTERED", "Meta+2")}
    assert len(bound.portal.asked) == 1, "asked once, whatever changes"


def test_a_desktop_that_gives_nothing_leaves_the_command(bound: Bound) -> None:
    bound.states()
    bound.portal.answer(PortalAnswer(problem=PROBLEM))
    assert bound.states()["one"] == ("IMPOSSIBLE", "Ctrl+Shift+1")
    assert bound.binding.statuses[0].reason == PROBLEM
    assert bound.binding.limits == (PROBLEM, ADVICE, CLIPBOARD)


def test_a_new_command_waits_for_the_next_start(bound: Bound) -> None:
    bound.states()
    bound.portal.answer(PortalAnswer({"one": "A", "two": "B"}))
    states = bound.states({**WANTED, "three": ("Three", "Ctrl+Shift+3"), "bad": ("Bad", "Ctrl+Nokey")})
    assert states["three"] == ("IMPOSSIBLE", "Ctrl+Shift+3")
    assert states["bad"] == ("INVALID", "Ctrl+Nokey")
    assert "started again" in str(bound.binding.statuses[-1].reason)
    assert len(bound.portal.asked) == 1


def test_nothing_is_asked_where_nothing_is_wanted(bound: Bound) -> None:
    assert bound.states({"none": ("None", "")}) == {}
    assert bound.portal.asked == []


def test_presses_run_the_command_unless_paused(bound: Bound, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ACTIVATION_TOKEN, raising=False)
    bound.states()
    bound.portal.press("one", "")
    assert ACTIVATION_TOKEN not in os.environ
    bound.portal.press("two", "token")
    assert os.environ[ACTIVATION_TOKEN] == "token", "so that the popup may come to the front"
    bound.binding.release_all()
    bound.portal.press("one", "")
    bound.states()
    bound.portal.press("one", "")
    assert bound.pressed == ["one", "two", "one"]


def test_the_states_are_all_shown() -> None:
    from app.qt.home.main_window import _SIGNS

    assert set(_SIGNS) == set(HotkeyState)
