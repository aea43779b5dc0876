"""Selection capture, driven by a clock of the test."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from app.capture.capture import (
    COPY_ATTEMPTS,
    COPY_LIMIT_S,
    KEYS_LIMIT_S,
    CaptureResult,
    ClipboardEmpty,
    Failed,
    FailureReason,
    LeftAlone,
    NothingSelected,
    Secret,
    Selected,
    SelectionCapture,
    TextOrigin,
    capture_clipboard,
)
from app.desktop.fake_desktop import EDITOR, SECRET, TEXT, FakeClipboard, FakeDesktop
from app.desktop.protocols import Modifier, Window

OLD = {TEXT: b"old", "text/html": b"<b>old</b>", "image/png": b"\x89PNG"}
TERMINAL = Window(7, "terminal", is_terminal=True)
OTHER = Window(9, "other")


def _old(window: Window | None) -> Selected:
    """The offer of what lay on the clipboard."""
    return Selected("old", window, TextOrigin.CLIPBOARD)


class Bench:
    """A capture on fakes, with the old content on the clipboard and a selection in the editor."""

    def __init__(self, selection: str | None = "selected") -> None:
        self.desktop = FakeDesktop()
        self.clipboard = FakeClipboard(OLD)
        self.capture = SelectionCapture(self.desktop, self.clipboard)
        self.now_s = 100.0
        self.results: list[CaptureResult] = []
        if selection is not None:
            self.desktop.on_copy = lambda: self.clipboard.put_text(selection)

    def start(self) -> bool:
        return self.capture.start(self.now_s)

    def run(self, seconds: float = 0.0) -> None:
        """Polls every 10 ms for a time, and at least once."""
        end_s = self.now_s + seconds
        while True:
            result = self.capture.poll(self.now_s)
            if result is not None:
                self.results.append(result)
            self.now_s += 0.01
            if self.now_s >= end_s:
                return

    @property
    def result(self) -> CaptureResult:
        (only,) = self.results
        return only


def test_a_selection_is_read_and_the_clipboard_has_every_format_back() -> None:
    bench = Bench()
    assert bench.start()
    bench.run(0.1)
    assert bench.result == Selected("selected", EDITOR)
    assert bench.clipboard.formats == OLD
    assert bench.desktop.sent == ["copy"]
    assert not bench.capture.is_busy


def test_a_slow_program_is_waited_for() -> None:
    bench = Bench(selection=None)
    bench.start()
    bench.run(COPY_LIMIT_S / 2)
    assert bench.results == []
    bench.clipboard.put_text("late")
    bench.run()
    assert bench.result == Selected("late", EDITOR)
    assert bench.clipboard.formats == OLD


def test_nothing_selected_is_its_own_answer_and_never_the_old_clipboard() -> None:
    bench = Bench(selection=None)
    bench.start()
    bench.run(COPY_LIMIT_S * COPY_ATTEMPTS + 0.1)
    assert bench.result == NothingSelected(EDITOR, _old(EDITOR))
    assert bench.desktop.sent == ["copy"] * COPY_ATTEMPTS
    assert bench.clipboard.restores == []


@pytest.mark.parametrize("selection", ["", " ", "\n\t "])
def test_white_space_counts_as_nothing_selected(selection: str) -> None:
    bench = Bench(selection)
    bench.start()
    bench.run(2.0)
    assert bench.result == NothingSelected(EDITOR, _old(EDITOR))
    assert bench.clipboard.formats == OLD


def test_a_program_that_empties_the_clipboard_before_it_fills_it() -> None:
    bench = Bench(selection="")
    bench.start()
    bench.run(0.05)
    bench.clipboard.put_text("now")
    bench.run()
    assert bench.result == Selected("now", EDITOR)
    assert bench.clipboard.formats == OLD


def test_an_image_that_was_copied_is_no_text_and_no_reason_to_copy_again() -> None:
    bench = Bench()
    bench.desktop.on_copy = lambda: bench.clipboard.put({"image/png": b"new"})
    bench.start()
    bench.run(2.0)
    assert bench.result == NothingSelected(EDITOR, _old(EDITOR))
    assert bench.desktop.sent == ["copy"]
    assert bench.clipboard.formats == OLD


def test_an_empty_clipboard_comes_back_empty() -> None:
    bench = Bench()
    bench.clipboard.formats = {}
    bench.start()
    bench.run(0.1)
    assert bench.result == Selected("selected", EDITOR)
    assert bench.clipboard.formats == {}


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
    assert bench.result == NothingSelected(EDITOR, _old(EDITOR))
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


@pytest.mark.parametrize("primary", ["selected", "given up", ""])
def test_what_the_copy_brings_counts_whatever_primary_holds(primary: str) -> None:
    bench = Bench()
    bench.desktop.primary_owner, bench.clipboard.primary = EDITOR, primary
    bench.start()
    bench.run(0.1)
    assert bench.result == Selected("selected", EDITOR)
    assert bench.desktop.sent == ["copy"]
    assert bench.clipboard.formats == OLD


@pytest.mark.parametrize("copied", [None, "", " \n"])
def test_a_primary_selection_that_was_given_up_is_offered_before_the_clipboard(copied: str | None) -> None:
    bench = Bench(copied)
    bench.desktop.primary_owner, bench.clipboard.primary = EDITOR, "given up"
    bench.start()
    bench.run(2.0)
    assert bench.result == NothingSelected(EDITOR, Selected("given up", EDITOR, TextOrigin.LAST_SELECTION))
    assert bench.clipboard.formats == OLD


@pytest.mark.parametrize(("owner", "primary"), [(OTHER, "of another window"), (EDITOR, " \n")])
def test_a_foreign_or_empty_primary_selection_is_not_offered(owner: Window, primary: str) -> None:
    bench = Bench(selection=None)
    bench.desktop.primary_owner, bench.clipboard.primary = owner, primary
    bench.start()
    bench.run(2.0)
    assert bench.result == NothingSelected(EDITOR, _old(EDITOR))


def test_a_terminal_gets_no_copy_keystroke_ever() -> None:
    bench = Bench()
    bench.desktop.window = TERMINAL
    bench.start()
    bench.run(2.0)
    assert bench.result == NothingSelected(TERMINAL, _old(TERMINAL))
    assert bench.desktop.sent == []


def test_a_terminal_gives_its_primary_selection() -> None:
    bench = Bench()
    bench.desktop.window = bench.desktop.primary_owner = TERMINAL
    bench.clipboard.primary = "ls -l"
    bench.start()
    bench.run()
    assert bench.result == Selected("ls -l", TERMINAL)


def test_without_a_focused_window_nothing_is_selected() -> None:
    bench = Bench()
    bench.desktop.window = None
    bench.start()
    bench.run(2.0)
    assert bench.result == NothingSelected(None, _old(None))
    assert bench.desktop.sent == []


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
    assert bench.result == NothingSelected(TERMINAL, _old(TERMINAL))
    assert bench.start()


def test_a_second_capture_reads_the_new_selection() -> None:
    bench = Bench()
    for text in ("first", "second"):
        bench.desktop.on_copy = lambda text=text: bench.clipboard.put_text(text)
        bench.start()
        bench.run(0.1)
    assert bench.results == [Selected("first", EDITOR), Selected("second", EDITOR)]
    assert bench.clipboard.formats == OLD


def test_the_user_may_want_the_selection_to_stay_on_the_clipboard() -> None:
    bench = Bench()
    bench.capture.restores = False
    bench.start()
    bench.run(0.1)
    assert bench.result == Selected("selected", EDITOR)
    assert bench.clipboard.text() == "selected"


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


def test_the_clipboard_by_choice() -> None:
    desktop, clipboard = FakeDesktop(), FakeClipboard(OLD)
    assert capture_clipboard(desktop, clipboard) == Selected("old", EDITOR, TextOrigin.CLIPBOARD)
    clipboard.put_text(" \n")
    assert capture_clipboard(desktop, clipboard) == ClipboardEmpty()
    clipboard.put({"image/png": b"x"})
    assert capture_clipboard(desktop, clipboard) == ClipboardEmpty()
    clipboard.put({TEXT: b"hunter2", SECRET: b""})
    assert capture_clipboard(desktop, clipboard) == Secret()
    assert desktop.sent == []


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
