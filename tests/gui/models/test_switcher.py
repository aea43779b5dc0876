"""The window of models in every state, without an engine: what it says and what its buttons ask for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtWidgets import QAbstractButton, QComboBox, QLabel, QPushButton
from pytestqt.qtbot import QtBot

from app.memory.holders import MemoryHolder
from app.models.download import Download, DownloadState
from app.models.model_list import ListedModel, Origin
from app.qt.look.notice import Notice
from app.qt.models.row import ModelRow, RowAction, RowState
from app.qt.models.switcher import ModelSwitcher
from app.qt.models.text import download_line, parameters_text
from app.qt.status import Status
from app.translation import Translator
from inference.errors import DownloadError, ModelFormatError
from inference.request import EngineReading, ModelPlan, ModelState

GIB = 1024**3
MODEL = ListedModel("m", "Model 1B", Origin.CATALOG, Path("/m"), 1_500_000_000, "Q4_K_M", GIB, licence="Apache-2.0")
ABSENT = replace(MODEL, path=None, min_ram_bytes=4 * GIB)
REMOTE = ListedModel("remote:box:1/big", "big", Origin.REMOTE)
FITS = ModelPlan("m", "cpu", 4096, GIB, 0, 0, 3 * GIB, 8192, trained_context_tokens=32768)


def shown(row: ModelRow) -> str:
    return "\n".join(label.text() for label in row.findChildren(QLabel) if not label.isHidden())


@pytest.fixture
def row(qtbot: QtBot, translator: Translator) -> ModelRow:
    row = ModelRow(translator)
    qtbot.addWidget(row)
    return row


def buttons(row: ModelRow) -> list[str]:
    return [b.text() for b in (row.secondary, row.primary) if not b.isHidden()]


def test_a_model_that_fits_can_be_used(qtbot: QtBot, row: ModelRow) -> None:
    row.show_state(RowState(MODEL, plan=FITS))
    text = shown(row)
    assert "1.5B parameters · Q4_K_M · 1.00 GB on the disk · Apache-2.0" in text
    assert "✓ Fits: needs 1.00 GB of 3.00 GB" in text
    with qtbot.waitSignal(row.requested) as asked:
        row.primary.click()
    assert asked.args == [RowAction.USE]
    assert row.primary.accessibleName() == "Use: Model 1B"


def test_a_size_that_only_the_hub_knows_is_told_roughly(row: ModelRow) -> None:
    row.show_state(RowState(replace(ABSENT, num_bytes=0, about_bytes=6 * GIB, quantization="BF16")))
    assert "1.5B parameters · BF16 · about 6.00 GB · Apache-2.0" in shown(row)


def test_what_would_leave_is_counted_and_named(row: ModelRow) -> None:
    row.show_state(RowState(MODEL, plan=replace(FITS, freed_bytes=GIB), leaves="Other"))
    assert "once Other has left" in shown(row)


def test_a_refusal_says_what_is_missing_and_who_holds_it(row: ModelRow) -> None:
    refused = replace(FITS, available_bytes=GIB // 2, largest_context_tokens=0)
    holders = (MemoryHolder("browser", 2 * GIB),)
    row.show_state(RowState(MODEL, plan=refused, holders=holders))
    text = shown(row)
    assert "✗ Does not fit: needs 1.00 GB, and 512 MB are free" in text
    assert "512 MB are missing. These hold the most: browser (2.00 GB)." in text
    assert not row.primary.isEnabled()
    row.show_state(RowState(MODEL, plan=replace(refused, device="cuda:0")))
    assert "use the GPU" in shown(row)


def test_a_shorter_context_is_offered_where_it_fits(qtbot: QtBot, row: ModelRow) -> None:
    row.show_state(RowState(MODEL, plan=replace(FITS, available_bytes=GIB // 2, largest_context_tokens=2048)))
    assert buttons(row) == ["Use with 2,048 tokens"]
    assert "A context of 2,048 tokens would fit." in shown(row)
    with qtbot.waitSignal(row.requested) as asked:
        row.primary.click()
    assert asked.args == [RowAction.USE_SHORTER]


def test_a_model_in_use_has_a_mark_and_no_button(row: ModelRow) -> None:
    row.show_state(RowState(MODEL, is_in_use=True, is_resident=True, plan=FITS))
    assert "In use" in shown(row)
    assert buttons(row) == []
    row.show_state(RowState(MODEL, is_in_use=True, loading=0.42))
    assert "Loading into memory: 42 %" in shown(row)
    assert row.progress.value() == 420
    row.show_state(RowState(MODEL, is_in_use=True, plan=FITS))
    assert "Chosen" in shown(row)
    assert buttons(row) == ["Load"]


def test_a_model_that_cannot_be_used_says_why(row: ModelRow) -> None:
    row.show_state(RowState(replace(MODEL, problem=ModelFormatError("It is damaged. Fetch it again."))))
    assert "✗ Cannot be used" in shown(row)
    assert "It is damaged. Fetch it again." in shown(row)
    assert not row.primary.isEnabled()
    row.show_state(RowState(MODEL, plan=ModelFormatError("Wrong.")))
    assert "✗ The model file is damaged" in shown(row)


def test_a_download_is_offered_with_its_size_and_advice(row: ModelRow) -> None:
    row.show_state(RowState(ABSENT, total_ram_bytes=8 * GIB))
    assert "Suits this machine: wants 4.00 GB of memory, and it has 8.00 GB" in shown(row)
    assert buttons(row) == ["Download"]
    assert not row.primary.property("role")
    row.show_state(RowState(ABSENT, is_in_use=True, total_ram_bytes=2 * GIB))
    assert "✗ Too large for this machine" in shown(row)
    assert "Recommended" in shown(row)
    assert row.primary.property("role") == "primary"


@pytest.mark.parametrize(
    ("state", "names", "says"),
    [
        (DownloadState.RUNNING, ["Cancel", "Pause"], "256 MB of 1.00 GB · 8.0 MB a second · 96 s left"),
        (DownloadState.CHECKING, ["Cancel", "Pause"], "Checking that every byte is right…"),
        (DownloadState.STOPPING, ["Cancel", "Pause"], "Stopping… · 256 MB of 1.00 GB"),
        (DownloadState.PAUSED, ["Cancel", "Go on"], "Paused · 256 MB of 1.00 GB"),
        (DownloadState.FAILED, ["Cancel", "Go on"], "The download stopped · 256 MB of 1.00 GB\nNo network."),
    ],
)
def test_a_download_in_every_state(row: ModelRow, state: DownloadState, names: list[str], says: str) -> None:
    error = DownloadError("No network.") if state is DownloadState.FAILED else None
    rate = 8 * 1024**2 if state is DownloadState.RUNNING else 0
    row.show_state(RowState(ABSENT, download=Download("m", state, GIB // 4, GIB, rate, error=error)))
    assert buttons(row) == names
    assert says.replace("96 s left", "2 min left") in shown(row)
    assert row.progress.value() == 250
    assert row.primary.isEnabled() is (state not in (DownloadState.CHECKING, DownloadState.STOPPING))


def test_a_download_that_has_just_begun_has_no_end_in_sight(row: ModelRow, translator: Translator) -> None:
    row.show_state(RowState(ABSENT, download=Download("m", DownloadState.RUNNING)))
    assert "Looking for the best source…" in shown(row)
    assert row.progress.maximum() == 0
    slow = Download("m", DownloadState.RUNNING, 1, 10 * GIB, 1024**2)
    assert "2.8 h left" in download_line(slow, translator)
    assert "30 s left" in download_line(replace(slow, total_bytes=30 * 1024**2 + 1), translator)


def test_a_server_is_unmistakable(row: ModelRow) -> None:
    row.show_state(RowState(REMOTE))
    assert "↗ Text leaves this machine" in shown(row)
    assert buttons(row) == ["Set up…", "Use"]
    row.show_state(RowState(REMOTE, is_in_use=True))
    assert "In use" in shown(row)


@pytest.mark.parametrize(
    ("model", "entries"),
    [
        (MODEL, ["check", "reveal", "delete"]),
        (replace(MODEL, origin=Origin.FOLDER), ["check", "reveal", "delete"]),
        (replace(MODEL, origin=Origin.ADDED), ["check", "reveal", "forget"]),
        (ABSENT, []),
        (REMOTE, []),
    ],
)
def test_the_menu_has_what_can_be_done(row: ModelRow, model: ListedModel, entries: list[str]) -> None:
    row.show_state(RowState(model))
    assert [action.objectName() for action in row.menu.actions()] == entries
    assert row.more.isHidden() is not bool(entries)


def test_sizes_of_models_are_short() -> None:
    assert [parameters_text(n) for n in (134_515_008, 1_543_714_304, 8_030_261_312)] == ["135M", "1.5B", "8B"]


@pytest.fixture
def window(qtbot: QtBot, translator: Translator) -> ModelSwitcher:
    window = ModelSwitcher(translator)
    qtbot.addWidget(window)
    window.show()
    return window


def headings(window: ModelSwitcher) -> list[str]:
    return [label.text() for label in window._headings]


def test_models_stand_in_groups_and_rows_stay(window: ModelSwitcher) -> None:
    window.set_models([ABSENT, replace(MODEL, id="n"), REMOTE])
    assert headings(window) == ["On this machine", "On a server", "Can be downloaded"]
    row = window.rows["n"]
    window.set_models([replace(MODEL, id="n")])
    assert headings(window) == ["On this machine"]
    assert window.rows == {"n": row}


def test_a_row_grows_with_what_it_says(qtbot: QtBot, window: ModelSwitcher) -> None:
    other = replace(MODEL, id="n")
    window.set_models([MODEL, other])
    window.set_models([MODEL, other])
    window.show_row(RowState(MODEL, plan=FITS))
    qtbot.wait(30)
    window.show_row(RowState(replace(MODEL, problem=ModelFormatError("A long story. " * 40))))
    qtbot.waitUntil(lambda: window.rows["m"].height() == window.rows["m"].heightForWidth(window.rows["m"].width()))
    assert window.rows["n"].y() >= window.rows["m"].geometry().bottom()


def test_the_panel_tells_what_is_in_memory(qtbot: QtBot, window: ModelSwitcher) -> None:
    panel = window.resident
    reading = EngineReading(backend="cpu", weight_bytes=GIB, kv_bytes=GIB // 2, workspace_bytes=GIB // 4)
    panel.show_engine(Status(ModelState.READY, "m"), reading, "Model 1B")
    assert (panel.caption.text(), panel.title.text()) == ("In memory now", "Model 1B")
    assert panel.line.text() == "1.75 GB: weights 1.00 GB, context 512 MB, workspace 256 MB · on the CPU"
    with qtbot.waitSignal(panel.free_requested):
        panel.free_button.click()
    panel.show_engine(Status(ModelState.LOADING, "m", 0.5), EngineReading(), "Model 1B")
    assert panel.line.text() == "50 % are loaded"
    panel.show_engine(Status(ModelState.EMPTY), EngineReading(), "Model 1B")
    assert panel.caption.text() == "Nothing is in memory"
    assert not panel.free_button.isEnabled()
    panel.show_engine(Status(ModelState.FAILED, "m", error="Why"), EngineReading(), "Model 1B")
    assert panel.line.text() == "Why"
    panel.show_engine(Status(ModelState.FAILED, "m"), EngineReading(), "Model 1B", is_here=False)
    assert panel.caption.text() == "Not on this machine yet"
    panel.show_engine(Status(ModelState.READY, REMOTE.id), EngineReading(), "big")
    assert panel.badge.host == "box:1"
    assert not panel.badge.isHidden()


def test_the_context_is_chosen_and_the_largest_offered(qtbot: QtBot, window: ModelSwitcher) -> None:
    panel = window.resident
    panel.show_context(3000, FITS)
    steps = [panel.context.itemData(index) for index in range(panel.context.count())]
    assert steps == [1024, 2048, 3000, 4096, 8192, 16384, 32768]
    assert panel.context.currentText() == "3,000 tokens, about 6 pages"
    with qtbot.waitSignal(panel.context_chosen) as chosen:
        panel.largest_button.click()
    assert chosen.args == [8192]
    panel.show_context(8192, replace(FITS, context_tokens=8192))
    assert panel.largest_button.isHidden()
    panel.show_context(131072, replace(FITS, context_tokens=8192, trained_context_tokens=8192))
    assert panel.context.currentData() == 8192


def test_everything_has_a_name_and_is_reached_by_keyboard(window: ModelSwitcher) -> None:
    window.set_models([MODEL, replace(MODEL, id="n"), ABSENT, REMOTE])
    for control in [*window.findChildren(QAbstractButton), *window.findChildren(QComboBox)]:
        if control.isVisible() and not isinstance(control.parent(), QComboBox):
            assert control.accessibleName() or control.text()
    reached = set()
    widget = window.resident.free_button
    for _ in range(200):
        widget = widget.nextInFocusChain()
        reached.add(widget)
    assert {window.file_button, window.resident.context, *(row.more for row in window.rows.values())} <= reached


def test_a_notice_comes_and_goes(window: ModelSwitcher) -> None:
    window.show_notice(Notice("Not enough memory", "Close something.", is_error=True))
    assert window.notice.isVisible()
    window.show_notice(None)
    assert not window.notice.isVisible()


def test_chinese_cuts_nothing(qtbot: QtBot) -> None:
    window = ModelSwitcher(Translator("zh"))
    qtbot.addWidget(window)
    window.show()
    window.set_models([MODEL])
    for button in window.findChildren(QPushButton):
        if button.isVisible():
            assert button.width() >= button.sizeHint().width(), button.text()
