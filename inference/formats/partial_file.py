"""A file that is being fetched: it grows as NAME.part and takes its name only when it is whole and verified."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from inference.formats.transfer import Transfer

CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Checksum:
    """What a file must be.

    Attributes:
        num_bytes: its size.
        sha256: of its bytes, "" where only `git_blob` is stated.
        git_blob: git's object id of the file (sha1 over a header and the bytes), which hubs state for small files.
    """

    num_bytes: int
    sha256: str = ""
    git_blob: str = ""


class PartialFile:
    """Bytes are only ever appended, so that any source can go on where another one, or another run, has stopped."""

    def __init__(self, path: Path, transfer: Transfer) -> None:
        """`path` is the final name. A file that has it already is taken up again, to be verified once more."""
        self.path = path
        self._part = path.with_name(path.name + ".part")
        self._transfer = transfer
        if path.exists() and not self._part.exists():
            os.replace(path, self._part)

    @property
    def num_bytes(self) -> int:
        """How much there is."""
        try:
            return self._part.stat().st_size
        except FileNotFoundError:
            return 0

    def truncate(self, num_bytes: int) -> None:
        """Cuts what is behind `num_bytes`."""
        if self.num_bytes > num_bytes:
            try:
                os.truncate(self._part, num_bytes)
            except OSError as error:
                raise self._transfer.write_error(error) from error

    def append(self, chunks: Iterable[bytes], appended: Callable[[int], None]) -> None:
        """Writes chunks as they come and calls `appended` with the size after each; on the disk when it returns.

        Raises:
            DownloadError: the disk is full, or cannot be written.
        """
        try:
            with self._part.open("ab") as file:
                size = file.tell()
                for chunk in chunks:
                    file.write(chunk)
                    # So that a process that is killed leaves what it has reported.
                    file.flush()
                    size += len(chunk)
                    appended(size)
                os.fsync(file.fileno())
        except OSError as error:
            raise self._transfer.write_error(error) from error

    def matches(self, checksum: Checksum) -> str | None:
        """Reads the whole file; its sha256 if it is what `checksum` states, else None."""
        if self.num_bytes != checksum.num_bytes:
            return None
        if checksum.num_bytes == 0:
            self._part.touch()
        sha256 = hashlib.sha256()
        git_blob = hashlib.sha1(b"blob %d\0" % checksum.num_bytes, usedforsecurity=False)
        hashes = [sha256] if checksum.sha256 else [sha256, git_blob]
        with self._part.open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                self._transfer.check_cancelled()
                for each in hashes:
                    each.update(chunk)
        digest = sha256.hexdigest()
        same = digest == checksum.sha256 if checksum.sha256 else git_blob.hexdigest() == checksum.git_blob
        return digest if same else None

    def finish(self) -> None:
        """Gives the file its name."""
        try:
            os.replace(self._part, self.path)
        except OSError as error:
            raise self._transfer.write_error(error) from error

    def discard(self) -> None:
        """Deletes what there is."""
        self._part.unlink(missing_ok=True)


def sync_directory(path: Path) -> None:
    """Puts a directory's names on the disk, so that a rename survives a power cut. Windows has no such call."""
    if os.name == "posix":
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
