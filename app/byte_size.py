"""Sizes as a user types them: 3.5 GB, 3.237GiB, 512M. How we write them: inference/byte_size.py."""

from __future__ import annotations

import re

from app.translation import UserText

_UNITS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_SIZE = re.compile(r"(\d+(?:[.,]\d+)?)\s*([kmgt]?)i?b?", re.IGNORECASE)


class ByteSizeError(ValueError):
    """A text is no size.

    Attributes:
        text: value and cure, for the user.
    """

    def __init__(self, text: UserText) -> None:
        self.text = text
        super().__init__(str(text))


def byte_size(text: str) -> int:
    """Bytes of a size. G, GB and GiB are the same, so that a size can be typed as the windows show it.

    Raises:
        ByteSizeError: no size, or none above zero.
    """
    match = _SIZE.fullmatch(text.strip())
    size = 0
    if match is not None:
        number, unit = match.groups()
        size = int(float(number.replace(",", ".")) * 1024 ** _UNITS[unit.lower()])
    if size <= 0:
        raise ByteSizeError(UserText('"{value}" is no size of memory. Write it like 3.5 GB or 800 MB.', value=text))
    return size
