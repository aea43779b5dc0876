"""Writes a checkpoint file by file, so that an interruption at any moment costs no more than the file it fell into.

A file grows as NAME.part, is put on the disk, takes its name, and is then noted in the journal. manifest.json comes
last, by one rename: a directory without it is no model. The journal holds the recipe too, and a run with another recipe
does not go on from it.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import filelock

from inference.byte_size import size_text
from inference.errors import ModelFormatError, QuantizeError, UnsupportedModelError
from inference.formats.checkpoint.layout import LayoutFile, checkpoint_layout
from inference.formats.checkpoint.manifest import (
    JOURNAL,
    MANIFEST,
    Manifest,
    ManifestFile,
    Recipe,
    read_manifest,
    states_checkpoint,
)
from inference.formats.partial_file import CHUNK_BYTES, sync_directory
from kernels.weights.quant_format import QuantFormat

MIB = 1 << 20

_LOCK = "quantize.lock"
_PART = ".part"
_ALIGNMENT = 256
"""Where the tensors of a file begin: tiles are multiples of 32 bytes, so all of them are aligned to that."""
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
_DISK_FULL_WINDOWS = (39, 112)

Chunks = Iterable[bytes | memoryview]


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """One tensor of a safetensors file: `dtype` "U8" or "F32"."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def num_bytes(self) -> int:
        """As stored."""
        count = 1
        for size in self.shape:
            count *= size
        return count * (4 if self.dtype == "F32" else 1)


def entries_of(layout_file: LayoutFile, formats: Mapping[str, str]) -> tuple[TensorEntry, ...]:
    """The tensors of a file, in order; `formats` by stored name."""
    entries = []
    for tensor in layout_file.tensors:
        if tensor.is_matrix:
            num_bytes = QuantFormat.parse(formats[tensor.name]).nbytes(tensor.rows, tensor.columns)
            entries.append(TensorEntry(tensor.name, "U8", (num_bytes,)))
        else:
            entries.append(TensorEntry(tensor.name, "F32", (tensor.rows,)))
    return tuple(entries)


def planned_bytes(recipe: Recipe) -> int:
    """Bytes of all tensors of a checkpoint."""
    files = checkpoint_layout(recipe.spec)
    return sum(entry.num_bytes for file in files for entry in entries_of(file, recipe.formats))


class CheckpointWriter:
    """One run that writes a checkpoint into a directory."""

    def __init__(self, directory: Path, recipe: Recipe, *, force: bool = False) -> None:
        """Makes the directory, or takes up what an earlier run of the same recipe has finished.

        Args:
            force: a checkpoint of another recipe, whole or not, is deleted first.

        Raises:
            QuantizeError: the directory holds something else, another run works in it, or it cannot be written.
        """
        self.directory = directory
        self._recipe = recipe
        self._files: dict[str, ManifestFile] = {}
        self._lock = filelock.FileLock(directory / _LOCK)
        with self._disk_errors():
            directory.mkdir(parents=True, exist_ok=True)
            try:
                self._lock.acquire(timeout=0)
            except filelock.Timeout:
                raise QuantizeError(
                    f"Another deskinfer quantize writes to {directory}. Wait for it, or choose another directory."
                ) from None
        try:
            self.is_whole = self._take_up(force)
        except BaseException:
            self.close()
            raise

    @property
    def finished_bytes(self) -> int:
        """Of the files that are finished."""
        return sum(file.num_bytes for file in self._files.values())

    def has(self, name: str) -> bool:
        """Whether a file is finished."""
        return name in self._files

    def require_space(self) -> None:
        """Raises QuantizeError where the disk has no room for what is missing."""
        needed = planned_bytes(self._recipe) - self.finished_bytes + 32 * MIB
        free = shutil.disk_usage(self.directory).free
        if free < needed:
            raise QuantizeError(
                f"The checkpoint needs {size_text(needed)} more, but {size_text(free)} are free at"
                f" {self.directory}. Free some space, or choose another directory."
            )

    def write_tensors(self, name: str, entries: Sequence[TensorEntry], chunks: Chunks) -> None:
        """Writes a safetensors file; `chunks` yields the bytes of all entries in order, in pieces of any size."""
        total = sum(entry.num_bytes for entry in entries)
        self.write(name, _with_header(entries, chunks), expected_bytes=total)

    def write(self, name: str, chunks: Chunks, *, expected_bytes: int | None = None) -> None:
        """Writes a file and notes it in the journal.

        Raises:
            QuantizeError: the disk is full, or cannot be written. Nothing of the file counts.
        """
        path = self.directory / name
        part = path.with_name(name + _PART)
        digest, size, header = hashlib.sha256(), 0, 0
        with self._disk_errors():
            with part.open("wb") as file:
                for index, chunk in enumerate(chunks):
                    file.write(chunk)
                    digest.update(chunk)
                    size += len(chunk)
                    header = len(chunk) if index == 0 else header
                file.flush()
                os.fsync(file.fileno())
            if expected_bytes is not None:
                assert size - header == expected_bytes, f"{name}: {size - header} bytes for {expected_bytes}"
            os.replace(part, path)
            self._files[name] = ManifestFile(size, digest.hexdigest())
            self._write_document(JOURNAL)

    def finish(self) -> None:
        """Writes manifest.json: from now on the directory is a model."""
        with self._disk_errors():
            self._write_document(MANIFEST)
            (self.directory / JOURNAL).unlink(missing_ok=True)
        self.is_whole = True

    def close(self) -> None:
        """Lets other runs in."""
        self._lock.release()
        if not self._lock.is_locked:
            (self.directory / _LOCK).unlink(missing_ok=True)

    def _take_up(self, force: bool) -> bool:
        """Decides what becomes of what is there; True where nothing is left to do."""
        check_directory(self.directory)
        name = _manifest_in(self.directory)
        if name is None:
            with self._disk_errors():
                self._write_document(JOURNAL)
            return False
        found = self._read(name, force)
        if found is not None and found.recipe == self._recipe:
            self._keep_sound(found.files)
            if name == MANIFEST and len(self._files) == len(found.files):
                return True
        elif not force and (found is None or found.files or name == MANIFEST):
            kind = "another checkpoint" if name == MANIFEST else "another checkpoint that is not finished"
            raise QuantizeError(
                f"{self.directory} holds {kind}{_description(found)}."
                " Choose another directory, or overwrite it with --force."
            )
        with self._disk_errors():
            # First, so that what is there is no model from here on.
            self._write_document(JOURNAL)
            (self.directory / MANIFEST).unlink(missing_ok=True)
            for old in found.files if found is not None else ():
                if old not in self._files:
                    (self.directory / old).unlink(missing_ok=True)
            for rest in self.directory.glob("*" + _PART):
                rest.unlink()
        return False

    def _read(self, name: str, force: bool) -> Manifest | None:
        try:
            return read_manifest(self.directory, name)
        except (ModelFormatError, UnsupportedModelError) as error:
            if not force:
                raise QuantizeError(f"{error} Or overwrite it with --force.") from error
            return None

    def _keep_sound(self, files: Mapping[str, ManifestFile]) -> None:
        """Takes over the files that are still what they were when they were written."""
        for name, file in files.items():
            path = self.directory / name
            try:
                with path.open("rb") as opened:
                    digest = hashlib.sha256()
                    while chunk := opened.read(CHUNK_BYTES):
                        digest.update(chunk)
            except OSError:
                continue
            if digest.hexdigest() == file.sha256:
                self._files[name] = file

    def _write_document(self, name: str) -> None:
        path = self.directory / name
        part = path.with_name(name + _PART)
        text = json.dumps(Manifest(self._recipe, self._files).to_json(), indent=1)
        with part.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
        sync_directory(self.directory)

    def _disk_errors(self) -> AbstractContextManager[None]:
        return _disk_errors(self.directory)


def check_directory(directory: Path) -> None:
    """Raises QuantizeError where no checkpoint may be written, forced or not: a file, or among other things."""
    with _disk_errors(directory):
        if not directory.is_dir():
            if directory.exists() or directory.is_symlink():
                raise QuantizeError(f"{directory} is no directory. Choose a directory that is empty or new.")
            return
        name = _manifest_in(directory)
        if name is not None and states_checkpoint(directory / name):
            return
        # A lone journal's copy is what a run that was killed at its very start leaves.
        own = (_LOCK, JOURNAL + _PART)
        others = sorted(path.name for path in directory.iterdir() if not path.name.startswith(own))
    if others:
        raise QuantizeError(
            f"{directory} holds {others[0]!r} and no checkpoint. Choose a directory that is empty or new."
        )


def _manifest_in(directory: Path) -> str | None:
    return next((name for name in (MANIFEST, JOURNAL) if (directory / name).exists()), None)


@contextmanager
def _disk_errors(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in _DISK_FULL or getattr(error, "winerror", None) in _DISK_FULL_WINDOWS:
            what = "the disk is full. Free some space and give the same command again: finished files are kept"
        else:
            what = f"{error.strerror or error}. Check the permissions, or choose another directory"
        raise QuantizeError(f"{directory} cannot be written: {what}.") from error


def _description(found: Manifest | None) -> str:
    return "" if found is None else f" ({found.recipe.scheme} of {found.recipe.source.name})"


def _with_header(entries: Sequence[TensorEntry], chunks: Chunks) -> Iterator[bytes | memoryview]:
    """The header, padded with spaces as the container allows, as the first chunk; then the bytes of the tensors."""
    table: dict[str, Any] = {"__metadata__": {"format": "deskinfer"}}
    offset = 0
    for entry in entries:
        end = offset + entry.num_bytes
        table[entry.name] = {"dtype": entry.dtype, "shape": list(entry.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(table, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % _ALIGNMENT)
    yield len(text).to_bytes(8, "little") + text
    yield from chunks
