"""The UI thread is never held for long: not while thousands of tokens stream, not while a model loads."""

import sys
import threading
import time
from collections.abc import Callable

import pytest
from PySide6.QtCore import QCoreApplication, QTimer
from pytestqt.qtbot import QtBot

from app.actions.answer_review import Subject
from app.engine_client import ScriptedAnswer
from app.qt.popup.popup import Popup
from app.text.checks import REWRITE_CHECKS
from inference.request import DoneEvent, ModelEvent, ModelState, TokenEvent, Usage
from tests.gui.rig import Rig

pytestmark = pytest.mark.gui

LONGEST_PAUSE_MS = 50.0
BEAT_MS = 2


class Heartbeat:
    """Measures how much CPU time the UI thread spends between two beats.

    Its own CPU time, since on a machine shared with other jobs the wall time also counts when others run.
    """

    def __init__(self) -> None:
        self.longest_ms = 0.0
        self._last_s = time.thread_time()
        self._timer = QTimer(interval=BEAT_MS)
        self._timer.timeout.connect(self._beat)
        self._timer.start()

    def _beat(self) -> None:
        now_s = time.thread_time()
        self.longest_ms = max(self.longest_ms, 1000 * (now_s - self._last_s))
        self._last_s = now_s

    def stop(self) -> float:
        self._timer.stop()
        return self.longest_ms


WORDS = ["The ", "release ", "was ", "moved ", "to ", "Friday.\n", "模型", "说明。\n", "مرحبا ", "x" * 40 + " "]


@pytest.mark.parametrize("breaks_lines", [True, False])
def test_three_thousand_tokens(make_rig: Callable[..., Rig], qtbot: QtBot, breaks_lines: bool):
    rig = make_rig(ScriptedAnswer("unused"))
    rig.controller.run_text("summarize", "text")
    request_id = rig.client.submitted[0].request_id
    words = [word if breaks_lines else word.replace("\n", " ") for word in WORDS]

    def stream() -> None:
        for number in range(3000):
            rig.bridge.post_event(TokenEvent(request_id, words[number % len(words)]))
            if number % 10 == 0:
                time.sleep(0.002)
        rig.bridge.post_event(DoneEvent(request_id, "stop", Usage(new_tokens=3000, decode_ms=3000.0)))

    qtbot.wait(50)
    heartbeat = Heartbeat()
    thread = threading.Thread(target=stream)
    thread.start()
    qtbot.waitUntil(lambda: rig.popup.retry_button.isVisible(), timeout=30_000)
    thread.join()
    assert heartbeat.stop() < LONGEST_PAUSE_MS
    assert rig.answer_text() == "".join(words) * 300


def test_a_long_rewrite_is_compared_and_shown(popup: Popup, qtbot: QtBot):
    source = "\n".join(f"teh line {number} has {number * 7} words, i think, and adn a end." for number in range(400))
    answer = source.replace("teh", "The").replace("i think", "I think").replace("adn a", "an")
    popup.show()
    popup.begin("Rewrite", "", Subject(source, "changes", True, REWRITE_CHECKS, ("en", "en")))
    qtbot.wait(50)
    heartbeat = Heartbeat()
    for start in range(0, len(answer), 400):
        popup.append(answer[start : start + 400])
        qtbot.wait(BEAT_MS + 1)
    popup.finish("model")
    view = popup.pages.diff_view
    qtbot.waitUntil(lambda: bool(view.changes) and not view._timer.isActive(), timeout=30_000)
    view.go(-1)
    view.toggle_current()
    qtbot.wait(20)
    assert len(view.changes) == 1200
    assert heartbeat.stop() < LONGEST_PAUSE_MS


def test_a_load_with_many_reports(make_rig: Callable[..., Rig], qtbot: QtBot):
    rig = make_rig(ScriptedAnswer("unused"))
    rig.controller.run_text("summarize", "text")
    qtbot.wait(50)
    ready = threading.Event()

    def load() -> None:
        for number in range(2000):
            rig.bridge.post_event(ModelEvent(ModelState.LOADING, "m", number / 2000))
            if number % 20 == 0:
                time.sleep(0.001)
        ready.set()

    heartbeat = Heartbeat()
    thread = threading.Thread(target=load)
    thread.start()
    qtbot.waitUntil(ready.is_set, timeout=30_000)
    thread.join()
    qtbot.wait(20)
    assert heartbeat.stop() < LONGEST_PAUSE_MS
    assert rig.popup.view.placeholderText() == "Loading m: 99 %"


def test_the_heartbeat_notices_a_blocked_thread(qtbot: QtBot):
    heartbeat = Heartbeat()
    qtbot.wait(10)
    end_s = time.thread_time() + 0.08
    while time.thread_time() < end_s:
        pass
    qtbot.wait(10)
    assert heartbeat.stop() >= 80


def test_turning_the_event_loop_keeps_every_reference_to_none(qapp: QCoreApplication):
    """A release of the bindings dropped one at every turn, until the interpreter aborted."""
    QCoreApplication.processEvents()
    before = sys.getrefcount(None)
    for _ in range(1000):
        QCoreApplication.processEvents()
    assert abs(sys.getrefcount(None) - before) < 100
