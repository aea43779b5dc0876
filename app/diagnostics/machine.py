"""What the doctor's page and the bundle say of the machine: the same lines, without anything of the user's."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path

from app.memory.vram import GpuReading, GpuUnreadableError, nvidia_devices, read_gpus
from app.paths import data_dir
from inference.byte_size import size_text


def processor_lines() -> Iterator[str]:
    """CPU, memory, disk."""
    import psutil

    cores = psutil.cpu_count(logical=False) or "unknown"
    yield f"{cpu_name()}, {cores} cores, {os.cpu_count()} threads"
    memory = psutil.virtual_memory()
    yield f"memory: {size_text(memory.total)}, {size_text(memory.available)} free"
    # Of the folder where models are kept, or will be.
    folder = next((p for p in (data_dir(), *data_dir().parents) if p.exists()), Path("/"))
    yield f"disk for models: {size_text(shutil.disk_usage(folder).free)} free"


def gpu_lines() -> Generator[str, None, bool]:
    """NVIDIA's GPUs, or why they cannot be read; a sleeping one stays asleep.

    Returns:
        Whether there is one that is awake.
    """
    try:
        found = read_gpus()
    except GpuUnreadableError as error:
        # An error of an import may name a folder of the user's.
        yield "the package nvidia-ml-py is missing" if isinstance(error.__cause__, ImportError) else str(error)
        yield from (f"NVIDIA device {address}, {state}" for address, state in nvidia_devices().items())
        return False
    yield from map(_gpu_line, found)
    if not found:
        yield "none"
    return bool(found)


def cpu_name() -> str:
    """What the CPU calls itself."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        return next(line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown CPU"


def _gpu_line(gpu: GpuReading) -> str:
    major, minor = gpu.compute_capability
    memory = "memory unknown"
    if gpu.free_bytes is not None:
        memory = f"{size_text(gpu.total_bytes)}, {size_text(gpu.free_bytes)} free"
    return f"{gpu.name}, SM{major}{minor}, {memory}, driver {gpu.driver}"
