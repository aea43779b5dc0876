"""What a capture does not touch: held keys, other windows, terminals, passwords, programs to be left alone."""

from __future__ import annotations

import pytest

from app.capture.capture import (
    COPY_LIMIT_S,
    KEYS_LIMIT_S,
    Failed,
    FailureReason,
    LeftAlone,
    NothingSelected,
    Secret,
    Selected,
)
from app.desktop.fake_desktop import EDITOR, SECRET, TEXT
from app.desktop.protocols import Modifier, Window
from tests.app.capture.bench import OLD, OTHER, TERMINAL, Bench, old_offer


@pytest.mark.parametrize("held", ["key", "modifier"])
def test_nothing_is_sent_while_keys_are_held(held: str) -> None:
    bench = Bench()
    bench.desktop.key_held = held == "key"
    bench.desktop.modifiers = frozenset({Modifier.SHIFT}) if held == "modifier" else frozenset()
    bench.start()
    bench.run(KEYS_LIMIT_S - 0.1)
    assert (bench.desktop.sent, bench.results) == ([], [])
    bench.desktop.key_held, bench.desktop.modifiers = False, frozenset()
    bench.run(0.1)
    assert bench.result == Selected("selected", EDITOR)


def test_keys_that_stay_down_are_named_and_nothing_was_touched() -> None:
    bench = Bench()
    bench.desktop.key_held = True
    bench.start()
    bench.run(KEYS_LIMIT_S + 0.1)
    assert bench.result == Failed(FailureReason.KEYS_HELD)
    assert bench.desktop.sent == []
    assert bench.clipboard.restores == []
    assert "Release the hotkey" in str(FailureReason.KEYS_HELD.value)


def test_no_copy_goes_to_a_window_that_came_to_the_front() -> None:
    bench = Bench()
    bench.desktop.key_held = True
    bench.start()
    bench.run(0.1)
    bench.desktop.window, bench.desktop.key_held = OTHER, False
    bench.run(0.1)
    assert bench.result == Failed(FailureReason.FOCUS_CHANGED)
    assert bench.desktop.sent == []


@pytest.mark.parametrize("change", ["key", "focus"])
def test_the_second_copy_is_not_sent_among_keys_or_into_another_window(change: str) -> None:
    bench = Bench(selection=None)
    bench.start()
    bench.run(COPY_LIMIT_S / 2)
    if change == "key":
        bench.desktop.key_held = True
    else:
        bench.desktop.window = OTHER
    bench.run(COPY_LIMIT_S)
    assert bench.result == NothingSelected(EDITOR, old_offer(EDITOR))
    assert bench.desktop.sent == ["copy"]


def test_a_selection_that_is_marked_as_a_password_is_refused() -> None:
    bench = Bench()
    bench.desktop.on_copy = lambda: bench.clipboard.put({TEXT: b"hunter2", SECRET: b"secret"})
    bench.start()
    bench.run(0.1)
    assert bench.result == Secret()
    assert bench.clipboard.formats == OLD


def test_a_password_on_the_clipboard_comes_back_with_its_mark_and_is_not_offered() -> None:
    secret = {TEXT: b"hunter2", SECRET: b"secret"}
    bench = Bench()
    bench.clipboard.formats = dict(secret)
    bench.start()
    bench.run(0.1)
    assert bench.result == Selected("selected", EDITOR)
    assert bench.clipboard.formats == secret
    bench.desktop.on_copy = lambda: None
    bench.results.clear()
    bench.start()
    bench.run(2.0)
    assert bench.result == NothingSelected(EDITOR, offer=None)


def test_a_terminal_gets_no_copy_keystroke_ever() -> None:
    bench = Bench()
    bench.desktop.window = TERMINAL
    bench.start()
    bench.run(2.0)
    assert bench.result == NothingSelected(TERMINAL, old_offer(TERMINAL))
    assert bench.desktop.sent == []


@pytest.mark.parametrize("program", ["keepassxc", "keepassxc.exe"])
def test_a_program_that_is_to_be_left_alone_gets_no_key_and_is_named(program: str) -> None:
    bench = Bench()
    bench.desktop.window = Window(3, program)
    bench.desktop.primary_owner, bench.clipboard.primary = bench.desktop.window, "a password"
    bench.capture.left_alone = frozenset({"keepassxc"})
    bench.start()
    bench.run(1.0)
    assert bench.results == [LeftAlone(program)]
    assert bench.desktop.sent == []
    assert bench.clipboard.formats == OLD
    bench.desktop.window = EDITOR
    bench.start()
    bench.run(1.0)
    assert bench.results[1] == Selected("selected", EDITOR)
