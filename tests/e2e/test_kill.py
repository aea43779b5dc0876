"""The running app, killed while it answers: the next start finds nothing in its way, and every answer that was seen."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from app.history.history import History
from app.paths import history_file
from inference.errors import ModelNotFoundError
from inference.store.model_store import ModelStore
from tests.e2e.conftest import App, Editor
from tests.x_display import XDisplay

TEXT = "The meeting moves to Tuesday. Anna brings the plans."
HOTKEY = "ctrl+shift+1"
ENDLESS = ("--pieces", json.dumps(["word "] * 5000), "--piece-ms", "10")
MODEL = "smollm2-135m-instruct"
KILLS = 4
KILLS_OF_REAL_MODEL = 2
MAX_DELAY_S = 0.3


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    """When to kill; the seed is printed, and KILL_SEED repeats it."""
    seed = int(os.environ.get("KILL_SEED", random.SystemRandom().randrange(1 << 31)))
    print(f"{request.node.name}: KILL_SEED={seed}")  # noqa: T201 - shown where the test fails
    return random.Random(seed)


def kill(app: App) -> None:
    app.process.send_signal(signal.SIGKILL)
    app.process.wait(5)


def kept_answers() -> list[str]:
    """What the history has, read as the next start does."""
    history = History(history_file())
    assert history.problem is None
    answers = [result.answer for result in history.results()]
    history.close()
    return answers


def test_while_it_answers(
    display: XDisplay, editor: Editor, start_app: Callable[..., App], chance: random.Random
) -> None:
    for count in range(KILLS):
        app = start_app("--pieces", json.dumps([f"Answer {count}."]))
        editor.focus()
        editor.select_all(TEXT)
        display.tap(HOTKEY)
        assert app.wait_for_popup("finished")["text"] == f"Answer {count}."
        # What the user has seen as finished is kept, however soon the end comes.
        kill(app)
        expected = [f"Answer {number}." for number in range(count, -1, -1)]
        assert kept_answers() == expected
        app = start_app(*ENDLESS)
        editor.focus()
        display.tap(HOTKEY)
        app.wait_for_popup("streaming")
        time.sleep(chance.uniform(0, MAX_DELAY_S))  # the moment is what is tried
        kill(app)
        assert kept_answers() == expected


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_while_a_real_model_answers(
    display: XDisplay, editor: Editor, start_app: Callable[..., App], chance: random.Random
) -> None:
    """The model's memory and the lock on the device are free for the next start."""
    try:
        ModelStore().resolve(MODEL)
    except ModelNotFoundError:
        pytest.skip(f"the model {MODEL} is not on this machine: deskinfer models pull {MODEL}")
    settings = Path(os.environ["XDG_CONFIG_HOME"]) / "deskinfer" / "settings.toml"
    settings.parent.mkdir()
    settings.write_text(f'[model]\ndefault = "{MODEL}"\ncontext_tokens = 2048\n')
    for _ in range(KILLS_OF_REAL_MODEL):
        app = start_app("--real")
        editor.focus()
        editor.select_all(TEXT * 8)
        display.tap(HOTKEY)
        app.wait_for_popup("streaming", timeout_s=120)
        time.sleep(chance.uniform(0, MAX_DELAY_S))
        kill(app)
    app = start_app("--real")
    editor.focus()
    editor.select_all(TEXT)
    display.tap(HOTKEY)
    assert app.wait_for_popup("finished", timeout_s=120)["text"]
    app.process.send_signal(signal.SIGTERM)
    app.process.wait(10)
    assert len(kept_answers()) == 1
