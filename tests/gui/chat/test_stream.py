"""3,000 tokens of Markdown with code and a table: the UI thread is never held for long, and scrolling is the user's."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.engine_client import ScriptedAnswer
from app.qt.chat.desk import pass_over_what_is_there
from app.qt.markdown.view import MarkdownView
from app.translation import Translator
from inference.request import DoneEvent, PrefillEvent, TokenEvent, Usage
from tests.gui.chat.chat_rig import ChatRig
from tests.gui.markdown.test_document import rendering
from tests.gui.test_heartbeat import LONGEST_PAUSE_MS, Heartbeat

pytestmark = pytest.mark.gui

PART = """## Part {n}

Some **bold** words, `code` and 模型 in a sentence that goes on until the line is full, and then a little more.

- first item of {n}
- second item

```python
def part_{n}(value: int) -> str:
    '''Returns something.'''
    return f"{{value}} of {n}"  # why
```

> A quotation.

"""
TABLE = "| row | number | text |\n|-----|-------:|------|\n" + "".join(
    f"| row {n} | {n * 17} | **bold** {n} |\n" for n in range(25)
)
TEXT = "".join(PART.format(n=n) for n in range(40)) + TABLE + "\nThe end.\n"
TOKENS = [TEXT[at : at + 4] for at in range(0, len(TEXT), 4)]


@pytest.fixture
def chat(qtbot: QtBot, tmp_path: Path) -> Iterator[ChatRig]:
    rig = ChatRig(qtbot, tmp_path, ScriptedAnswer("unused"))
    rig.type("Write a lot")
    rig.client.step()
    rig.settle()
    yield rig
    rig.close()


def stream(chat: ChatRig, tokens_per_s: float) -> threading.Thread:
    """Posts the answer from another thread, as the engine does."""
    request_id = chat.state.request_id

    def run() -> None:
        start_s = time.monotonic()
        for number, token in enumerate(TOKENS):
            chat.bridge.post_event(TokenEvent(request_id, token))
            pause_s = start_s + number / tokens_per_s - time.monotonic()
            if pause_s > 0:
                time.sleep(pause_s)
        chat.bridge.post_event(DoneEvent(request_id, "stop", Usage(new_tokens=len(TOKENS), decode_ms=3000.0)))

    chat.bridge.post_event(PrefillEvent(request_id, 8, 8))
    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_the_heartbeat_and_the_rendering(chat: ChatRig, qtbot: QtBot):
    assert len(TOKENS) >= 3000
    pass_over_what_is_there()
    heartbeat = Heartbeat()
    # Far more than the rate that the bar asks for, so that the test is short; a tick then brings more text to render.
    thread = stream(chat, 1000)
    qtbot.waitUntil(lambda: not chat.state.is_answering, timeout=60_000)
    thread.join()
    chat.settle()
    longest_ms = heartbeat.stop()
    gc.unfreeze()
    assert longest_ms < LONGEST_PAUSE_MS
    once = MarkdownView(Translator("en"))
    qtbot.addWidget(once)
    once.setFont(chat.answer().view.font())
    once.set_markdown(TEXT)
    assert rendering(chat.answer().view.document()) == rendering(once.document())
    assert chat.stored[-1][1] == TEXT
    bar = chat.window.transcript.verticalScrollBar()
    assert bar.value() == bar.maximum()


def test_scrolling_up_is_left_alone_and_the_end_is_followed_again(chat: ChatRig, qtbot: QtBot):
    thread = stream(chat, 3000)
    transcript = chat.window.transcript
    bar = transcript.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 400, timeout=20_000)
    wheel = QWheelEvent(
        QPointF(50, 50),
        QPointF(50, 50),
        QPoint(0, 0),
        QPoint(0, 240),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(transcript.viewport(), wheel)
    place = bar.value()
    assert place < bar.maximum()
    qtbot.waitUntil(lambda: not chat.state.is_answering, timeout=60_000)
    thread.join()
    chat.settle()
    assert bar.value() == place
    assert transcript.end_button.isVisible()
    transcript.end_button.click()
    assert bar.value() == bar.maximum()
    assert not transcript.end_button.isVisible()


def test_a_selection_stays_while_text_arrives(chat: ChatRig, qtbot: QtBot):
    request_id = chat.state.request_id
    chat.bridge.post_event(TokenEvent(request_id, "# Title\n\nSome words"))
    chat.settle()
    view: MarkdownView = chat.answer().view
    view.selectAll()
    chat.bridge.post_event(TokenEvent(request_id, " and more\n\nNext."))
    chat.settle()
    assert view.selected_text() == "Title\nSome words"
    copied: Callable[[], str] = view.selected_text
    chat.bridge.post_event(DoneEvent(request_id, "stop", Usage()))
    chat.settle()
    assert copied() == "Title\nSome words"
