"""The machine, in the lines that the doctor and the bundle share."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from app.actions.registry import ActionRegistry
from app.diagnostics import bundle, doctor, machine
from app.diagnostics.machine import gpu_lines, processor_lines
from app.engine_setup import load_settings
from app.memory.vram import GpuReading, GpuUnreadableError, NoGpuError
from app.translation import UserText

CARD = GpuReading("Card", (8, 6), 4 << 30, 3 << 30, "580.1")
INTEGRATED = GpuReading("Board", (8, 7), 0, None, "580.1")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "nvidia_devices", lambda: {"0000:01:00.0": "suspended"})
    monkeypatch.setattr(bundle, "_kernels", list)
    monkeypatch.setattr(doctor, "_cuda", lambda: iter(["CUDA works"]))


def set_gpus(monkeypatch: pytest.MonkeyPatch, *found: GpuReading) -> None:
    monkeypatch.setattr(machine, "read_gpus", lambda: list(found))


def fail(monkeypatch: pytest.MonkeyPatch, error: GpuUnreadableError, cause: Exception | None = None) -> None:
    def fails() -> list[GpuReading]:
        raise error from cause

    monkeypatch.setattr(machine, "read_gpus", fails)


def test_processor_memory_and_disk() -> None:
    cpu, memory, disk = processor_lines()
    assert re.search(r", (\d+|unknown) cores, \d+ threads$", cpu)
    assert re.fullmatch(r"memory: [\d.]+ [KMGT]?B, [\d.]+ [KMGT]?B free", memory)
    assert disk.startswith("disk for models: ")


def test_gpus_that_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    set_gpus(monkeypatch, CARD, INTEGRATED)
    assert list(gpu_lines()) == [
        "Card, SM86, 4.00 GB, 3.00 GB free, driver 580.1",
        "Board, SM87, memory unknown, driver 580.1",
    ]
    assert list(doctor.gpus())[2:] == ["CUDA works"]
    set_gpus(monkeypatch)
    assert list(doctor.gpus()) == ["none"]


def test_gpus_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    fail(monkeypatch, GpuUnreadableError(UserText("it sleeps")))
    assert list(doctor.gpus()) == ["it sleeps", "NVIDIA device 0000:01:00.0, suspended"]


def test_a_folder_in_the_error_of_an_import_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    cause = ImportError("cannot import name 'x' from 'pynvml' (/srv/jane/pynvml.py)")
    fail(monkeypatch, NoGpuError(UserText("missing ({reason})", reason=cause)), cause)
    assert next(gpu_lines()) == "the package nvidia-ml-py is missing"


def test_the_bundle_has_the_lines_of_the_doctor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    set_gpus(monkeypatch, CARD)
    monkeypatch.setattr("psutil.virtual_memory", lambda: type("Memory", (), {"total": 8 << 30, "available": 5 << 30}))
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Disk", (), {"free": 9 << 30}))
    files = bundle.bundle(load_settings(), ActionRegistry(user_dir=tmp_path), bundle.AppState())
    (told,) = (file.text.splitlines() for file in files if file.name == "machine.txt")
    of_the_doctor = list(doctor.SECTIONS["CPU"]())
    assert told == [*of_the_doctor, "GPU: Card, SM86, 4.00 GB, 3.00 GB free, driver 580.1"]
