"""Which programs hold the most main memory, so that a refusal can name what to close."""

from __future__ import annotations

import os
from dataclasses import dataclass

import psutil

LEAST_BYTES = 256 * 1024**2


@dataclass(frozen=True, slots=True)
class MemoryHolder:
    """A program and what all its processes hold."""

    name: str
    num_bytes: int


def largest_holders(count: int = 3) -> tuple[MemoryHolder, ...]:
    """The programs that hold the most, without this one. Takes a moment: not for the UI thread."""
    held: dict[str, int] = {}
    for process in psutil.process_iter(["pid", "name", "memory_info"]):
        memory, name = process.info["memory_info"], process.info["name"]
        # What the system does not tell of others' processes is None.
        if memory is not None and name and process.info["pid"] != os.getpid():
            name = name.removesuffix(".exe")
            held[name] = held.get(name, 0) + int(memory.rss)
    largest = sorted(held.items(), key=lambda item: -item[1])[:count]
    return tuple(MemoryHolder(name, size) for name, size in largest if size >= LEAST_BYTES)
