"""A text of the user's: to calibrate with, or to score."""

from __future__ import annotations

from pathlib import Path

from inference.byte_size import size_text
from inference.errors import InvalidRequestError

MAX_TEXT_BYTES = 64 * 2**20


def read_text_file(path: Path) -> str:
    """The text of a UTF-8 file.

    Raises:
        InvalidRequestError: no file, larger than MAX_TEXT_BYTES, or not UTF-8.
    """
    try:
        if path.exists() and not path.is_file():
            raise InvalidRequestError(f"{path} is no file. Give a text file in UTF-8.")
        size = path.stat().st_size
        if size > MAX_TEXT_BYTES:
            raise InvalidRequestError(
                f"{path} has {size_text(size)}, but a text may have {size_text(MAX_TEXT_BYTES)}. Give a part of it."
            )
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidRequestError(
            f"{path} cannot be read: {error.strerror or error}. Check the path and its permissions."
        ) from error
    except UnicodeDecodeError as error:
        raise InvalidRequestError(
            f"{path} is no UTF-8 text at byte {error.start}. Give a plain text file, saved as UTF-8."
        ) from error
