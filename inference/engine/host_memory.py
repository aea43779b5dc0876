"""How much main memory is free for a model. The only file that asks the operating system about it."""

from __future__ import annotations

from pathlib import Path

import psutil

_CGROUPS = Path("/sys/fs/cgroup")


def available_bytes(cgroups: Path = _CGROUPS) -> int:
    """Bytes that can be had without swapping: the machine's, or a container's where it allows less.

    Args:
        cgroups: where Linux describes the container's limits; absent on other systems.
    """
    available = int(psutil.virtual_memory().available)
    limit = _container_bytes(cgroups)
    return available if limit is None else min(available, limit)


def _container_bytes(cgroups: Path) -> int | None:
    """What control groups still allow (version 2, then 1); None where there is no limit."""
    for limit_name, used_name, cache_key in (
        ("memory.max", "memory.current", "inactive_file"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "total_inactive_file"),
    ):
        try:
            limit = (cgroups / limit_name).read_text(encoding="ascii").strip()
            used = int((cgroups / used_name).read_text(encoding="ascii"))
            stat = (cgroups / used_name).with_name("memory.stat").read_text(encoding="ascii")
        except (OSError, ValueError):
            continue
        if not limit.isdigit():
            return None
        # Cached file contents count as used, but give way as soon as memory is needed.
        cache = dict(line.split() for line in stat.splitlines()).get(cache_key, "0")
        return max(0, int(limit) - used + int(cache))
    return None
