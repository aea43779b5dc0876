"""The window of models with a scripted engine and a store in a temporary folder: switching, plans, files, downloads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from app.engine_client import FakeClient
from app.models.download import Download, DownloadState
from app.models.model_list import ListedModel
from app.qt.bridge import Bridge
from app.qt.error_text import error_notice
from app.qt.models.binding import ModelBinding
from app.qt.models.owner import ModelOwner
from app.qt.models.row import ModelRow, RowAction
from app.qt.models.switcher import ModelSwitcher
from app.qt.status import Status
from app.remote.client import RemoteClient
from app.remote.routed_client import RoutedClient
from app.settings.registry import setting_registry
from app.settings.settings import Settings
from app.translation import Translator
from inference.errors import DownloadCancelledError, OutOfMemoryError
from inference.formats.transfer import IsCancelled, OnProgress
from inference.request import ModelEvent, ModelPlan, ModelState
from inference.store.model_store import ModelStore
from tests.app.models.test_model_list import write_gguf
from tests.app.remote.remote_server import Script, serve

SMALL = "smollm2-135m-instruct"


class Store(ModelStore):
    """Fetches nothing until it is let; then the model is there."""

    arrives = False

    def pull(self, model_id: str, on_progress: OnProgress | None = None, cancelled: IsCancelled | None = None) -> Path:
        assert on_progress is not None
        assert cancelled is not None
        on_progress(10, 100, "Fetching.")
        while not Store.arrives:
            if cancelled():
                raise DownloadCancelledError("Stopped.")
        return write_gguf(self.where(model_id))


class Rig:
    """An owner with all that it needs."""

    def __init__(self, qtbot: QtBot, folder: Path) -> None:
        self.qtbot, self.root = qtbot, folder / "models"
        self.settings = Settings.load(folder / "settings.toml", setting_registry([]))
        self.settings.set("model.default", "mine")
        self.local = FakeClient()
        self.client = RoutedClient(self.local, RemoteClient())
        self.bridge = Bridge(tick_ms=1)
        self.status = Status()
        self.translator = Translator("en")
        self.binding = ModelBinding(self.settings, self.translator, self.client, self.default_model, self.bridge)
        self.owner = ModelOwner(
            self.settings,
            self.translator,
            self.client,
            self.default_model,
            self.bridge,
            self.binding.remote,
            self.binding,
            store=lambda: Store(self.root),
        )
        self.binding._owner = self.owner
        self.client.listen(self.bridge.post_event)
        self.bridge.model_event.connect(self.on_event)

    def default_model(self) -> str:
        address = self.client.address
        if self.settings.flag("remote.enabled") and address is not None:
            return address.id
        return self.settings.text("model.default")

    def on_event(self, event: ModelEvent) -> None:
        heading = "" if event.error is None else error_notice(event.error, self.translator).heading
        self.status = self.status.after(event, heading)
        self.binding.set_status(self.status)

    def open(self, *models: str) -> Rig:
        """Opens the window, and waits until it lists these files of the store."""
        for name in models:
            write_gguf(self.root / f"{name}.gguf", name)
        self.binding.open()
        self.qtbot.waitUntil(lambda: all(self.id(name) in self.window.rows for name in models))
        return self.play()

    def play(self) -> Rig:
        self.qtbot.wait(20)
        self.local.play()
        self.qtbot.wait(20)
        return self

    def id(self, name: str) -> str:
        return str(self.root / f"{name}.gguf")

    @property
    def window(self) -> ModelSwitcher:
        assert self.owner.window is not None
        return self.owner.window

    def row(self, name: str) -> ModelRow:
        return self.window.rows[self.id(name)]

    def says(self, row: ModelRow) -> str:
        return "\n".join(label.text() for label in row.findChildren(QLabel) if not label.isHidden())


@pytest.fixture
def rig(qtbot: QtBot, tmp_path: Path) -> Iterator[Rig]:
    Store.arrives = False
    rig = Rig(qtbot, tmp_path)
    yield rig
    Store.arrives = True
    rig.binding.close()
    rig.client.close()
    if rig.owner.window is not None:
        rig.owner.window.close()


def fitting(model: str, **changes: object) -> ModelPlan:
    return replace(ModelPlan(model, "cpu", 4096, 2**30, 0, 0, 2**31, 8192), **changes)  # type: ignore[arg-type]


def test_one_click_switches_and_is_kept(rig: Rig) -> None:
    rig.open("one", "two")
    rig.row("two").primary.click()
    rig.play()
    assert rig.local.reading().model == rig.id("two")
    assert rig.says(rig.row("two")).count("In use") == 1
    assert rig.settings.text("model.default") == rig.id("two")
    assert rig.id("two") in rig.settings.path.read_text(encoding="utf-8")
    assert rig.window.resident.title.text() == "two"


def test_plans_are_asked_for_the_chosen_context_and_again_after_a_change(rig: Rig) -> None:
    rig.local.plans = {rig.id("one"): fitting("one")}
    rig.open("one")
    assert "✓ Fits: needs 1.00 GB of 2.00 GB" in rig.says(rig.row("one"))
    rig.local.plans = {rig.id("one"): fitting("one", available_bytes=2**29, largest_context_tokens=2048)}
    rig.window.resident.context_chosen.emit(8192)
    rig.play()
    assert rig.settings.integer("model.context_tokens") == 8192
    assert "✗ Does not fit" in rig.says(rig.row("one"))
    assert rig.row("one").primary.text() == "Use with 2,048 tokens"
    rig.row("one").primary.click()
    rig.play()
    assert rig.settings.integer("model.context_tokens") == 2048
    assert rig.local.reading().model == rig.id("one")


def test_a_refused_load_says_why_and_what_was_there_stays(rig: Rig) -> None:
    rig.open("one", "two")
    rig.owner.use(rig.row("one").state.model)  # type: ignore[union-attr]
    rig.play()
    error = OutOfMemoryError(8 * 2**30, 2**30, "Close other programs.")
    rig.bridge.post_event(ModelEvent(ModelState.FAILED, rig.id("two"), error=error))
    rig.bridge.post_event(ModelEvent(ModelState.READY, rig.id("one"), 1.0))
    rig.qtbot.waitUntil(lambda: rig.window.notice.isVisible())
    assert "8.00 GB" in rig.window.notice.shown.text
    assert "In use" in rig.says(rig.row("one"))
    rig.bridge.post_event(ModelEvent(ModelState.LOADING, rig.id("two")))
    rig.qtbot.waitUntil(lambda: not rig.window.notice.isVisible())


def test_the_memory_can_be_freed(rig: Rig) -> None:
    rig.open("one")
    rig.binding.free_requested.connect(rig.client.unload)
    rig.owner.free_requested.connect(rig.binding.free_requested)
    rig.row("one").primary.click()
    rig.play()
    rig.window.resident.free_requested.emit()
    rig.play()
    assert rig.local.reading().state is ModelState.EMPTY
    assert rig.window.resident.caption.text() == "Nothing is in memory"


def download_of(rig: Rig, state: DownloadState) -> Callable[[], bool]:
    def reached() -> bool:
        download: Download | None = rig.owner.downloads.get(SMALL)
        return download is not None and download.state is state

    return reached


def test_a_download_pauses_goes_on_and_arrives(rig: Rig) -> None:
    rig.settings.set("model.default", SMALL)
    rig.open()
    rig.qtbot.waitUntil(lambda: SMALL in rig.window.rows)
    rig.qtbot.wait(20)
    row = rig.window.rows[SMALL]
    assert "Recommended" in rig.says(row)
    row.primary.click()
    rig.qtbot.waitUntil(lambda: row.primary.text() == "Pause")
    row.primary.click()
    rig.qtbot.waitUntil(download_of(rig, DownloadState.PAUSED))
    rig.qtbot.waitUntil(lambda: row.primary.text() == "Go on")
    with rig.qtbot.waitSignal(rig.owner.arrived) as arrived:
        Store.arrives = True
        row.primary.click()
    assert arrived.args == ["SmolLM2 135M Instruct"]
    rig.play()
    assert rig.local.reading().model == SMALL  # it was waited for


def test_cancel_forgets_the_download(rig: Rig) -> None:
    rig.open()
    rig.qtbot.waitUntil(lambda: SMALL in rig.window.rows)
    row = rig.window.rows[SMALL]
    row.primary.click()
    rig.qtbot.waitUntil(lambda: row.primary.text() == "Pause")
    row.secondary.click()
    rig.qtbot.waitUntil(lambda: row.primary.text() == "Download")
    assert rig.owner.downloads.get(SMALL) is None


def test_a_file_is_added_and_taken_off(rig: Rig, tmp_path: Path) -> None:
    rig.open()
    other = write_gguf(tmp_path / "other.gguf")
    rig.window.file_added.emit(str(other))
    rig.qtbot.waitUntil(lambda: str(other) in rig.window.rows)
    rig.window.requested.emit(str(other), RowAction.FORGET)
    rig.qtbot.waitUntil(lambda: str(other) not in rig.window.rows)
    assert other.exists()
    rig.window.file_added.emit("a:b;c")
    assert rig.window.notice.isVisible()


def test_deleting_asks_first(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.open("one")
    asked: list[ListedModel] = []
    monkeypatch.setattr(rig.window, "confirm_deletion", lambda model: asked.append(model))
    rig.window.requested.emit(rig.id("one"), RowAction.DELETE)
    rig.play()
    assert Path(rig.id("one")).exists()
    monkeypatch.setattr(rig.window, "confirm_deletion", lambda model: True)
    rig.window.requested.emit(rig.id("one"), RowAction.DELETE)
    rig.qtbot.waitUntil(lambda: rig.id("one") not in rig.window.rows)
    assert not Path(rig.id("one")).exists()
    assert len(asked) == 1


def test_a_check_tells_what_it_found(rig: Rig) -> None:
    rig.open("one")
    rig.window.requested.emit(rig.id("one"), RowAction.CHECK)
    assert "Checking that every byte is right…" in rig.says(rig.row("one"))
    # The file of the test is a table without a model.
    rig.qtbot.waitUntil(lambda: rig.window.notice.isVisible())
    assert "Checking" not in rig.says(rig.row("one"))


def test_a_server_takes_over_and_gives_back(rig: Rig) -> None:
    rig.open("one")
    with serve(Script()) as script:
        rig.settings.set("remote.url", script.url)
        rig.settings.set("remote.model", "small")
        rig.qtbot.waitUntil(lambda: rig.client.address is not None)
        assert rig.client.address is not None
        remote_id = rig.client.address.id
        rig.qtbot.waitUntil(lambda: remote_id in rig.window.rows)
        assert not rig.client.is_remote
        rig.window.rows[remote_id].primary.click()
        rig.qtbot.waitUntil(lambda: rig.status.remote_host != "" and rig.status.model_state is ModelState.READY)
        assert rig.client.is_remote
        assert "In use" in rig.says(rig.window.rows[remote_id])
        assert rig.window.resident.badge.host == rig.status.remote_host
        assert "Another program here" in rig.status.sentence(rig.translator)
        rig.row("one").primary.click()
        rig.play()
        assert not rig.client.is_remote
        assert not rig.settings.flag("remote.enabled")
        assert rig.status.remote_host == ""


def test_plain_http_over_a_network_is_refused_until_it_is_allowed(rig: Rig) -> None:
    rig.open("one")
    rig.settings.set("remote.url", "http://192.0.2.1:8000")
    rig.qtbot.waitUntil(lambda: rig.window.notice.isVisible())
    assert "not be encrypted" in rig.window.notice.shown.text
    assert rig.client.address is None
    rig.settings.set("remote.allow_http", True)
    rig.qtbot.waitUntil(lambda: rig.client.address is not None)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_look_at_the_disk_that_fails_is_not_the_last_one(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.open("one")

    def fail(*_args: object) -> None:
        raise MemoryError("something that nobody foresaw")

    with monkeypatch.context() as disk:
        disk.setattr(rig.owner._list, "models", fail)
        rig.owner.refresh()
        rig.qtbot.waitUntil(lambda: not rig.owner._is_listing)
    assert rig.id("one") in rig.window.rows
    rig.open("two")
