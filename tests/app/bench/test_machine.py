"""What stands beside every figure."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from app.bench import machine
from app.bench.machine import gpu_lines, this_machine
from app.memory.vram import GpuReading, GpuUnreadableError


def test_facts_of_this_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "gpu_lines", lambda: ())
    found = this_machine(["bench", "--model", f"{Path.home()}/a b.gguf"])
    assert found.command == "deskinfer bench --model '~/a b.gguf'"
    assert found.cpu
    assert "numpy" in found.versions
    assert datetime.datetime.fromisoformat(found.date).tzinfo is not None


def test_gpus_are_told_with_their_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    reading = GpuReading("NVIDIA H200", (9, 0), 150 << 30, 149 << 30, "580.1")
    monkeypatch.setattr(machine, "read_gpus", lambda: [reading])
    assert gpu_lines() == ("NVIDIA H200, SM90, 150.0 GiB, driver 580.1",)


def test_a_sleeping_gpu_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def asleep() -> list[GpuReading]:
        raise GpuUnreadableError("asleep")

    monkeypatch.setattr(machine, "read_gpus", asleep)
    assert gpu_lines() == ()
