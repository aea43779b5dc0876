"""Changed settings reach the engine, and answers that are being written are not cut off."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.engine_client import FakeClient
from app.engine_setup import engine_options
from app.qt.settings import engine_settings
from app.qt.settings.engine_settings import EngineSettings
from app.settings.registry import setting_registry
from app.settings.settings import Settings
from inference.request import GenerationRequest, Message, ModelEvent, ModelState

pytestmark = pytest.mark.gui


class Carried:
    """Settings, a scripted engine with a resident model, and the loads that it was asked for."""

    def __init__(self, path: Path) -> None:
        self.settings = Settings.load(path / "settings.toml", setting_registry([]))
        self.client = FakeClient()
        self.loads: list[str] = []
        self.client.load("old")
        self.client.play()
        self.client.listen(self._note)
        self.carrier = EngineSettings(
            self.settings, self.client, lambda: engine_options(self.settings), lambda: "meant", None
        )

    def _note(self, event: ModelEvent) -> None:
        if event.state is ModelState.READY:
            self.loads.append(event.model)

    def context(self) -> int | None:
        self.client.play()
        return self.client.options.context_tokens if self.client.options else None


@pytest.fixture
def carried(tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> Iterator[Carried]:
    monkeypatch.setattr(engine_settings, "SETTLE_MS", 20)
    monkeypatch.setattr(engine_settings, "POLL_MS", 5)
    carried = Carried(tmp_path)
    yield carried
    carried.carrier.close()


def test_several_changes_are_one_load(carried: Carried, qtbot: QtBot):
    for tokens in (5000, 6000, 7000):
        carried.settings.set("model.context_tokens", tokens)
    assert carried.context() is None
    qtbot.waitUntil(lambda: carried.context() == 7000)
    assert carried.loads == ["meant"]


@pytest.mark.parametrize(("key", "value"), [("engine.threads", 2), ("engine.vram", "1GiB"), ("model.default", "other")])
def test_what_concerns_the_engine_loads_the_model_anew(carried: Carried, qtbot: QtBot, key: str, value: str | int):
    carried.settings.set(key, value)
    qtbot.waitUntil(lambda: carried.context() is not None)
    assert carried.loads == ["meant"]


def test_what_does_not_concern_the_engine_leaves_it_alone(carried: Carried, qtbot: QtBot):
    carried.settings.set("popup.font_size", 20)
    carried.settings.set("hub.endpoint", "https://hub.example.org")
    qtbot.wait(60)
    assert carried.context() is None
    assert carried.loads == []


def test_without_a_resident_model_nothing_is_loaded(carried: Carried, qtbot: QtBot):
    carried.client.unload()
    carried.client.play()
    carried.settings.set("model.context_tokens", 5000)
    qtbot.waitUntil(lambda: carried.context() == 5000)
    assert carried.loads == []


def test_an_answer_is_waited_for_or_ended_on_demand(carried: Carried, qtbot: QtBot):
    carried.client.submit(GenerationRequest((Message("user", "a b c"),)), lambda event: None)
    carried.settings.set("model.context_tokens", 5000)
    with qtbot.waitSignal(carried.carrier.waiting_changed, check_params_cb=lambda waits: waits):
        pass
    assert carried.client.options is None
    assert carried.context() is None  # the answer is played to its end
    qtbot.waitUntil(lambda: carried.context() == 5000)
    assert not carried.carrier.is_waiting
    carried.client.submit(GenerationRequest((Message("user", "d e f"),)), lambda event: None)
    carried.settings.set("model.context_tokens", 6000)
    qtbot.waitUntil(lambda: carried.carrier.is_waiting)
    carried.carrier.apply_now()
    assert carried.client.options is not None
    assert carried.client.options.context_tokens == 6000
