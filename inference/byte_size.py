"""Sizes of memory, files and downloads as every window, message and command writes them."""

from __future__ import annotations


def size_text(count_bytes: int) -> str:
    """A size for people: 512 B, 24 kB, 3.4 MB, 340 MB, 2.13 GB, 23.4 GB.

    Units count in 1024, as those of main memory and of graphics cards do: a card that is sold with 4 GB has 4.00 GB.
    """
    size = float(count_bytes)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.1f} {unit}" if unit == "MB" and size < 10 else f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.2f} GB" if size < 10 else f"{size:.1f} GB"
