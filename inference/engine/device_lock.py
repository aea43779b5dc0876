"""One model for all processes on a device: a lock for the host and one for each GPU, and beside it who holds it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import filelock
import platformdirs

from inference.errors import InferenceError, ModelResidentError


def default_lock_dir() -> Path:
    """The user's state directory; every process of this user looks there."""
    return platformdirs.user_state_path("deskinfer", appauthor=False) / "locks"


class DeviceLock:
    """Held while a model is resident on a device. The system frees it when the process ends, however it ends.

    Args:
        directory: where the lock lies; made when first needed.
        device: the lock's name.
    """

    def __init__(self, directory: Path, device: str = "cpu") -> None:
        self._directory = directory
        self._device = device
        # The holder is written to a file of its own: Windows lets no other process read a locked one.
        self._holder = directory / f"{device}.json"
        self._lock = filelock.FileLock(directory / f"{device}.lock", timeout=0, thread_local=False)

    @property
    def is_held(self) -> bool:
        """By this object."""
        return bool(self._lock.is_locked)

    def acquire(self, model: str) -> None:
        """Takes the lock, or changes the model's name where it is held already.

        Raises:
            ModelResidentError: another process holds it.
            InferenceError: the directory cannot be written.
        """
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            if not self.is_held:
                self._lock.acquire()
            self._holder.write_text(json.dumps({"pid": os.getpid(), "model": model}), encoding="utf-8")
        except filelock.Timeout:
            raise ModelResidentError(self._held_by()) from None
        except OSError as error:
            self.release()
            raise InferenceError(
                f"The lock for the {self._device} cannot be written to {self._directory} ({error.strerror})."
                " Make that directory writable."
            ) from error

    def release(self) -> None:
        """Gives the lock back; nothing happens where it is not held."""
        if self.is_held:
            self._holder.unlink(missing_ok=True)
            self._lock.release()

    def _held_by(self) -> str:
        who, what = "Another process", "a model"
        try:
            holder = json.loads(self._holder.read_text(encoding="utf-8"))
            who, what = f"Another DeskInfer (process {int(holder['pid'])})", f"the model {holder['model']!s}"
        except (OSError, ValueError, KeyError, TypeError):
            # It has only just been taken, or just been given back.
            pass
        return (
            f"{who} holds {what} on the {self._device}, and only one model may be in memory at a time."
            " Unload the model there or quit that program, then try again."
        )


class DeviceLocks:
    """The host's lock while a model is planned or lies in its memory; its GPU's while it lies there.

    So two processes never plan with the same memory, and a model on a GPU is in nobody's way on the host.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._locks = {"cpu": DeviceLock(directory)}

    def acquire(self, model: str) -> None:
        """Takes the host's lock, unless a GPU's is held: then that one's holder is renamed. Raises as DeviceLock."""
        held = [lock for lock in self._locks.values() if lock.is_held]
        (held or [self._locks["cpu"]])[0].acquire(model)

    def settle(self, model: str, device: str) -> None:
        """Takes the lock of the device that the model will lie on, and gives the others back.

        Raises:
            ModelResidentError, InferenceError: as DeviceLock; nothing is held then.
        """
        lock = self._locks.setdefault(device, DeviceLock(self._directory, device))
        try:
            lock.acquire(model)
        except InferenceError:
            self.release()
            raise
        for other in self._locks.values():
            if other is not lock:
                other.release()

    def release(self) -> None:
        """Gives all back."""
        for lock in self._locks.values():
            lock.release()
