"""The memory meter: what it says, and that it reads only while somebody looks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from app.memory.reading import MemoryReader, MemoryReading
from app.memory.vram import GpuWatch
from app.qt.memory.feed import MemoryFeed
from app.qt.memory.meter import VramMeter
from app.translation import Translator, UserText
from inference.request import EngineReading, ModelState
from tests.gui.conftest import ScriptedSource
from tests.nvml_stub.library import GPU_IS_LOST, NvmlStub

pytestmark = pytest.mark.gui


def texts(meter: VramMeter) -> list[str]:
    return [label.text() for label in meter.findChildren(QLabel) if label.isVisible() and label.text()]


@pytest.mark.parametrize("compact", [False, True])
def test_it_reads_when_it_is_shown_and_lets_go_when_it_is_hidden(
    qtbot: QtBot, memory_feed: MemoryFeed, memory_source: ScriptedSource, compact: bool
):
    meter = VramMeter(memory_feed, Translator("en"), compact)
    qtbot.addWidget(meter)
    assert memory_source.reads == 0
    with qtbot.waitSignal(memory_feed.changed):
        meter.show()
    expected = "DeskInfer 1.00 GB, its driver 256 MB, Others 512 MB, Free 2.25 GB of 4.00 GB"
    assert meter._legend.accessibleName() == expected
    assert meter.sentence() == f"GPU memory, RTX 3050, {expected}"
    assert meter._picture.accessibleDescription() == meter.sentence()
    assert all(part in meter._legend.text().replace("\u00a0", " ") for part in expected.split(", "))
    meter.hide()
    assert memory_source.closed.wait(2)
    reads = memory_source.reads
    qtbot.wait(20)
    assert memory_source.reads == reads


def test_in_main_memory_the_models_part_of_the_program_is_told(
    qtbot: QtBot, memory_feed: MemoryFeed, memory_source: ScriptedSource
):
    memory_source.reading = MemoryReading(0.0, "ram", "", 8 << 30, 3 << 29, 0, 2 << 30, 1 << 30)
    meter = VramMeter(memory_feed, Translator("en"), compact=True)
    qtbot.addWidget(meter)
    with qtbot.waitSignal(memory_feed.changed):
        meter.show()
    assert meter._legend.accessibleName().startswith("DeskInfer 1.50 GB, 1.00 GB of it the model, Others 2.00 GB")
    memory_source.reading = replace(memory_source.reading, model_bytes=0)
    with qtbot.waitSignal(memory_feed.changed, timeout=3000):
        pass
    assert meter._legend.accessibleName().startswith("DeskInfer 1.50 GB, Others 2.00 GB")


@pytest.mark.parametrize("compact", [False, True])
def test_what_it_is_shown_for_is_told_where_there_is_room(
    qtbot: QtBot, memory_feed: MemoryFeed, memory_source: ScriptedSource, compact: bool
):
    note = UserText("The model works in main memory.")
    memory_source.reading = MemoryReading(0.0, "ram", "", 8 << 30, 3 << 29, 0, 2 << 30, 1 << 30, note=note)
    meter = VramMeter(memory_feed, Translator("en"), compact)
    qtbot.addWidget(meter)
    with qtbot.waitSignal(memory_feed.changed):
        meter.show()
    assert (str(note) in texts(meter)) == (not compact)
    assert str(note) in meter.sentence()


def test_the_last_of_two_meters_ends_the_readings(qtbot: QtBot, memory_feed: MemoryFeed, memory_source: ScriptedSource):
    meters = [VramMeter(memory_feed, Translator("en"), compact) for compact in (False, True)]
    for meter in meters:
        qtbot.addWidget(meter)
        meter.show()
    qtbot.waitUntil(lambda: memory_source.reads > 0)
    meters[0].hide()
    assert not memory_source.closed.is_set()
    meters[1].showMinimized()
    assert memory_source.closed.wait(2)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_is_not_known_is_said_with_its_reason_and_comes_back(
    qtbot: QtBot, memory_feed: MemoryFeed, memory_source: ScriptedSource, language: str
):
    translator = Translator(language)
    reason = UserText("the NVIDIA driver failed ({reason})", reason="GPU is lost")
    known = memory_source.reading
    memory_source.reading = replace(known, total_bytes=None, others_bytes=None, driver_bytes=0, unknown=reason)
    meter = VramMeter(memory_feed, translator)
    qtbot.addWidget(meter)
    with qtbot.waitSignal(memory_feed.changed):
        meter.show()
    assert texts(meter)[-1] == translator.tr("Not known: {reason}.", reason=reason)
    assert translator.tr("Others unknown") in meter.sentence()
    memory_source.reading = known
    with qtbot.waitSignal(memory_feed.changed, timeout=3000):
        pass
    assert translator.tr("Others unknown") not in meter.sentence()


def test_the_picture_shows_the_shares(qtbot: QtBot, memory_feed: MemoryFeed, memory_source: ScriptedSource):
    meter = VramMeter(memory_feed, Translator("en"), compact=True)
    qtbot.addWidget(meter)
    meter.resize(400, 80)
    with qtbot.waitSignal(memory_feed.changed):
        meter.show()
    picture = meter._picture.grab().toImage()
    y, width = picture.height() // 2, picture.width()
    ours, driver, others, free = (picture.pixelColor(int(width * at), y) for at in (0.1, 0.28, 0.4, 0.8))
    assert len({color.name() for color in (ours, driver, others, free)}) == 4


def test_no_call_reaches_the_driver_while_the_gpu_sleeps_or_nobody_looks(
    qtbot: QtBot, tmp_path: Path, nvml_stub: NvmlStub, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("app.qt.memory.feed.VISIBLE_INTERVAL_S", 0.01)
    monkeypatch.setattr("app.memory.vram.RETRY_S", 0.05)
    power = tmp_path / "0000:01:00.0" / "power" / "runtime_status"
    power.parent.mkdir(parents=True)
    (power.parent.parent / "vendor").write_text("0x10de\n")
    (power.parent.parent / "class").write_text("0x030000\n")
    power.write_text("active\n")
    engine = EngineReading(state=ModelState.READY, backend="cuda", weight_bytes=1 << 29)
    feed = MemoryFeed(MemoryReader(lambda: engine, GpuWatch(tmp_path)))
    meter = VramMeter(feed, Translator("en"))
    qtbot.addWidget(meter)
    assert nvml_stub.calls == 0
    meter.show()
    qtbot.waitUntil(lambda: "DeskInfer 512 MB, Others 512 MB" in meter.sentence())
    nvml_stub.fail("nvmlDeviceGetMemoryInfo", GPU_IS_LOST)
    qtbot.waitUntil(lambda: "GPU is lost" in meter.sentence())
    power.write_text("suspended\n")
    qtbot.waitUntil(lambda: "is asleep" in meter.sentence())
    calls = nvml_stub.calls
    with qtbot.waitSignals([feed.changed] * 3):
        pass
    assert (nvml_stub.calls, nvml_stub.sessions) == (calls, 0)
    nvml_stub.fail("", 0)
    power.write_text("active\n")
    qtbot.waitUntil(lambda: "Others 512 MB" in meter.sentence())
    meter.hide()  # the model is resident still, but nobody looks
    qtbot.waitUntil(lambda: nvml_stub.sessions == 0)
    calls = nvml_stub.calls
    qtbot.wait(50)
    assert nvml_stub.calls == calls
    feed.close()
