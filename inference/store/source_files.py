"""The files that a model consists of, and one hash over them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from inference.errors import ModelFormatError
from inference.formats.huggingface.huggingface import weight_files
from inference.formats.partial_file import CHUNK_BYTES

# What a directory has beside its weights: what the reader takes, and what other programs look for.
_SMALL_FILES = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
)


def weight_files_of(path: Path) -> list[Path]:
    """All files that decide what a model computes: one, or those of a Hugging Face directory."""
    if path.is_file():
        return [path]
    return [*copied_files(path).values(), *weight_files(path)]


def copied_files(path: Path) -> dict[str, Path]:
    """The small files of a Hugging Face directory, by name; none of a single file."""
    return {name: path / name for name in _SMALL_FILES if path.is_dir() and (path / name).is_file()}


def sha256_of(files: Sequence[Path], on_progress: Callable[[int, int], None]) -> str:
    """One sha256 over the names and the bytes of files; of a single file that of its bytes.

    Raises:
        ModelFormatError: a file cannot be read.
    """
    digests, done = [], 0
    try:
        total = sum(path.stat().st_size for path in files)
        for path in files:
            digest = hashlib.sha256()
            with path.open("rb") as file:
                while chunk := file.read(CHUNK_BYTES):
                    digest.update(chunk)
                    done += len(chunk)
                    on_progress(done, total)
            digests.append(f"{digest.hexdigest()}  {path.name}\n")
    except OSError as error:
        raise ModelFormatError(
            f"{error.filename} cannot be read: {error.strerror or error}. Check its permissions and its disk."
        ) from error
    if len(digests) == 1:
        return digests[0].split()[0]
    return hashlib.sha256("".join(digests).encode()).hexdigest()
