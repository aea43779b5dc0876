"""Downloads of models, each on a thread of its own: progress, pause, resume, cancel. Knows no window.

Whatever ends a download, what is there is kept in the store and the next one goes on from it; only `cancel` deletes it.
"""

from __future__ import annotations

import enum
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from inference.errors import DownloadCancelledError, InferenceError
from inference.formats.transfer import IsCancelled, OnProgress

RATE_WINDOW_S = 3.0
TELL_EVERY_S = 0.1
CLOSE_TIMEOUT_S = 2.0


class DownloadState(enum.Enum):
    """Where a download stands. PAUSED, FAILED, CANCELLED and DONE have no thread any more."""

    RUNNING = "running"
    CHECKING = "checking"
    STOPPING = "stopping"
    PAUSED = "paused"
    FAILED = "failed"
    CANCELLED = "cancelled"
    DONE = "done"

    @property
    def is_active(self) -> bool:
        """Whether a thread works on it."""
        return self in (DownloadState.RUNNING, DownloadState.CHECKING, DownloadState.STOPPING)


@dataclass(frozen=True, slots=True)
class Download:
    """A snapshot.

    Attributes:
        total_bytes: 0 while nobody knows.
        rate_bytes_s: over the last seconds; 0 while it is not known.
        note: what goes on, in English.
        error: set where it failed.
    """

    model: str
    state: DownloadState
    done_bytes: int = 0
    total_bytes: int = 0
    rate_bytes_s: float = 0.0
    note: str = ""
    error: InferenceError | None = None

    @property
    def remaining_s(self) -> float | None:
        """Seconds that are left at this rate; None where that cannot be said."""
        if self.rate_bytes_s <= 0 or self.total_bytes <= self.done_bytes:
            return None
        return (self.total_bytes - self.done_bytes) / self.rate_bytes_s


class Store(Protocol):
    """What a download needs of the ModelStore."""

    def pull(
        self, model_id: str, on_progress: OnProgress | None = None, cancelled: IsCancelled | None = None
    ) -> object:
        """Fetches a model, going on from what is there."""
        ...

    def remove(self, model_id: str) -> int:
        """Deletes what is there."""
        ...


class ModelDownloads:
    """Downloads by model. Every method may be called from any thread and returns at once.

    Args:
        open_store: asked for each download, on its thread.
        tell: gets every change of a download, on that download's thread.
    """

    def __init__(
        self,
        open_store: Callable[[], Store],
        tell: Callable[[Download], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._open_store, self._tell, self._clock = open_store, tell, clock
        self._lock = threading.Lock()
        self._jobs: dict[str, _Job] = {}

    def get(self, model: str) -> Download | None:
        """The last snapshot; None where none was started."""
        with self._lock:
            job = self._jobs.get(model)
        return None if job is None else job.download

    def active(self) -> list[str]:
        """Models that are being fetched."""
        with self._lock:
            return [model for model, job in self._jobs.items() if job.download.state.is_active]

    def start(self, model: str) -> None:
        """Fetches a model, or goes on with it; nothing where that is under way."""
        with self._lock:
            before = self._jobs.get(model)
            if before is not None and before.download.state.is_active:
                before.restarts = before.download.state is DownloadState.STOPPING
                return
            done = before.download.done_bytes if before is not None else 0
            total = before.download.total_bytes if before is not None else 0
            job = _Job(self, Download(model, DownloadState.RUNNING, done, total), self._clock)
            self._jobs[model] = job
        job.start()

    def pause(self, model: str) -> None:
        """Stops a download; what is there is kept."""
        self._stop(model, deletes=False)

    def cancel(self, model: str) -> None:
        """Stops a download and deletes what is there."""
        self._stop(model, deletes=True)

    def forget(self, model: str) -> None:
        """Drops the snapshot of a download that has ended."""
        with self._lock:
            job = self._jobs.get(model)
            if job is not None and not job.download.state.is_active:
                del self._jobs[model]

    def close(self) -> None:
        """Pauses all of them and waits a moment for their threads."""
        for model in self.active():
            self.pause(model)
        deadline = time.monotonic() + CLOSE_TIMEOUT_S
        with self._lock:
            threads = [job.thread for job in self._jobs.values() if job.thread is not None]
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, deadline - time.monotonic()))

    def _stop(self, model: str, deletes: bool) -> None:
        with self._lock:
            job = self._jobs.get(model)
            if job is None:
                # Left by an earlier run of the program.
                job = self._jobs[model] = _Job(self, Download(model, DownloadState.PAUSED), self._clock)
        job.stop(deletes)


class _Job:
    """One download and its thread."""

    def __init__(self, owner: ModelDownloads, download: Download, clock: Callable[[], float]) -> None:
        self._owner, self._clock = owner, clock
        self.download = download
        self.thread: threading.Thread | None = None
        self.restarts = False
        self._should_stop = threading.Event()
        self._deletes = False
        self._told_at = 0.0
        self._marks: list[tuple[float, int]] = []

    def start(self) -> None:
        """Runs it on a new thread."""
        self.thread = threading.Thread(target=self._run, name=f"download-{self.download.model}", daemon=True)
        self.thread.start()

    def stop(self, deletes: bool) -> None:
        """Asks the thread to stop; where there is none, deletes at once, on a thread too."""
        self._deletes, self.restarts = deletes, False
        if self.download.state.is_active:
            self._should_stop.set()
            self._change(state=DownloadState.STOPPING, rate_bytes_s=0.0)
        elif deletes:
            self._should_stop.set()
            self._change(state=DownloadState.STOPPING)
            self.start()

    def _run(self) -> None:
        try:
            if not self._should_stop.is_set():
                self._change(state=DownloadState.RUNNING, error=None)
                self._owner._open_store().pull(self.download.model, self._on_progress, self._should_stop.is_set)
                self._change(state=DownloadState.DONE, rate_bytes_s=0.0)
                return
            self._end_stopped()
        except DownloadCancelledError:
            self._end_stopped()
        except InferenceError as error:
            self._change(state=DownloadState.FAILED, rate_bytes_s=0.0, error=error)
        finally:
            if self.download.state.is_active:
                # Something that nobody foresaw goes on to the thread's own hook; the window learns that it ended.
                words = (
                    f"Fetching {self.download.model} failed. What was fetched is kept. Try again; the log says more."
                )
                self._change(state=DownloadState.FAILED, rate_bytes_s=0.0, error=InferenceError(words))

    def _end_stopped(self) -> None:
        if not self._deletes:
            self._change(state=DownloadState.PAUSED, rate_bytes_s=0.0)
            if self.restarts:
                self._should_stop.clear()
                self._run()
            return
        try:
            self._owner._open_store().remove(self.download.model)
        except InferenceError as error:
            self._change(state=DownloadState.FAILED, rate_bytes_s=0.0, error=error)
        else:
            self._change(state=DownloadState.CANCELLED, done_bytes=0, rate_bytes_s=0.0)

    def _on_progress(self, done_bytes: int, total_bytes: int, note: str) -> None:
        now = self._clock()
        is_whole = 0 < total_bytes <= done_bytes
        is_news = is_whole is not (self.download.state is DownloadState.CHECKING) or note != self.download.note
        if not is_news and now - self._told_at < TELL_EVERY_S:
            return
        self._told_at = now
        self._marks = [mark for mark in self._marks if now - mark[0] <= RATE_WINDOW_S and mark[1] <= done_bytes]
        if note != self.download.note:
            # What is there already is counted with the first bytes that follow.
            self._marks, done_bytes = [], done_bytes or self.download.done_bytes
        else:
            self._marks.append((now, done_bytes))
        since, base = self._marks[0] if self._marks else (now, done_bytes)
        state = DownloadState.CHECKING if is_whole else DownloadState.RUNNING
        if self._should_stop.is_set():
            state = DownloadState.STOPPING
        rate = (done_bytes - base) / (now - since) if now > since else 0.0
        self._change(state=state, done_bytes=done_bytes, total_bytes=total_bytes, rate_bytes_s=rate, note=note)

    def _change(self, **changes: object) -> None:
        self.download = replace(self.download, **changes)  # type: ignore[arg-type]
        self._owner._tell(self.download)
