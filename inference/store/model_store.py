"""The models on this machine: a directory with one subdirectory per catalog entry.

    ROOT/ID/...               a whole, verified model: its files and their manifest
    ROOT/.partial/ID/...      what an unfinished download has so far
    ROOT/.locks/ID.lock       held while a model is fetched or removed

A model appears under ROOT by one rename of its directory, after all of it has been verified.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import filelock
import platformdirs

from inference.errors import DownloadError, InferenceError, ModelFormatError, ModelNotFoundError
from inference.formats.json_file import read_object
from inference.formats.partial_file import CHUNK_BYTES, sync_directory
from inference.formats.transfer import IsCancelled, OnProgress, Transfer
from inference.store.catalog import Catalog, CatalogEntry, load_catalog
from inference.store.download import MANIFEST, DownloadOptions, fetch_model

LOCK_POLL_S = 0.25
MAX_SHOWN_NAME = 200


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A catalog entry and what this machine has of it.

    Attributes:
        path: of the model, None where it is not here as a whole.
        num_bytes: on the disk; 0 where it is not here.
        partial_bytes: that an unfinished download has so far.
    """

    entry: CatalogEntry
    path: Path | None
    num_bytes: int
    partial_bytes: int


class ModelStore:
    """Finds, fetches, verifies and removes models. Only `pull` touches the network."""

    def __init__(
        self, root: Path | None = None, *, catalog: Catalog | None = None, options: DownloadOptions | None = None
    ) -> None:
        """`root` None is the user's data directory; nothing is created before something is pulled."""
        self.root = platformdirs.user_data_path("deskinfer", appauthor=False) / "models" if root is None else root
        self.catalog = load_catalog() if catalog is None else catalog
        self._options = options or DownloadOptions()

    def list(self) -> tuple[StoredModel, ...]:
        """All entries of the catalog, in its order."""
        return tuple(self._stored(entry) for entry in self.catalog.entries.values())

    def resolve(self, name_or_path: str | Path) -> Path:
        """The file or directory of a model: a catalog id, a path, or the name of one that lies in the store.

        Raises:
            ModelNotFoundError: neither; names what is alike, and how to fetch it. Or the path cannot be looked at.
        """
        name = str(name_or_path)
        entry = self.catalog.entries.get(name.lower())
        try:
            path = Path(name).expanduser()
            is_directory, exists = path.is_dir(), path.exists()
        except (OSError, RuntimeError) as error:
            # Too long a name, a directory that may not be entered, an unknown user's home.
            raise ModelNotFoundError(
                f"The model {_shown(name)} cannot be looked for ({getattr(error, 'strerror', None) or error})."
                " Check the path and its permissions, or list models: deskinfer models list"
            ) from error
        if entry is not None:
            found = self._present(entry)
            if found is not None:
                return found
            if not exists:
                raise ModelNotFoundError(
                    f"The model {entry.id} is not on this machine (looked in {self.root / entry.id})."
                    f" Fetch it: deskinfer models pull {entry.id}"
                )
        if exists and (is_directory or path.suffix.lower() == ".gguf"):
            return path.resolve()
        own: Path | None = _own().find_own(self.root, name)
        if own is not None:
            return own
        if path.suffix.lower() == ".gguf":
            raise ModelNotFoundError(f"There is no file {path}. Check the path, or list models: deskinfer models list")
        raise self._unknown(name)

    def where(self, model_id: str) -> Path:
        """Where a model of the catalog lies, or would lie. Raises ModelNotFoundError for an unknown id."""
        entry = self._entry(model_id)
        return self.root / entry.id / entry.file if entry.file else self.root / entry.id

    def pull(self, model_id: str, on_progress: OnProgress | None = None, cancelled: IsCancelled | None = None) -> Path:
        """Fetches a model unless it is here already; another process that fetches the same one is waited for.

        Args:
            on_progress: called with (done_bytes, total_bytes, note), on this thread.
            cancelled: asked often; True stops the download.

        Returns:
            The model's path, as `resolve` would give it.

        Raises:
            ModelNotFoundError: an unknown id.
            DownloadError: no source delivered, the disk is full or cannot be written.
            DownloadCancelledError: stopped by `cancelled` or Ctrl+C. Whatever the reason, what is there is kept, and
                the next pull goes on from it.
        """
        entry = self._entry(model_id)
        present = self._present(entry)
        if present is not None:
            return present
        partial = self.root / ".partial" / entry.id
        transfer = Transfer(entry.id, partial, on_progress, cancelled)
        try:
            partial.mkdir(parents=True, exist_ok=True)
            with self._lock(entry, transfer):
                present = self._present(entry)
                if present is not None:
                    return present
                partial.mkdir(parents=True, exist_ok=True)
                _clear_pip_directories(partial)
                fetch_model(entry, partial, transfer, self._options)
                self._publish(entry, partial)
        except KeyboardInterrupt:
            raise transfer.cancelled_error() from None
        except OSError as error:
            raise transfer.write_error(error) from error
        return self.where(entry.id)

    def own(self) -> tuple[Path, ...]:
        """What the user has put into the store: files, checkpoints and directories that no catalog knows."""
        return tuple(_own().own_models(self.root, self.catalog.entries))

    def verify(self, model_id: str, on_progress: OnProgress | None = None) -> Path:
        """Reads a model as a whole and compares every file with its sha256; the model's path.

        Args:
            model_id: of the catalog; or another model, by path or by its name in the store (see verify_own).

        Raises:
            ModelNotFoundError: unknown, or not here.
            ModelFormatError: a file is missing or has wrong bytes; names it.
        """
        if model_id.lower() not in self.catalog.entries:
            own = self.resolve(model_id)
            _own().verify_own(own, on_progress)
            return own
        entry = self._entry(model_id)
        directory = self.root / entry.id
        if not directory.exists():
            self.resolve(entry.id)
        files = self._checksums(entry)
        cure = f"Fetch it again: deskinfer models remove {entry.id}, then deskinfer models pull {entry.id}"
        total_bytes, done_bytes = sum(size for size, _ in files.values()), 0
        for name, (size, sha256) in files.items():
            path = directory / name
            if not path.is_file() or path.stat().st_size != size:
                found = f"{path.stat().st_size} bytes" if path.is_file() else "missing"
                raise ModelFormatError(f"{path} is damaged: {found}, but it must have {size} bytes. {cure}")
            digest = hashlib.sha256()
            with path.open("rb") as file:
                while chunk := file.read(CHUNK_BYTES):
                    digest.update(chunk)
                    done_bytes += len(chunk)
                    if on_progress is not None:
                        on_progress(done_bytes, total_bytes, f"Checking {name}.")
            if digest.hexdigest() != sha256:
                raise ModelFormatError(
                    f"{path} is damaged: its sha256 is {digest.hexdigest()}, but it must be {sha256}. {cure}"
                )
        return self.where(entry.id)

    def remove(self, model_id: str) -> int:
        """Deletes a model and what an unfinished download has left; the bytes that this freed.

        Args:
            model_id: of the catalog; or another model in the store, by its name there or by its path.

        Raises:
            ModelNotFoundError: there is no such model.
            DownloadError: another process is fetching it.
            InferenceError: it cannot be deleted, on Windows because a program has it open.
        """
        if model_id.lower() not in self.catalog.entries:
            freed_bytes: int = _own().remove_own(self.root, self.resolve(model_id))
            return freed_bytes
        entry = self._entry(model_id)
        stored = self._stored(entry)
        directories = [path for path in (self.root / entry.id, self.root / ".partial" / entry.id) if path.exists()]
        if not directories:
            return 0
        try:
            with self._lock(entry, None):
                for directory in directories:
                    shutil.rmtree(directory)
        except OSError as error:
            raise InferenceError(
                f"{entry.id} cannot be deleted from {self.root}: {error.strerror or error}."
                " Close the programs that use the model, check the permissions, and try again."
            ) from error
        return stored.num_bytes + stored.partial_bytes

    def _entry(self, model_id: str) -> CatalogEntry:
        entry = self.catalog.entries.get(model_id.lower())
        if entry is None:
            raise self._unknown(model_id)
        return entry

    def _unknown(self, name: str) -> ModelNotFoundError:
        near = difflib.get_close_matches(name.lower(), self.catalog.entries, n=3, cutoff=0.4)
        near = near or [model_id for model_id in self.catalog.entries if name and name.lower() in model_id]
        meant = f"Did you mean {' or '.join(near)}?" if near else f"There are {', '.join(self.catalog.entries)}."
        return ModelNotFoundError(
            f"There is no model {_shown(name)}: it is no catalog id, .gguf file or model directory. {meant}"
            f" Fetch one: deskinfer models pull {(near or list(self.catalog.entries))[0]}"
        )

    def _present(self, entry: CatalogEntry) -> Path | None:
        """The path of a model that is here as a whole. Sizes are compared; bytes are `verify`'s matter."""
        path = self.where(entry.id)
        try:
            files = self._checksums(entry)
            whole = all((self.root / entry.id / name).stat().st_size == size for name, (size, _) in files.items())
        except (OSError, ModelFormatError):
            return None
        return path if whole else None

    def _checksums(self, entry: CatalogEntry) -> dict[str, tuple[int, str]]:
        """Size and sha256 of every file: the catalog's where it states them, else those in the manifest."""
        if entry.file and entry.num_bytes is not None and entry.sha256 is not None:
            return {entry.file: (entry.num_bytes, entry.sha256)}
        path = self.root / entry.id / MANIFEST
        files = read_object(path).get("files")
        try:
            if not isinstance(files, dict) or not files:
                raise TypeError
            return {str(name): (int(file["bytes"]), str(file["sha256"])) for name, file in files.items()}
        except (KeyError, TypeError, ValueError) as error:
            raise ModelFormatError(
                f"{path} is no manifest of a model. Fetch it again: deskinfer models remove {entry.id}"
            ) from error

    def _stored(self, entry: CatalogEntry) -> StoredModel:
        return StoredModel(
            entry,
            self._present(entry),
            _size_of(self.root / entry.id),
            _size_of(self.root / ".partial" / entry.id),
        )

    def _publish(self, entry: CatalogEntry, partial: Path) -> None:
        target = self.root / entry.id
        if target.exists():
            # Not a whole model, or `pull` would have returned it.
            shutil.rmtree(target)
        os.replace(partial, target)
        sync_directory(self.root)

    @contextmanager
    def _lock(self, entry: CatalogEntry, transfer: Transfer | None) -> Iterator[None]:
        """Holds the entry's lock; waits for it where `transfer` can tell so, else refuses."""
        locks = self.root / ".locks"
        locks.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(locks / f"{entry.id}.lock")
        waiting = False
        while True:
            try:
                lock.acquire(timeout=LOCK_POLL_S)
                break
            except filelock.Timeout:
                if transfer is None:
                    raise DownloadError(
                        f"{entry.id} is being fetched by another process. Wait for it, or stop it, and try again."
                    ) from None
                transfer.check_cancelled()
                if not waiting:
                    transfer.note("Another process is fetching this model; waiting for it.")
                    waiting = True
        try:
            yield
        finally:
            lock.release()


def _own() -> ModuleType:
    """Readers of all formats need NumPy, which a start of the windows should not pay for."""
    from inference.store import own_models

    return own_models


def _shown(name: str) -> str:
    return repr(name if len(name) <= MAX_SHOWN_NAME else f"{name[:MAX_SHOWN_NAME]}...")


def _clear_pip_directories(partial: Path) -> None:
    """Deletes the wheels that a process which was killed has left."""
    for directory in partial.glob("pip-*"):
        shutil.rmtree(directory, ignore_errors=True)


def _size_of(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file()) if directory.exists() else 0
