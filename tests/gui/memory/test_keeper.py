"""Memory given back: at once and with a word, when idle, for games, after a sleep; never while the model is in use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtWidgets import QPlainTextEdit
from pytestqt.qtbot import QtBot

from app.desktop.fake_desktop import FakeDesktop
from app.desktop.protocols import Window
from app.engine_client import FakeClient
from app.memory.sleep_watch import SleepWatch
from app.qt.memory.keeper import MemoryKeeper
from app.settings.registry import setting_registry
from app.settings.settings import Settings
from inference.request import EngineReading, ModelEvent, ModelState

pytestmark = pytest.mark.gui

READY = EngineReading(state=ModelState.READY, model="tiny", backend="cuda", weight_bytes=3 << 29)


class Engine(FakeClient):
    """Tells the reading that a test sets; notes what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.shown = READY
        self.asked: list[str] = []

    def reading(self) -> EngineReading:
        return self.shown

    def load(self, model: str) -> None:
        self.asked.append(f"load {model}")

    def unload(self) -> None:
        self.asked.append("unload")


class Bench:
    """A keeper whose clock, screen and sleeps a test moves."""

    def __init__(self, folder: Path) -> None:
        self.now_s, self.slept_s = 1000.0, 0.0
        self.engine, self.desktop = Engine(), FakeDesktop(Window(7, "game"))
        self.settings = Settings(folder / "settings.toml", setting_registry([]))
        self.parameters = folder / "params"
        sleep = SleepWatch(lambda: self.slept_s, self.parameters)
        self.keeper = MemoryKeeper(self.engine, self.settings, self.desktop, sleep, lambda: self.now_s)
        self.told: list[tuple[str, str]] = []
        self.keeper.told.connect(lambda title, text: self.told.append((str(title), str(text))))

    def enter(self, state: ModelState) -> None:
        self.keeper.on_model_event(ModelEvent(state, "tiny", 1.0))

    def pass_time(self, seconds: float) -> None:
        """What the timer does once it is due."""
        self.now_s += seconds
        self.keeper._look_at_clock()


@pytest.fixture
def bench(tmp_path: Path, qapp: object) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.keeper.close()


def test_an_idle_model_leaves_and_the_reason_stands(bench: Bench):
    bench.enter(ModelState.READY)
    bench.pass_time(14 * 60)
    assert bench.engine.asked == []
    bench.pass_time(61)
    assert bench.engine.asked == ["unload"]
    assert "15 min without use" in str(bench.keeper.reason)
    bench.enter(ModelState.EMPTY)
    assert not bench.keeper._idle.isActive()
    assert not bench.keeper._watch.isActive()
    assert bench.told == []
    bench.enter(ModelState.LOADING)
    assert bench.keeper.reason is None


def test_zero_minutes_never_and_a_change_holds_at_once(bench: Bench):
    bench.settings.set("model.idle_minutes", 0)
    bench.enter(ModelState.READY)
    bench.pass_time(99_999)
    assert bench.engine.asked == []
    assert not bench.keeper._idle.isActive()
    bench.settings.set("model.idle_minutes", 1)
    assert bench.engine.asked == ["unload"]


def test_a_request_keeps_it(bench: Bench):
    bench.enter(ModelState.READY)
    bench.engine.shown = replace(READY, running=1)
    bench.pass_time(99_999)
    assert bench.engine.asked == []
    assert bench.keeper._idle.isActive()


def test_typing_in_a_window_of_ours_keeps_it(bench: Bench, qtbot: QtBot):
    field = QPlainTextEdit()
    qtbot.addWidget(field)
    field.show()
    field.setFocus()
    qtbot.waitUntil(field.hasFocus)
    bench.enter(ModelState.READY)
    bench.now_s += 14 * 60
    qtbot.keyClicks(field, "hello")
    bench.pass_time(14 * 60)
    assert bench.engine.asked == []
    bench.pass_time(61)
    assert bench.engine.asked == ["unload"]


def test_the_timer_really_fires(bench: Bench, qtbot: QtBot):
    bench.enter(ModelState.READY)
    bench.now_s += 15 * 60 - 0.01
    bench.keeper._look_at_clock()
    bench.now_s += 1
    qtbot.waitUntil(lambda: bench.engine.asked == ["unload"], timeout=3000)


def test_a_game_gets_the_gpu_once(bench: Bench):
    bench.enter(ModelState.READY)
    assert bench.keeper._watch.isActive()
    bench.now_s += 60
    bench.keeper.look()
    assert bench.engine.asked == []
    bench.desktop.is_full_screen = True
    bench.keeper.look()
    bench.keeper.look()
    assert bench.engine.asked == ["unload"]
    assert "full-screen" in str(bench.keeper.reason)


def test_a_game_gets_nothing_where_the_user_does_not_want_it(bench: Bench):
    bench.settings.set("model.unload_full_screen", False)
    bench.enter(ModelState.READY)
    bench.desktop.is_full_screen = True
    bench.now_s += 60
    bench.keeper.look()
    assert bench.engine.asked == []


def test_a_model_in_main_memory_is_in_no_games_way(bench: Bench):
    bench.engine.shown = replace(READY, backend="cpu")
    bench.enter(ModelState.READY)
    assert not bench.keeper._watch.isActive()


def test_after_a_sleep_the_model_is_loaded_again_unless_the_driver_keeps_it(bench: Bench):
    bench.enter(ModelState.READY)
    bench.slept_s = 3600.0
    bench.parameters.write_text("PreserveVideoMemoryAllocations: 1\n")
    bench.keeper.look()
    assert bench.engine.asked == []
    bench.slept_s = 7200.0
    bench.parameters.write_text("PreserveVideoMemoryAllocations: 0\n")
    bench.keeper.look()
    assert bench.engine.asked == ["unload", "load tiny"]
    assert [title for title, _ in bench.told] == ["The model is loaded again"]


@pytest.mark.parametrize(
    ("reading", "expected"),
    [
        (READY, "1.50 GB of GPU memory are free again. The next action loads the model anew."),
        (replace(READY, backend="cpu", running=1), "The answer that was being written has ended."),
    ],
)
def test_freed_at_once_it_says_how_much(bench: Bench, reading: EngineReading, expected: str):
    bench.engine.shown = reading
    bench.enter(ModelState.READY)
    bench.keeper.free_now()
    assert bench.engine.asked == ["unload"]
    assert bench.told == []  # not before it is true
    bench.enter(ModelState.EMPTY)
    ((title, text),) = bench.told
    assert title == "The model has left the memory"
    assert expected in text
    bench.enter(ModelState.EMPTY)
    assert len(bench.told) == 1
