"""Every capture ends, by whatever way, with the clipboard as it was and at most one result."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from app.capture.capture import (
    COPY_ATTEMPTS,
    COPY_LIMIT_S,
    KEYS_LIMIT_S,
    NothingSelected,
    Selected,
    TextOrigin,
)
from app.desktop.fake_desktop import EDITOR, SECRET, TEXT
from app.desktop.protocols import Window
from tests.app.capture.bench import OLD, OTHER, TERMINAL, Bench, old_offer


def test_ten_presses_in_a_second_are_one_capture() -> None:
    bench = Bench(selection=None)
    assert [bench.start() for _ in range(10)] == [True] + [False] * 9
    bench.run(0.1)
    assert not bench.start()
    bench.clipboard.put_text("selected")
    bench.run(0.1)
    assert bench.result == Selected("selected", EDITOR)
    assert bench.desktop.sent == ["copy"]
    assert bench.clipboard.restores == [OLD]


def test_a_result_that_was_not_taken_yet_is_not_overwritten() -> None:
    bench = Bench()
    bench.desktop.window = TERMINAL
    bench.start()
    bench.desktop.window = EDITOR
    assert bench.capture.is_busy
    assert not bench.start()
    bench.run(0.1)
    assert bench.result == NothingSelected(TERMINAL, old_offer(TERMINAL))
    assert bench.start()


def test_a_second_capture_reads_the_new_selection() -> None:
    bench = Bench()
    for text in ("first", "second"):
        bench.desktop.on_copy = lambda text=text: bench.clipboard.put_text(text)
        bench.start()
        bench.run(0.1)
    assert bench.results == [Selected("first", EDITOR), Selected("second", EDITOR)]
    assert bench.clipboard.formats == OLD


def test_cancel_gives_the_clipboard_back_and_no_result() -> None:
    bench = Bench(selection="")
    bench.start()
    bench.run(0.05)
    bench.capture.cancel()
    bench.run(2.0)
    assert bench.results == []
    assert bench.clipboard.formats == OLD
    assert bench.start()


@pytest.mark.parametrize("answers", [["selected"], ["", "selected"], [""]])
def test_a_copy_that_comes_after_the_cancel_does_not_stay_on_the_clipboard(answers: list[str]) -> None:
    bench = Bench(selection=None)
    bench.start()
    bench.run(0.05)
    bench.capture.cancel()
    assert bench.desktop.sent == ["copy"]
    assert not bench.capture.is_busy
    for text in answers:
        assert bench.capture.needs_poll
        bench.clipboard.put_text(text)
        bench.run(0.05)
    bench.run(COPY_LIMIT_S)
    assert bench.clipboard.formats == OLD
    assert not bench.capture.needs_poll
    assert bench.results == []


def test_a_press_right_after_a_cancel_waits_for_the_first_copy() -> None:
    bench = Bench(selection=None)
    bench.start()
    bench.run(0.05)
    bench.capture.cancel()
    bench.desktop.window = OTHER
    assert bench.start()
    bench.run(0.05)
    assert bench.desktop.sent == ["copy"]
    bench.clipboard.put_text("of the first window")
    bench.desktop.on_copy = lambda: bench.clipboard.put_text("of the second")
    bench.run(0.1)
    assert bench.desktop.sent == ["copy", "copy"]
    assert bench.result == Selected("of the second", OTHER)
    assert bench.clipboard.formats == OLD


def test_close_gives_the_clipboard_back_at_once() -> None:
    bench = Bench(selection="")
    bench.start()
    bench.run(0.05)
    bench.capture.close()
    assert bench.clipboard.formats == OLD
    assert not bench.capture.needs_poll


def test_an_error_of_the_display_gives_the_clipboard_back(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(selection="")
    bench.start()
    bench.run(0.05)

    def fail() -> bool:
        raise ConnectionError("The display went away.")

    monkeypatch.setattr(bench.clipboard, "is_secret", fail)
    with pytest.raises(ConnectionError):
        bench.run(0.05)
    assert bench.clipboard.formats == OLD
    assert not bench.capture.is_busy


class CaptureMachine(RuleBasedStateMachine):
    """Any order of presses, keys, focus changes, slow and silent programs, and time.

    Other programs put nothing on the clipboard here unless we asked for a copy, so afterwards it must be as it was.
    """

    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench(selection=None)
        self.bench.clipboard.formats = dict(OLD)
        self.asked = 0
        self.answered = 0
        self.copied: list[str] = []
        self.primaries: set[str] = {""}
        self.is_late = False
        self.bench.desktop.on_copy = self._asked

    def _asked(self) -> None:
        assert not self.bench.desktop.any_key_held(), "a copy keystroke among held keys"
        assert self.bench.desktop.window is not None
        assert not self.bench.desktop.window.is_terminal, "a copy keystroke into a terminal"
        self.asked += 1
        self.is_late = False

    @rule()
    def press(self) -> None:
        if self.bench.start():
            self.copied.clear()
            self.primaries = {self.bench.clipboard.primary}

    @rule(owner=st.sampled_from([EDITOR, OTHER, TERMINAL, None]), text=st.sampled_from(["marked", "stale", " ", ""]))
    def primary(self, owner: Window | None, text: str) -> None:
        self.bench.desktop.primary_owner, self.bench.clipboard.primary = owner, text
        self.primaries.add(text)

    @rule(seconds=st.sampled_from([0.0, 0.02, 0.3, 0.7, 1.6]))
    def wait(self, seconds: float) -> None:
        self.bench.run(seconds)

    @rule(held=st.booleans())
    def keys(self, held: bool) -> None:
        self.bench.desktop.key_held = held

    @rule(window=st.sampled_from([EDITOR, OTHER, TERMINAL, None]))
    def focus(self, window: Window | None) -> None:
        self.bench.desktop.window = window

    @precondition(lambda self: self.answered < self.asked and self.bench.capture.needs_poll)
    @rule(text=st.sampled_from(["new", "", "  ", "更多", "later"]), secret=st.booleans())
    def program_copies(self, text: str, secret: bool) -> None:
        self.answered = self.asked
        formats = {TEXT: text.encode()}
        self.bench.clipboard.put({**formats, SECRET: b""} if secret else formats)
        if not secret and not self.is_late:
            self.copied.append(text)
        self.is_late = False

    @rule()
    def cancel(self) -> None:
        """An answer to a keystroke that was sent before belongs to no capture any more."""
        self.is_late = self.answered < self.asked
        self.bench.capture.cancel()
        self.copied.clear()

    @invariant()
    def what_was_given_up_is_offered_at_most(self) -> None:
        for result in self.bench.results:
            if isinstance(result, Selected):
                assert result.window is not None
                assert result.origin is TextOrigin.SELECTION
                assert result.text in (self.primaries if result.window.is_terminal else self.copied)
                assert result.text.strip()
            elif isinstance(result, NothingSelected) and result.offer is not None:
                offer = result.offer
                assert offer.origin is not TextOrigin.SELECTION
                assert offer.window == result.window
                assert offer.text in (self.primaries if offer.origin is TextOrigin.LAST_SELECTION else {"old"})
        self.bench.results.clear()

    @invariant()
    def the_clipboard_is_as_it_was_while_nothing_runs(self) -> None:
        if not self.bench.capture.needs_poll:
            assert self.bench.clipboard.formats == OLD
            self.answered = self.asked

    def teardown(self) -> None:
        self.bench.run(5.0)
        assert not self.bench.capture.is_busy
        assert self.bench.clipboard.formats == OLD


CaptureMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)

TestCaptureMachine = CaptureMachine.TestCase


@given(st.floats(0, 3), st.floats(0, 3))
def test_every_capture_ends_in_time(held_s: float, copied_after_s: float) -> None:
    bench = Bench(selection=None)
    bench.desktop.key_held = True
    bench.start()
    bench.run(held_s)
    bench.desktop.key_held = False
    bench.run(copied_after_s)
    if bench.capture.is_busy and bench.desktop.sent:
        bench.clipboard.put_text("selected")
    bench.run(KEYS_LIMIT_S + COPY_LIMIT_S * COPY_ATTEMPTS + 0.1)
    assert len(bench.results) == 1
    assert bench.clipboard.formats == OLD
