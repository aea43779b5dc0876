"""JSON files of a model directory, read with a limit on their size."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from inference.errors import ModelFormatError

MIB = 1 << 20


def read_text(path: Path, max_bytes: int) -> str:
    """The text of a UTF-8 file.

    Raises:
        ModelFormatError: missing, larger than `max_bytes`, or not UTF-8.
    """
    try:
        size = path.stat().st_size
        if size > max_bytes or not path.is_file():
            raise ModelFormatError(
                f"{path} has {size} bytes, but at most {max_bytes} are read of a {path.name}. Fetch the model again."
            )
        return path.read_text(encoding="utf-8")
    except OSError as error:
        reason = error.strerror or error
        raise ModelFormatError(f"{path} cannot be read: {reason}. Fetch the model again, whole.") from error
    except UnicodeDecodeError as error:
        raise ModelFormatError(f"{path} is no UTF-8 text at byte {error.start}. Fetch the model again.") from error


def parse_object(text: str | bytes, what: str) -> dict[str, Any]:
    """The JSON object in `text`; `what` names it in errors.

    Raises:
        ModelFormatError: no JSON, no object, nested too deeply, or a key occurs twice.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) != len(pairs):
            raise ValueError("a key occurs twice")
        return members

    try:
        value = json.loads(text, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise ModelFormatError(f"{what} is no sound JSON: {error}. Fetch the model again.") from error
    if not isinstance(value, dict):
        raise ModelFormatError(f"{what} is no JSON object but a {type(value).__name__}. Fetch the model again.")
    return value


def read_object(path: Path, max_bytes: int = 4 * MIB) -> dict[str, Any]:
    """The JSON object in a file. Raises ModelFormatError as `read_text` and `parse_object` do."""
    return parse_object(read_text(path, max_bytes), str(path))


def read_optional_object(path: Path, max_bytes: int = 4 * MIB) -> dict[str, Any]:
    """As `read_object`, but an empty object where there is no such file."""
    return read_object(path, max_bytes) if path.exists() else {}
