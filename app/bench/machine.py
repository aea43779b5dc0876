"""Where and when a benchmark ran: what a figure needs beside it to be worth anything."""

from __future__ import annotations

import datetime
import importlib.metadata
import platform
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from app.diagnostics.doctor import shorten_home
from app.diagnostics.machine import cpu_name
from app.memory.vram import GpuUnreadableError, read_gpus

_LIBRARIES = ("deskinfer", "numpy", "cuda-bindings", "nvidia-cuda-nvrtc-cu12", "torch", "transformers", "bitsandbytes")


@dataclass(frozen=True, slots=True)
class Machine:
    """Facts of a run.

    Attributes:
        gpus: name, compute capability, memory and driver of each.
        versions: {distribution: version} of what is installed.
        date: local time with its offset, ISO 8601.
        command: as typed, the home directory shortened.
    """

    cpu: str
    gpus: tuple[str, ...]
    system: str
    python: str
    versions: dict[str, str]
    date: str
    command: str


def this_machine(arguments: Sequence[str] | None = None) -> Machine:
    """Facts of this process; `arguments` are those of the command line."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    return Machine(
        cpu=cpu_name(),
        gpus=gpu_lines(),
        system=platform.platform(terse=True),
        python=platform.python_version(),
        versions=_versions(),
        date=datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        command=shorten_home(shlex.join(["deskinfer", *words])),
    )


def gpu_lines() -> tuple[str, ...]:
    """A line for each NVIDIA GPU; () where there is none, or none that is awake."""
    try:
        found = read_gpus()
    except GpuUnreadableError:
        return ()
    return tuple(
        f"{gpu.name}, SM{gpu.compute_capability[0]}{gpu.compute_capability[1]}, {gpu.total_bytes / 2**30:.1f} GiB,"
        f" driver {gpu.driver}"
        for gpu in found
    )


def _versions() -> dict[str, str]:
    found = {}
    for name in _LIBRARIES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
