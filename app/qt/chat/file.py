"""Text files that go along with a question: read whole or refused, and found again in the question's text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.translation import UserText
from inference.byte_size import size_text

# Some 250,000 tokens: more than any model here holds.
LARGEST_BYTES = 1024**2
_MARK = re.compile(r"(?:\A|\n\n)--- ([^\n]+) ---\n")


class ChatFileError(Exception):
    """A file cannot go along.

    Attributes:
        text: name, reason and cure, for the user.
    """

    def __init__(self, text: UserText) -> None:
        self.text = text
        super().__init__(str(text))


@dataclass(frozen=True, slots=True)
class ChatFile:
    """A file that goes along."""

    name: str
    text: str

    @property
    def size(self) -> str:
        """How large it is, for people."""
        return size_text(len(self.text.encode()))


def read_chat_file(path: Path) -> ChatFile:
    """Reads a text file.

    Raises:
        ChatFileError: it is too large, no UTF-8 text, empty, or cannot be read.
    """
    try:
        size = path.stat().st_size
        if size > LARGEST_BYTES:
            raise ChatFileError(
                UserText(
                    "{name} has {size}; the limit is {limit}. Add a part of it.",
                    name=path.name,
                    size=size_text(size),
                    limit=size_text(LARGEST_BYTES),
                )
            )
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ChatFileError(
            UserText("{name} is no text in UTF-8. Save it as UTF-8 text and add it again.", name=path.name)
        ) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise ChatFileError(UserText("{name} cannot be read: {reason}.", name=path.name, reason=reason)) from error
    if "\0" in text:
        raise ChatFileError(
            UserText("{name} is no text in UTF-8. Save it as UTF-8 text and add it again.", name=path.name)
        )
    if not text.strip():
        raise ChatFileError(UserText("{name} is empty.", name=path.name))
    return ChatFile(path.name, text.replace("\r\n", "\n").strip("\n"))


def with_files(text: str, files: Sequence[ChatFile]) -> str:
    """The question and, behind it, each file under its name."""
    parts = [text.strip()] if text.strip() else []
    return "\n\n".join([*parts, *(f"--- {file.name} ---\n{file.text}" for file in files)])


def split_files(text: str) -> tuple[str, list[ChatFile]]:
    """Takes apart what `with_files` has joined."""
    pieces = _MARK.split(text)
    return pieces[0], [ChatFile(name, body) for name, body in zip(pieces[1::2], pieces[2::2], strict=True)]
