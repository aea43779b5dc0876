"""Models that no catalog knows: files and checkpoints that the user has put into the store, or keeps elsewhere."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from inference.errors import InferenceError, ModelFormatError
from inference.formats.checkpoint.checkpoint import verify_checkpoint
from inference.formats.json_file import read_object
from inference.formats.model_file import open_model
from inference.formats.partial_file import CHUNK_BYTES
from inference.formats.transfer import OnProgress
from inference.store.download import MANIFEST
from inference.store.model_facts import model_kind

MOST_LISTED = 500
"""Entries of a folder that are looked at: a folder of downloads is no library of models."""


def models_in(folder: Path) -> list[Path]:
    """The models that lie in a folder itself; [] where it cannot be read."""
    try:
        entries = sorted(folder.iterdir())[:MOST_LISTED]
    except OSError:
        return []
    return [path for path in entries if not path.name.startswith(".") and model_kind(path) is not None]


def own_models(root: Path, catalog_ids: Collection[str]) -> list[Path]:
    """What the user has put into the store."""
    return [path for path in models_in(root) if path.name not in catalog_ids]


def find_own(root: Path, name: str) -> Path | None:
    """A model of the store by its name there; None where there is none."""
    plain = bool(name) and Path(name).name == name and "\\" not in name and not name.startswith(".")
    return root / name if plain and model_kind(root / name) is not None else None


def remove_own(root: Path, path: Path) -> int:
    """Deletes a model of the user from the store; the bytes that this freed.

    Raises:
        InferenceError: it lies elsewhere and is not ours to delete; or it cannot be deleted, on Windows because a
            program has it open.
    """
    path = path.resolve()
    if path.parent != root.resolve() or model_kind(path) is None:
        raise InferenceError(f"{path} lies outside the folder of models, {root}. Delete it yourself if you want to.")
    size = path.stat().st_size if path.is_file() else sum(p.stat().st_size for p in path.rglob("*") if p.is_file())
    try:
        path.unlink() if path.is_file() else shutil.rmtree(path)
    except OSError as error:
        raise InferenceError(
            f"{path} cannot be deleted: {error.strerror or error}. Close the programs that use the model, check the"
            " permissions, and try again."
        ) from error
    return size


@dataclass(frozen=True, slots=True)
class OwnCheck:
    """What reading a model as a whole has told.

    Attributes:
        is_compared: every file has the checksum that it should have; else only the structure could be looked at.
        sha256: of its one file, "" where it has several.
    """

    is_compared: bool
    sha256: str = ""


def verify_own(path: Path, on_progress: OnProgress | None = None) -> OwnCheck:
    """Reads a model as a whole; its checksums where it states some, else its structure.

    Raises:
        ModelFormatError, UnsupportedModelError, ModelNotFoundError: damaged, not run here, or gone.
    """
    kind = model_kind(path)
    if kind == "checkpoint":
        verify_checkpoint(path, on_progress)
        return OwnCheck(is_compared=True)
    source = open_model(path)
    try:
        source.tokenizer_data()
        opened = source.path
    finally:
        source.close()
    files = [opened] if opened.is_file() else sorted(p for p in opened.iterdir() if p.is_file() and p.name != MANIFEST)
    stated = _stated_checksums(opened if opened.is_dir() else opened.parent)
    total_bytes, done_bytes, sha256 = sum(file.stat().st_size for file in files), 0, ""
    for file in files:
        digest = hashlib.sha256()
        with file.open("rb") as read:
            while chunk := read.read(CHUNK_BYTES):
                digest.update(chunk)
                done_bytes += len(chunk)
                if on_progress is not None:
                    on_progress(done_bytes, total_bytes, f"Checking {file.name}.")
        sha256 = digest.hexdigest()
        if stated.get(file.name, sha256) != sha256:
            raise ModelFormatError(
                f"{file} is damaged: its sha256 is {sha256}, but it must be {stated[file.name]}. Fetch it again."
            )
    return OwnCheck(all(file.name in stated for file in files), sha256 if len(files) == 1 else "")


def _stated_checksums(directory: Path) -> dict[str, str]:
    """The checksums that a download has left beside the files, by name."""
    try:
        files = read_object(directory / MANIFEST).get("files")
    except ModelFormatError:
        return {}
    entries = files.items() if isinstance(files, dict) else ()
    return {name: entry["sha256"] for name, entry in entries if isinstance(entry, dict) and "sha256" in entry}
