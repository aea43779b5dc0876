"""Checks and deletes models' files, on threads of their own. Knows no window."""

from __future__ import annotations

import threading
from collections.abc import Callable

from app.translation import UserText
from inference.errors import InferenceError
from inference.store.model_store import ModelStore
from inference.store.own_models import verify_own

CLOSE_TIMEOUT_S = 2.0

Told = Callable[[UserText | InferenceError], None]


class _Stopped(BaseException):
    """Ends a check in its middle."""


class ModelFiles:
    """Every method returns at once; what is passed in is called on the thread that did the work.

    Args:
        open_store: asked for each piece of work, on its thread.
    """

    def __init__(self, open_store: Callable[[], ModelStore]) -> None:
        self._open_store = open_store
        self._is_closed = threading.Event()
        self._threads: list[threading.Thread] = []

    def check(self, model: str, tell: Told) -> None:
        """Reads a model as a whole, and compares it with its checksums where there are some."""
        self._start("model-check", lambda: self._check(model), tell)

    def delete(self, model: str, tell: Told) -> None:
        """Deletes a model of the store."""
        self._start("model-delete", lambda: self._delete(model), tell)

    def close(self) -> None:
        """Ends what is under way; nothing is told any more."""
        self._is_closed.set()
        for thread in self._threads:
            thread.join(CLOSE_TIMEOUT_S)

    def _start(self, name: str, work: Callable[[], UserText], tell: Told) -> None:
        def run() -> None:
            told: UserText | InferenceError
            try:
                told = work()
            except InferenceError as error:
                told = error
            except OSError as error:
                told = InferenceError(f"{error.strerror or error}. Check the disk and the permissions, and try again.")
            except _Stopped:
                return
            if not self._is_closed.is_set():
                tell(told)

        self._threads = [thread for thread in self._threads if thread.is_alive()]
        thread = threading.Thread(target=run, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _check(self, model: str) -> UserText:
        store = self._open_store()
        if model.lower() in store.catalog.entries:
            store.verify(model, self._on_progress)
            return UserText("✓ Every byte is right.")
        if verify_own(store.resolve(model), self._on_progress).is_compared:
            return UserText("✓ Every byte is right.")
        return UserText("✓ It can be read as a whole; it states no checksum to compare with.")

    def _delete(self, model: str) -> UserText:
        self._open_store().remove(model)
        return UserText("Deleted")

    def _on_progress(self, _done_bytes: int, _total_bytes: int, _note: str) -> None:
        if self._is_closed.is_set():
            raise _Stopped
