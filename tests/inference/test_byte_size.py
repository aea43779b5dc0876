"""Sizes as every window, message and command writes them."""

from __future__ import annotations

import pytest

from inference.byte_size import size_text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (24 * 1024, "24 kB"),
        (1_000_000, "977 kB"),
        (1024**2, "1.0 MB"),
        (340 * 1024**2, "340 MB"),
        (1000 * 1024**2, "0.98 GB"),
        (4 * 1024**3, "4.00 GB"),  # what is printed on the box of such a card
        (3_475_976_224, "3.24 GB"),
        (25 * 1024**3 + 1024**3 // 2, "25.5 GB"),
    ],
)
def test_a_size_has_three_digits_and_counts_as_memory_does(size: int, text: str) -> None:
    assert size_text(size) == text
