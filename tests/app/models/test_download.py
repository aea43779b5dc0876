"""Downloads with a scripted store: progress, pause, resume, cancel, failures."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

import pytest

from app.models.download import Download, DownloadState, ModelDownloads
from inference.errors import DownloadCancelledError, DownloadError, InferenceError
from inference.formats.transfer import IsCancelled, OnProgress

WAIT_S = 10.0
TOTAL = 1000


class Store:
    """A store whose downloads the test leads step by step.

    Attributes:
        steps: bytes to be there next, or an error to fail with.
        have: bytes of an unfinished download.
        removed: models that were deleted.
    """

    def __init__(self) -> None:
        self.steps: queue.SimpleQueue[int | Exception] = queue.SimpleQueue()
        self.have = 0
        self.removed: list[str] = []
        self.remove_error: InferenceError | None = None

    def pull(
        self, model_id: str, on_progress: OnProgress | None = None, cancelled: IsCancelled | None = None
    ) -> object:
        assert on_progress is not None
        assert cancelled is not None
        on_progress(0, TOTAL, f"Fetching {model_id}.")
        while self.have < TOTAL:
            try:
                step = self.steps.get(timeout=0.01)
            except queue.Empty:
                step = self.have
            if isinstance(step, Exception):
                raise step
            self.have = max(self.have, step)
            if cancelled():
                raise DownloadCancelledError("Stopped.")
            on_progress(self.have, TOTAL, f"Fetching {model_id}.")
        on_progress(TOTAL, TOTAL, "Checking.")
        return "path"

    def remove(self, model_id: str) -> int:
        if self.remove_error is not None:
            raise self.remove_error
        self.removed.append(model_id)
        self.have = 0
        return TOTAL


class Heard:
    """Snapshots as they are told."""

    def __init__(self) -> None:
        self.queue: queue.SimpleQueue[Download] = queue.SimpleQueue()
        self.all: list[Download] = []

    def __call__(self, download: Download) -> None:
        self.all.append(download)
        self.queue.put(download)

    def wait_for(self, wanted: DownloadState | Callable[[Download], bool]) -> Download:
        while True:
            found = self.queue.get(timeout=WAIT_S)
            if found.state is wanted if isinstance(wanted, DownloadState) else wanted(found):
                return found


class Clock:
    """A second passes whenever it is looked at."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def downloads(store: Store, heard: Heard) -> ModelDownloads:
    return ModelDownloads(lambda: store, heard, Clock())


def test_a_download_tells_how_far_it_is_and_ends(downloads: ModelDownloads, store: Store, heard: Heard) -> None:
    downloads.start("m")
    downloads.start("m")
    store.steps.put(400)
    seen = heard.wait_for(lambda each: each.done_bytes == 400)
    assert (seen.state, seen.total_bytes) == (DownloadState.RUNNING, TOTAL)
    assert downloads.active() == ["m"]
    store.steps.put(TOTAL)
    heard.wait_for(DownloadState.CHECKING)
    heard.wait_for(DownloadState.DONE)
    assert downloads.active() == []
    downloads.forget("m")
    assert downloads.get("m") is None
    downloads.close()


def test_the_rate_and_what_is_left(downloads: ModelDownloads, store: Store, heard: Heard) -> None:
    store.have = 500
    downloads.start("m")
    heard.wait_for(lambda each: each.done_bytes == 500)
    store.steps.put(600)
    seen = heard.wait_for(lambda each: each.done_bytes == 600 and each.rate_bytes_s > 0)
    assert seen.rate_bytes_s <= 100  # what was there before is not counted
    assert seen.remaining_s is not None
    assert seen.remaining_s >= 4
    downloads.close()
    assert Download("m", DownloadState.RUNNING, 5, 0, 10).remaining_s is None


def test_pause_keeps_and_resume_goes_on(downloads: ModelDownloads, store: Store, heard: Heard) -> None:
    downloads.start("m")
    store.steps.put(300)
    heard.wait_for(lambda each: each.done_bytes == 300)
    downloads.pause("m")
    heard.wait_for(DownloadState.STOPPING)
    assert heard.wait_for(DownloadState.PAUSED).done_bytes == 300
    assert (store.have, store.removed) == (300, [])
    downloads.start("m")
    assert heard.wait_for(DownloadState.RUNNING).done_bytes == 300
    store.steps.put(TOTAL)
    heard.wait_for(DownloadState.DONE)
    downloads.close()


def test_cancel_deletes_what_is_there(downloads: ModelDownloads, store: Store, heard: Heard) -> None:
    downloads.start("m")
    store.steps.put(300)
    heard.wait_for(lambda each: each.done_bytes == 300)
    downloads.cancel("m")
    assert heard.wait_for(DownloadState.CANCELLED).done_bytes == 0
    assert store.removed == ["m"]
    downloads.close()


def test_what_an_earlier_run_has_left_can_be_cancelled(downloads: ModelDownloads, store: Store, heard: Heard) -> None:
    downloads.pause("m")
    assert downloads.active() == []
    downloads.cancel("m")
    heard.wait_for(DownloadState.CANCELLED)
    assert store.removed == ["m"]
    downloads.close()


def test_a_failure_is_told_and_can_be_tried_again(downloads: ModelDownloads, store: Store, heard: Heard) -> None:
    downloads.start("m")
    store.steps.put(DownloadError("No network."))
    failed = heard.wait_for(DownloadState.FAILED)
    assert str(failed.error) == "No network."
    downloads.start("m")
    assert heard.wait_for(DownloadState.RUNNING).error is None
    store.steps.put(TOTAL)
    heard.wait_for(DownloadState.DONE)
    downloads.start("n")
    store.remove_error = InferenceError("In use.")
    store.have = 0
    downloads.cancel("n")
    assert str(heard.wait_for(DownloadState.FAILED).error) == "In use."
    downloads.close()


def test_what_nobody_foresaw_ends_it_too(
    downloads: ModelDownloads, store: Store, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooked: list[type[BaseException]] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: hooked.append(args.exc_type))
    downloads.start("m")
    store.steps.put(ZeroDivisionError())
    assert heard.wait_for(DownloadState.FAILED).error is not None
    downloads.close()
    assert hooked == [ZeroDivisionError]


def test_close_pauses_everything(downloads: ModelDownloads, store: Store, heard: Heard) -> None:
    downloads.start("m")
    heard.wait_for(DownloadState.RUNNING)
    downloads.close()
    assert heard.all[-1].state is DownloadState.PAUSED


def test_resume_while_it_still_stops_goes_on(store: Store, heard: Heard) -> None:
    gate = threading.Event()

    class Slow(Store):
        def pull(
            self, model_id: str, on_progress: OnProgress | None = None, cancelled: IsCancelled | None = None
        ) -> object:
            try:
                return super().pull(model_id, on_progress, cancelled)
            except DownloadCancelledError:
                gate.wait(WAIT_S)
                raise

    slow = Slow()
    downloads = ModelDownloads(lambda: slow, heard, Clock())
    downloads.start("m")
    heard.wait_for(DownloadState.RUNNING)
    downloads.pause("m")
    downloads.start("m")
    gate.set()
    heard.wait_for(DownloadState.PAUSED)
    heard.wait_for(DownloadState.RUNNING)
    slow.steps.put(TOTAL)
    heard.wait_for(DownloadState.DONE)
    downloads.close()
