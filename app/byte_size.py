"""Sizes as a user writes them: 3.237GiB, 800 MB, 512M."""

from __future__ import annotations

import re

from app.translation import UserText

_UNITS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_SIZE = re.compile(r"(\d+(?:[.,]\d+)?)\s*([kmgt]?)(i?)(b?)", re.IGNORECASE)


class ByteSizeError(ValueError):
    """A text is no size.

    Attributes:
        text: value and cure, for the user.
    """

    def __init__(self, text: UserText) -> None:
        self.text = text
        super().__init__(str(text))


def byte_size(text: str) -> int:
    """Bytes of a size; GiB and G count in 1024, GB in 1000.

    Raises:
        ByteSizeError: no size, or none above zero.
    """
    match = _SIZE.fullmatch(text.strip())
    size = 0
    if match is not None:
        number, unit, binary, byte = match.groups()
        base = 1000 if byte and not binary else 1024
        size = int(float(number.replace(",", ".")) * base ** _UNITS[unit.lower()])
    if size <= 0:
        raise ByteSizeError(UserText('"{value}" is no size of memory. Write it like 3.5GiB or 800MB.', value=text))
    return size


def size_text(count_bytes: int) -> str:
    """A size for people: 340 MiB, 2.13 GiB, 23.4 GiB."""
    mib, gib = count_bytes / 1024**2, count_bytes / 1024**3
    if mib < 1000:
        return f"{mib:.0f} MiB"
    return f"{gib:.2f} GiB" if gib < 10 else f"{gib:.1f} GiB"
