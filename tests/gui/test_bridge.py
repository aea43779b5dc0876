"""The bridge: nothing is lost, nothing passes what was posted before it, and text arrives in few pieces."""

import threading

import pytest
from pytestqt.qtbot import QtBot

from app.qt.bridge import Bridge, coalesced
from inference.request import DoneEvent, ModelEvent, ModelState, PrefillEvent, TokenEvent, Usage

pytestmark = pytest.mark.gui


def test_tokens_are_joined_and_stay_between_their_neighbours():
    events = [
        PrefillEvent("a", 1, 9),
        PrefillEvent("a", 9, 9),
        TokenEvent("a", "x"),
        TokenEvent("a", "y"),
        DoneEvent("a", "stop", Usage()),
    ]
    assert coalesced(events) == [PrefillEvent("a", 9, 9), TokenEvent("a", "xy"), DoneEvent("a", "stop", Usage())]


def test_interleaved_requests_are_joined_each_on_its_own():
    events = [TokenEvent("ab"[i % 2], str(i)) for i in range(6)]
    assert coalesced(events) == [TokenEvent("a", "024"), TokenEvent("b", "135")]


def test_load_progress_keeps_the_last_report_only():
    events = [ModelEvent(ModelState.LOADING, "m", share / 10) for share in range(5)]
    ready = ModelEvent(ModelState.READY, "m", 1.0)
    assert coalesced([*events, ready]) == [ModelEvent(ModelState.LOADING, "m", 0.4), ready]


def test_events_of_many_threads_arrive_on_the_ui_thread_in_each_threads_order(qtbot: QtBot):
    bridge = Bridge(tick_ms=5)
    texts: dict[str, str] = {}
    threads_seen = set()
    done = []

    def on_event(event):
        threads_seen.add(threading.current_thread())
        if isinstance(event, TokenEvent):
            assert event.request_id not in done
            texts[event.request_id] = texts.get(event.request_id, "") + event.text
        else:
            done.append(event.request_id)

    bridge.request_event.connect(on_event)

    def produce(name: str) -> None:
        for number in range(500):
            bridge.post_event(TokenEvent(name, f"{number},"))
        bridge.post_event(DoneEvent(name, "stop", Usage()))

    producers = [threading.Thread(target=produce, args=(name,)) for name in "abc"]
    for thread in producers:
        thread.start()
    for thread in producers:
        thread.join()
    qtbot.waitUntil(lambda: len(done) == 3)
    expected = "".join(f"{number}," for number in range(500))
    assert texts == {"a": expected, "b": expected, "c": expected}
    assert threads_seen == {threading.main_thread()}


def test_the_first_token_is_not_held_back_and_the_next_ones_wait_for_the_tick(qtbot: QtBot):
    bridge = Bridge(tick_ms=150)
    arrived = []
    bridge.request_event.connect(lambda event: arrived.append(event.text))
    bridge.post_event(TokenEvent("a", "1"))
    qtbot.waitUntil(lambda: arrived == ["1"], timeout=100)
    for text in "234":
        bridge.post_event(TokenEvent("a", text))
    qtbot.wait(40)
    assert arrived == ["1"]
    qtbot.waitUntil(lambda: arrived == ["1", "234"], timeout=1000)


def test_a_hotkey_does_not_wait_for_the_tick(qtbot: QtBot):
    bridge = Bridge(tick_ms=10_000)
    bridge.post_event(TokenEvent("a", "1"))
    with qtbot.waitSignal(bridge.hotkey_pressed, timeout=500) as blocker:
        threading.Thread(target=bridge.post_hotkey, args=("action.summarize",)).start()
    assert blocker.args == ["action.summarize"]
