"""Putting an answer in the place of the selection, driven by a clock of the test."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from app.capture.paste_back import FETCH_LIMIT_S, FOCUS_LIMIT_S, KEYS_LIMIT_S, SETTLE_S, PasteBack, PasteResult
from app.desktop.fake_desktop import EDITOR, SECRET, TEXT, FakeClipboard, FakeDesktop
from app.desktop.protocols import Window

OLD = {TEXT: b"old", "text/html": b"<b>old</b>", SECRET: b""}
POPUP = Window(50, "deskinfer")


class Bench:
    """A paste on fakes, with an editor that pastes at once unless told otherwise."""

    def __init__(self, *, pastes: bool = True) -> None:
        self.desktop = FakeDesktop()
        self.clipboard = FakeClipboard(OLD)
        self.paste = PasteBack(self.desktop, self.clipboard)
        self.now_s = 100.0
        self.results: list[PasteResult] = []
        self.pasted: list[str] = []
        if pastes:
            self.desktop.on_paste = self.fetch

    def fetch(self) -> None:
        self.pasted.append(self.clipboard.fetch())

    def start(self, text: str = "answer", *, activate: bool = False) -> bool:
        return self.paste.start(EDITOR, text, self.now_s, activate=activate)

    def run(self, seconds: float = 0.0) -> None:
        end_s = self.now_s + seconds
        while True:
            result = self.paste.poll(self.now_s)
            if result is not None:
                self.results.append(result)
            self.now_s += 0.01
            if self.now_s >= end_s:
                return


def test_the_answer_is_pasted_and_the_clipboard_has_every_format_back() -> None:
    bench = Bench()
    assert bench.start()
    bench.run(0.02)
    assert bench.pasted == ["answer"]
    assert bench.clipboard.text() == "answer"
    bench.run(SETTLE_S + 0.05)
    assert bench.results == [PasteResult.REPLACED]
    assert bench.clipboard.formats == OLD
    assert not bench.paste.is_busy


def test_a_target_that_fetches_late_still_gets_the_answer() -> None:
    bench = Bench(pastes=False)
    bench.start()
    bench.run(FETCH_LIMIT_S - 0.5)
    bench.fetch()
    bench.run(SETTLE_S + 0.05)
    assert bench.pasted == ["answer"]
    assert bench.results == [PasteResult.REPLACED]
    assert bench.clipboard.formats == OLD


def test_a_second_fetch_is_waited_for() -> None:
    bench = Bench()
    bench.start()
    bench.run(SETTLE_S * 0.8)
    bench.fetch()
    bench.run(SETTLE_S * 0.8)
    bench.fetch()
    assert bench.pasted == ["answer"] * 3
    bench.run(SETTLE_S + 0.05)
    assert bench.clipboard.formats == OLD


def test_a_program_that_fetches_without_end_does_not_keep_the_clipboard() -> None:
    bench = Bench()
    bench.start()
    for _ in range(100):
        bench.run(0.1)
        if bench.results:
            break
        bench.fetch()
    assert bench.results == [PasteResult.REPLACED]
    assert bench.now_s < 100.0 + FETCH_LIMIT_S + 0.5
    assert bench.clipboard.formats == OLD


def test_a_target_that_never_fetches_is_told_and_the_clipboard_is_back() -> None:
    bench = Bench(pastes=False)
    bench.start()
    bench.run(FETCH_LIMIT_S + 0.1)
    assert bench.results == [PasteResult.NOT_FETCHED]
    assert bench.clipboard.formats == OLD


@pytest.mark.parametrize("window", [POPUP, None])
def test_nothing_is_sent_to_another_window(window: Window | None) -> None:
    bench = Bench()
    bench.desktop.window = window
    bench.start()
    bench.run(0.0)
    assert bench.results == [PasteResult.NOT_FOCUSED]
    assert bench.desktop.sent == []
    assert bench.clipboard.serial() == 0


def test_the_focus_may_leave_while_keys_are_held() -> None:
    bench = Bench()
    bench.desktop.key_held = True
    bench.start()
    bench.run(0.2)
    bench.desktop.window, bench.desktop.key_held = POPUP, False
    bench.run(0.1)
    assert bench.results == [PasteResult.NOT_FOCUSED]
    assert bench.desktop.sent == []


def test_our_own_popup_hands_the_focus_back_first() -> None:
    bench = Bench()
    bench.desktop.window = POPUP
    bench.start(activate=True)
    bench.run(SETTLE_S + 0.1)
    assert bench.desktop.activated == [EDITOR]
    assert bench.results == [PasteResult.REPLACED]
    assert bench.pasted == ["answer"]


def test_a_slow_window_manager_is_waited_for_and_a_stubborn_one_given_up() -> None:
    bench = Bench()
    bench.desktop.window, bench.desktop.obeys_activate = POPUP, False
    bench.start(activate=True)
    bench.run(FOCUS_LIMIT_S - 0.1)
    assert bench.results == []
    bench.desktop.window = EDITOR
    bench.run(SETTLE_S + 0.1)
    assert bench.results == [PasteResult.REPLACED]
    bench.desktop.window = POPUP
    bench.start(activate=True)
    bench.run(FOCUS_LIMIT_S + 0.1)
    assert bench.results[1:] == [PasteResult.NOT_FOCUSED]
    assert bench.desktop.sent == ["paste"]


def test_a_focused_window_is_not_activated_again() -> None:
    bench = Bench()
    bench.start(activate=True)
    bench.run(0.1)
    assert bench.desktop.activated == []


def test_keys_that_stay_down_are_told_and_nothing_was_touched() -> None:
    bench = Bench()
    bench.desktop.key_held = True
    bench.start()
    bench.run(KEYS_LIMIT_S + 0.1)
    assert bench.results == [PasteResult.KEYS_HELD]
    assert bench.desktop.sent == []
    assert bench.clipboard.serial() == 0


def test_what_somebody_copied_meanwhile_is_newer_and_stays() -> None:
    bench = Bench(pastes=False)
    bench.start()
    bench.run(0.1)
    bench.clipboard.put_text("newer")
    bench.run(FETCH_LIMIT_S + 0.1)
    assert bench.results == [PasteResult.NOT_FETCHED]
    assert bench.clipboard.text() == "newer"


def test_our_own_offer_may_be_reported_late() -> None:
    bench = Bench()
    bench.start()
    bench.run(0.1)
    bench.clipboard.put_text("answer")  # the same content with another serial, as some systems report it
    bench.run(SETTLE_S + FETCH_LIMIT_S)
    assert bench.clipboard.formats == OLD


def test_one_paste_at_a_time() -> None:
    bench = Bench()
    assert bench.start()
    assert not bench.start("second")
    bench.run(1.0)
    assert bench.pasted == ["answer"]
    assert bench.start("second")
    bench.run(1.0)
    assert bench.pasted == ["answer", "second"]
    assert bench.clipboard.formats == OLD


def test_a_fetch_of_an_earlier_offer_does_not_count() -> None:
    bench = Bench(pastes=False)
    old_receipts = []
    offer = bench.clipboard.offer

    def remember(text: str, on_fetched=None) -> None:
        old_receipts.append(on_fetched)
        offer(text, on_fetched)

    bench.clipboard.offer = remember  # type: ignore[method-assign]
    bench.start()
    bench.run(FETCH_LIMIT_S + 0.1)
    bench.start("second")
    bench.run(0.1)
    old_receipts[0]()
    bench.run(FETCH_LIMIT_S)
    assert bench.results == [PasteResult.NOT_FETCHED, PasteResult.NOT_FETCHED]


def test_the_user_may_want_the_answer_to_stay_on_the_clipboard() -> None:
    bench = Bench()
    bench.paste.restores = False
    bench.start()
    bench.run(1.0)
    assert bench.clipboard.text() == "answer"


def test_cancel_gives_the_clipboard_back() -> None:
    bench = Bench(pastes=False)
    bench.start()
    bench.run(0.1)
    bench.paste.cancel()
    assert bench.clipboard.formats == OLD
    bench.run(5.0)
    assert bench.results == []


@pytest.mark.parametrize("failing", ["offer", "send_paste"])
def test_an_error_gives_the_clipboard_back(failing: str) -> None:
    bench = Bench()

    def fail(*arguments: object) -> None:
        raise ConnectionError("The display went away.")

    if failing == "offer":
        bench.clipboard.offer = fail  # type: ignore[method-assign,assignment]
    else:
        bench.desktop.on_paste = fail
    bench.start()
    with pytest.raises(ConnectionError):
        bench.run(0.1)
    assert bench.clipboard.formats == OLD
    assert not bench.paste.is_busy


class PasteMachine(RuleBasedStateMachine):
    """Any order of pastes, fetches, focus, keys and time: only the right window gets the text, and nothing is lost."""

    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench(pastes=False)
        self.bench.desktop.on_paste = self._sent
        self.content = dict(OLD)

    def _sent(self) -> None:
        assert self.bench.desktop.window == EDITOR, "a paste keystroke into another window"
        assert not self.bench.desktop.any_key_held(), "a paste keystroke among held keys"
        assert self.bench.clipboard.text() == "answer"

    @rule(activate=st.booleans())
    def start(self, activate: bool) -> None:
        self.bench.start(activate=activate)

    @rule()
    def target_fetches(self) -> None:
        self.bench.clipboard.fetch()

    @rule(text=st.sampled_from(["newer", "newest"]))
    def somebody_copies(self, text: str) -> None:
        self.bench.clipboard.put_text(text)
        self.content = {TEXT: text.encode()}

    @rule(window=st.sampled_from([EDITOR, POPUP, None]), obeys=st.booleans())
    def focus(self, window: Window | None, obeys: bool) -> None:
        self.bench.desktop.window, self.bench.desktop.obeys_activate = window, obeys

    @rule(held=st.booleans())
    def keys(self, held: bool) -> None:
        self.bench.desktop.key_held = held

    @rule(seconds=st.sampled_from([0.0, 0.05, 0.4, 1.6, 3.2]))
    def wait(self, seconds: float) -> None:
        self.bench.run(seconds)

    @rule()
    def cancel(self) -> None:
        self.bench.paste.cancel()

    @invariant()
    def the_clipboard_is_as_it_was_while_nothing_runs(self) -> None:
        if not self.bench.paste.is_busy:
            assert self.bench.clipboard.formats == self.content

    def teardown(self) -> None:
        self.bench.run(6.0)
        assert not self.bench.paste.is_busy
        assert self.bench.clipboard.formats == self.content


PasteMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestPasteMachine = PasteMachine.TestCase
