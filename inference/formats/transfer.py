"""What the steps of a download share: progress, cancelling, and room on the disk."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable
from pathlib import Path

from inference.byte_size import size_text
from inference.errors import DownloadCancelledError, DownloadError

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
_DISK_FULL_WINDOWS = (39, 112)

OnProgress = Callable[[int, int, str], None]
"""Called with (done_bytes, total_bytes, note): 0 as total is "not known yet"; `note` is a sentence on what goes on."""

IsCancelled = Callable[[], bool]


class SourceError(Exception):
    """A source cannot deliver; the next one is tried. The text says why, as the end of a sentence."""


class Transfer:
    """One download as seen by its steps.

    Attributes:
        model: id of the model, for messages.
        directory: where it is written; its disk is the one that may be full.
        total_bytes: of the whole model; 0 while it is not known.
    """

    def __init__(
        self, model: str, directory: Path, on_progress: OnProgress | None = None, cancelled: IsCancelled | None = None
    ) -> None:
        self.model = model
        self.directory = directory
        self.total_bytes = 0
        self._done_bytes = 0
        self._note = ""
        self._on_progress = on_progress
        self._cancelled = cancelled

    def note(self, note: str) -> None:
        """Says what goes on from here."""
        self._note = note
        self._report()

    def advance(self, done_bytes: int) -> None:
        """States how much of the whole model is there, and stops where the user asked for it."""
        self._done_bytes = done_bytes
        self.check_cancelled()
        self._report()

    def check_cancelled(self) -> None:
        """Raises DownloadCancelledError once `cancelled` says so."""
        if self._cancelled is not None and self._cancelled():
            raise self.cancelled_error()

    def cancelled_error(self) -> DownloadCancelledError:
        """What stopping is told as."""
        of_total = f" of {size_text(self.total_bytes)}" if self.total_bytes else ""
        return DownloadCancelledError(
            f"Fetching {self.model} was stopped at {size_text(self._done_bytes)}{of_total}. What is there is kept;"
            f" to go on from it: deskinfer models pull {self.model}"
        )

    def require_space(self, needed_bytes: int) -> None:
        """Raises DownloadError where the disk has no room for as much."""
        free_bytes = self._free_bytes()
        if free_bytes < needed_bytes:
            raise self._no_space(f"needs {size_text(needed_bytes)} more", free_bytes)

    def write_error(self, error: OSError) -> DownloadError:
        """What a failed write is told as."""
        full = error.errno in _DISK_FULL or getattr(error, "winerror", None) in _DISK_FULL_WINDOWS
        if full:
            return self._no_space("found the disk full", self._free_bytes())
        reason = error.strerror or error
        return DownloadError(
            f"{self.model} cannot be written to {self.directory}: {reason}."
            " Check the permissions of the directory, or choose another one for models."
        )

    def disk_full_error(self) -> DownloadError:
        """As `write_error`, where another program found the disk full."""
        return self.write_error(OSError(errno.ENOSPC, "No space left on device"))

    def _free_bytes(self) -> int:
        # On a full disk the directory itself may be what could not be made.
        existing = next(path for path in (self.directory, *self.directory.parents) if path.exists())
        return shutil.disk_usage(existing).free

    def _no_space(self, what: str, free_bytes: int) -> DownloadError:
        return DownloadError(
            f"Fetching {self.model} {what}, and {size_text(free_bytes)} are free at {self.directory}."
            " What was fetched is kept. Free some space, or choose another directory for models, and pull again."
        )

    def _report(self) -> None:
        if self._on_progress is not None:
            self._on_progress(self._done_bytes, self.total_bytes, self._note)
